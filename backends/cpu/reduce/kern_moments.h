// SPDX-License-Identifier: Apache-2.0
// MOMENTS of one element type T, in vectors V of LANES; included once for each by kern_moments.c, which says how the
// work is cut.  A panel is LANES channels of a piece's rows, one row behind another, without the shift; one more vector
// behind it keeps panels off each other's cache sets.

// n rows from r on: their extremes, sums in f64, panels and (diagonal) squares.
static inline void NAME(rows)(const struct part *p, int64_t r, const int n, T *d, T *e)
{
	const struct job *j = p->job;
	const int64_t units = j->width / LANES, size = (p->rows + 1) * LANES;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w;
	T *low = (T *)p->low, *high = (T *)p->high, *shift = (T *)p->shift, *square = (T *)p->square;
	T weight[ROWS];
	for (int k = 0; k < n; k++)
		weight[k] = p->weighed ? w[p->row[r + k] * j->ws] : (T)1;
	for (int64_t unit = 0; unit < units; unit++) {
		const int64_t at = unit ? j->odd + (unit - 1) * LANES : 0, to = unit * LANES;
		V least = LOAD(low + to), most = LOAD(high + to), squares = LOAD(square + to);
		const V off = LOAD(shift + to);
		vd sum[LANES / VD];
		for (int h = 0; h < LANES / VD; h++)
			sum[h] = vd_load(p->mean + to + h * VD);
		for (int k = 0; k < n; k++) {
			const int64_t row = p->row[r + k];
			const T *from = x + row * j->rs + at * j->cs;
			T line[LANES] = { 0 };
			if (j->cs != 1 || row * j->rs + at + LANES > j->extent) { // else what is behind the channels is not used
				for (int64_t c = 0; c < LANES && at + c < j->channels; c++)
					line[c] = from[c * j->cs];
				from = line;
			}
			V v = LOAD(from);
			least = MIN(v, least);
			most = MAX(v, most);
			for (int h = 0; h < LANES / VD; h++)
				sum[h] = vd_fma(WIDEN(from + h * VD), vd_splat((double)weight[k]), sum[h]);
			v -= off;
			const V weighed = v * weight[k];
			if (j->diagonal) {
				squares = FMA(weighed, v, squares);
				continue;
			}
			STORE(d + unit * size + (r + k) * LANES, v);
			if (p->weighed)
				STORE(e + unit * size + (r + k) * LANES, weighed);
		}
		STORE(low + to, least);
		STORE(high + to, most);
		STORE(square + to, squares);
		for (int h = 0; h < LANES / VD; h++)
			vd_store(p->mean + to + h * VD, sum[h]);
	}
}

// What is taken off all rows: the group's mean, if it is of as much weight, so that squares of what is left are at most
// twice those that the group has in the end; else the piece's own mean.
static void NAME(shift)(const struct part *p)
{
	const struct job *j = p->job;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w;
	T *shift = (T *)p->shift;
	if (p->group->weight >= p->weight) {
		for (int64_t s = 0; s < j->width; s++)
			shift[s] = (T)p->group->mean[s];
		return;
	}
	memset(p->mean, 0, (size_t)j->width * sizeof *p->mean);
	for (int64_t r = 0; r < p->rows; r++) {
		const double weight = p->weighed ? (double)w[p->row[r] * j->ws] : 1;
		const T *from = x + p->row[r] * j->rs;
		for (int64_t c = 0; c < j->channels; c++)
			p->mean[slot(j, c)] += weight * (double)from[c * j->cs];
	}
	for (int64_t s = 0; s < j->width; s++)
		shift[s] = (T)(p->mean[s] / p->weight);
}

// Products of ROWS channels from i0 on with those of `wide` units from `unit` on, added to the group's.
static inline void NAME(tile)(const struct part *p, const T *d, const T *e, int64_t i0, int64_t unit, const int wide)
{
	const struct job *j = p->job;
	const int64_t size = (p->rows + 1) * LANES;
	const T *row[ROWS], *col[WIDE];
	V total[ROWS][WIDE];
	for (int i = 0; i < ROWS; i++) {
		const int64_t s = slot(j, i0 + i < j->channels ? i0 + i : j->channels - 1);
		row[i] = e + s / LANES * size + s % LANES;
	}
	for (int k = 0; k < wide; k++)
		col[k] = d + (unit + k) * size;
	for (int i = 0; i < ROWS; i++)
		for (int k = 0; k < wide; k++)
			total[i][k] = (V){ 0 };
	for (int64_t r0 = 0; r0 < p->rows; r0 += FOLD) {
		const int64_t end = r0 + FOLD < p->rows ? r0 + FOLD : p->rows;
		V sum[ROWS][WIDE];
		for (int i = 0; i < ROWS; i++)
			for (int k = 0; k < wide; k++)
				sum[i][k] = (V){ 0 };
		for (int64_t r = r0 * LANES; r < end * LANES; r += LANES) {
			V x[WIDE];
			for (int k = 0; k < wide; k++)
				x[k] = LOAD(col[k] + r);
			for (int i = 0; i < ROWS; i++) {
				const V y = SPLAT(row[i][r]);
				for (int k = 0; k < wide; k++)
					sum[i][k] = FMA(y, x[k], sum[i][k]);
			}
		}
		for (int i = 0; i < ROWS; i++)
			for (int k = 0; k < wide; k++)
				total[i][k] += sum[i][k];
	}
	for (int i = 0; i < ROWS && i0 + i < j->channels; i++) {
		const int64_t s = slot(j, i0 + i);
		const double s1 = p->sum[s] / p->weight, delta = p->delta[s] * p->factor;
		double *to = p->group->square + (i0 + i) * j->line;
		for (int k = 0; k < wide; k++)
			for (int c = 0; c < LANES; c++) {
				const int64_t at = (unit + k) * LANES + c;
				to[at] += ((double)total[i][k][c] - s1 * p->sum[at]) + delta * p->delta[at];
			}
	}
}

static void NAME(products)(const struct part *p, const T *d, const T *e)
{
	const struct job *j = p->job;
	const int64_t units = j->width / LANES;
	for (int64_t i0 = 0; i0 < j->channels; i0 += ROWS) {
		int64_t unit = slot(j, i0) / LANES;
		for (; unit + WIDE <= units; unit += WIDE)
			NAME(tile)(p, d, e, i0, unit, WIDE);
		for (; unit < units; unit++)
			NAME(tile)(p, d, e, i0, unit, 1);
	}
}

// A NaN among a channel's elements wins over its extremes.
static void NAME(look)(const struct part *p, int64_t channel)
{
	const struct job *j = p->job;
	const T *x = (const T *)(const void *)j->x + channel * j->cs;
	const int64_t s = slot(j, channel);
	for (int64_t r = 0; r < p->rows; r++)
		if (isnan(x[p->row[r] * j->rs]))
			((T *)p->low)[s] = ((T *)p->high)[s] = x[p->row[r] * j->rs];
}

// Joins a piece of rows to its group.
static void NAME(piece)(struct part *p, void *panels)
{
	const struct job *j = p->job;
	const int64_t units = j->width / LANES, size = (p->rows + 1) * LANES;
	struct group *g = p->group;
	T *d = panels, *e = p->weighed && !j->diagonal ? d + units * size : d, *low = (T *)p->low, *high = (T *)p->high,
	  *shift = (T *)p->shift, *square = (T *)p->square;
	const double n = g->weight, m = p->weight;
	NAME(shift)(p);
	for (int64_t s = 0; s < j->width; s++) {
		p->mean[s] = p->squares[s] = square[s] = 0;
		low[s] = (T)INFINITY;
		high[s] = -(T)INFINITY;
	}
	for (int64_t r = 0, end; r < p->rows; r = end) {
		end = r + FOLD < p->rows ? r + FOLD : p->rows;
		int64_t at = r;
		for (; at + ROWS <= end; at += ROWS)
			NAME(rows)(p, at, ROWS, d, e);
		for (; at < end; at++)
			NAME(rows)(p, at, 1, d, e);
		for (int64_t s = 0; j->diagonal && s < j->width; s++) {
			p->squares[s] += (double)square[s];
			square[s] = 0;
		}
	}
	p->factor = n * m / (n + m);
	for (int64_t s = 0; s < j->width; s++) {
		p->mean[s] /= m;
		p->sum[s] = (p->mean[s] - (double)shift[s]) * m;
		p->delta[s] = p->mean[s] - g->mean[s];
		g->mean[s] = n == 0 ? p->mean[s] : g->mean[s] + p->delta[s] * (m / (n + m));
	}
	for (int64_t c = 0; c < j->channels; c++) {
		const int64_t s = slot(j, c);
		if (!isfinite(p->mean[s]))
			NAME(look)(p, c);
		g->low[s] = least(g->low[s], (double)low[s]);
		g->high[s] = -least(-g->high[s], -(double)high[s]);
		if (j->diagonal)
			g->square[s] += p->squares[s] - p->sum[s] * p->sum[s] / m + p->delta[s] * p->delta[s] * p->factor;
	}
	if (!j->diagonal)
		NAME(products)(p, d, e);
	g->weight = n + m;
}
