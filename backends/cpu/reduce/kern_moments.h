// SPDX-License-Identifier: Apache-2.0
// MOMENTS of one element type T, in vectors V of LANES; included once for each by kern_moments.c, which says how the
// work is cut.  A panel is LANES channels of a piece's rows, one row behind another, without the piece's means.

// One channel unit of a piece: panel d, its extremes and (diagonal) squares; what its rounded means miss.
static void NAME(panel)(const struct part *p, int64_t unit, T *d, T *e)
{
	const struct job *j = p->job;
	const int64_t first = unit * LANES, cols = j->channels - first < LANES ? j->channels - first : LANES;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w;
	T shift[LANES] = { 0 };
	V low, high, square = { 0 }, part = { 0 };
	for (int64_t c = 0; c < cols; c++)
		shift[c] = (T)p->mean[first + c];
	const V mean = LOAD(shift);
	low = (V){ 0 } + (T)INFINITY;
	high = -low;
	for (int64_t r = 0; r < p->rows; r++) {
		const int64_t row = p->row[r];
		const T *from = x + row * j->rs + first * j->cs;
		V v;
		if (j->cs == 1 && cols == LANES) {
			v = LOAD(from);
		} else {
			T line[LANES] = { 0 };
			for (int64_t c = 0; c < cols; c++)
				line[c] = from[c * j->cs];
			v = LOAD(line);
		}
		low = MIN(v, low);
		high = MAX(v, high);
		v -= mean;
		const V weighed = p->weighed ? v * w[row * j->ws] : v;
		if (j->diagonal) {
			part = FMA(weighed, v, part);
			if ((r & (FOLD - 1)) == FOLD - 1) {
				square += part;
				part = (V){ 0 };
			}
			continue;
		}
		STORE(d + r * LANES, v);
		if (p->weighed)
			STORE(e + r * LANES, weighed);
	}
	square += part;
	for (int64_t c = 0; c < cols; c++) {
		p->sum[first + c] = (p->mean[first + c] - (double)shift[c]) * p->weight;
		p->low[first + c] = low[c];
		p->high[first + c] = high[c];
		p->square[first + c] = square[c];
		if (isfinite(p->mean[first + c]))
			continue;
		for (int64_t r = 0; r < p->rows; r++) { // a NaN wins
			const double v = x[p->row[r] * j->rs + (first + c) * j->cs];
			if (isnan(v))
				p->low[first + c] = p->high[first + c] = v;
		}
	}
	for (int64_t c = cols; c < LANES; c++) // behind the last channel
		p->sum[first + c] = p->delta[first + c] = 0;
}

// Means of the rows, summed in f64, row by row, since this is what reads them from memory.
static void NAME(means)(const struct part *p)
{
	const struct job *j = p->job;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w;
	const bool vectors = j->cs == 1 && !p->weighed;
	memset(p->mean, 0, (size_t)j->channels * sizeof *p->mean);
	for (int64_t r = 0; r < p->rows; r += 4) {
		const T *from[4];
		double weight[4];
		int64_t c = 0;
		for (int k = 0; k < 4; k++) { // behind the last row comes it once more, without weight
			const int64_t row = p->row[r + k < p->rows ? r + k : p->rows - 1];
			from[k] = x + row * j->rs;
			weight[k] = r + k >= p->rows ? 0 : p->weighed ? (double)w[row * j->ws] : 1;
		}
		for (; vectors && r + 4 <= p->rows && c + VD <= j->channels; c += VD) {
			vd sum = (WIDEN(from[0] + c) + WIDEN(from[1] + c)) + (WIDEN(from[2] + c) + WIDEN(from[3] + c));
			vd_store(p->mean + c, vd_load(p->mean + c) + sum);
		}
		for (; c < j->channels; c++)
			for (int k = 0; k < 4; k++)
				if (weight[k] != 0)
					p->mean[c] += weight[k] * (double)from[k][c * j->cs];
	}
	for (int64_t c = 0; c < j->channels; c++)
		p->mean[c] /= p->weight;
}

// Products of ROWS channels from i0 on with those of `wide` units from `unit` on, added to the group's.
static inline void NAME(tile)(const struct part *p, const T *d, const T *e, int64_t i0, int64_t unit, const int wide)
{
	const struct job *j = p->job;
	const int64_t size = p->rows * LANES;
	const T *row[ROWS], *col[WIDE];
	V total[ROWS][WIDE];
	for (int i = 0; i < ROWS; i++) {
		const int64_t c = i0 + i < j->channels ? i0 + i : j->channels - 1;
		row[i] = e + c / LANES * size + c % LANES;
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
		const double s1 = p->sum[i0 + i] / p->weight, delta = p->delta[i0 + i] * p->factor;
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
	const int64_t units = (j->channels + LANES - 1) / LANES;
	for (int64_t i0 = 0; i0 < j->channels; i0 += ROWS) {
		int64_t unit = i0 / LANES;
		for (; unit + WIDE <= units; unit += WIDE)
			NAME(tile)(p, d, e, i0, unit, WIDE);
		for (; unit < units; unit++)
			NAME(tile)(p, d, e, i0, unit, 1);
	}
}

// Joins a piece of rows to its group.
static void NAME(piece)(struct part *p, void *panels)
{
	const struct job *j = p->job;
	const int64_t units = (j->channels + LANES - 1) / LANES, size = p->rows * LANES;
	struct group *g = p->group;
	T *d = panels, *e = p->weighed && !j->diagonal ? d + units * size : d;
	NAME(means)(p);
	for (int64_t unit = 0; unit < units; unit++)
		NAME(panel)(p, unit, j->diagonal ? d : d + unit * size, j->diagonal ? e : e + unit * size);
	const double n = g->weight, m = p->weight;
	p->factor = n * m / (n + m);
	for (int64_t c = 0; c < j->channels; c++) {
		p->delta[c] = p->mean[c] - g->mean[c];
		g->mean[c] = n == 0 ? p->mean[c] : g->mean[c] + p->delta[c] * (m / (n + m));
		g->low[c] = least(g->low[c], p->low[c]);
		g->high[c] = -least(-g->high[c], -p->high[c]);
		if (j->diagonal)
			g->square[c] += p->square[c] - p->sum[c] * p->sum[c] / m + p->delta[c] * p->delta[c] * p->factor;
	}
	if (!j->diagonal)
		NAME(products)(p, d, e);
	g->weight = n + m;
}
