// SPDX-License-Identifier: Apache-2.0
// Helpers for linear algebra in f64: products, reflections, and access to the matrices in a view's
// last two axes.
#ifndef YK_MATRIX_H
#define YK_MATRIX_H

#include <float.h>
#include <math.h>

#include "../cpu.h"
#include "../vector/vecd.h"

static inline double vd_dot(const double *a, const double *b, int64_t n)
{
	vd sum[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
	int64_t i = 0;
	for (; i + 4 * VD <= n; i += 4 * VD)
		for (int k = 0; k < 4; k++)
			sum[k] = vd_fma(vd_load(a + i + k * VD), vd_load(b + i + k * VD), sum[k]);
	for (; i + VD <= n; i += VD)
		sum[0] = vd_fma(vd_load(a + i), vd_load(b + i), sum[0]);
	double s = vd_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
	for (; i < n; i++)
		s += a[i] * b[i];
	return s;
}

#define TINY (DBL_MIN / DBL_EPSILON) // smaller numbers have too few digits for a reflection

// Computes the reflection 1 - tau u u' that maps u[at..n-1] to a multiple of its first unit vector.
// u is scaled so that u[at] is 1. Returns the multiple.
static inline double reflect(double *u, int64_t at, int64_t n, double *tau)
{
	double max = 0, rest = 0, first = u[at];
	for (int64_t i = at + 1; i < n; i++)
		max = fmax(max, fabs(u[i]));
	*tau = 0;
	if (max <= TINY)
		return first;
	max = fmax(max, fabs(first));
	for (int64_t i = at + 1; i < n; i++)
		rest += u[i] / max * (u[i] / max);
	const double beta = -copysign(max * sqrt(first / max * (first / max) + rest), first);
	*tau = (beta - first) / beta;
	for (int64_t i = at + 1; i < n; i++)
		u[i] /= first - beta;
	u[at] = 1;
	return beta;
}

// ---- matrices of a view, f32 or f64 ----

struct matrix {
	char *base; // address of the first element
	int64_t rs, cs; // strides in elements
	bool wide; // f64
};

// Number of matrices (keep = 2) or vectors (keep = 1): the product of all axes before the last
// `keep`.
static inline int64_t matrices(const struct yoke_view *v, int keep)
{
	int64_t n = 1;
	for (int d = 0; d < v->rank - keep; d++)
		n *= v->dims[d];
	return n;
}

// The i-th matrix; a vector (keep = 1) is a matrix with one row, a number (keep = 0) one of one
// element.
static inline struct matrix matrix_of(const struct yoke_view *v, int keep, int64_t i)
{
	int64_t offset = 0;
	for (int d = v->rank - keep - 1; d >= 0; d--) {
		offset += i % v->dims[d] * v->strides[d];
		i /= v->dims[d];
	}
	return (struct matrix){ (char *)yk_ptr(v) + offset * (int64_t)yk_esize(v->dtype),
				keep > 1 ? v->strides[v->rank - 2] : 0,
				keep ? v->strides[v->rank - 1] : 0,
				v->dtype == yoke_f64 };
}

static inline double matrix_get(const struct matrix *m, int64_t i, int64_t j)
{
	const int64_t at = i * m->rs + j * m->cs;
	return m->wide ? ((const double *)m->base)[at] : ((const float *)m->base)[at];
}

static inline void matrix_put(const struct matrix *m, int64_t i, int64_t j, double x)
{
	const int64_t at = i * m->rs + j * m->cs;
	if (m->wide)
		((double *)m->base)[at] = x;
	else
		((float *)m->base)[at] = (float)x;
}

static inline bool is_matrix(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_NONE ||
	       (v->kind == YOKE_VIEW_BUFFER && (v->dtype == yoke_f32 || v->dtype == yoke_f64));
}

#endif
