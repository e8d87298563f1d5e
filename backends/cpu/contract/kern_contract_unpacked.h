// SPDX-License-Identifier: Apache-2.0
// Work items of the modes DOTS_IN_PLACE and STRIPS_IN_PLACE, which read b where it is. Included by
// kern_contract_gemm.h. Those of bf16 pairs are in kern_contract_dots.h and kern_contract_join.h.

#ifdef IN_PLACE
// Rows of b per step: the next group of rows of a finds in L2 the rows of b that this group read,
// while the same amount of a large b is prefetched. With by_row, the length of a panel, so that
// sums equal those of packed panels.
static int64_t strip_depth(const struct yk_gemm *g, int64_t cols)
{
	if (g->by_row)
		return g->blocking.kc;
	int64_t bytes = bytes_of_b(g) > BEYOND ? STAYS : 4 * STAYS;
	int64_t rows = bytes / (int64_t)g->esize / cols;

	return yk_min(g->k, rows < 16 ? 16 : rows / K_UNIT * K_UNIT);
}
#endif

#ifndef PAIRS
// Rows of a as T: in place, or copied to `to`.
static const T *rows_of_a(const struct yk_gemm *g, const char *a, T *to, int64_t *am)
{
	const int size = bytes_of(g->dtype);

	if (native(g) && g->ak == 1) {
		*am = g->am;
		return (const T *)a;
	}
	for (int64_t i = 0; i < g->m; i++)
		for (int64_t l = 0; l < g->k; l++)
			to[i * g->k + l] =
				load_one(g->dtype, a + (i * g->am + l * g->ak) * size);
	*am = g->k;
	return to;
}

// Rows of a per group of inner products, and elements of a packed row.
static int64_t dot_rows(const struct yk_gemm *g)
{
	return yk_ceil_div(g->m, yk_ceil_div(g->m, DOT_ROWS));
}

static int64_t packed_row(const struct yk_gemm *g)
{
	return yk_ceil_div(g->k, VL) * VL;
}

// Rows of a in the layout of dots, so that they are one stream: [k / VL][rows][VL].
static void pack_rows(T *to, const struct yk_gemm *g, const char *a, int64_t rows)
{
	const int size = bytes_of(g->dtype);

	for (int64_t l = 0; l < g->k; l += VL)
		for (int64_t i = 0; i < rows; i++, to += VL) {
			const char *from = a + (i * g->am + l * g->ak) * size;
			const int64_t n = yk_min(VL, g->k - l);
			if (g->ak == 1 && n == VL)
				*(vec_u *)to = load_as(g->dtype, from);
			else
				for (int64_t q = 0; q < n; q++)
					to[q] = load_one(g->dtype, from + q * g->ak * size);
		}
}

// c (m, n), strides cm and cn, = a, packed, times columns of b.
static void dots_wide(const struct yk_gemm *g, int64_t n, const T *a, const char *b, T *c,
		      int64_t cm, int64_t cn)
{
	const int64_t step = dot_rows(g);
	T sums[DOT_ROWS * DOT_COLS];

	for (int64_t j = 0, cols; j < n; j += cols) {
		const char *from = b + j * g->bn * (int64_t)g->esize;
		cols = g->m > 1 && n - j >= DOT_COLS ? DOT_COLS : 1;
		for (int64_t i = 0; i < g->m; i += step) {
			const int64_t rows = yk_min(step, g->m - i);
			dot_of((int)rows, cols > 1, g->dtype)(g->k, a + i * packed_row(g), from,
							      g->bn, sums);
			for (int64_t q = 0; q < rows; q++)
				for (int64_t w = 0; w < cols; w++)
					c[(i + q) * cm + (j + w) * cn] = sums[q * cols + w];
		}
	}
}

static void dots_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	struct work p = work_of(job, item);
	const bool direct = sums_fit(g), in_place = g->m == 1 && native(g) && g->ak == 1;
	const int64_t copied = in_place ? 0 : g->m * packed_row(g), step = dot_rows(g);
	struct scratch r;
	const T *a;
	T *c;

	if (!take_scratch(job, copied + (direct ? 0 : g->m * p.n), &r))
		return;
	a = in_place ? (const T *)p.a : r.at;
	c = direct ? sums_at(g, p.c) : r.at + copied;
	for (int64_t i = 0; i < g->m && !in_place; i += step)
		pack_rows(r.at + i * packed_row(g), g, at(g, p.a, i, g->am, 0, 0),
			  yk_min(step, g->m - i));
	dots_wide(g, p.n, a, p.b, c, direct ? g->cm : p.n, direct ? g->cn : 1);
	if (!direct)
		finish(g, &r, c, p.n, p.c, p.j, g->m, p.n);
}

// Memory to prefetch.
struct upcoming {
	const char *from;
	int64_t bytes;
};

// The memory to prefetch while rows i .. i + rows - 1 of a are multiplied: the next rows of a, or a
// share of the next matrices. Nothing, if the operands use less than half of such memory.
static struct upcoming upcoming(const struct yk_gemm *g, const struct work *p,
				const struct work *then, int64_t i, int64_t rows, int64_t k)
{
	const int64_t size = (int64_t)g->esize, of_a = g->am * size, of_b = g->bk * size;
	const int64_t left = p->m - i - rows; // rows of a after these
	struct upcoming u = { NULL, 0 };

	if (g->ak != 1 || k < g->k || g->am > 2 * k || g->bk > 2 * p->n)
		return u;
	if (then) {
		const int64_t a = p->m * of_a, all = then->b == p->b ? a : a + k * of_b;
		const int64_t first = all * i / p->m;
		u.from = first < a ? then->a + first : then->b + (first - a);
		u.bytes = all * yk_min(rows, p->m - i) / p->m;
	} else if (left > 0) {
		u.from = at(g, p->a, i + rows, g->am, 0, 0);
		u.bytes = yk_min(rows, left) * of_a;
	}
	return u;
}

// Elements of scratch of a block of m rows and n columns before its sums: the padded rows of b, and
// the converted rows of a.
static int64_t padded_b(const struct yk_gemm *g, int64_t n)
{
	return n < VL ? strip_depth(g, n) * VL : 0;
}

static int64_t converted_a(const struct yk_gemm *g, int64_t m)
{
	return native(g) ? 0 : m * g->k;
}

// Multiplies a matrix or a block of it, and prefetches the operands of the block `then`, if it is
// not NULL.
static void multiply_strips(const struct yk_gemm *g, struct scratch *r, const struct work *p,
			    const struct work *then)
{
	const bool direct = sums_in_c(g);
	const int64_t step = yk_ceil_div(p->m, yk_ceil_div(p->m, MR)), depth = strip_depth(g, p->n);
	const int64_t padded = padded_b(g, p->n), copied = converted_a(g, p->m);
	const int64_t ldc = direct ? g->cm : p->n;
	int64_t am = g->am, ak = g->ak;
	const T *a = (const T *)p->a;
	T *c = direct ? sums_at(g, p->c) : r->at + padded + copied;

	if (copied) {
		a = rows_of_a(g, p->a, r->at + padded, &am);
		ak = 1;
	}
	for (int64_t l = 0; l < g->k; l += depth) {
		int64_t k = yk_min(depth, g->k - l), ahead = l + depth < g->k ? depth : 0;
		const char *b = at(g, p->b, l, g->bk, 0, 0);
		if (p->n < VL)
			pad_columns(p->n, k, g->dtype, b, g->bk, r->at);
		for (int64_t i = 0; i < p->m; i += step) {
			const struct upcoming u = upcoming(g, p, then, i, step, k);
			multiply_strip((int)yk_min(step, p->m - i), p->n, k, a + i * am + l * ak,
				       am, ak, g->dtype, b, g->bk, c + i * ldc, ldc, l > 0, ahead,
				       r->at, u.from, u.bytes);
		}
	}
	if (!direct)
		finish(g, r, c, ldc, p->c, p->j, p->m, p->n);
}

static void strips_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	const int64_t entries = blocking->entries;
	const int64_t end = yk_min((item + 1) * entries, g->batches * items(g, blocking));
	struct work p = work_of(job, item * entries), then;
	struct scratch r;

	if (!take_scratch(job,
			  padded_b(g, p.n) + converted_a(g, p.m) +
				  (sums_in_c(g) ? 0 : p.m * p.n),
			  &r))
		return;
	for (int64_t i = item * entries + 1; i < end; i++, p = then) {
		then = work_of(job, i);
		multiply_strips(g, &r, &p, &then);
	}
	multiply_strips(g, &r, &p, NULL);
}
#endif
