// SPDX-License-Identifier: Apache-2.0
// LU factorization with partial pivoting, recursive in the columns (Toledo 1997), for one element
// type REAL.

enum { LU_COLUMNS = 256 }; // of a work item that exchanges rows

struct lu {
	int64_t m, ld;
	REAL *a, *panel; // panel: lu_elements(m) elements
	int64_t *perm;
	int sign;
};

// A panel is factored as columns, `step` elements apart, so that vectors run along them. After each
// column follow UNIT elements that are NaN: a vector may exceed the column, and a NaN is not larger
// than any pivot.
// The odd number of cache lines per column keeps columns from competing for one set of a cache.
static int64_t lu_step(int64_t m)
{
	return (yk_ceil_div(m + UNIT, UNIT) | 1) * UNIT;
}

static int64_t lu_elements(int64_t m)
{
	return lu_step(m) * UNIT;
}

static void lu_swap_rows(REAL *x, REAL *y, int64_t n)
{
	for (int64_t c = 0; c < n; c++) {
		const REAL t = x[c];
		x[c] = y[c];
		y[c] = t;
	}
}

// Exchanges rows at + k and pivot[k] of `rows` rows, in one range of columns.
struct lu_swaps {
	struct lu *f;
	int64_t at, rows, pivot[UNIT];
};

static void lu_swap_columns(void *arg, int64_t item)
{
	const struct lu_swaps *s = arg;
	const int64_t ld = s->f->ld, first = item * LU_COLUMNS, n = yk_min(LU_COLUMNS, ld - first);
	for (int64_t k = 0; k < s->rows; k++)
		if (s->pivot[k] != s->at + k)
			lu_swap_rows(s->f->a + s->pivot[k] * ld + first,
				     s->f->a + (s->at + k) * ld + first, n);
}

// The largest element so far of each lane, and the first row of its vector.
typedef INTEGER unit_mask __attribute__((vector_size(sizeof(unit_vec))));
struct lu_candidates {
	unit_vec max;
	unit_mask row;
};

static inline void lu_search(struct lu_candidates *s, const unit_vec *v, int64_t row)
{
	const unit_vec size = (unit_vec)((unit_mask)*v & ~(unit_mask)(-(unit_vec){ 0 }));
	const unit_mask more = (unit_mask)(size > s->max);
	s->max = (unit_vec)((more & (unit_mask)size) | (~more & (unit_mask)s->max));
	s->row = (more & ((unit_mask){ 0 } + (INTEGER)row)) | (~more & s->row);
}

// The first row with the largest element, or `none` if all are NaN.
static int64_t lu_found(const struct lu_candidates *s, int64_t none)
{
	int64_t pivot = none;
	REAL max = -1;
	for (int k = 0; k < UNIT; k++) {
		const int64_t row = s->row[k] + k;
		if (s->max[k] > max || (s->max[k] >= 0 && s->max[k] == max && row < pivot)) {
			max = s->max[k];
			pivot = row;
		}
	}
	return pivot;
}

// The row from `first` on with the largest element of a column of m.
static int64_t lu_pivot(const REAL *column, int64_t first, int64_t m)
{
	struct lu_candidates s = { .max = (unit_vec){ 0 } - 1 };
	unit_vec v;
	for (int64_t i = first; i < m; i += UNIT) {
		memcpy(&v, column + i, sizeof v);
		lu_search(&s, &v, i);
	}
	return lu_found(&s, first);
}

// Subtracts multiples of row j of the panel x, of `width` columns, from the rows after it, so that
// column j is 0 there, and stores the factors in that column. Returns the pivot of column j + 1.
static int64_t lu_eliminate(REAL *x, int64_t step, int64_t j, int64_t m, int64_t width)
{
	const REAL top = x[j * step + j], inverse = 1 / top;
	const bool normal = ABS(inverse) >= SMALLEST && ABS(inverse) <= 1 / SMALLEST;
	struct lu_candidates s = { .max = (unit_vec){ 0 } - 1 };
	REAL u[UNIT];
	unit_vec l, v;
	for (int64_t c = j + 1; c < width; c++)
		u[c] = x[c * step + j];
	for (int64_t i = j + 1; i < m; i += UNIT) {
		memcpy(&l, x + j * step + i, sizeof l);
		l = normal ? l * inverse : l / top;
		memcpy(x + j * step + i, &l, sizeof l);
		for (int64_t c = j + 1; c < width; c++) {
			memcpy(&v, x + c * step + i, sizeof v);
			v -= l * u[c];
			memcpy(x + c * step + i, &v, sizeof v);
			if (c == j + 1)
				lu_search(&s, &v, i);
		}
	}
	return lu_found(&s, j + 1);
}

// Factors UNIT columns, of which the first `width` exist, from row and column `at` on.
static void lu_panel(struct lu *f, int64_t at, int64_t width)
{
	const int64_t m = f->m - at, step = lu_step(m), size = sizeof(REAL);
	REAL *a = f->a + at * (f->ld + 1), *x = f->panel;
	pack_transposed(x, (int)step, (const char *)a, f->ld * size, (int)m, UNIT);
	for (int64_t c = 0; c < UNIT; c++)
		for (int64_t i = m; i < m + UNIT; i++)
			x[c * step + i] = NAN;
	struct lu_swaps swaps = { .f = f, .at = at, .rows = yk_min(width, m) };
	int64_t pivot = lu_pivot(x, 0, m);
	for (int64_t j = 0; j < swaps.rows; j++) {
		swaps.pivot[j] = at + pivot;
		if (pivot != j) {
			const int64_t row = f->perm[at + pivot];
			f->perm[at + pivot] = f->perm[at + j];
			f->perm[at + j] = row;
			f->sign = -f->sign;
			for (int64_t c = 0; c < UNIT; c++)
				lu_swap_rows(x + c * step + pivot, x + c * step + j, 1);
		}
		if (x[j * step + j] != 0)
			pivot = lu_eliminate(x, step, j, m, width);
		else
			pivot = lu_pivot(x + yk_min(j + 1, UNIT - 1) * step, j + 1, m);
	}
	yk_team_run(yk_ceil_div(f->ld, LU_COLUMNS), lu_swap_columns, &swaps);
	pack_transposed(a, (int)f->ld, (const char *)x, step * size, UNIT, m);
}

// Factors columns at .. at + width of rows at .. m.
static void lu_columns(struct lu *f, int64_t at, int64_t width)
{
	if (at >= f->m)
		return;
	if (width <= UNIT) {
		lu_panel(f, at, width);
		return;
	}
	const int64_t half = (width / 2 + UNIT - 1) / UNIT * UNIT, rows = yk_min(half, f->m - at);
	const int64_t rest = (width - half + UNIT - 1) / UNIT * UNIT;
	REAL *a = f->a + at * (f->ld + 1);
	lu_columns(f, at, half);
	triangular(rows, rest, a, f->ld, false, false, true, false, a + half, f->ld);
	if (f->m - at <= half)
		return;
	product(-1, true, f->m - at - half, rest, half, a + half * f->ld, f->ld, 1, a + half, f->ld,
		a + half * (f->ld + 1), f->ld);
	lu_columns(f, at + half, width - half);
}

static int lu(int64_t m, int64_t n, void *a, int64_t ld, void *panel, int64_t *perm)
{
	struct lu f = { m, ld, a, panel, perm, 1 };
	for (int64_t i = 0; i < m; i++)
		perm[i] = i;
	lu_columns(&f, 0, n);
	return f.sign;
}
