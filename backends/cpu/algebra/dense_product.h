// SPDX-License-Identifier: Apache-2.0
// Products and triangular systems for the factorizations of dense.h, for one element type REAL.

#define CELL REAL
#define CELL_ALIGN sizeof(REAL)
#include "../vector/transpose.h"

// depth and columns of b that stay in L2; rows of a tile
enum { DEEP = 128, STRIP = 512, MAX_ROWS = 16 };
#define TEAM_WORK 2e5 // multiplications that occupy all threads

typedef REAL unit_vec __attribute__((vector_size(UNIT * sizeof(REAL))));

// Copies a matrix of any strides to or from rows ld elements apart, COPY_ROWS rows per work item.
enum { COPY_ROWS = 64 };
struct copy {
	const struct matrix *matrix;
	int64_t m, n, ld;
	REAL *rows;
};

static void load_rows(void *arg, int64_t item)
{
	const struct copy *p = arg;
	const struct matrix *from = p->matrix;
	const int64_t begin = item * COPY_ROWS, end = yk_min(begin + COPY_ROWS, p->m), n = p->n;
	const REAL *base = (const REAL *)from->base;
	if (from->cs == 1 || n == 1) {
		for (int64_t i = begin; i < end; i++) {
			REAL *to = p->rows + i * p->ld;
			memcpy(to, base + i * from->rs, (size_t)n * sizeof *to);
			memset(to + n, 0, (size_t)(p->ld - n) * sizeof *to);
		}
		return;
	}
	for (int64_t first = 0; first < p->ld; first += UNIT) // a cache line of each row
		for (int64_t i = begin; i < end; i++)
			for (int64_t j = first; j < yk_min(first + UNIT, p->ld); j++)
				p->rows[i * p->ld + j] =
					j < n ? base[i * from->rs + j * from->cs] : 0;
}

static void store_rows(void *arg, int64_t item)
{
	const struct copy *p = arg;
	const struct matrix *to = p->matrix;
	const int64_t begin = item * COPY_ROWS, end = yk_min(begin + COPY_ROWS, p->m);
	REAL *base = (REAL *)to->base;
	for (int64_t i = begin; i < end; i++) {
		const REAL *from = p->rows + i * p->ld;
		if (to->cs == 1)
			memcpy(base + i * to->rs, from, (size_t)p->n * sizeof *from);
		else
			for (int64_t j = 0; j < p->n; j++)
				base[i * to->rs + j * to->cs] = from[j];
	}
}

static void load(const struct matrix *from, int64_t m, int64_t n, void *to, int64_t ld)
{
	struct copy p = { from, m, n, ld, to };
	yk_team_run(yk_ceil_div(m, COPY_ROWS), load_rows, &p);
}

static void store(const struct matrix *to, int64_t m, int64_t n, const void *from, int64_t ld)
{
	struct copy p = { to, m, n, ld, (REAL *)(uintptr_t)from };
	yk_team_run(yk_ceil_div(m, COPY_ROWS), store_rows, &p);
}

struct product {
	int64_t m, n, k, rs, cs, ldb, ldc, rows;
	const REAL *a, *b;
	REAL *c, sign;
	bool add;
};

// Columns l .. of `rows` rows of a with the sign, each column contiguous.
static void pack_rows(const struct product *p, int64_t i, int rows, int64_t l, int64_t deep,
		      REAL *to)
{
	const REAL *a = p->a + i * p->rs + l * p->cs;
	if (p->cs == 1)
		pack_transposed(to, rows, (const char *)a, p->rs * (int64_t)sizeof *a, rows, deep);
	else
		for (int r = 0; r < rows; r++)
			for (int64_t q = 0; q < deep; q++)
				to[q * rows + r] = a[r * p->rs + q * p->cs];
	for (int64_t q = 0; q < deep * rows && p->sign < 0; q++)
		to[q] = -to[q];
}

static void product_rows(void *arg, int64_t item)
{
	const struct product *p = arg;
	const int tile = yk_min(MAX_ROWS, ACROSS_ROWS);
	const int64_t from = item * p->rows, to = yk_min(from + p->rows, p->m);
	REAL pack[DEEP * MAX_ROWS];
	for (int64_t strip = 0; strip < p->n; strip += STRIP) {
		const int64_t cols = yk_min(STRIP, p->n - strip);
		for (int64_t l = 0; l < p->k; l += DEEP) {
			const int64_t deep = yk_min(DEEP, p->k - l);
			for (int64_t i = from; i < to; i += tile) {
				const int rows = (int)yk_min(tile, to - i);
				pack_rows(p, i, rows, l, deep, pack);
				ACROSS(rows, cols, deep, pack, rows, p->b + l * p->ldb + strip,
				       p->ldb, p->c + i * p->ldc + strip, p->ldc, p->add || l, NULL,
				       0);
			}
		}
	}
}

// c [m,n] = or (add) += sign a [m,k] b [k,n]; a has any strides; n is a multiple of UNIT.
static void product(REAL sign, bool add, int64_t m, int64_t n, int64_t k, const REAL *a, int64_t rs,
		    int64_t cs, const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
	struct product p = { m, n, k, rs, cs, ldb, ldc, m, a, b, c, sign, add };
	if (!m || !n)
		return;
	if (!k) {
		for (int64_t i = 0; i < m && !add; i++)
			memset(c + i * ldc, 0, (size_t)n * sizeof *c);
		return;
	}
	if ((double)m * (double)n * (double)k < TEAM_WORK || m < 2 * ACROSS_ROWS) {
		product_rows(&p, 0);
		return;
	}
	p.rows = (m / 8 + ACROSS_ROWS - 1) / ACROSS_ROWS * ACROSS_ROWS;
	yk_team_run((m + p.rows - 1) / p.rows, product_rows, &p);
}

// ---- triangular systems ----

enum { CORNER = 16, LINE = 64 }; // rows solved without products; columns at a time

struct corner {
	int64_t n, k, ldt, ldx;
	const REAL *t;
	REAL *x;
	bool upper, transposed, unit;
};

static void corner_columns(void *arg, int64_t item)
{
	const struct corner *s = arg;
	const int64_t first = item * LINE, cols = yk_min(LINE, s->k - first);
	const bool down = s->upper == s->transposed;
	for (int64_t step = 0; step < s->n; step++) {
		const int64_t i = down ? step : s->n - 1 - step;
		REAL *row = s->x + i * s->ldx + first;
		for (int64_t before = 0; before < step; before++) {
			const int64_t j = down ? before : s->n - 1 - before;
			const REAL f = s->transposed ? s->t[j * s->ldt + i] : s->t[i * s->ldt + j];
			const REAL *other = s->x + j * s->ldx + first;
			for (int64_t q = 0; q < cols; q++)
				row[q] -= f * other[q];
		}
		if (!s->unit) {
			const REAL pivot = s->t[i * s->ldt + i];
			for (int64_t q = 0; q < cols; q++)
				row[q] /= pivot;
		}
	}
}

// Columns k are a multiple of UNIT.
static void triangular(int64_t n, int64_t k, const void *triangle, int64_t ldt, bool upper,
		       bool transposed, bool unit, bool lower_x, void *right, int64_t ldx)
{
	const REAL *t = triangle;
	REAL *x = right;
	if (n <= CORNER) {
		struct corner s = { n, k, ldt, ldx, t, x, upper, transposed, unit };
		const int64_t items = (k + LINE - 1) / LINE;
		if ((double)n * (double)n * (double)k < TEAM_WORK / 2)
			for (int64_t i = 0; i < items; i++)
				corner_columns(&s, i);
		else
			yk_team_run(items, corner_columns, &s);
		return;
	}
	const int64_t half = (n / 2 + CORNER - 1) / CORNER * CORNER;
	// of [t1, .; t21, t2] or its transpose, the rows that come first
	const bool down = upper == transposed;
	const int64_t first = down ? 0 : half, size = down ? half : n - half,
		      second = down ? half : 0;
	const REAL *off = upper ? t + half : t + half * ldt; // the block beside the diagonal
	const int64_t before = lower_x ? yk_min(k, (half + UNIT - 1) / UNIT * UNIT) : k;
	triangular(size, before, t + first * (ldt + 1), ldt, upper, transposed, unit, lower_x,
		   x + first * ldx, ldx);
	product(-1, true, n - size, before, size, off, transposed ? 1 : ldt, transposed ? ldt : 1,
		x + first * ldx, ldx, x + second * ldx, ldx);
	if (!lower_x) {
		triangular(n - size, k, t + second * (ldt + 1), ldt, upper, transposed, unit, false,
			   x + second * ldx, ldx);
		return;
	}
	// columns before `half` are full in the second half of the rows, the others are triangular
	triangular(n - size, before, t + second * (ldt + 1), ldt, upper, transposed, unit, false,
		   x + second * ldx, ldx);
	if (k > before)
		triangular(n - size, k - before, t + second * (ldt + 1), ldt, upper, transposed,
			   unit, true, x + second * ldx + before, ldx);
}
