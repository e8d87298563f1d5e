// SPDX-License-Identifier: Apache-2.0
// EIGH: eigenvalues and eigenvectors of symmetric matrices, in f64.
//
// A matrix is tridiagonalized by Householder reflections (Martin, Reinsch and Wilkinson 1968); each
// is applied to the remaining matrix in the same pass that multiplies it with the next one. Then
// implicit QL (Dubrulle, Martin and Wilkinson 1968) diagonalizes it. Its rotations are recorded and
// applied to the vectors many at a time: the vectors are stored in panels (panels.h), and each
// panel goes through the reflections and all rotations independently. The work on a panel depends
// only on n, so results do not depend on the number of threads.
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lapack.h"
#include "matrix.h"

enum {
	MANY = 4,        // with at least this many matrices, each is one work item
	ROTATIONS = 1 << 15 // recorded before they are applied
};

// The largest element is scaled to 1/2 .. 1. For a rank-deficient matrix the reduction leaves
// rounding errors, then rounding errors of those, and so on, on which QL does not converge:
// off-diagonal elements up to NOTHING count as 0.
#define NOTHING (DBL_EPSILON * DBL_EPSILON)

#include "../vector/vec_f64.h"
#define PANELS(name) panels_##name
#define DOT vd_dot
#include "panels.h"

struct eigen {
	int64_t n, ld;     // ld: n rounded up to whole vectors
	double *a; // [n][ld] lower triangle: the matrix; row k after the diagonal: reflection k
	double *tau;       // [ld] factors of the reflections; 0: none
	double *d, *e;     // [ld] diagonal and off-diagonal elements
	// [ld] v, w: the previous reflection and its product; u, p: the next ones
	double *v, *w, *u, *p;
	double *z;         // the vectors, in panels; NULL: no vectors requested
	double *c, *s;     // rotations, as panels.h stores them
	double *dots;      // of the reflections
	struct sweep *sweep;
	int64_t rotations, sweeps, max; // recorded rotations and sweeps; capacity
	bool fresh;        // the panels are not initialized yet
};

static int64_t max_of(int64_t n)
{
	return 2 * n > ROTATIONS ? 2 * n : ROTATIONS;
}

static uint64_t dots_of(int64_t n)
{
	return (uint64_t)(n / GROUP + 1) * PAIRS;
}

static int64_t whole(int64_t n)
{
	return (n + VF - 1) / VF * VF; // whole vectors, also a multiple of 64 bytes
}

// Doubles of memory for one matrix.
static uint64_t memory_doubles(int64_t n, bool vectors)
{
	const uint64_t rows = (uint64_t)n, ld = (uint64_t)whole(n), max = (uint64_t)max_of(n);
	uint64_t take = rows * ld + 7 * ld;
	if (vectors)
		take += (uint64_t)PANELS(of)(n) * rows * PANELS(width) + 2 * max + dots_of(n) +
			(max + 1) * (sizeof(struct sweep) / 8);
	return take;
}

static void divide_memory(struct eigen *g, int64_t n, bool vectors, double *at)
{
	const int64_t ld = whole(n), max = max_of(n);
	double **line[] = { &g->tau, &g->d, &g->e, &g->v, &g->w, &g->u, &g->p };
	*g = (struct eigen){ .n = n, .ld = ld, .a = at, .max = max, .fresh = true };
	at += n * ld;
	for (size_t i = 0; i < sizeof line / sizeof *line; i++, at += ld)
		*line[i] = at;
	if (!vectors)
		return;
	g->z = at;
	g->c = g->z + PANELS(of)(n) * n * PANELS(width);
	g->s = g->c + max;
	g->dots = g->s + max;
	g->sweep = (struct sweep *)(void *)(g->dots + dots_of(n));
}

// ---- reduction to tridiagonal form ----

// Updates row i of the remaining matrix from column `from` on: subtracts the previous reflection
// (v, w), and accumulates the contributions of the row, and of the mirrored elements above the
// diagonal, to the product p with the next one (u). All arrays are 0 before column `from`.
static void reduce_row(const struct eigen *g, int64_t i, int64_t from)
{
	double *restrict r = g->a + i * g->ld, *restrict p = g->p;
	const double *v = g->v, *w = g->w, *u = g->u;
	const double v0 = v[i], w0 = w[i], u0 = u[i];
	const vd vv = vd_splat(v0), wv = vd_splat(w0), uv = vd_splat(u0);
	vd sum[2] = { { 0 }, { 0 } };
	int64_t j = from / VD * VD;
	for (; j + 2 * VD <= i; j += 2 * VD)
		for (int k = 0; k < 2; k++) {
			const int64_t at = j + k * VD;
			vd x = vd_fma(-wv, vd_load(v + at),
				      vd_fma(-vv, vd_load(w + at), vd_load(r + at)));
			vd_store(r + at, x);
			sum[k] = vd_fma(x, vd_load(u + at), sum[k]);
			vd_store(p + at, vd_fma(x, uv, vd_load(p + at)));
		}
	double s = vd_sum(sum[0] + sum[1]);
	for (; j < i; j++) {
		r[j] -= v0 * w[j] + w0 * v[j];
		s += r[j] * u[j];
		p[j] += r[j] * u0;
	}
	r[i] -= 2 * v0 * w0;
	p[i] += s + r[i] * u0;
}

static void tridiagonal(struct eigen *g)
{
	const int64_t n = g->n, ld = g->ld;
	for (int64_t k = 0; k + 1 < n; k++) {
		const double vk = g->v[k], wk = g->w[k];
		g->u[k] = 0;
		for (int64_t i = k; i < n; i++) { // first apply the previous reflection to column k
			double *x = &g->a[i * ld + k];
			*x -= g->v[i] * wk + g->w[i] * vk;
			if (i > k)
				g->u[i] = *x;
		}
		g->d[k] = g->a[k * ld + k];
		g->v[k] = g->w[k] = 0;
		g->e[k] = reflect(g->u, k + 1, n, &g->tau[k]);
		memset(g->p, 0, (size_t)ld * sizeof *g->p);
		if (g->tau[k] == 0)
			memset(g->u, 0, (size_t)ld * sizeof *g->u);
		for (int64_t i = k + 1; i < n; i++)
			reduce_row(g, i, k + 1);
		// w = tau p - tau^2 (p' u) u / 2
		const double tau = g->tau[k], half = tau * tau * vd_dot(g->p, g->u, n) / 2;
		for (int64_t i = k + 1; i < n; i++) {
			g->a[k * ld + i] = g->v[i] = g->u[i];
			g->w[i] = tau * g->p[i] - half * g->u[i];
		}
	}
	g->d[n - 1] = g->a[(n - 1) * ld + n - 1];
	g->e[n - 1] = 0;
}

// ---- eigenvectors ----

static void panel(void *arg, int64_t index)
{
	const struct eigen *g = arg;
	double *z = g->z + index * g->n * PANELS(width);
	if (g->fresh)
		PANELS(begin)(g->n, g->a, g->ld, g->tau, 1, g->dots, index, z);
	PANELS(turn)(g->sweep, g->sweeps, g->c, g->s, z);
}

static void apply(struct eigen *g)
{
	if (g->z && g->fresh)
		PANELS(dots)(g->n, g->a, g->ld, 1, g->dots);
	if (g->z)
		yk_team_run(PANELS(of)(g->n), panel, g);
	g->rotations = g->sweeps = 0;
	g->fresh = false;
}

// ---- diagonalization ----

static void note(struct eigen *g, double c, double s)
{
	if (!g->z)
		return;
	g->c[g->rotations] = c - 1;
	g->s[g->rotations++] = s;
}

// One QL step on rows l .. m; rotations go from the last row to the first.
static void step(struct eigen *g, int64_t l, int64_t m)
{
	double *d = g->d, *e = g->e;
	double shift = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(shift, 1), s = 1, c = 1, p = 0;
	double x = d[m] - d[l] + e[l] / (shift + copysign(r, shift));
	int64_t i = m - 1;
	if (g->z)
		g->sweep[g->sweeps] = (struct sweep){ .from = m, .at = g->rotations };
	for (; i >= l; i--) {
		const double f = s * e[i], b = c * e[i];
		e[i + 1] = r = rotation(x, f, &c, &s);
		if (r == 0) { // the matrix splits here
			d[i + 1] -= p;
			break;
		}
		x = d[i + 1] - p;
		r = (d[i] - x) * s + 2 * c * b;
		p = s * r;
		d[i + 1] = x + p;
		x = c * r - b;
		note(g, c, s);
	}
	if (i < l) {
		d[l] -= p;
		e[l] = x;
	}
	e[m] = 0;
	if (g->z)
		g->sweep[g->sweeps++].to = i + 1;
}

static bool diagonal(struct eigen *g)
{
	const int64_t n = g->n;
	int64_t left = 60 * n + 60; // max number of steps; about two per eigenvalue are typical
	for (int64_t l = 0; l < n; l++)
		for (;;) {
			int64_t m = l;
			while (m + 1 < n &&
			       fabs(g->e[m]) >
				       DBL_EPSILON / 2 * (fabs(g->d[m]) + fabs(g->d[m + 1])) &&
			       fabs(g->e[m]) > NOTHING)
				m++;
			if (m == l)
				break;
			if (!left--)
				return false;
			if (g->rotations + n > g->max || g->sweeps == g->max)
				apply(g);
			step(g, l, m);
		}
	apply(g);
	return true;
}

// ---- the op ----

struct job {
	const struct yoke_op *op;
	struct matrix a, w, v;
	double *memory; // of several matrices; NULL: use the thread's scratch
	atomic_int err;
};

// Loads the lower triangle, scaled by a power of two so that its largest element is in 1/2 .. 1;
// returns the exponent.
static int load(struct eigen *g, const struct matrix *a, bool *finite)
{
	double max = 0, sum = 0;
	int exponent = 0;
	for (int64_t i = 0; i < g->n; i++)
		for (int64_t j = 0; j <= i; j++) {
			const double x = matrix_get(a, i, j);
			max = fmax(max, fabs(x));
			sum += x - x; // NaN if x is not finite
		}
	*finite = sum == 0;
	if (max > 0 && *finite)
		frexp(max, &exponent);
	for (int64_t i = 0; i < g->n; i++) {
		for (int64_t j = 0; j <= i; j++)
			g->a[i * g->ld + j] = ldexp(matrix_get(a, i, j), -exponent);
		g->v[i] = g->w[i] = g->tau[i] = 0;
	}
	for (int64_t i = 0; i < g->ld; i++)
		g->v[i] = g->w[i] = g->u[i] = 0;
	return exponent;
}

struct value {
	double x;
	int64_t at;
};

static int ascending(const void *a, const void *b)
{
	const struct value *x = a, *y = b;
	return x->x != y->x ? (x->x < y->x ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

static void store(struct eigen *g, const struct job *j, int exponent, bool w, bool v)
{
	const int64_t n = g->n;
	// reuses memory that is no longer needed
	struct value *order = (struct value *)(void *)g->a;
	for (int64_t k = 0; k < n; k++)
		order[k] = (struct value){ g->d[k], k };
	qsort(order, (size_t)n, sizeof *order, ascending);
	for (int64_t k = 0; k < n; k++) {
		double max = 0, sign = 1;
		if (w)
			matrix_put(&j->w, 0, k, ldexp(order[k].x, exponent));
		for (int64_t i = 0; v && i < n; i++) {
			const double x = PANELS(component)(g->z, n, order[k].at, i);
			if (fabs(x) > max) {
				max = fabs(x);
				sign = copysign(1, x);
			}
		}
		for (int64_t i = 0; v && i < n; i++)
			matrix_put(&j->v, i, k, sign * PANELS(component)(g->z, n, order[k].at, i));
	}
}

static int by_lapack(struct eigen *g, double *packed)
{
	const int64_t n = g->n;
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k <= i; k++)
			packed[i * n + k] = g->a[i * g->ld + k];
	int err = yk_lapack_eigh(g->z, n, packed, g->d);
	for (int64_t k = 0; g->z && k < n; k++)
		for (int64_t i = 0; i < n; i++)
			g->z[(i / PANELS(width) * n + k) * PANELS(width) + i % PANELS(width)] =
				packed[k * n + i];
	return err;
}

static int decompose(struct eigen *g)
{
	if (yk_lapack_requested()) {
		double *packed = malloc((size_t)(g->n * g->n) * sizeof *packed);
		int err = packed ? by_lapack(g, packed) :
				   yk_cpu_fail(YOKE_ENOMEM, "eigh: no memory for a copy");
		free(packed);
		return err;
	}
	tridiagonal(g);
	if (!diagonal(g))
		return yk_cpu_fail(YOKE_EDEVICE, "eigh: no convergence");
	return 0;
}

static void one(struct job *j, int64_t index)
{
	const struct yoke_op *op = j->op;
	const struct yoke_view *x = &op->in[0];
	const int64_t n = x->dims[x->rank - 1];
	const bool values = op->out[0].kind != YOKE_VIEW_NONE,
		   vectors = op->out[1].kind != YOKE_VIEW_NONE;
	double *memory = j->memory ? j->memory :
				     yk_team_scratch(memory_doubles(n, vectors) * sizeof *memory);
	struct job at = { .op = op };
	struct eigen g;
	bool finite;
	if (!memory) {
		atomic_store(&j->err, yk_cpu_fail(YOKE_ENOMEM, "eigh: no memory for %lld rows",
						  (long long)n));
		return;
	}
	at.a = matrix_of(x, 2, index);
	if (values)
		at.w = matrix_of(&op->out[0], 1, index);
	if (vectors)
		at.v = matrix_of(&op->out[1], 2, index);
	divide_memory(&g, n, vectors, memory);
	const int exponent = load(&g, &at.a, &finite);
	if (finite) {
		int err = decompose(&g);
		if (err)
			atomic_store(&j->err, err);
		else
			store(&g, &at, exponent, values, vectors);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		if (values)
			matrix_put(&at.w, 0, i, NAN);
		for (int64_t k = 0; vectors && k < n; k++)
			matrix_put(&at.v, i, k, NAN);
	}
}

static void item(void *arg, int64_t index)
{
	one(arg, index);
}

static uint64_t can(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]) && is_matrix(&op->out[1]);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *x = &op->in[0];
	(void)impl;
	return matrices(x, 2) < MANY ?
		       memory_doubles(x->dims[x->rank - 1], op->out[1].kind != YOKE_VIEW_NONE) *
			       sizeof(double) :
		       0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .op = op };
	const int64_t count = matrices(&op->in[0], 2), n = op->in[0].dims[op->in[0].rank - 1];
	(void)impl, (void)prepared;
	atomic_init(&j.err, 0);
	if (!n || !count)
		return 0;
	if (count >= MANY) {
		yk_team_run(count, item, &j);
		return atomic_load(&j.err);
	}
	j.memory = yk_ptr(&op->workspace);
	for (int64_t i = 0; i < count; i++)
		one(&j, i);
	return atomic_load(&j.err);
}

YK_KERNEL(eigh, EIGH) = { .can = can, .workspace = workspace, .run = run, .impl = { "ql" } };
