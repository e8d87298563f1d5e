// SPDX-License-Identifier: Apache-2.0
// MOMENTS of one element type T, in vectors V of LANES; included once for each by kern_moments.c, which says how the
// work is cut.

// n rows from r on: their extremes, sums in f64, what they are off the shift and (diagonal) squares.  plain: channels lie side by
// side, vectors of them may be read at any place, and all weights are 1.
__attribute__((always_inline)) static inline void NAME(rows)(const struct part *p, int64_t r, const int n, T *d, T *e, const bool plain,
							    const bool diagonal)
{
	const struct job *j = p->job;
	const int64_t units = j->width / LANES, apart = j->apart, odd = j->odd, cs = plain ? 1 : j->cs, channels = j->channels;
	const T *x = (const T *)(const void *)j->x, *w = (const T *)(const void *)j->w, *shift = (const T *)p->shift;
	const bool weighed = !plain && p->weighed;
	T *low = (T *)p->low, *high = (T *)p->high, *square = (T *)p->square;
	double *total = p->mean;
	T weight[ROWS];
	const T *row[ROWS];
	d += r * apart;
	e += r * apart;
	for (int k = 0; k < n; k++) {
		row[k] = x + p->row[r + k] * j->rs;
		weight[k] = weighed ? w[p->row[r + k] * j->ws] : (T)1;
	}
	for (int64_t unit = 0; unit < units; unit++) {
		const int64_t at = unit ? odd + (unit - 1) * LANES : 0, to = unit * LANES;
		V least = LOAD(low + to), most = LOAD(high + to), squares = LOAD(square + to);
		const V off = LOAD(shift + to);
		vd sum[LANES / VD];
		for (int h = 0; h < LANES / VD; h++)
			sum[h] = vd_load(total + to + h * VD);
		for (int k = 0; k < n; k++) {
			const T *from = row[k] + at * cs;
			T line[LANES];
			if (!plain) { // what is behind the channels is not used
				for (int64_t c = 0; c < LANES; c++)
					line[c] = at + c < channels ? from[c * cs] : 0;
				from = line;
			}
			V v = LOAD(from);
			least = MIN(v, least);
			most = MAX(v, most);
			for (int h = 0; h < LANES / VD; h++)
				sum[h] = plain ? sum[h] + WIDEN(v, h) : vd_fma(WIDEN(v, h), vd_splat((double)weight[k]), sum[h]);
			v -= off;
			if (diagonal) {
				squares = FMA(plain ? v : v * weight[k], v, squares);
				continue;
			}
			STORE(d + k * apart + to, v);
			if (weighed)
				STORE(e + k * apart + to, v * weight[k]);
		}
		STORE(low + to, least);
		STORE(high + to, most);
		if (diagonal)
			STORE(square + to, squares);
		for (int h = 0; h < LANES / VD; h++)
			vd_store(total + to + h * VD, sum[h]);
	}
}

// Rows from r to end.
static void NAME(look_at)(const struct part *p, int64_t r, int64_t end, T *d, T *e)
{
	const struct job *j = p->job;
	const bool plain = !p->weighed && j->cs == 1;
	for (; r < end; r++) {
		const bool inside = j->channels >= LANES || p->row[r] * j->rs + LANES <= j->extent;
		if (plain && r + ROWS <= end && (j->channels >= LANES || p->row[r + ROWS - 1] * j->rs + LANES <= j->extent)) {
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

// Bytes of the group's next piece, which is read next; 0 where its rows do not lie side by side.
static int64_t NAME(next)(const struct part *p)
{
	const struct job *j = p->job;
	const int64_t rows = j->rows - p->next < j->each ? j->rows - p->next : j->each;
	return j->cs != 1 || j->rs > 2 * j->channels || rows <= 0 ? 0 : rows * j->rs * (int64_t)sizeof(T);
}

// Adds to those of the group's products whose rows are n slots from s on, which are channels from i0 on, and whose columns are
// all from `first` on, what a tile has of them.
static inline void NAME(add_tile)(const struct part *p, const T *tile, int64_t s, int64_t i0, int n, int64_t first)
{
	const struct job *j = p->job;
	for (int i = 0; i < n; i++) {
		const vd s1 = vd_splat(-p->sum[s + i] / p->weight), delta = vd_splat(p->delta[s + i] * p->factor);
		const T *from = tile + i * j->apart;
		double *to = p->group->square + (i0 + i) * j->line;
		for (int64_t at = first; at < j->width; at += VD) {
			const vd off = vd_fma(s1, vd_load(p->sum + at), WIDEN_AT(from + at - first));
			vd_store(to + at, vd_load(to + at) + vd_fma(delta, vd_load(p->delta + at), off));
		}
	}
}

// Products of the pieces' channels, those above the diagonal, added to the group's.  Tiles begin in a unit and end in it.
// Each fetches a share of the next piece, as large as its own share of the work.
static void NAME(products)(const struct part *p, const T *d, const T *e, T *tile)
{
	const struct job *j = p->job;
	const int64_t gap = j->width - j->channels, units = j->width / LANES;
	const int64_t work = (j->odd * units + LANES * units * (units - 1) / 2) * p->rows; // in vectors
	const int64_t bytes = NAME(next)(p);
	const char *next = (const char *)((const T *)(const void *)j->x + (bytes ? p->next * j->rs : 0));
	for (int64_t s = 0, n, done = 0; s < j->width; s = s + n == j->odd ? LANES : s + n) {
		const int64_t first = s / LANES * LANES, end = s < j->odd ? j->odd : first + LANES;
		n = end - s < MOST ? end - s : MOST;
		for (int64_t r = 0, deep; r < p->rows; r += deep) {
			deep = p->rows - r < FOLD ? p->rows - r : FOLD;
			const int64_t from = bytes * done / work;
			done += n * (j->width - first) / LANES * deep;
			ACROSS((int)n, j->width - first, deep, e + r * j->apart + s, j->apart, d + r * j->apart + first, j->apart, tile,
			       j->apart, r > 0, next + from, bytes * done / work - from);
		}
		NAME(add_tile)(p, tile, s, s < j->odd ? s : s - gap, (int)n, first);
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
	struct group *g = p->group;
	T *tile = panels, *d = tile + TALL * j->apart, *e = p->weighed && !j->diagonal ? d + p->rows * j->apart : d, *low = (T *)p->low, *high = (T *)p->high,
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
		NAME(look_at)(p, r, end, d, e);
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
		NAME(products)(p, d, e, tile);
	g->weight = n + m;
}
