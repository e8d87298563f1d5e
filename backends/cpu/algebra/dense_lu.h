// SPDX-License-Identifier: Apache-2.0
// LU factorization with partial pivoting, recursive in the columns (Toledo 1997), for one element
// type REAL.

enum { LU_COPIED = 64 }; // max rows whose panels are factored in place

struct lu {
	int64_t m, ld;
	REAL *a, *panel; // panel: UNIT columns
	int64_t *perm;
	int sign;
};

static void lu_swap_rows(REAL *x, REAL *y, int64_t n)
{
	for (int64_t c = 0; c < n; c++) {
		const REAL t = x[c];
		x[c] = y[c];
		y[c] = t;
	}
}

static void lu_swap(struct lu *f, int64_t i, int64_t j)
{
	const int64_t row = f->perm[i];
	f->perm[i] = f->perm[j];
	f->perm[j] = row;
	f->sign = -f->sign;
	lu_swap_rows(f->a + i * f->ld, f->a + j * f->ld, f->ld);
}

// The row from `first` on with the largest element of column j of x, m rows `step` apart.
static int64_t lu_pivot(const REAL *x, int64_t step, int64_t j, int64_t first, int64_t m)
{
	int64_t pivot = first;
	REAL max = -1;
	for (int64_t i = first; i < m; i++) {
		const REAL v = ABS(x[i * step + j]);
		if (v > max) {
			max = v;
			pivot = i;
		}
	}
	return pivot;
}

// Subtracts multiples of row j of the panel x, m rows `step` apart, from the rows after it, so that
// column j is 0 there, and stores the factors in that column. Returns the pivot of column j + 1.
static int64_t lu_eliminate(REAL *x, int64_t step, int64_t j, int64_t m)
{
	const REAL top = x[j * step + j], inverse = 1 / top;
	const bool normal = ABS(inverse) >= SMALLEST && ABS(inverse) <= 1 / SMALLEST;
	const int64_t next = yk_min(j + 1, UNIT - 1);
	int64_t pivot = j + 1;
	REAL max = -1;
	unit_vec u, v;
	for (int c = 0; c < UNIT; c++)
		u[c] = c > j ? x[j * step + c] : 0;
	for (int64_t i = j + 1; i < m; i++) {
		REAL *row = x + i * step;
		const REAL l = normal ? row[j] * inverse : row[j] / top;
		memcpy(&v, row, sizeof v);
		v -= l * u;
		memcpy(row, &v, sizeof v);
		row[j] = l;
		const REAL size = ABS(row[next]);
		if (size > max) {
			max = size;
			pivot = i;
		}
	}
	return pivot;
}

// Factors UNIT columns, of which the first `width` exist, from row and column `at` on. Rows of a
// large matrix are in different pages, so the columns of many rows are copied.
static void lu_panel(struct lu *f, int64_t at, int64_t width)
{
	const int64_t ld = f->ld, m = f->m - at;
	const bool copied = m > LU_COPIED;
	REAL *a = f->a + at * (ld + 1), *x = copied ? f->panel : a;
	const int64_t step = copied ? UNIT : ld;
	for (int64_t i = 0; i < m && copied; i++)
		memcpy(x + i * step, a + i * ld, UNIT * sizeof *x);
	int64_t pivot = lu_pivot(x, step, 0, 0, m);
	for (int64_t j = 0; j < yk_min(width, m); j++) {
		if (pivot != j) {
			lu_swap(f, at + pivot, at + j);
			if (copied)
				lu_swap_rows(x + pivot * step, x + j * step, UNIT);
		}
		if (x[j * step + j] == 0)
			pivot = lu_pivot(x, step, yk_min(j + 1, UNIT - 1), j + 1, m);
		else
			pivot = lu_eliminate(x, step, j, m);
	}
	for (int64_t i = 0; i < m && copied; i++)
		memcpy(a + i * ld, x + i * step, UNIT * sizeof *x);
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
