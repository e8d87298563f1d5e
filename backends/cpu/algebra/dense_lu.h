// SPDX-License-Identifier: Apache-2.0
// LU factorization with partial pivoting, recursive in the columns (Toledo 1997), for one element
// type REAL.

struct lu {
	int64_t m, ld;
	REAL *a;
	int64_t *perm;
	int sign;
};

static void lu_swap(struct lu *f, int64_t i, int64_t j)
{
	REAL *x = f->a + i * f->ld, *y = f->a + j * f->ld;
	const int64_t row = f->perm[i];
	f->perm[i] = f->perm[j];
	f->perm[j] = row;
	f->sign = -f->sign;
	for (int64_t c = 0; c < f->ld; c++) {
		const REAL t = x[c];
		x[c] = y[c];
		y[c] = t;
	}
}

// Factors UNIT columns, of which the first `width` exist, from row and column `at` on.
static void lu_panel(struct lu *f, int64_t at, int64_t width)
{
	const int64_t ld = f->ld;
	REAL *a = f->a + at;
	for (int64_t j = 0; j < yk_min(width, f->m - at); j++) {
		const int64_t row = at + j;
		int64_t pivot = row;
		REAL max = -1, u[UNIT];
		for (int64_t i = row; i < f->m; i++) {
			const REAL x = ABS(a[i * ld + j]);
			if (x > max) {
				max = x;
				pivot = i;
			}
		}
		if (pivot != row)
			lu_swap(f, pivot, row);
		const REAL top = a[row * ld + j];
		if (top == 0)
			continue;
		for (int64_t c = 0; c < UNIT; c++)
			u[c] = c > j ? a[row * ld + c] : 0;
		for (int64_t i = row + 1; i < f->m; i++) {
			REAL *x = a + i * ld;
			const REAL l = x[j] / top;
			for (int64_t c = 0; c < UNIT; c++)
				x[c] -= l * u[c];
			x[j] = l;
		}
	}
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

static int lu(int64_t m, int64_t n, void *a, int64_t ld, int64_t *perm)
{
	struct lu f = { m, ld, a, perm, 1 };
	for (int64_t i = 0; i < m; i++)
		perm[i] = i;
	lu_columns(&f, 0, n);
	return f.sign;
}
