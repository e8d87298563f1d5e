// SPDX-License-Identifier: Apache-2.0
// Tensors of float64 numbers for tests of functions, and their gradients against finite
// differences.
#ifndef YK_TEST_SLOPE_H
#define YK_TEST_SLOPE_H

#include "tap.h"
#include "yoke-math.h"

enum { LIMIT = 512 };

// Reads as f64.
static inline bool values(yoke_tensor *t, double *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = NAN;
	return t && yoke_count(t) == n &&
	       yoke_read(yoke_cast(t, yoke_f64), to, (size_t)n * sizeof *to) == 0;
}

static inline yoke_tensor *tensor(int dtype, int rank, const int64_t *dims, const double *x)
{
	return yoke_cast(yoke_from(yoke_f64, rank, dims, x), dtype);
}

static inline int64_t product(int rank, const int64_t *dims)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	return n;
}

// n random numbers in lo .. hi, exact in f32 unless the dtype is f64
static inline void draw(int dtype, double *x, int64_t n, double lo, double hi)
{
	for (int64_t i = 0; i < n; i++) {
		const double v = rnd_real(lo, hi);
		x[i] = dtype == yoke_f64 ? v : (double)(float)v;
	}
}

// Are the n elements of t within tol of `want`?  NaN agrees with NaN.
static inline bool agrees(yoke_tensor *t, const double *want, int64_t n, double tol,
			  const char *what)
{
	double *got = malloc((size_t)n * sizeof *got + 1);
	bool good = values(t, got, n);
	if (!good)
		diag("%s: %lld elements, not %lld: %s", what, (long long)yoke_count(t),
		     (long long)n, yoke_error());
	for (int64_t i = 0; i < n && good; i++)
		if (!(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i]))) &&
		    !(isnan(got[i]) && isnan(want[i])) && got[i] != want[i]) {
			diag("%s: element %lld of %lld is %.12g, not %.12g", what, (long long)i,
			     (long long)n, got[i], want[i]);
			good = false;
		}
	free(got);
	return good;
}

// n random numbers in -most .. most, at least 2 most / n apart: which of them is the largest does
// not change when one moves a little.
static inline void apart(double *x, int n, double max)
{
	for (int i = 0; i < n; i++) {
		const int at = (int)rnd_int(0, i); // a shuffle from inside (Durstenfeld 1964)
		x[i] = x[at];
		x[at] = (i + rnd_real(0.25, 0.75)) * 2 * max / n - max;
	}
}

// ---- gradients ----

typedef yoke_tensor *fn(yoke_tensor *x, void *arg);

static inline double weighed(fn *f, void *arg, int rank, const int64_t *dims, const double *x,
			     const double *c, double *g, int64_t n)
{
	static double y[LIMIT];
	double sum = 0;
	yoke_scope *s = yoke_scope_begin("fn");
	yoke_tensor *in = yoke_from(yoke_f64, rank, dims, x), *out = f(in, arg), *slope = NULL;
	const int64_t m = out ? yoke_count(out) : 0;
	if (g && out) {
		yoke_tensor *w = yoke_from(yoke_f64, 1, &m, c);
		yoke_grad(yoke_sum(yoke_mul(yoke_reshape(out, 1, &m), w), YOKE_ALL), 1, &in,
			  &slope);
		values(slope, g, n);
	}
	values(out, y, m);
	for (int64_t i = 0; i < m; i++)
		sum += c[i] * y[i];
	yoke_scope_end(s);
	return sum;
}

static inline void gradient(fn *f, void *arg, int rank, const int64_t *dims, const double *x,
			    int64_t n, const char *what)
{
	double c[LIMIT], g[LIMIT], want[LIMIT], at[LIMIT];
	for (int i = 0; i < LIMIT; i++)
		c[i] = rnd_real(-1, 1);
	memcpy(at, x, (size_t)n * sizeof *at);
	weighed(f, arg, rank, dims, x, c, g, n);
	for (int64_t i = 0; i < n; i++) {
		const double h = 1e-5;
		at[i] = x[i] + h;
		const double up = weighed(f, arg, rank, dims, at, c, NULL, n);
		at[i] = x[i] - h;
		want[i] = (up - weighed(f, arg, rank, dims, at, c, NULL, n)) / (2 * h);
		at[i] = x[i];
	}
	ok(near(g, want, (size_t)n, 2e-6, 1, what), "the gradient of %s: %s", what, yoke_error());
	yoke_error_clear();
}

#endif
