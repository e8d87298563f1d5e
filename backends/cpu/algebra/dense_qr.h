// SPDX-License-Identifier: Apache-2.0
// QR factorization by Householder reflections, whose products are applied by blocks in the compact
// form 1 - V T V' (Schreiber and Van Loan 1989), for one element type REAL.
//
// Memory: for each panel of WIDE columns V [m][WIDE], zero above its diagonal of ones, and T
// [WIDE][WIDE].

enum { WIDE = 32, BESIDE = 64 }; // columns of a panel; columns of a work item that applies it

static int64_t qr_elements(int64_t m, int64_t n)
{
	const int64_t panels = (yk_min(m, n) + WIDE - 1) / WIDE;
	return panels * (m * WIDE + WIDE * WIDE);
}

static REAL *qr_panel_of(const void *memory, int64_t m, int64_t panel)
{
	return (REAL *)memory + panel * (m * WIDE + WIDE * WIDE);
}

// The reflection 1 - tau v v' that maps x = column j of a, from row `row` on, to a multiple of its
// first unit vector; v replaces x below its first element, which becomes the multiple. Returns tau.
static REAL qr_reflect(REAL *a, int64_t ld, int64_t m, int64_t row)
{
	REAL max = 0, sum = 0;
	for (int64_t i = row + 1; i < m; i++) {
		const REAL x = ABS(a[i * ld]);
		max = x > max || x != x ? x : max;
	}
	if (max == 0)
		return 0;
	const REAL first = a[row * ld];
	max = ABS(first) > max ? ABS(first) : max;
	for (int64_t i = row; i < m; i++) {
		const REAL x = a[i * ld] / max;
		sum += x * x;
	}
	const REAL norm = max * SQRT(sum), beta = first > 0 ? -norm : norm;
	const REAL scale = 1 / (first - beta);
	for (int64_t i = row + 1; i < m; i++)
		a[i * ld] *= scale;
	a[row * ld] = beta;
	return (beta - first) / beta;
}

// Subtracts x w from rows `row` .. m - 1 of the panel, x being column j, and sums the products of
// column j + 1 and all columns over the rows after the first one: what the next reflection needs,
// in the same pass.
static inline __attribute__((always_inline)) void qr_pass(int64_t m, int64_t row, int64_t j,
							  int vectors, const REAL *w, REAL *a,
							  int64_t ld, REAL *dots)
{
	unit_vec by[WIDE / UNIT], sum[WIDE / UNIT] = { 0 };
	memcpy(by, w, (size_t)vectors * sizeof *by);
	for (int64_t i = row; i < m; i++) {
		REAL *line = a + i * ld;
		const REAL x = line[j], next = i > row ? line[j + 1] - x * w[j + 1] : 0;
		for (int k = 0; k < vectors; k++) {
			unit_vec v;
			memcpy(&v, line + k * UNIT, sizeof v);
			v -= x * by[k];
			memcpy(line + k * UNIT, &v, sizeof v);
			sum[k] += next * v;
		}
	}
	memcpy(dots, sum, (size_t)vectors * sizeof *sum);
}

// The sums for column j, of rows after its diagonal.
static void qr_dots(int64_t m, int64_t row, int64_t j, int64_t extent, const REAL *a, int64_t ld,
		    REAL *dots)
{
	memset(dots, 0, WIDE * sizeof *dots);
	for (int64_t i = row + 1; i < m; i++)
		for (int64_t c = 0; c < extent; c++)
			dots[c] += a[i * ld + j] * a[i * ld + c];
}

// Are the sums for column j not so large that they may overflow, nor so small that precision is
// lost?
static bool qr_tame(const REAL *dots, int64_t j, int64_t extent, REAL first)
{
	const REAL large = IS_WIDE ? (REAL)0x1p900 : (REAL)0x1p100,
		   small = IS_WIDE ? (REAL)0x1p-700 : (REAL)0x1p-70;
	bool tame = dots[j] > small && first * first < large;
	for (int64_t c = j; c < extent; c++)
		tame = tame && ABS(dots[c]) < large; // false for NaN
	return tame;
}

// Makes `width` reflections of columns from `at` on, applies them to `extent` columns, UNIT or
// WIDE, and writes V and T. Below the diagonal, a is undefined afterwards.
static void qr_panel(int64_t m, int64_t at, int64_t width, int64_t extent, REAL *a, int64_t ld,
		     REAL *v)
{
	REAL *t = v + m * WIDE, tau[WIDE], scale[WIDE], gram[WIDE * WIDE], dots[WIDE];
	a += at;
	qr_dots(m, at, 0, extent, a, ld, dots);
	for (int64_t j = 0; j < width; j++) {
		const int64_t row = at + j;
		REAL w[WIDE] = { 0 }, *top = a + row * ld, f = 1;
		scale[j] = 1;
		if (qr_tame(dots, j, extent, top[j])) {
			const REAL first = top[j], norm = SQRT(first * first + dots[j]),
				   beta = first > 0 ? -norm : norm;
			f = scale[j] = 1 / (first - beta);
			tau[j] = (beta - first) / beta;
			top[j] = beta;
		} else {
			tau[j] = qr_reflect(a + j, ld, m, row);
			qr_dots(m, row, j, extent, a, ld, dots);
		}
		for (int64_t c = j + 1; c < extent; c++) {
			w[c] = tau[j] * (f * dots[c] + top[c]);
			top[c] -= w[c];
			w[c] *= f;
		}
		if (j + 1 == extent)
			break;
		if (extent == WIDE)
			qr_pass(m, row + 1, j, WIDE / UNIT, w, a, ld, dots);
		else
			qr_pass(m, row + 1, j, 1, w, a, ld, dots);
	}
	for (int64_t i = at; i < m; i++)
		for (int64_t j = 0; j < WIDE; j++)
			v[i * WIDE + j] = j < width && i - at > j ? a[i * ld + j] * scale[j] :
								    i - at == j && j < width;
	memset(t, 0, (size_t)(WIDE * WIDE) * sizeof *t);
	product(1, false, WIDE, WIDE, m - at, v + at * WIDE, 1, WIDE, v + at * WIDE, WIDE, gram,
		WIDE);
	for (int64_t j = 0; j < width; j++) {
		t[j * WIDE + j] = tau[j];
		for (int64_t i = 0; i < j; i++) {
			REAL s = 0;
			for (int64_t l = i; l < j; l++)
				s += t[i * WIDE + l] * gram[l * WIDE + j];
			t[i * WIDE + j] = -tau[j] * s;
		}
	}
}

struct qr_apply {
	int64_t m, at, width, n, ld;
	const REAL *v, *t;
	REAL *c; // [m,n]
	bool transposed;
};

// c = (1 - V T V') c, or with T', for BESIDE columns of c.
static void qr_apply_columns(void *arg, int64_t item)
{
	const struct qr_apply *p = arg;
	const int64_t cols = yk_min(BESIDE, p->n - item * BESIDE),
		      padded = (p->width + UNIT - 1) / UNIT * UNIT;
	REAL w[WIDE * BESIDE], tw[WIDE * BESIDE], *c = p->c + p->at * p->ld + item * BESIDE;
	const REAL *v = p->v + p->at * WIDE;
	const int tile = yk_min(MAX_ROWS, ACROSS_ROWS);
	for (int64_t i = 0; i < padded; i += tile)
		ACROSS((int)yk_min(tile, padded - i), cols, p->m - p->at, v + i, WIDE, c, p->ld,
		       w + i * BESIDE, BESIDE, false, NULL, 0);
	for (int64_t i = 0; i < p->width; i++) {
		REAL *to = tw + i * BESIDE;
		memset(to, 0, sizeof(REAL) * BESIDE);
		for (int64_t l = p->transposed ? 0 : i; l < (p->transposed ? i + 1 : p->width);
		     l++) {
			const REAL f = p->transposed ? p->t[l * WIDE + i] : p->t[i * WIDE + l];
			for (int64_t q = 0; q < cols; q++)
				to[q] += f * w[l * BESIDE + q];
		}
	}
	struct product minus = { p->m - p->at, cols, p->width, WIDE, 1,  BESIDE, p->ld,
				 p->m - p->at, v,    tw,       c,    -1, true };
	product_rows(&minus, 0);
}

static void qr_apply(struct qr_apply *p)
{
	const int64_t items = (p->n + BESIDE - 1) / BESIDE;
	if (p->n > 0)
		yk_team_run(items, qr_apply_columns, p);
}

static void qr(int64_t m, int64_t n, void *to, int64_t ld, void *memory)
{
	REAL *a = to;
	const int64_t k = yk_min(m, n);
	for (int64_t at = 0, panel = 0; at < k; at += WIDE, panel++) {
		const int64_t width = yk_min(WIDE, k - at), extent = yk_min(WIDE, ld - at);
		REAL *v = qr_panel_of(memory, m, panel);
		qr_panel(m, at, width, extent, a, ld, v);
		struct qr_apply p = { m,   at, width,        ld - at - extent,
				      ld,  v,  v + m * WIDE, a + at + extent,
				      true };
		qr_apply(&p);
	}
}

// x [m,k] = Q x
static void q(int64_t m, int64_t n, int64_t k, const void *memory, void *to, int64_t ld)
{
	REAL *x = to;
	for (int64_t panel = (yk_min(m, n) + WIDE - 1) / WIDE - 1; panel >= 0; panel--) {
		const int64_t at = panel * WIDE;
		REAL *v = qr_panel_of(memory, m, panel);
		struct qr_apply p = {
			m, at, yk_min(WIDE, yk_min(m, n) - at), k, ld, v, v + m * WIDE, x, false
		};
		qr_apply(&p);
	}
}

// x [m,k] = the first columns of Q
static void q_columns(int64_t m, int64_t n, int64_t k, const void *memory, void *to, int64_t ld)
{
	REAL *x = to;
	for (int64_t i = 0; i < m; i++) {
		memset(x + i * ld, 0, (size_t)ld * sizeof *x);
		if (i < k)
			x[i * ld + i] = 1;
	}
	for (int64_t panel = (yk_min(m, n) + WIDE - 1) / WIDE - 1; panel >= 0; panel--) {
		// columns before it are still those of the identity
		const int64_t at = panel * WIDE;
		REAL *v = qr_panel_of(memory, m, panel);
		struct qr_apply p = {
			m,      at,   yk_min(WIDE, yk_min(m, n) - at), ld - at, ld, v, v + m * WIDE,
			x + at, false
		};
		qr_apply(&p);
	}
}
