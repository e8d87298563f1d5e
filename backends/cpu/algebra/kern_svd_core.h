// SPDX-License-Identifier: Apache-2.0
// The singular value decomposition of one matrix in one precision: reduction to bidiagonal form by
// blocks, diagonalization in f64, vectors in panels. Included once per precision with the macros of
// panels.h, SVD(name), DENSE, and REFLECT(u, at, n, tau).

// One side's vectors in panels, its reflections.
struct SVD(side) {
	REAL *z, *tau, *dots;
};

// Recorded sweeps: the rotations of both sides' pairs.
struct SVD(record) {
	REAL *cu, *su, *cv, *sv;
	struct sweep *sweep;
	int64_t rotations, sweeps;
};

// The remaining matrix is a - l y' - x r' for all steps of a block; row k of a is r of step k, row
// k of left its l.
struct SVD(core) {
	int64_t n, ld;
	REAL *a, *left; // [n][ld]
	REAL *x, *y;    // [BLOCK][ld] of the steps of this block
	REAL *sums;     // [CHUNKS][ld]
	double *d, *e;  // diagonals
	struct SVD(side) u, v;
	// one record is applied while the other one is filled, each with up to `max` rotations
	struct SVD(record) record[2], *applied, *filled;
	int64_t max;
	bool vectors, fresh;
	// the diagonalization: values after m are done; QR steps that it may still take
	int64_t m, steps;
	// the pass that runs
	int64_t k, begin;  // its step, and the first one of the block
	const REAL *l, *r; // the reflections of step k
};

// Divides memory for the n x n core; returns its bytes, also without memory.
static size_t SVD(divide)(struct SVD(core) * g, int64_t n, bool vectors, char *memory)
{
	const int64_t ld = dense_ld(n), max = max_of(n), panels = PANELS(of)(n) * n * PANELS(width);
	size_t at = 0;
	struct SVD(record) *a = &g->record[0], *b = &g->record[1];
	*g = (struct SVD(core)){ .n = n, .ld = ld, .max = max, .vectors = vectors, .fresh = true };
	struct {
		void *to;
		int64_t bytes;
	} part[] = {
		{ &g->a, n * ld * (int64_t)sizeof(REAL) },
		{ &g->left, n * ld * (int64_t)sizeof(REAL) },
		{ &g->x, BLOCK * ld * (int64_t)sizeof(REAL) },
		{ &g->y, BLOCK * ld * (int64_t)sizeof(REAL) },
		{ &g->sums, CHUNKS * ld * (int64_t)sizeof(REAL) },
		{ &g->u.tau, ld * (int64_t)sizeof(REAL) },
		{ &g->v.tau, ld * (int64_t)sizeof(REAL) },
		{ &g->d, ld * (int64_t)sizeof(double) },
		{ &g->e, ld * (int64_t)sizeof(double) },
		// with vectors
		{ &g->u.z, panels * (int64_t)sizeof(REAL) },
		{ &g->v.z, panels * (int64_t)sizeof(REAL) },
		{ &g->u.dots, (n / GROUP + 1) * PAIRS * (int64_t)sizeof(REAL) },
		{ &g->v.dots, (n / GROUP + 1) * PAIRS * (int64_t)sizeof(REAL) },
		{ &a->cu, max * (int64_t)sizeof(REAL) },
		{ &a->su, max * (int64_t)sizeof(REAL) },
		{ &a->cv, max * (int64_t)sizeof(REAL) },
		{ &a->sv, max * (int64_t)sizeof(REAL) },
		{ &a->sweep, (max + 1) * (int64_t)sizeof(struct sweep) },
		{ &b->cu, max * (int64_t)sizeof(REAL) },
		{ &b->su, max * (int64_t)sizeof(REAL) },
		{ &b->cv, max * (int64_t)sizeof(REAL) },
		{ &b->sv, max * (int64_t)sizeof(REAL) },
		{ &b->sweep, (max + 1) * (int64_t)sizeof(struct sweep) },
	};
	const int count = vectors ? (int)(sizeof part / sizeof *part) : 9;
	for (int i = 0; i < count; i++) {
		void *const p = after(memory, at);
		memcpy(part[i].to, &p, sizeof p);
		at += dense_align((size_t)part[i].bytes);
	}
	return at;
}

// ---- reduction to bidiagonal form ----

// to -= sum of f[p] a[p] and of g[q] b[q], rows ld apart, from about `from` on
static void SVD(subtract)(REAL *to, int64_t from, int64_t ld, int64_t m, const REAL *f,
			  const REAL *a, int64_t n, const REAL *g, const REAL *b)
{
	for (int64_t j = from / VL * VL; j < ld; j += VL) {
		V x = LOAD(to + j);
		for (int64_t p = 0; p < m; p++)
			x = FMA(SPLAT(-f[p]), LOAD(a + p * ld + j), x);
		for (int64_t q = 0; q < n; q++)
			x = FMA(SPLAT(-g[q]), LOAD(b + q * ld + j), x);
		STORE(to + j, x);
	}
}

static void SVD(chunk)(const struct SVD(core) * g, int64_t item, int64_t *from, int64_t *to)
{
	const int64_t rows = g->n - g->k,
		      each = rows < LARGE_ROWS ? rows : (rows + CHUNKS - 1) / CHUNKS;
	*from = yk_min(g->k + item * each, g->n);
	*to = yk_min(*from + each, g->n);
}

// sums[item] = the product of rows of a with the left reflection
static void SVD(times_left)(void *arg, int64_t item)
{
	const struct SVD(core) *g = arg;
	const int64_t ld = g->ld, first = g->k / VL * VL;
	REAL *restrict sum = g->sums + item * ld;
	int64_t i, to;
	SVD(chunk)(g, item, &i, &to);
	memset(sum, 0, (size_t)ld * sizeof *sum);
	for (; i + 4 <= to; i += 4) {
		const REAL *a = g->a + i * ld;
		const V f[4] = { SPLAT(g->l[i]), SPLAT(g->l[i + 1]), SPLAT(g->l[i + 2]),
				 SPLAT(g->l[i + 3]) };
		for (int64_t j = first; j < ld; j += VL) {
			V x = LOAD(sum + j);
			for (int p = 0; p < 4; p++)
				x = FMA(f[p], LOAD(a + p * ld + j), x);
			STORE(sum + j, x);
		}
	}
	for (; i < to; i++)
		for (int64_t j = first; j < ld; j += VL)
			STORE(sum + j, FMA(SPLAT(g->l[i]), LOAD(g->a + i * ld + j), LOAD(sum + j)));
}

// x of this step, without the pending updates: the products of rows of a with the right reflection
static void SVD(times_right)(void *arg, int64_t item)
{
	const struct SVD(core) *g = arg;
	const int64_t ld = g->ld, first = g->k / VL * VL;
	REAL *x = g->x + (g->k - g->begin) * ld;
	int64_t i, to;
	SVD(chunk)(g, item, &i, &to);
	for (i = yk_max(i, g->k + 1); i + 4 <= to; i += 4) {
		const REAL *a = g->a + i * ld;
		V sum[4][2] = { { { 0 } } };
		int64_t j = first;
		for (; j + 2 * VL <= ld; j += 2 * VL)
			for (int h = 0; h < 2; h++)
				for (int p = 0; p < 4; p++)
					sum[p][h] = FMA(LOAD(a + p * ld + j + h * VL),
							LOAD(g->r + j + h * VL), sum[p][h]);
		for (; j < ld; j += VL)
			for (int p = 0; p < 4; p++)
				sum[p][0] = FMA(LOAD(a + p * ld + j), LOAD(g->r + j), sum[p][0]);
		for (int p = 0; p < 4; p++)
			x[i + p] = SUM(sum[p][0] + sum[p][1]);
	}
	for (; i < to; i++)
		x[i] = DOT(g->a + i * ld + first, g->r + first, ld - first);
}

static inline __attribute__((always_inline)) void SVD(update_rows)(const struct SVD(core) * g,
								   int64_t i, const int rows)
{
	const int64_t ld = g->ld, steps = g->k - g->begin;
	REAL f[2 * BLOCK][4];
	for (int64_t p = 0; p < steps; p++)
		for (int q = 0; q < rows; q++) {
			f[p][q] = -g->left[(g->begin + p) * ld + i + q];
			f[steps + p][q] = -g->x[p * ld + i + q];
		}
	for (int64_t j = g->k / VL * VL; j < ld; j += VL) {
		V sum[4];
		for (int q = 0; q < rows; q++)
			sum[q] = LOAD(g->a + (i + q) * ld + j);
		for (int64_t p = 0; p < steps; p++) {
			const V y = LOAD(g->y + p * ld + j),
				r = LOAD(g->a + (g->begin + p) * ld + j);
			for (int q = 0; q < rows; q++)
				sum[q] = FMA(SPLAT(f[steps + p][q]), r,
					     FMA(SPLAT(f[p][q]), y, sum[q]));
		}
		for (int q = 0; q < rows; q++)
			STORE(g->a + (i + q) * ld + j, sum[q]);
	}
}

// Applies the updates of a block to the rows after it.
static void SVD(update)(void *arg, int64_t item)
{
	const struct SVD(core) *g = arg;
	int64_t i, to;
	SVD(chunk)(g, item, &i, &to);
	for (; i + 4 <= to; i += 4)
		SVD(update_rows)(g, i, 4);
	for (; i < to; i++)
		SVD(update_rows)(g, i, 1);
}

static int64_t SVD(pass)(struct SVD(core) * g, void (*fn)(void *, int64_t))
{
	const int64_t items = g->n - g->k < LARGE_ROWS ? 1 : CHUNKS;
	if (items == 1)
		fn(g, 0);
	else
		yk_team_run(items, fn, g);
	return items;
}

static void SVD(reduce_step)(struct SVD(core) * g, int64_t k)
{
	const int64_t n = g->n, ld = g->ld, at = k - g->begin; // steps whose updates are pending
	REAL *l = g->left + k * ld, *row = g->a + k * ld, *y = g->y + at * ld, *x = g->x + at * ld,
	     f[BLOCK + 1], h[BLOCK];
	const REAL *lefts = g->left + g->begin * ld, *rights = g->a + g->begin * ld;
	g->k = k;
	g->l = l;
	g->r = row;
	for (int64_t i = k; i < n; i++)
		l[i] = g->a[i * ld + k];
	for (int64_t p = 0; p < at; p++) {
		f[p] = g->y[p * ld + k];
		h[p] = rights[p * ld + k];
	}
	SVD(subtract)(l, k, ld, at, f, lefts, at, h, g->x);
	memset(l, 0, (size_t)k * sizeof *l);
	g->d[k] = REFLECT(l, k, n, &g->u.tau[k]);
	if (g->u.tau[k] != 0) {
		const int64_t items = SVD(pass)(g, SVD(times_left));
		memcpy(y, g->sums, (size_t)ld * sizeof *y);
		for (int64_t c = 1; c < items; c++)
			for (int64_t j = k; j < ld; j++)
				y[j] += g->sums[c * ld + j];
		for (int64_t p = 0; p < at; p++) {
			f[p] = DOT(lefts + p * ld + k, l + k, n - k);
			h[p] = DOT(g->x + p * ld + k, l + k, n - k);
		}
		SVD(subtract)(y, k, ld, at, f, g->y, at, h, rights);
		for (int64_t j = k + 1; j < n; j++)
			y[j] *= g->u.tau[k];
		memset(y, 0, (size_t)(k + 1) * sizeof *y);
	} else {
		memset(l, 0, (size_t)ld * sizeof *l);
	}
	for (int64_t p = 0; p <= at; p++)
		f[p] = lefts[p * ld + k];
	for (int64_t p = 0; p < at; p++)
		h[p] = g->x[p * ld + k];
	SVD(subtract)(row, k, ld, at + 1, f, g->y, at, h, rights);
	memset(row, 0, (size_t)(k + 1) * sizeof *row);
	g->e[k] = k + 1 < n ? REFLECT(row, k + 1, n, &g->v.tau[k]) : 0;
	if (k + 1 == n || g->v.tau[k] == 0) {
		memset(row, 0, (size_t)ld * sizeof *row);
		g->v.tau[k] = 0;
		return;
	}
	SVD(pass)(g, SVD(times_right));
	for (int64_t p = 0; p <= at; p++)
		f[p] = DOT(g->y + p * ld + k, row + k, n - k);
	for (int64_t p = 0; p < at; p++)
		h[p] = DOT(rights + p * ld + k, row + k, n - k);
	SVD(subtract)(x, k, ld, at + 1, f, lefts, at, h, g->x);
	for (int64_t i = k + 1; i < n; i++)
		x[i] *= g->v.tau[k];
	memset(x, 0, (size_t)(k + 1) * sizeof *x);
}

static void SVD(reduce)(struct SVD(core) * g)
{
	const int64_t n = g->n;
	memset(g->left, 0, (size_t)(n * g->ld) * sizeof *g->left);
	for (int64_t begin = 0; begin < n; begin += BLOCK) {
		const int64_t end = yk_min(begin + BLOCK, n);
		g->begin = begin;
		memset(g->x, 0, (size_t)(BLOCK * g->ld) * sizeof *g->x);
		memset(g->y, 0, (size_t)(BLOCK * g->ld) * sizeof *g->y);
		for (int64_t k = begin; k < end; k++)
			SVD(reduce_step)(g, k);
		g->k = end;
		if (end < n)
			SVD(pass)(g, SVD(update));
	}
}

// ---- vectors ----

static void SVD(panel)(const struct SVD(core) * g, int64_t index)
{
	const bool right = index % 2;
	const struct SVD(side) *side = right ? &g->v : &g->u;
	const struct SVD(record) *r = g->applied;
	REAL *z = side->z + index / 2 * g->n * PANELS(width);
	if (g->fresh)
		PANELS(begin)
		(g->n, right ? g->a : g->left, g->ld, side->tau, right, side->dots, index / 2, z);
	PANELS(turn)(r->sweep, r->sweeps, right ? r->cv : r->cu, right ? r->sv : r->su, z);
}

// ---- diagonalization ----

static void SVD(note)(struct SVD(core) * g, double cv, double sv, double cu, double su)
{
	struct SVD(record) *r = g->filled;
	if (!g->vectors)
		return;
	r->cv[r->rotations] = (REAL)(cv - 1);
	r->sv[r->rotations] = (REAL)sv;
	r->cu[r->rotations] = (REAL)(cu - 1);
	r->su[r->rotations++] = (REAL)su;
}

// One QR step on rows l .. m, from the first to the last.
static void SVD(step)(struct SVD(core) * g, int64_t l, int64_t m)
{
	double *d = g->d, *e = g->e, cs = 1, sn = 0, old_cs = 1, old_sn = 0, r;
	double shift = smaller_value(d[m - 1], e[m - 1], d[m]);
	if (d[l] == 0 || shift / fabs(d[l]) * (shift / fabs(d[l])) < DBL_EPSILON)
		shift = 0;
	if (g->vectors)
		g->filled->sweep[g->filled->sweeps++] =
			(struct sweep){ l, m, g->filled->rotations };
	if (shift == 0) {
		for (int64_t i = l; i < m; i++) {
			r = rotation(d[i] * cs, e[i], &cs, &sn);
			if (i > l)
				e[i - 1] = old_sn * r;
			d[i] = rotation(old_cs * r, d[i + 1] * sn, &old_cs, &old_sn);
			SVD(note)(g, cs, sn, old_cs, old_sn);
		}
		const double h = d[m] * cs;
		d[m] = h * old_cs;
		e[m - 1] = h * old_sn;
		return;
	}
	double f = (fabs(d[l]) - shift) * (copysign(1, d[l]) + shift / d[l]), h = e[l];
	for (int64_t i = l; i < m; i++) {
		r = rotation(f, h, &cs, &sn);
		if (i > l)
			e[i - 1] = r;
		f = cs * d[i] + sn * e[i];
		e[i] = cs * e[i] - sn * d[i];
		h = sn * d[i + 1];
		d[i + 1] *= cs;
		d[i] = rotation(f, h, &old_cs, &old_sn);
		f = old_cs * e[i] + old_sn * d[i + 1];
		d[i + 1] = old_cs * d[i + 1] - old_sn * e[i];
		if (i + 1 < m) {
			h = old_sn * e[i + 1];
			e[i + 1] *= old_cs;
		}
		SVD(note)(g, cs, sn, old_cs, old_sn);
	}
	e[m - 1] = f;
}

// Takes steps until the matrix is diagonal, the record is full, or too many were taken.
static void SVD(fill)(struct SVD(core) * g)
{
	struct SVD(record) *r = g->filled;
	r->rotations = r->sweeps = 0;
	while (g->m > 0 && g->steps > 0) {
		// the largest element of the matrix is 1/2 .. 1
		int64_t l = g->m;
		while (l > 0 &&
		       fabs(g->e[l - 1]) > DBL_EPSILON / 2 * (fabs(g->d[l - 1]) + fabs(g->d[l])) &&
		       fabs(g->e[l - 1]) > DBL_EPSILON * DBL_EPSILON)
			l--;
		if (l == g->m) {
			g->m--;
			continue;
		}
		if (g->vectors && (r->rotations + g->n > g->max || r->sweeps == g->max))
			return;
		g->steps--;
		SVD(step)(g, l, g->m);
	}
}

static void SVD(fill_or_apply)(void *arg, int64_t item)
{
	if (item)
		SVD(panel)(arg, item - 1);
	else
		SVD(fill)(arg);
}

static bool SVD(diagonal)(struct SVD(core) * g)
{
	const int64_t n = g->n;
	g->m = n - 1;
	g->steps = 60 * n + 60; // about two per value are typical
	g->filled = &g->record[0];
	SVD(fill)(g);
	if (g->vectors) {
		PANELS(dots)(n, g->left, g->ld, 0, g->u.dots);
		PANELS(dots)(n, g->a, g->ld, 1, g->v.dots);
	}
	while (g->vectors && (g->fresh || g->filled->sweeps)) {
		g->applied = g->filled;
		g->filled = &g->record[g->applied == g->record];
		yk_team_run(1 + 2 * PANELS(of)(n), SVD(fill_or_apply), g);
		g->fresh = false;
	}
	return g->m <= 0;
}

// Loads the matrix, transposed if it has more columns than rows, scaled by a power of two so that
// its largest element is in 1/2 .. 1. Returns the exponent; *finite: whether all elements are.
static int SVD(load)(const struct matrix *from, const struct shape *s, REAL *a, int64_t ld,
		     bool *finite)
{
	double max = 0, sum = 0;
	int exponent = 0;
	struct matrix m = *from;
	if (s->turned) {
		m.rs = from->cs;
		m.cs = from->rs;
	}
	for (int64_t i = 0; i < s->m; i++) {
		for (int64_t j = 0; j < s->n; j++) {
			const double x = matrix_get(&m, i, j);
			a[i * ld + j] = (REAL)x;
			max = fmax(max, fabs(x));
			sum += x - x;
		}
		for (int64_t j = s->n; j < ld; j++)
			a[i * ld + j] = 0;
	}
	*finite = sum == 0;
	if (max == 0 || !*finite)
		return 0;
	frexp(max, &exponent);
	// in two factors, since one may exceed the range
	const REAL half = (REAL)ldexp(1, -(exponent / 2)),
		   rest = (REAL)ldexp(1, exponent / 2 - exponent);
	for (int64_t i = 0; i < s->m; i++)
		for (int64_t j = 0; j < s->n; j++)
			a[i * ld + j] = a[i * ld + j] * half * rest;
	return exponent;
}

// Stores the left factor [m,rows] and the right one, whose vectors lie in g->v; of a transposed
// matrix they change places.
static void SVD(store)(const struct SVD(core) * g, const struct shape *s, const struct yoke_op *op,
		       int64_t index, const struct value *order, const REAL *left, int64_t ldl)
{
	const int64_t n = s->n;
	const struct yoke_view *l = &op->out[s->turned ? 2 : 0], *r = &op->out[s->turned ? 0 : 2];
	if (l->kind != YOKE_VIEW_NONE) {
		struct matrix to = matrix_of(l, 2, index);
		for (int64_t i = 0; i < s->m; i++)
			for (int64_t k = 0; k < s->rows; k++)
				matrix_put(&to, s->turned ? k : i, s->turned ? i : k,
					   left[i * ldl + k]);
	}
	if (r->kind != YOKE_VIEW_NONE) {
		struct matrix to = matrix_of(r, 2, index);
		for (int64_t k = 0; k < n; k++) {
			const double sign = g->d[order[k].at] < 0 ? -1 : 1;
			for (int64_t i = 0; i < n; i++)
				matrix_put(&to, s->turned ? i : k, s->turned ? k : i,
					   sign * (double)PANELS(component)(g->v.z, n, order[k].at,
									    i));
		}
	}
}

// Memory of one matrix: the values' order, the left factor, a matrix with more rows than columns
// and its QR factorization, the core.
struct SVD(parts) {
	struct value *order;
	REAL *left, *a, *qr;
	char *core;
	size_t bytes;
};

static struct SVD(parts) SVD(parts_of)(const struct shape *s, char *memory)
{
	struct SVD(core) g;
	struct SVD(parts) p = { .order = after(memory, 0) };
	size_t at = dense_align((size_t)s->n * sizeof *p.order);
	p.left = after(memory, at);
	at += s->vectors ? dense_align((size_t)(s->m * dense_ld(s->rows)) * sizeof(REAL)) : 0;
	p.a = after(memory, at);
	at += s->m > s->n ? dense_align((size_t)(s->m * dense_ld(s->n)) * sizeof(REAL)) : 0;
	p.qr = after(memory, at);
	at += s->m > s->n ? dense_align((size_t)DENSE.qr_elements(s->m, s->n) * sizeof(REAL)) : 0;
	p.core = after(memory, at);
	p.bytes = at + SVD(divide)(&g, s->n, s->vectors, NULL);
	return p;
}

static void SVD(one)(struct dense_batch *b, int64_t index, void *memory)
{
	const struct yoke_op *op = b->op;
	const struct shape s = shape_of(op);
	const struct yk_dense *d = &DENSE;
	const struct matrix from = matrix_of(&op->in[0], 2, index);
	const int64_t n = s.n, ld = dense_ld(n), ldl = dense_ld(s.rows);
	const bool tall = s.m > n;
	struct SVD(core) g;
	struct SVD(parts) p = SVD(parts_of)(&s, memory);
	bool finite;
	SVD(divide)(&g, n, s.vectors, p.core);
	const int exponent = SVD(load)(&from, &s, tall ? p.a : g.a, ld, &finite);
	if (!finite) {
		fill_nan(op, index);
		return;
	}
	if (tall) {
		d->qr(s.m, n, p.a, ld, p.qr);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < ld; j++)
				g.a[i * ld + j] = j < i ? 0 : p.a[i * ld + j];
	}
	SVD(reduce)(&g);
	if (!SVD(diagonal)(&g)) {
		atomic_store(&b->bad, index);
		return;
	}
	for (int64_t k = 0; k < n; k++)
		p.order[k] = (struct value){ fabs(g.d[k]), k };
	qsort(p.order, (size_t)n, sizeof *p.order, descending);
	if (op->out[1].kind != YOKE_VIEW_NONE) {
		const struct matrix to = matrix_of(&op->out[1], 1, index);
		for (int64_t k = 0; k < n; k++)
			matrix_put(&to, 0, k, ldexp(p.order[k].x, exponent));
	}
	if (!s.vectors)
		return;
	for (int64_t i = 0; i < s.m; i++)
		for (int64_t k = 0; k < ldl; k++)
			p.left[i * ldl + k] =
				i < n && k < n ? PANELS(component)(g.u.z, n, p.order[k].at, i) :
						 k < s.rows && k >= n && i == k;
	if (tall)
		d->q(s.m, n, ldl, p.qr, p.left, ldl);
	SVD(store)(&g, &s, op, index, p.order, p.left, ldl);
}
