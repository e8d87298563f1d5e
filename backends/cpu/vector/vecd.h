// SPDX-License-Identifier: Apache-2.0
// Vectors of VD doubles, as long as those of vec.h. Sums over lanes have a fixed order.
#ifndef YK_VECD_H
#define YK_VECD_H

#include "vec.h"

#define VD (VF / 2)

typedef double vd __attribute__((vector_size(VD * 8)));

static inline vd vd_load(const double *p)
{
	vd v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline void vd_store(double *p, vd v)
{
	memcpy(p, &v, sizeof v);
}

static inline vd vd_splat(double x)
{
	return (vd){ 0 } + x;
}

// a * b + c
static inline vd vd_fma(vd a, vd b, vd c)
{
#if defined __AVX512F__
	return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined __AVX2__
	return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
	return a * b + c;
#endif
}

// Sum of the lanes, by halving.
static inline double vd_sum(vd v)
{
	double a[VD];
	vd_store(a, v);
	for (int n = VD / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			a[i] += a[i + n];
	return a[0];
}

#endif
