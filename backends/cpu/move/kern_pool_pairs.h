// SPDX-License-Identifier: Apache-2.0
// The maximum of windows that are two elements wide along the last axis and tile a dense tensor,
// and its gradient, for one element type T. Included by kern_pool.c, which defines T and
// PAIRS(name). Rows are processed in whole vectors, also short ones: what exceeds a row is
// overwritten by the next one.

// Row `row` of the windows of line `line`.
static T *PAIRS(row)(const struct pairs *p, const T *x, int64_t line, int64_t row)
{
	const struct axis *a = &p->axis[0], *b = &p->axis[1];
	if (a->window == 1)
		return (T *)x + (line * b->window + row) * p->width;
	const int64_t layer = line / b->out * a->window + row / b->window;
	return (T *)x + (layer * b->n + line % b->out * b->window + row % b->window) * p->width;
}

// Elements of a row to process, of which `lines` lines of an item are left. Where axis 0 has
// windows, the next row in memory is not always a later one.
static int64_t PAIRS(wide)(const struct pairs *p, int64_t lines)
{
	enum { LANES = 64 / sizeof(T) };
	const int64_t whole = (p->width + LANES - 1) / LANES * LANES;
	return p->axis[0].window == 1 && lines * p->width >= whole ? whole : p->width;
}

// The maxima over the rows of lines first .. first + n - 1; NaN if one is.
static void PAIRS(columns)(const struct pairs *p, const T *x, int64_t first, int64_t n, T *max)
{
	for (int64_t l = 0; l < n; l++) {
		const int64_t wide = PAIRS(wide)(p, n - l);
		T *restrict m = max + l * p->width;
		const T *restrict top = PAIRS(row)(p, x, first + l, 0);
		for (int64_t i = 0; i < wide; i++)
			m[i] = top[i];
		for (int64_t r = 1; r < p->rows; r++) {
			const T *restrict from = PAIRS(row)(p, x, first + l, r);
			for (int64_t i = 0; i < wide; i++)
				m[i] = from[i] > m[i] || from[i] != from[i] ? from[i] : m[i];
		}
	}
}

// The larger of each two.
static void PAIRS(joined)(T *restrict y, const T *restrict x, int64_t n)
{
	for (int64_t k = 0; k < n; k++) {
		const T u = x[2 * k], v = x[2 * k + 1];
		y[k] = v > u || v != v ? v : u;
	}
}

// Each twice.
static void PAIRS(doubled)(T *restrict y, const T *restrict x, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		y[2 * k] = y[2 * k + 1] = x[k];
}

static void PAIRS(forward)(const struct pairs *p, int64_t first, int64_t n, T *memory)
{
	const int64_t out = p->width / 2;

	PAIRS(columns)(p, yk_ptr(p->x), first, n, memory);
	PAIRS(joined)((T *)yk_ptr(p->to) + first * out, memory, n * out);
}

// Equal elements share the gradient.
static void PAIRS(backward)(const struct pairs *p, int64_t first, int64_t n, T *memory)
{
	const int64_t out = p->width / 2;
	const T *x = yk_ptr(p->x), *g = (const T *)yk_ptr(p->g) + first * out;
	T *max = memory, *ties = max + n * p->width, *share = ties + n * p->width;

	PAIRS(columns)(p, x, first, n, max);
	PAIRS(joined)(share, max, n * out);
	PAIRS(doubled)(max, share, n * out);
	for (int64_t l = 0; l < n; l++) {
		const int64_t wide = PAIRS(wide)(p, n - l);
		const T *restrict m = max + l * p->width;
		T *restrict t = ties + l * p->width;
		for (int64_t r = 0; r < p->rows; r++) {
			const T *restrict from = PAIRS(row)(p, x, first + l, r);
			for (int64_t i = 0; i < wide; i++)
				t[i] = (r ? t[i] : (T)0) + (from[i] == m[i] ? (T)1 : (T)0);
		}
	}
	for (int64_t k = 0; k < n * out; k++)
		share[k] = g[k] / (ties[2 * k] + ties[2 * k + 1]);
	PAIRS(doubled)(ties, share, n * out);
	for (int64_t l = 0; l < n; l++) {
		const int64_t wide = PAIRS(wide)(p, n - l);
		const T *restrict m = max + l * p->width, *restrict s = ties + l * p->width;
		for (int64_t r = 0; r < p->rows; r++) {
			const T *restrict from = PAIRS(row)(p, x, first + l, r);
			T *restrict to = PAIRS(row)(p, yk_ptr(p->to), first + l, r);
			for (int64_t i = 0; i < wide; i++)
				to[i] = from[i] == m[i] ? s[i] : (T)0;
		}
	}
}

#undef T
#undef PAIRS
