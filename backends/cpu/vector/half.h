// SPDX-License-Identifier: Apache-2.0
// Conversions between f32 and the 16-bit formats, branch-free so that loops over them
// vectorise. To 16 bits: round to nearest even, overflow to infinity, subnormals kept,
// NaN made quiet.
#ifndef YK_HALF_H
#define YK_HALF_H

#include "vmath.h"

YK_INLINE float yk_f32_of_bf16(uint16_t h)
{
	return yk_f32_bits((uint32_t)h << 16);
}

YK_INLINE uint16_t yk_bf16_of_f32(float x)
{
	uint32_t u = yk_bits_f32(x), r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	return (uint16_t)(x != x ? (u >> 16) | 0x40 : r);
}

// The exponent is adjusted by multiplying with 2^112, which also normalizes f16's subnormals.
YK_INLINE float yk_f32_of_f16(uint16_t h)
{
	uint32_t m = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
	uint32_t u = yk_bits_f32(yk_f32_bits(m << 13) * 0x1p112f);
	u = m >= 0x7c00 ? 0x7f800000 | (m & 0x3ff) << 13 | (m > 0x7c00) << 22 : u;
	return yk_f32_bits(u | sign);
}

YK_INLINE uint16_t yk_f16_of_f32(float x)
{
	uint32_t u = yk_bits_f32(x), a = u & 0x7fffffff, sign = u >> 16 & 0x8000;
	// Subnormal results: adding 1/2 makes the FPU round at 2^-24, the last bit of an f16
	// subnormal.
	uint32_t tiny = yk_bits_f32(yk_f32_bits(a) + 0.5f) - yk_bits_f32(0.5f);
	uint32_t h = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
	h = a < 0x38800000 ? tiny : h;    // below 2^-14
	h = a >= 0x477ff000 ? 0x7c00 : h; // 65520 and above
	h = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : h;
	return (uint16_t)(h | sign);
}

// f64 to f32 with rounding to odd, so that a second rounding to 16 bits gives the same result as a
// single rounding.
YK_INLINE float yk_f32_odd_of_f64(double x)
{
	float f = (float)x;
	uint32_t u = yk_bits_f32(f);
	u -= yk_abs_f64(f) > yk_abs_f64(x);
	return yk_f32_bits((double)f != x && x == x ? u | 1 : u);
}

// A 64-bit integer as f64, rounded to odd: the last bit is set if bits were lost.
YK_INLINE double yk_f64_odd_of_i64(int64_t v)
{
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
	u = u >> 52 ? (u & ~(uint64_t)0xffff) | (uint64_t)((u & 0xffff) != 0) << 16 : u;
	double d = (double)(int64_t)(u >> 1) * 2 + (double)(u & 1);
	return v < 0 ? -d : d;
}

#endif
