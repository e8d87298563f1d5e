// SPDX-License-Identifier: Apache-2.0
// SVD: singular values and vectors, in f64, or of large f32 matrices in f32.
//
// A matrix with more rows than columns, or its transpose, is first reduced to R by QR. Reflections
// from both sides make it bidiagonal; their updates are pending for a block of columns and then
// applied at once, so that most passes only read the matrix (Dongarra, Sorensen and Hammarling
// 1989). Implicit QR steps (Golub and Kahan 1965, Demmel and Kahan 1990) diagonalize it, in f64. As
// in EIGH, rotations are recorded and applied to panels of all vectors, independently, while the
// next ones are computed; the work on a panel depends only on n, so results do not depend on the
// number of threads.
#include "config.h"

#include <stdlib.h>

#include "dense.h"
#include "lapack.h"

enum {
	ROTATIONS = 1 << 15, // recorded before they are applied
	BLOCK = 16,          // steps of the reduction whose updates are applied at once
	CHUNKS = 4,          // of rows, in a pass over a large matrix
	LARGE_ROWS = 192,    // rows of a matrix from which on a pass is divided
	// the smaller side from which on a LAPACK, if requested, is faster: without and with
	// vectors
	LIBRARY_VALUES = 128,
	LIBRARY = 512,
	NARROW =
		64 // the smaller side from which on f32 is computed in f32; below it f64 is as fast
};

static int64_t max_of(int64_t n)
{
	return 2 * n > ROTATIONS ? 2 * n : n * n < ROTATIONS ? n * n + 2 * n + 2 : ROTATIONS;
}

// Memory from byte `at` on, if there is any
static void *after(char *memory, size_t at)
{
	return memory ? memory + at : NULL;
}

// The smaller singular value of [[f, g], [0, h]] (LAPACK's dlas2).
static double smaller_value(double f, double g, double h)
{
	const double fa = fabs(f), ga = fabs(g), ha = fabs(h), min = fmin(fa, ha),
		     max = fmax(fa, ha);
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

// As vd_dot, of f32.
static float vf_dot(const float *a, const float *b, int64_t n)
{
	vf sum[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
	int64_t i = 0;
	for (; i + 4 * VF <= n; i += 4 * VF)
		for (int k = 0; k < 4; k++)
			sum[k] = vf_fma(vf_load(a + i + k * VF), vf_load(b + i + k * VF), sum[k]);
	for (; i + VF <= n; i += VF)
		sum[0] = vf_fma(vf_load(a + i), vf_load(b + i), sum[0]);
	float s = vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
	for (; i < n; i++)
		s += a[i] * b[i];
	return s;
}

// As reflect, of f32, with sums in f64.
static double reflect_f32(float *u, int64_t at, int64_t n, float *tau)
{
	double rest = 0, first = u[at];
	for (int64_t i = at + 1; i < n; i++)
		rest += (double)u[i] * u[i];
	*tau = 0;
	if (sqrt(rest) <= FLT_MIN / FLT_EPSILON)
		return first;
	const double beta = -copysign(sqrt(first * first + rest), first);
	const float scale = (float)(1 / (first - beta));
	*tau = (float)((beta - first) / beta);
	for (int64_t i = at + 1; i < n; i++)
		u[i] *= scale;
	u[at] = 1;
	return beta;
}

// ---- the op ----

static bool is_wide(const struct yoke_op *op)
{
	return op->in[0].dtype == yoke_f64;
}

struct shape {
	// of the matrix with at least as many rows as columns; columns of its left factor
	int64_t m, n, rows;
	bool turned, vectors, full;
};

static struct shape shape_of(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
	struct shape s = {
		yk_max(m, n), yk_min(m, n), yk_min(m, n), m < n, false, op->attr[0].i
	};
	s.vectors = op->out[0].kind != YOKE_VIEW_NONE || op->out[2].kind != YOKE_VIEW_NONE;
	if (s.full)
		s.rows = s.m;
	return s;
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

#include "../vector/vec_f32.h"
#define PANELS(name) panels_##name##_f32
#define SVD(name) svd_##name##_f32
#define DOT vf_dot
#define DENSE ISA(yk_dense_f32)
#define REFLECT reflect_f32
#include "panels.h"
#include "kern_svd_core.h"
#undef PANELS
#undef SVD
#undef DOT
#undef DENSE
#undef REFLECT

#include "../vector/vec_f64.h"
#define PANELS(name) panels_##name##_f64
#define SVD(name) svd_##name##_f64
#define DOT vd_dot
#define DENSE ISA(yk_dense_f64)
#define REFLECT reflect
#include "panels.h"
#include "kern_svd_core.h"

// By LAPACK, in the matrix's dtype. A row-major matrix is the transpose of a column-major one, a' =
// V S U'.
static int by_lapack(const struct yoke_op *op, int64_t index)
{
	const struct yoke_view *in = &op->in[0];
	const struct shape s = shape_of(op);
	const int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1],
		      rows = s.full ? m : s.n, columns = s.full ? n : s.n;
	const struct yk_dense *d = dense_of(in->dtype);
	const bool wide = is_wide(op);
	const struct matrix from = matrix_of(in, 2, index);
	char *a = malloc((size_t)(m * n + s.n + (s.vectors ? m * rows + columns * n : 0)) *
			 d->element);
	char *values = a + (size_t)(m * n) * d->element, *u = values + (size_t)s.n * d->element,
	     *v = u + (size_t)(s.vectors ? m * rows : 0) * d->element;
	double sum = 0;
	if (!a)
		return yk_cpu_fail(YOKE_ENOMEM, "svd: no memory for a copy of %lld rows",
				   (long long)m);
	d->load(&from, m, n, a, n);
	for (int64_t i = 0; i < m * n; i++) {
		const double x =
			wide ? ((const double *)(void *)a)[i] : ((const float *)(void *)a)[i];
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

static bool is_in_f64(const struct yoke_op *op)
{
	return is_wide(op) || shape_of(op).n < NARROW;
}

static size_t bytes(const struct yoke_op *op)
{
	const struct shape s = shape_of(op);
	return is_in_f64(op) ? svd_parts_of_f64(&s, NULL).bytes : svd_parts_of_f32(&s, NULL).bytes;
}

static uint64_t can(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]) && is_matrix(&op->out[1]) &&
	       is_matrix(&op->out[2]);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return dense_workspace(matrices(&op->in[0], 2), bytes(op));
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct shape s = shape_of(op);
	struct dense_batch b = { .op = op,
				 .count = matrices(&op->in[0], 2),
				 .bytes = bytes(op),
				 .one = is_in_f64(op) ? svd_one_f64 : svd_one_f32 };
	const double m = (double)s.m, n = (double)s.n;
	(void)impl, (void)prepared;
	if (yk_lapack_requested() && s.n >= (s.vectors ? LIBRARY : LIBRARY_VALUES)) {
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
