// SPDX-License-Identifier: Apache-2.0
// References for the resolvent: minors with exact powers of two, and a dense inverse with
// pivoting.
#ifndef YK_TEST_RESOLVENT_H
#define YK_TEST_RESOLVENT_H

#include "base/complex.h"

#include "tap.h"

// A complex number times 2^e, with more digits than float64, so that the bounds for long rows apply
// to the tested code.
struct scaled {
	long double complex v;
	int e;
};

static inline long double complex shifted(long double complex v, int by)
{
	by = by < -20000 ? -20000 : by;
	return CMPLXL(ldexpl(creall(v), by), ldexpl(cimagl(v), by));
}

static inline struct scaled scaled(long double complex v, int e)
{
	int by;
	if (v == 0)
		return (struct scaled){ 0, INT32_MIN / 4 };
	frexpl(fmaxl(fabsl(creall(v)), fabsl(cimagl(v))), &by);
	return (struct scaled){ shifted(v, -by), e + by };
}

// alpha x - k y
static inline struct scaled next_minor(long double complex alpha, struct scaled x, double k,
				       struct scaled y)
{
	const int e = x.e > y.e ? x.e : y.e;
	return scaled(shifted(alpha * x.v, x.e - e) - shifted((long double)k * y.v, y.e - e), e);
}

// G of one row: theta_i phi_i / theta_N, or theta_i / theta_(i+1). b and c may be NULL.
static inline void by_minors(int64_t n, const double *a, const double *b, const double *c,
			     double complex z, bool left, double complex *to)
{
	struct scaled *theta = calloc((size_t)n + 2, sizeof *theta),
		      *phi = calloc((size_t)n + 2, sizeof *phi);
	theta[0] = phi[n] = scaled(1, 0); // phi[i + 1] is phi_i
	for (int64_t i = 0; i < n; i++) {
		const double k = i ? (b ? b[i - 1] : 1) * (c ? c[i - 1] : 1) : 0;
		theta[i + 1] = next_minor(a[i] - z, theta[i], k, i ? theta[i - 1] : scaled(0, 0));
	}
	for (int64_t i = n - 1; i >= 0; i--) { // phi_(i-1) = alpha_i phi_i - k_i phi_(i+1)
		const double k = i < n - 1 ? (b ? b[i] : 1) * (c ? c[i] : 1) : 0;
		phi[i] = next_minor(a[i] - z, phi[i + 1], k, i < n - 1 ? phi[i + 2] : scaled(0, 0));
	}
	for (int64_t i = 0; i < n; i++) {
		const struct scaled *d = left ? &theta[i + 1] : &theta[n];
		const long double complex v =
			(left ? theta[i].v : theta[i].v * phi[i + 1].v) / d->v;
		to[i] = shifted(v, theta[i].e + (left ? 0 : phi[i + 1].e) - d->e);
	}
	free(theta);
	free(phi);
}

// The diagonal of (H - z)^-1 of a dense matrix, by elimination with row pivots; left: for each
// leading block its last element.
static inline void by_inverse(int64_t n, const double *a, const double *b, const double *c,
			      double complex z, bool left, double complex *to)
{
	if (left) {
		for (int64_t i = 0; i < n; i++) {
			double complex *all = calloc((size_t)i + 1, sizeof *all);
			by_inverse(i + 1, a, b, c, z, false, all);
			to[i] = all[i];
			free(all);
		}
		return;
	}
	double complex *m = calloc((size_t)(2 * n * n), sizeof *m);
	for (int64_t i = 0; i < n; i++) {
		m[i * 2 * n + i] = a[i] - z;
		m[i * 2 * n + n + i] = 1;
		if (i + 1 < n) {
			m[i * 2 * n + i + 1] = b ? b[i] : 1;
			m[(i + 1) * 2 * n + i] = c ? c[i] : 1;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t p = i;
		for (int64_t r = i; r < n; r++)
			p = cabs(m[r * 2 * n + i]) > cabs(m[p * 2 * n + i]) ? r : p;
		for (int64_t k = 0; k < 2 * n; k++) {
			const double complex t = m[i * 2 * n + k];
			m[i * 2 * n + k] = m[p * 2 * n + k];
			m[p * 2 * n + k] = t;
		}
		const double complex pivot = m[i * 2 * n + i];
		for (int64_t k = 0; k < 2 * n; k++)
			m[i * 2 * n + k] /= pivot;
		for (int64_t r = 0; r < n; r++) {
			const double complex f = m[r * 2 * n + i];
			for (int64_t k = 0; k < 2 * n && r != i; k++)
				m[r * 2 * n + k] -= f * m[i * 2 * n + k];
		}
	}
	for (int64_t i = 0; i < n; i++)
		to[i] = m[i * 2 * n + n + i];
	free(m);
}

#endif
