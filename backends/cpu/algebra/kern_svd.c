// SPDX-License-Identifier: Apache-2.0
// SVD: singular values and vectors, in f64.
//
// A matrix with more rows than columns, or its transpose, is first reduced to R by QR. Reflections from
// both sides make it bidiagonal, and implicit QR steps (Golub and Kahan 1965, Demmel and Kahan 1990)
// diagonalize it. As in EIGH, rotations are recorded and applied to panels of PANEL components of all
// vectors, independently; the work on a panel depends only on n, so results do not depend on the
// number of threads.
#include "config.h"

#include <stdlib.h>

#include "dense.h"
#include "lapack.h"

enum {
	PANEL = 16,          // components of all vectors per panel; a multiple of VD
	ROTATIONS = 1 << 15, // recorded before they are applied
	CHUNKS = 4,          // of rows, in a pass over a large matrix
	LARGE_ROWS = 192,    // rows of a matrix from which on a pass is divided
	LIBRARY = 32         // the smaller side from which on a LAPACK, if requested, is faster
};

// Rotations of vectors i and i + 1, for i from `from` to `to` - 1; stored from index `at` on.
struct sweep {
	int64_t from, to, at;
};

// One side's vectors: [panels][n][PANEL], and the rotations of its pairs.
struct side {
	double *z, *c, *s, *tau;
};

struct bidiagonal {
	int64_t n, ld;
	double *a;    // [n][ld]; then row k after its diagonal: reflection k from the right
	double *left; // [n][ld], row k from its diagonal on: reflection k from the left
	double *d, *e, *x, *y; // diagonals; row k of the pending updates
	double *sums; // [CHUNKS][ld]
	struct side u, v;
	struct sweep *sweep;
	int64_t rotations, sweeps, max;
	bool vectors, fresh;
	// the pass that runs
	int64_t k;
	const double *l, *r; // the reflections of row k
};

static int64_t panels_of(int64_t n)
{
	return (n + PANEL - 1) / PANEL;
}

static int64_t max_of(int64_t n)
{
	return 2 * n > ROTATIONS ? 2 * n : n * n < ROTATIONS ? n * n + 2 * n + 2 : ROTATIONS;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

// Doubles of memory for the n x n core.
static int64_t core_doubles(int64_t n, bool vectors)
{
	const int64_t ld = dense_ld(n), max = max_of(n);
	int64_t take = (2 * n + 6 + CHUNKS) * ld;
	if (vectors)
		take += 2 * panels_of(n) * n * PANEL + 4 * max + (max + 1) * (int64_t)(sizeof(struct sweep) / 8);
	return take;
}

static void divide_memory(struct bidiagonal *g, int64_t n, bool vectors, double *at)
{
	const int64_t ld = dense_ld(n), max = max_of(n);
	double **line[] = { &g->d, &g->e, &g->x, &g->y, &g->u.tau, &g->v.tau };
	*g = (struct bidiagonal){ .n = n, .ld = ld, .a = at, .left = at + n * ld, .max = max, .vectors = vectors, .fresh = true };
	at += 2 * n * ld;
	for (size_t i = 0; i < sizeof line / sizeof *line; i++, at += ld)
		*line[i] = at;
	g->sums = at;
	at += CHUNKS * ld;
	if (!vectors)
		return;
	struct side *side[] = { &g->u, &g->v };
	for (int i = 0; i < 2; i++) {
		side[i]->z = at;
		side[i]->c = at + panels_of(n) * n * PANEL;
		side[i]->s = side[i]->c + max;
		at = side[i]->s + max;
	}
	g->sweep = (struct sweep *)(void *)at;
}

// ---- reduction to bidiagonal form ----

static void chunk(const struct bidiagonal *g, int64_t item, int64_t *from, int64_t *to)
{
	const int64_t rows = g->n - g->k, each = rows < LARGE_ROWS ? rows : (rows + CHUNKS - 1) / CHUNKS;
	*from = g->k + item * each;
	*to = smaller(*from + each, g->n);
}

// sums[item] = the product of the rows with the left reflection, from column k on
static void times_left(void *arg, int64_t item)
{
	const struct bidiagonal *g = arg;
	const int64_t first = g->k / VD * VD;
	double *restrict sum = g->sums + item * g->ld;
	int64_t from, to;
	chunk(g, item, &from, &to);
	memset(sum, 0, (size_t)g->ld * sizeof *sum);
	for (int64_t i = from; i < to; i++) {
		const double *row = g->a + i * g->ld;
		const vd f = vd_splat(g->l[i]);
		for (int64_t j = first; j < g->ld; j += VD)
			vd_store(sum + j, vd_fma(f, vd_load(row + j), vd_load(sum + j)));
	}
}

// Subtracts the left reflection from the rows, and multiplies them with the right one.
static void minus_left(void *arg, int64_t item)
{
	const struct bidiagonal *g = arg;
	const int64_t first = g->k / VD * VD;
	int64_t from, to;
	chunk(g, item, &from, &to);
	for (int64_t i = from > g->k ? from : g->k + 1; i < to; i++) {
		double *row = g->a + i * g->ld;
		const vd f = vd_splat(-g->l[i]);
		vd sum[2] = { { 0 }, { 0 } };
		for (int64_t j = first; j < g->ld; j += VD) {
			const vd x = vd_fma(f, vd_load(g->y + j), vd_load(row + j));
			vd_store(row + j, x);
			sum[j / VD % 2] = vd_fma(x, vd_load(g->r + j), sum[j / VD % 2]);
		}
		g->x[i] = vd_sum(sum[0] + sum[1]);
	}
}

// Subtracts the right reflection from the rows.
static void minus_right(void *arg, int64_t item)
{
	const struct bidiagonal *g = arg;
	const int64_t first = g->k / VD * VD;
	int64_t from, to;
	chunk(g, item, &from, &to);
	for (int64_t i = from > g->k ? from : g->k + 1; i < to; i++) {
		double *row = g->a + i * g->ld;
		const vd f = vd_splat(-g->x[i]);
		for (int64_t j = first; j < g->ld; j += VD)
			vd_store(row + j, vd_fma(f, vd_load(g->r + j), vd_load(row + j)));
	}
}

static int64_t pass(struct bidiagonal *g, void (*fn)(void *, int64_t))
{
	const int64_t items = g->n - g->k < LARGE_ROWS ? 1 : CHUNKS;
	if (items == 1)
		fn(g, 0);
	else
		yk_team_run(items, fn, g);
	return items;
}

static void reduce(struct bidiagonal *g)
{
	const int64_t n = g->n, ld = g->ld;
	memset(g->left, 0, (size_t)(n * ld) * sizeof *g->left);
	memset(g->y, 0, (size_t)ld * sizeof *g->y);
	for (int64_t k = 0; k < n; k++) {
		double *l = g->left + k * ld, *row = g->a + k * ld;
		g->k = k;
		g->l = l;
		for (int64_t i = k; i < n; i++)
			l[i] = g->a[i * ld + k];
		g->d[k] = reflect(l, k, n, &g->u.tau[k]);
		if (g->u.tau[k] != 0) {
			const int64_t items = pass(g, times_left);
			for (int64_t j = k; j < n; j++) {
				double s = 0;
				for (int64_t c = 0; c < items; c++)
					s += g->sums[c * ld + j];
				g->y[j] = g->u.tau[k] * s;
			}
			for (int64_t j = k; j < n; j++)
				row[j] -= g->y[j];
		} else {
			memset(g->y, 0, (size_t)ld * sizeof *g->y);
			memset(l, 0, (size_t)ld * sizeof *l);
		}
		for (int64_t j = 0; j < k; j++)
			g->y[j] = 0;
		for (int64_t j = 0; j <= k; j++)
			row[j] = 0;
		g->e[k] = k + 1 < n ? reflect(row, k + 1, n, &g->v.tau[k]) : 0;
		if (k + 1 == n || g->v.tau[k] == 0) {
			memset(row, 0, (size_t)ld * sizeof *row);
			g->v.tau[k] = 0;
		}
		g->r = row;
		pass(g, minus_left);
		if (g->v.tau[k] != 0) {
			for (int64_t i = k + 1; i < n; i++)
				g->x[i] *= g->v.tau[k];
			pass(g, minus_right);
		}
	}
}

// ---- vectors ----

// Applies all reflections of one side to a panel of the identity: the rows of their product.
static void panel_begin(const struct bidiagonal *g, const double *reflections, const double *tau, int64_t shift, int64_t panel,
			double *z)
{
	enum { N = PANEL / VD };
	const int64_t n = g->n;
	memset(z, 0, (size_t)(n * PANEL) * sizeof *z);
	for (int64_t j = 0; j < PANEL && panel * PANEL + j < n; j++)
		z[(panel * PANEL + j) * PANEL + j] = 1;
	for (int64_t k = 0; k < n; k++) {
		const double *u = reflections + k * g->ld;
		vd sum[N] = { { 0 } };
		if (tau[k] == 0)
			continue;
		for (int64_t i = k + shift; i < n; i++)
			for (int p = 0; p < N; p++)
				sum[p] = vd_fma(vd_splat(u[i]), vd_load(z + i * PANEL + p * VD), sum[p]);
		for (int p = 0; p < N; p++)
			sum[p] *= tau[k];
		for (int64_t i = k + shift; i < n; i++)
			for (int p = 0; p < N; p++)
				vd_store(z + i * PANEL + p * VD, vd_fma(vd_splat(-u[i]), sum[p], vd_load(z + i * PANEL + p * VD)));
	}
}

static void panel_turn(const struct side *side, const struct sweep *w, double *z)
{
	enum { N = PANEL / VD };
	const double *c = side->c + w->at, *s = side->s + w->at;
	vd low[N];
	for (int p = 0; p < N; p++)
		low[p] = vd_load(z + w->from * PANEL + p * VD);
	for (int64_t i = w->from; i < w->to; i++, c++, s++) {
		double *row = z + i * PANEL;
		for (int p = 0; p < N; p++) {
			const vd next = vd_load(row + PANEL + p * VD);
			vd_store(row + p * VD, vd_fma(vd_splat(*s), next, *c * low[p]));
			low[p] = vd_fma(vd_splat(-*s), low[p], *c * next);
		}
	}
	for (int p = 0; p < N; p++)
		vd_store(z + w->to * PANEL + p * VD, low[p]);
}

static void panel(void *arg, int64_t index)
{
	const struct bidiagonal *g = arg;
	const struct side *side = index % 2 ? &g->v : &g->u;
	double *z = side->z + index / 2 * g->n * PANEL;
	if (g->fresh)
		panel_begin(g, index % 2 ? g->a : g->left, side->tau, index % 2, index / 2, z);
	for (int64_t k = 0; k < g->sweeps; k++)
		panel_turn(side, &g->sweep[k], z);
}

static void apply(struct bidiagonal *g)
{
	if (g->vectors)
		yk_team_run(2 * panels_of(g->n), panel, g);
	g->rotations = g->sweeps = 0;
	g->fresh = false;
}

// ---- diagonalization ----

// c f + s g = r, c g - s f = 0; the numbers are at most about 1 in modulus
static double rotation(double f, double g, double *c, double *s)
{
	if (g == 0) {
		*c = 1;
		*s = 0;
		return f;
	}
	const double max = fmax(fabs(f), fabs(g)), x = f / max, y = g / max, r = sqrt(x * x + y * y);
	*c = x / r;
	*s = y / r;
	return max * r;
}

static void note(struct bidiagonal *g, double cv, double sv, double cu, double su)
{
	if (!g->vectors)
		return;
	g->v.c[g->rotations] = cv;
	g->v.s[g->rotations] = sv;
	g->u.c[g->rotations] = cu;
	g->u.s[g->rotations++] = su;
}

// The smaller singular value of [[f, g], [0, h]] (LAPACK's dlas2).
static double smaller_value(double f, double g, double h)
{
	const double fa = fabs(f), ga = fabs(g), ha = fabs(h), min = fmin(fa, ha), max = fmax(fa, ha);
	if (min == 0)
		return 0;
	if (ga < max) {
		const double as = 1 + min / max, at = (max - min) / max, au = ga / max * (ga / max);
		return min * (2 / (sqrt(as * as + au) + sqrt(at * at + au)));
	}
	const double au = max / ga;
	if (au == 0)
		return min * max / ga;
	const double as = (1 + min / max) * au, at = (max - min) / max * au;
	return 2 * (min * (1 / (sqrt(1 + as * as) + sqrt(1 + at * at))) * au);
}

// One QR step on rows l .. m, from the first to the last.
static void step(struct bidiagonal *g, int64_t l, int64_t m)
{
	double *d = g->d, *e = g->e, cs = 1, sn = 0, old_cs = 1, old_sn = 0, r;
	double shift = smaller_value(d[m - 1], e[m - 1], d[m]);
	if (d[l] == 0 || shift / fabs(d[l]) * (shift / fabs(d[l])) < DBL_EPSILON)
		shift = 0;
	if (g->vectors)
		g->sweep[g->sweeps++] = (struct sweep){ l, m, g->rotations };
	if (shift == 0) {
		for (int64_t i = l; i < m; i++) {
			r = rotation(d[i] * cs, e[i], &cs, &sn);
			if (i > l)
				e[i - 1] = old_sn * r;
			d[i] = rotation(old_cs * r, d[i + 1] * sn, &old_cs, &old_sn);
			note(g, cs, sn, old_cs, old_sn);
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
		note(g, cs, sn, old_cs, old_sn);
	}
	e[m - 1] = f;
}

static bool diagonal(struct bidiagonal *g)
{
	const int64_t n = g->n;
	int64_t left = 60 * n + 60; // max number of steps; about two per value are typical
	for (int64_t m = n - 1; m > 0;) {
		// the largest element of the matrix is 1/2 .. 1
		int64_t l = m;
		while (l > 0 && fabs(g->e[l - 1]) > DBL_EPSILON / 2 * (fabs(g->d[l - 1]) + fabs(g->d[l])) &&
		       fabs(g->e[l - 1]) > DBL_EPSILON * DBL_EPSILON)
			l--;
		if (l == m) {
			m--;
			continue;
		}
		if (!left--)
			return false;
		if (g->vectors && (g->rotations + n > g->max || g->sweeps == g->max))
			apply(g);
		step(g, l, m);
	}
	apply(g);
	return true;
}

// ---- the op ----

struct shape {
	int64_t m, n, rows; // of the matrix with at least as many rows as columns; columns of its left factor
	bool turned, vectors, full;
};

static struct shape shape_of(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
	struct shape s = { larger(m, n), smaller(m, n), smaller(m, n), m < n, false, op->attr[0].i };
	s.vectors = op->out[0].kind != YOKE_VIEW_NONE || op->out[2].kind != YOKE_VIEW_NONE;
	if (s.full)
		s.rows = s.m;
	return s;
}

// Doubles: the matrix, its QR factorization, the core, the order, the left factor.
static size_t bytes(const struct yoke_op *op)
{
	const struct shape s = shape_of(op);
	int64_t take = core_doubles(s.n, s.vectors) + 2 * s.n;
	if (s.m > s.n)
		take += s.m * dense_ld(s.n) + ISA(yk_dense_f64).qr_elements(s.m, s.n);
	if (s.vectors)
		take += s.m * dense_ld(s.rows);
	return (size_t)take * sizeof(double);
}

struct value {
	double x;
	int64_t at;
};

static int descending(const void *a, const void *b)
{
	const struct value *x = a, *y = b;
	return x->x != y->x ? (x->x > y->x ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

static double component(const double *z, int64_t n, int64_t vector, int64_t i)
{
	return z[(i / PANEL * n + vector) * PANEL + i % PANEL];
}

static void fill_nan(const struct yoke_op *op, int64_t index)
{
	for (uint32_t k = 0; k < 3; k++) {
		const struct yoke_view *v = &op->out[k];
		const int keep = k == 1 ? 1 : 2;
		if (v->kind == YOKE_VIEW_NONE)
			continue;
		const struct matrix to = matrix_of(v, keep, index);
		for (int64_t i = 0; i < (keep == 2 ? v->dims[v->rank - 2] : 1); i++)
			for (int64_t j = 0; j < v->dims[v->rank - 1]; j++)
				matrix_put(&to, i, j, NAN);
	}
}

// Loads the matrix, transposed if it has more columns than rows, scaled by a power of two so that its
// largest element is in 1/2 .. 1. Returns the exponent; *finite: whether all elements are.
static int load(const struct matrix *from, const struct shape *s, double *a, int64_t ld, bool *finite)
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
			const double x = a[i * ld + j] = matrix_get(&m, i, j);
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
	for (int64_t i = 0; i < s->m; i++)
		for (int64_t j = 0; j < s->n; j++)
			a[i * ld + j] = ldexp(a[i * ld + j], -exponent);
	return exponent;
}

// Stores the left factor [m,rows] and the right one, whose vectors lie in g->v; of a transposed matrix
// they change places.
static void store(const struct bidiagonal *g, const struct shape *s, const struct yoke_op *op, int64_t index, const struct value *order,
		  const double *left, int64_t ldl)
{
	const int64_t n = s->n;
	const struct yoke_view *l = &op->out[s->turned ? 2 : 0], *r = &op->out[s->turned ? 0 : 2];
	if (l->kind != YOKE_VIEW_NONE) {
		struct matrix to = matrix_of(l, 2, index);
		for (int64_t i = 0; i < s->m; i++)
			for (int64_t k = 0; k < s->rows; k++)
				matrix_put(&to, s->turned ? k : i, s->turned ? i : k, left[i * ldl + k]);
	}
	if (r->kind != YOKE_VIEW_NONE) {
		struct matrix to = matrix_of(r, 2, index);
		for (int64_t k = 0; k < n; k++) {
			const double sign = g->d[order[k].at] < 0 ? -1 : 1;
			for (int64_t i = 0; i < n; i++)
				matrix_put(&to, s->turned ? i : k, s->turned ? k : i, sign * component(g->v.z, n, order[k].at, i));
		}
	}
}

static void one(struct dense_batch *b, int64_t index, void *memory)
{
	const struct yoke_op *op = b->op;
	const struct shape s = shape_of(op);
	const struct yk_dense *d = &ISA(yk_dense_f64);
	const struct matrix from = matrix_of(&op->in[0], 2, index);
	const int64_t n = s.n, ld = dense_ld(n), ldl = dense_ld(s.rows);
	const bool tall = s.m > n;
	struct bidiagonal g;
	double *at = memory, *left = NULL, *a = NULL, *rest = NULL;
	struct value *order = memory;
	bool finite;
	at += 2 * n;
	if (s.vectors) {
		left = at;
		at += s.m * ldl;
	}
	if (tall) {
		a = at;
		rest = a + s.m * ld;
		at = rest + d->qr_elements(s.m, n);
	}
	divide_memory(&g, n, s.vectors, at);
	const int exponent = load(&from, &s, tall ? a : g.a, ld, &finite);
	if (!finite) {
		fill_nan(op, index);
		return;
	}
	if (tall) {
		d->qr(s.m, n, a, ld, rest);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < ld; j++)
				g.a[i * ld + j] = j < i ? 0 : a[i * ld + j];
	}
	reduce(&g);
	if (!diagonal(&g)) {
		atomic_store(&b->bad, index);
		return;
	}
	for (int64_t k = 0; k < n; k++)
		order[k] = (struct value){ fabs(g.d[k]), k };
	qsort(order, (size_t)n, sizeof *order, descending);
	if (op->out[1].kind != YOKE_VIEW_NONE) {
		const struct matrix to = matrix_of(&op->out[1], 1, index);
		for (int64_t k = 0; k < n; k++)
			matrix_put(&to, 0, k, ldexp(order[k].x, exponent));
	}
	if (!s.vectors)
		return;
	for (int64_t i = 0; i < s.m; i++)
		for (int64_t k = 0; k < ldl; k++)
			left[i * ldl + k] = i < n && k < n ? component(g.u.z, n, order[k].at, i) : k < s.rows && k >= n && i == k;
	if (tall)
		d->q(s.m, n, ldl, rest, left, ldl);
	store(&g, &s, op, index, order, left, ldl);
}

// By LAPACK, in the matrix's dtype. A row-major matrix is the transpose of a column-major one, a' = V S U'.
static int by_lapack(const struct yoke_op *op, int64_t index)
{
	const struct yoke_view *in = &op->in[0];
	const struct shape s = shape_of(op);
	const int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1], rows = s.full ? m : s.n, columns = s.full ? n : s.n;
	const struct yk_dense *d = dense_of(in->dtype);
	const bool wide = in->dtype == yoke_f64;
	const struct matrix from = matrix_of(in, 2, index);
	char *a = malloc((size_t)(m * n + s.n + (s.vectors ? m * rows + columns * n : 0)) * d->element);
	char *values = a + (size_t)(m * n) * d->element, *u = values + (size_t)s.n * d->element,
	     *v = u + (size_t)(s.vectors ? m * rows : 0) * d->element;
	double sum = 0;
	if (!a)
		return yk_cpu_fail(YOKE_ENOMEM, "svd: no memory for a copy of %lld rows", (long long)m);
	d->load(&from, m, n, a, n);
	for (int64_t i = 0; i < m * n; i++) {
		const double x = wide ? ((const double *)(void *)a)[i] : ((const float *)(void *)a)[i];
		sum += x - x;
	}
	if (sum != 0) {
		fill_nan(op, index);
		free(a);
		return 0;
	}
	const int err = yk_lapack_svd(wide, s.vectors, s.full, n, m, a, values, v, n, u, rows);
	const struct {
		const char *from;
		int64_t m, n;
	} part[] = { { u, m, rows }, { values, 1, s.n }, { v, columns, n } };
	for (int k = 0; k < 3 && !err; k++)
		if (op->out[k].kind != YOKE_VIEW_NONE) {
			const struct matrix to = matrix_of(&op->out[k], k == 1 ? 1 : 2, index);
			d->store(&to, part[k].m, part[k].n, part[k].from, part[k].n);
		}
	free(a);
	return err;
}

static uint64_t can(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]) && is_matrix(&op->out[1]) && is_matrix(&op->out[2]);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return dense_workspace(matrices(&op->in[0], 2), bytes(op));
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct shape s = shape_of(op);
	struct dense_batch b = { .op = op, .count = matrices(&op->in[0], 2), .bytes = bytes(op), .one = one };
	const double m = (double)s.m, n = (double)s.n;
	(void)impl, (void)prepared;
	if (yk_lapack_requested() && s.n >= LIBRARY) {
		int err = 0;
		for (int64_t i = 0; i < b.count && !err; i++)
			err = by_lapack(op, i);
		return err;
	}
	if (dense_run(&b, 20 * m * n * n + 100 * n * n))
		return yk_cpu_fail(YOKE_ENOMEM, "svd: no memory for %.0f rows", m);
	if (atomic_load(&b.bad) < INT64_MAX)
		return yk_cpu_fail(YOKE_EDEVICE, "svd: no convergence");
	return 0;
}

YK_KERNEL(svd, SVD) = { .can = can, .workspace = workspace, .run = run, .impl = { "qr" } };
