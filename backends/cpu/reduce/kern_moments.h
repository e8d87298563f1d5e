// SPDX-License-Identifier: Apache-2.0
// MOMENTS for one element type T, whose LOAD gives VD doubles. Included once per type by
// kern_moments.c, which describes the division of work.

// Accumulates n rows from r on: extremes, sums, deviations from the shift and, with `diagonal`,
// squares. plain: channels are contiguous, can be read as vectors beyond the last one, and all
// weights are 1.
__attribute__((always_inline)) static inline void NAME(rows)(const struct part *p, int64_t r,
							     const int n, double *d, double *e,
							     const bool plain, const bool diagonal)
{
	const struct job *j = p->job;
	const int64_t units = j->width / VD, apart = j->apart, odd = j->odd, cs = plain ? 1 : j->cs,
		      channels = j->channels;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w;
	const bool weighed = !plain && p->weighed;
	double weight[ROWS];
	const T *row[ROWS];
	d += r * apart;
	e += r * apart;
	for (int k = 0; k < n; k++) {
		row[k] = x + p->row[r + k] * j->rs;
		weight[k] = weighed ? (double)w[p->row[r + k] * j->ws] : 1;
	}
	for (int64_t unit = 0; unit < units; unit++) {
		const int64_t at = unit ? odd + (unit - 1) * VD : 0, to = unit * VD;
		vd low = vd_load(p->low + to), high = vd_load(p->high + to),
		   squares = vd_load(p->squares + to);
		vd sum = vd_load(p->mean + to);
		const vd off = vd_load(p->shift + to);
		for (int k = 0; k < n; k++) {
			const T *from = row[k] + at * cs;
			T line[VD];
			if (!plain) { // lanes beyond the channels are not used
				for (int64_t c = 0; c < VD; c++)
					line[c] = at + c < channels ? from[c * cs] : 0;
				from = line;
			}
			vd v = LOAD(from);
			low = vd_min(v, low);
			high = vd_max(v, high);
			sum = plain ? sum + v : vd_fma(v, vd_splat(weight[k]), sum);
			v -= off;
			if (diagonal) {
				squares = vd_fma(plain ? v : v * weight[k], v, squares);
				continue;
			}
			vd_store(d + k * apart + to, v);
			if (weighed)
				vd_store(e + k * apart + to, v * weight[k]);
		}
		vd_store(p->low + to, low);
		vd_store(p->high + to, high);
		vd_store(p->mean + to, sum);
		if (diagonal)
			vd_store(p->squares + to, squares);
	}
}

// Sums and extremes of rows r .. end - 1.
static void NAME(look_at)(const struct part *p, int64_t r, int64_t end, double *d, double *e)
{
	const struct job *j = p->job;
	const bool plain = !p->weighed && j->cs == 1;
	for (; r < end; r++) {
		const bool inside = j->channels >= VD || p->row[r] * j->rs + VD <= j->extent;
		if (plain && r + ROWS <= end &&
		    (j->channels >= VD || p->row[r + ROWS - 1] * j->rs + VD <= j->extent)) {
			if (j->diagonal)
				NAME(rows)(p, r, ROWS, d, e, true, true);
			else
				NAME(rows)(p, r, ROWS, d, e, true, false);
			r += ROWS - 1;
		} else if (plain && inside) {
			NAME(rows)(p, r, 1, d, e, true, j->diagonal);
		} else {
			NAME(rows)(p, r, 1, d, e, false, j->diagonal);
		}
	}
}

// Chooses what is subtracted from all rows: the group's mean, if the group has at least as much
// weight, so that squares of the remainder are at most twice the group's final ones; otherwise the
// chunk's own mean.
static void NAME(shift)(const struct part *p)
{
	const struct job *j = p->job;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w;
	double *shift = p->shift;
	if (p->group->weight >= p->weight) {
		memcpy(shift, p->group->mean, (size_t)j->width * sizeof *shift);
		return;
	}
	memset(shift, 0, (size_t)j->width * sizeof *shift);
	for (int64_t r = 0; r < p->rows; r++) {
		const double weight = p->weighed ? (double)w[p->row[r] * j->ws] : 1;
		const T *from = x + p->row[r] * j->rs;
		for (int64_t c = 0; c < j->channels; c++)
			shift[slot(j, c)] += weight * (double)from[c * j->cs];
	}
	for (int64_t s = 0; s < j->width; s++)
		shift[s] /= p->weight;
}

// A NaN in a channel overrides its extremes.
static void NAME(look)(const struct part *p, int64_t channel)
{
	const struct job *j = p->job;
	const T *x = (const T *)(const void *)j->x + channel * j->cs;
	const int64_t s = slot(j, channel);
	for (int64_t r = 0; r < p->rows; r++)
		if (isnan(x[p->row[r] * j->rs]))
			p->low[s] = p->high[s] = (double)x[p->row[r] * j->rs];
}

// Adds a chunk of rows to its group.
static void NAME(item)(struct part *p, double *tile)
{
	const struct job *j = p->job;
	struct group *g = p->group;
	double *d = tile + TALL * j->apart,
	       *e = p->weighed && !j->diagonal ? d + p->rows * j->apart : d;
	const double n = g->weight, m = p->weight;
	NAME(shift)(p);
	for (int64_t s = 0; s < j->width; s++) {
		p->mean[s] = p->squares[s] = 0;
		p->low[s] = INFINITY;
		p->high[s] = -INFINITY;
	}
	NAME(look_at)(p, 0, p->rows, d, e);
	p->factor = n * m / (n + m);
	for (int64_t s = 0; s < j->width; s++) {
		p->mean[s] /= m;
		p->sum[s] = (p->mean[s] - p->shift[s]) * m;
		p->delta[s] = p->mean[s] - g->mean[s];
		g->mean[s] = n == 0 ? p->mean[s] : g->mean[s] + p->delta[s] * (m / (n + m));
	}
	for (int64_t c = 0; c < j->channels; c++) {
		const int64_t s = slot(j, c);
		if (!isfinite(p->mean[s]))
			NAME(look)(p, c);
		g->low[s] = min(g->low[s], p->low[s]);
		g->high[s] = -min(-g->high[s], -p->high[s]);
		if (j->diagonal)
			g->square[s] += p->squares[s] - p->sum[s] * p->sum[s] / m +
					p->delta[s] * p->delta[s] * p->factor;
	}
	if (!j->diagonal)
		products(p, d, e, tile);
	g->weight = n + m;
}
