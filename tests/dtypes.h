// SPDX-License-Identifier: Apache-2.0
// Floating-point dtypes in tests: numbers rounded to them by arithmetic in float64, and tensors of them
// from and to arrays of doubles.
#ifndef YK_TEST_DTYPES_H
#define YK_TEST_DTYPES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "yoke.h"

// Bits of the significand with the hidden one, least exponent of a normal number (2^e <= x), largest.
struct float_form {
	int bits, least;
	double most;
};

static inline struct float_form form_of(int dtype)
{
	switch (dtype) {
	case yoke_f16: return (struct float_form){ 11, -14, 65504 };
	case yoke_bf16: return (struct float_form){ 8, -126, 0x1.fep127 };
	case yoke_f32: return (struct float_form){ 24, -126, 0x1.fffffep127 };
	}
	return (struct float_form){ 53, -1022, 0x1.fffffffffffffp1023 };
}

// Half a unit in the last place of 1, doubled: the relative distance of neighbours.
static inline double ulp(int dtype)
{
	return ldexp(1, 1 - form_of(dtype).bits);
}

// x to the nearest number of the dtype, ties to even, subnormals kept.
static inline double rounded(int dtype, double x)
{
	struct float_form f = form_of(dtype);
	int e;
	if (!isfinite(x) || x == 0 || dtype == yoke_f64)
		return x;
	frexp(x, &e); // |x| = m 2^e, m in [1/2, 1)
	int last = (e - 1 < f.least ? f.least : e - 1) - f.bits + 1;
	double y = ldexp(nearbyint(ldexp(x, -last)), last);
	return fabs(y) > f.most ? copysign(INFINITY, x) : y;
}

// The bits of a number that the dtype has.
static inline uint64_t bits_of(int dtype, double x)
{
	float f = (float)x;
	uint32_t w;
	uint64_t d;
	memcpy(&w, &f, sizeof w);
	memcpy(&d, &x, sizeof d);
	if (dtype == yoke_f64)
		return d;
	if (dtype != yoke_f16)
		return dtype == yoke_f32 ? w : w >> 16;
	uint64_t sign = signbit(x) ? 0x8000 : 0;
	if (!isfinite(x))
		return sign | (isnan(x) ? 0x7e00 : 0x7c00);
	double a = fabs(x);
	int e;
	frexp(a, &e);
	if (a < 0x1p-14)
		return sign | (uint64_t)ldexp(a, 24);
	return sign | ((uint64_t)(e + 14) << 10) | ((uint64_t)ldexp(a, 11 - e) & 0x3ff);
}

static inline double number_of(int dtype, uint64_t bits)
{
	uint32_t w = (uint32_t)(dtype == yoke_bf16 ? bits << 16 : bits);
	float f;
	double d;
	memcpy(&f, &w, sizeof f);
	memcpy(&d, &bits, sizeof d);
	if (dtype != yoke_f16)
		return dtype == yoke_f64 ? d : (double)f;
	int e = bits >> 10 & 31;
	double m = (double)(bits & 0x3ff);
	double x = e == 31 ? (m != 0 ? NAN : INFINITY) :
		   e       ? ldexp(1024 + m, e - 25) :
			     ldexp(m, -24);
	return bits & 0x8000 ? -x : x;
}

// n numbers, rounded, as elements of the dtype; the caller frees them.
static inline void *encode(int dtype, const double *x, int64_t n)
{
	size_t size = yoke_dtype_size(dtype);
	char *to = malloc((size_t)n * size + 1);
	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = bits_of(dtype, rounded(dtype, x[i]));
		memcpy(to + (size_t)i * size, &bits, size); // little-endian
	}
	return to;
}

// A value, or a new version of a variable, from doubles.
static inline yoke_tensor *from(int dtype, int rank, const int64_t *dims, const double *x)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	void *data = encode(dtype, x, n);
	yoke_tensor *t = yoke_from(dtype, rank, dims, data);
	free(data);
	return t;
}

static inline int put(yoke_tensor *t, const double *x)
{
	void *data = encode(yoke_dtype(t), x, yoke_count(t));
	int err = yoke_put(t, data, yoke_bytes(t));
	free(data);
	return err;
}

// Its elements, NaN where the read failed.
static inline int get(yoke_tensor *t, double *to)
{
	if (!t)
		return yoke_error_code();
	size_t size = yoke_dtype_size(yoke_dtype(t)), n = (size_t)yoke_count(t);
	char *data = malloc(n * size + 1);
	memset(data, 0xff, n * size);
	int err = yoke_read(t, data, n * size);
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, data + i * size, size);
		to[i] = err ? NAN : number_of(yoke_dtype(t), bits);
	}
	free(data);
	return err;
}

#endif
