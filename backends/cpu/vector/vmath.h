// SPDX-License-Identifier: Apache-2.0
// Branch-free elementary functions: a loop over one of them becomes vector code.
//
// The f32 functions are inlined into plain loops (marked YK_SIMD), which the compiler vectorizes
// for the file's instruction set; an element's bits do not depend on its position in the loop.
// Error bounds over the whole range, including infinities, NaN and subnormals, as tests/vmath.c
// measures them, to a hundredth: exp, log, log1p, sin, cos, pow <= 1 ulp, expm1, erf <= 1.5,
// sigmoid <= 2.25, tanh <= 2.4. The f64 functions call the C library for accuracy.
// Polynomials are minimax fits (Remez) for these intervals, with their errors stated next to them.
#ifndef YK_VMATH_H
#define YK_VMATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define YK_INLINE static inline __attribute__((always_inline))

// Goes before a loop with independent iterations; operands may be the same array.
#if defined(__clang__)
#define YK_SIMD _Pragma("clang loop vectorize(assume_safety)")
// A loop with a call of the C library or an integer division is not vectorized.
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define YK_SIMD _Pragma("GCC ivdep")
#endif

YK_INLINE uint32_t yk_bits_f32(float x)
{
	uint32_t u;
	__builtin_memcpy(&u, &x, sizeof u);
	return u;
}

YK_INLINE float yk_f32_bits(uint32_t u)
{
	float x;
	__builtin_memcpy(&x, &u, sizeof x);
	return x;
}

YK_INLINE uint64_t yk_bits_f64(double x)
{
	uint64_t u;
	__builtin_memcpy(&u, &x, sizeof u);
	return u;
}

YK_INLINE double yk_f64_bits(uint64_t u)
{
	double x;
	__builtin_memcpy(&x, &u, sizeof x);
	return x;
}

// a*b + c, fused where the instruction set has FMA; compilers do not contract on their own here.
YK_INLINE float yk_fma_f32(float a, float b, float c)
{
#if defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMAF) || defined(__riscv_flen)
	return __builtin_fmaf(a, b, c);
#else
	return a * b + c;
#endif
}

YK_INLINE double yk_fma_f64(double a, double b, double c)
{
#if defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMAF) || defined(__riscv_flen)
	return __builtin_fma(a, b, c);
#else
	return a * b + c;
#endif
}

YK_INLINE float yk_abs_f32(float x)
{
	return yk_f32_bits(yk_bits_f32(x) & 0x7fffffff);
}

YK_INLINE float yk_copysign_f32(float x, float sign)
{
	return yk_f32_bits((yk_bits_f32(x) & 0x7fffffff) |
			   (yk_bits_f32(sign) & 0x80000000));
}

// ---- rounding to integers, by adding and subtracting 2^(mantissa bits) ----

YK_INLINE float yk_round_f32(float x) // half to even
{
	float a = yk_abs_f32(x), r = a + 0x1p23f - 0x1p23f;
	return yk_copysign_f32(a < 0x1p23f ? r : a, x);
}

YK_INLINE float yk_floor_f32(float x)
{
	float r = yk_round_f32(x);
	return yk_copysign_f32(r > x ? r - 1 : r, x);
}

YK_INLINE float yk_ceil_f32(float x)
{
	float r = yk_round_f32(x);
	return yk_copysign_f32(r < x ? r + 1 : r, x);
}

YK_INLINE double yk_copysign_f64(double x, double sign)
{
	uint64_t top = (uint64_t)1 << 63;
	return yk_f64_bits((yk_bits_f64(x) & ~top) | (yk_bits_f64(sign) & top));
}

YK_INLINE double yk_abs_f64(double x)
{
	return yk_f64_bits(yk_bits_f64(x) & ~((uint64_t)1 << 63));
}

YK_INLINE double yk_round_f64(double x)
{
	double a = yk_abs_f64(x), r = a + 0x1p52 - 0x1p52;
	return yk_copysign_f64(a < 0x1p52 ? r : a, x);
}

YK_INLINE double yk_floor_f64(double x)
{
	double r = yk_round_f64(x);
	return yk_copysign_f64(r > x ? r - 1 : r, x);
}

YK_INLINE double yk_ceil_f64(double x)
{
	double r = yk_round_f64(x);
	return yk_copysign_f64(r < x ? r + 1 : r, x);
}

// ---- f32: the exponential family ----

// x = n ln 2 + r, |r| <= ln 2 / 2, for |x| < 2^8 ln 2. Returns e^r - 1 and n; NaN stays NaN. Adding
// 1.5 * 2^23 leaves n in the low bits of the sum; ln 2 is split so that n * high is exact. near:
// e^r - 1 itself is the result, which needs one more coefficient than when 1 is added to it.
YK_INLINE float yk_exp_reduce(float x, int32_t *n, bool near)
{
	float t = yk_fma_f32(x, 0x1.715476p+0f, 0x1.8p23f);
	*n = (int32_t)(yk_bits_f32(t) - yk_bits_f32(0x1.8p23f));
	t -= 0x1.8p23f;
	float r = yk_fma_f32(t, -0x1.63p-1f, x);
	r = yk_fma_f32(t, 0x1.bd0106p-13f, r);
	float p;
	if (near) {
		p = 0x1.a1a16ap-13f; // (e^r - 1 - r) / r^2 to 2^-32
		p = yk_fma_f32(p, r, 0x1.6d7474p-10f);
		p = yk_fma_f32(p, r, 0x1.111090p-7f);
		p = yk_fma_f32(p, r, 0x1.5554aep-5f);
		p = yk_fma_f32(p, r, 0x1.555556p-3f);
	} else {
		p = 0x1.6b6deep-10f; // e^r to 2^-28
		p = yk_fma_f32(p, r, 0x1.12300ap-7f);
		p = yk_fma_f32(p, r, 0x1.55568ap-5f);
		p = yk_fma_f32(p, r, 0x1.5554a2p-3f);
	}
	p = yk_fma_f32(p, r, 0.5f);
	return yk_fma_f32(p, r * r, r);
}

YK_INLINE float yk_exp2i_f32(int32_t n) // 2^n, -126 <= n <= 127
{
	return yk_f32_bits((uint32_t)(n + 127) << 23);
}

YK_INLINE float yk_exp_f32(float x)
{
	x = x > 89.0f ? 89.0f : x;
	x = x < -105.0f ? -105.0f : x;
	int32_t n;
	float p = yk_exp_reduce(x, &n, false) + 1.0f;
	int32_t half = n >> 1; // two steps, since 2^n itself may overflow or be subnormal
	return p * yk_exp2i_f32(half) * yk_exp2i_f32(n - half);
}

YK_INLINE float yk_expm1_f32(float x)
{
	float c = x > 89.0f ? 89.0f : x;
	c = c < -20.0f ? -20.0f : c;
	int32_t n;
	float p = yk_exp_reduce(c, &n, true), s = yk_exp2i_f32(n - 1);
	float y = yk_fma_f32(s, p, s - 0.5f) * 2.0f;
	return n == 0 ? (p == 0.0f ? x : p) : y; // preserves -0 and subnormals
}

YK_INLINE float yk_tanh_f32(float x)
{
	float c = yk_abs_f32(x);
	c = c > 10.0f ? 10.0f : c;
	int32_t n;
	float p = yk_exp_reduce(c + c, &n, true), s = yk_exp2i_f32(n);
	float e = yk_fma_f32(s, p, s - 1.0f), y = e / (e + 2.0f); // e: e^2|x| - 1
	return yk_f32_bits(yk_bits_f32(y) | (yk_bits_f32(x) & 0x80000000));
}

YK_INLINE float yk_sigmoid_f32(float x)
{
	float e = yk_exp_f32(-yk_abs_f32(x));
	return (x >= 0 ? 1.0f : e) / (1.0f + e);
}

// ---- f32: logarithm, error function ----

YK_INLINE float yk_log_f32(float x)
{
	float c = x < 0x1p-126f ? x * 0x1p23f : x, bias = x < 0x1p-126f ? -23.0f : 0.0f;
	uint32_t i = yk_bits_f32(c) -
		     0x3f3504f3; // sqrt(1/2), so that the mantissa is around 1
	float e = (float)((int32_t)i >> 23) + bias;
	float f = yk_f32_bits((i & 0x7fffff) + 0x3f3504f3) - 1.0f, s = f * f;
	float p = 0x1.1b4864p-4f; // (log(1+f) - f + f^2/2) / f^3 to 2^-30
	p = yk_fma_f32(p, f, -0x1.e2dff6p-4f);
	p = yk_fma_f32(p, f, 0x1.e64872p-4f);
	p = yk_fma_f32(p, f, -0x1.fb4478p-4f);
	p = yk_fma_f32(p, f, 0x1.233378p-3f);
	p = yk_fma_f32(p, f, -0x1.5562dep-3f);
	p = yk_fma_f32(p, f, 0x1.99a53ap-3f);
	p = yk_fma_f32(p, f, -0x1.ffffeep-3f);
	p = yk_fma_f32(p, f, 0x1.555546p-2f);
	float y = p * f * s;
	y = yk_fma_f32(e, -0x1.bd0106p-13f, y);
	y = yk_fma_f32(s, -0.5f, y);
	y = f + y;
	y = yk_fma_f32(e, 0x1.63p-1f, y);
	y = x > 0x1.fffffep127f ? x : y;
	y = x == 0 ? -INFINITY : y;
	return x < 0 ? NAN : x != x ? x : y;
}

// Below 0.92 a polynomial in x^2, above it 1 - exp(polynomial): log erfc is nearly a
// parabola.
YK_INLINE float yk_erf_f32(float x)
{
	float a = yk_abs_f32(x), s = a * a;
	float p = 0x1.5ebd92p-14f; // erf(x)/x - 1 to 2^-31
	p = yk_fma_f32(p, s, -0x1.aad918p-11f);
	p = yk_fma_f32(p, s, 0x1.54da22p-8f);
	p = yk_fma_f32(p, s, -0x1.b8108cp-6f);
	p = yk_fma_f32(p, s, 0x1.ce2e22p-4f);
	p = yk_fma_f32(p, s, -0x1.812744p-2f);
	p = yk_fma_f32(p, s, 0x1.06eba8p-3f);
	float small = yk_fma_f32(p, a, a);
	float c = a > 4.0f ? 4.0f : a;
	float q = 0x1.9ae812p-13f; // log erfc(x), 2^-29 of erf
	q = yk_fma_f32(q, c, -0x1.8ee0e4p-9f);
	q = yk_fma_f32(q, c, 0x1.6c2a34p-6f);
	q = yk_fma_f32(q, c, -0x1.a9b40ep-4f);
	q = yk_fma_f32(q, c, -0x1.463cc4p-1f);
	q = yk_fma_f32(q, c, -0x1.20af58p+0f);
	q = yk_fma_f32(q, c, -0x1.9a6606p-13f);
	int32_t n;
	float e = yk_exp_reduce(q, &n, false) + 1.0f;
	float large = 1.0f - e * yk_exp2i_f32(n);
	return yk_copysign_f32(a < 0.92f ? small : large, x);
}

// ---- f32 computed through f64: log1p, pow, sin, cos ----

// log of a normal positive number to 1e-12: log m = 2 atanh((m-1)/(m+1)), m around 1.
YK_INLINE double yk_log_wide(double x)
{
	uint64_t i = yk_bits_f64(x) - 0x3fe6a09e667f3bcd;
	// Converts the exponent, -1022..1023, to double by its bits: there is no vector instruction
	// for it.
	double e =
		yk_f64_bits(((i >> 52) ^ 0x800) | 0x4330000000000000) - (0x1p52 + 2048);
	double m = yk_f64_bits((i & 0xfffffffffffff) + 0x3fe6a09e667f3bcd);
	double s = (m - 1) / (m + 1), t = s * s, p = 2.0 / 13;
	p = yk_fma_f64(p, t, 2.0 / 11);
	p = yk_fma_f64(p, t, 2.0 / 9);
	p = yk_fma_f64(p, t, 2.0 / 7);
	p = yk_fma_f64(p, t, 2.0 / 5);
	p = yk_fma_f64(p, t, 2.0 / 3);
	return yk_fma_f64(e, 0.69314718055994530942, yk_fma_f64(p * t, s, 2 * s));
}

YK_INLINE float yk_log1p_f32(float x)
{
	double d = x, y = yk_log_wide(1 + d);
	// for small x, where 1 + x loses low bits of x
	double t = d - d * d * (0.5 - d * (1.0 / 3));
	y = yk_abs_f64(d) < 0x1p-10 ? t : y;
	float r = x > 0x1.fffffep127f ? x : (float)y;
	r = x == 0 ? x : r;
	r = x == -1 ? -INFINITY : r;
	return x < -1 ? NAN : x != x ? x : r;
}

// e^x for |x| < 708, to 1e-11
YK_INLINE double yk_exp_wide(double x)
{
	double t = x * 1.44269504088896340736 + 0x1.8p52;
	uint64_t n = yk_bits_f64(t);
	t -= 0x1.8p52;
	double r = yk_fma_f64(t, -0.69314718055994530942, x), p = 1.0 / 362880;
	p = yk_fma_f64(p, r, 1.0 / 40320);
	p = yk_fma_f64(p, r, 1.0 / 5040);
	p = yk_fma_f64(p, r, 1.0 / 720);
	p = yk_fma_f64(p, r, 1.0 / 120);
	p = yk_fma_f64(p, r, 1.0 / 24);
	p = yk_fma_f64(p, r, 1.0 / 6);
	p = yk_fma_f64(p, r, 0.5);
	p = yk_fma_f64(p, r * r, r) + 1.0;
	return p * yk_f64_bits((n + 1023) << 52);
}

// All cases of C11 F.10.4.4.
YK_INLINE float yk_pow_f32(float x, float y)
{
	float a = yk_abs_f32(x), b = yk_abs_f32(y);
	double t = (double)y * yk_log_wide(a);
	t = t > 700 ? 700 : t;
	t = t < -700 ? -700 : t;
	float r = (float)yk_exp_wide(t);
	float zero = y > 0 ? 0.0f : INFINITY, infinite = y > 0 ? INFINITY : 0.0f;
	r = a == 0 ? zero : r;
	r = a > 0x1.fffffep127f ? infinite : r;
	r = b > 0x1.fffffep127f ? (a > 1 ? infinite : zero) : r;
	r = ((b > 0x1.fffffep127f) & (a == 1)) ? 1.0f : r;
	float h = b * 0.5f;
	uint32_t whole = yk_round_f32(b) == b, odd = whole & (yk_round_f32(h) != h);
	odd &= b < 0x1p24f; // larger floats are all even
	uint32_t sign = yk_bits_f32(x) >> 31;
	r = yk_f32_bits(yk_bits_f32(r) | (sign & odd) << 31);
	uint32_t finite = (a <= 0x1.fffffep127f) & (b <= 0x1.fffffep127f);
	r = ((x < 0) & finite & !whole) ? NAN : r;
	r = ((x != x) | (y != y)) ? x + y : r;
	return ((x == 1) | (y == 0)) ? 1.0f : r;
}

// x = k pi/2 + r; absolute error 2^-50 for |x| < 2^20. The quadrant is k + shift.
YK_INLINE float yk_sin_wide(double x, uint64_t shift)
{
	double t = x * 0.63661977236758134308 + 0x1.8p52;
	uint64_t k = yk_bits_f64(t) + shift;
	t -= 0x1.8p52;
	// pi/2 as 33 bits plus the rest: t * high is exact
	double r = (x - t * 0x1.921fb544p0) - t * 0x1.0b4611a626331p-34;
	double s = r * r, p = -1.0 / 39916800, q = -1.0 / 3628800;
	p = yk_fma_f64(p, s, 1.0 / 362880);
	p = yk_fma_f64(p, s, -1.0 / 5040);
	p = yk_fma_f64(p, s, 1.0 / 120);
	p = yk_fma_f64(p, s, -1.0 / 6);
	p = yk_fma_f64(p * s, r, r);
	q = yk_fma_f64(q, s, 1.0 / 40320);
	q = yk_fma_f64(q, s, -1.0 / 720);
	q = yk_fma_f64(q, s, 1.0 / 24);
	q = yk_fma_f64(q, s, -0.5);
	q = yk_fma_f64(q, s, 1.0);
	double y = k & 1 ? q : p;
	return (float)yk_f64_bits(yk_bits_f64(y) ^ (k & 2) << 62);
}

#define YK_TRIG_LIMIT 0x1p20f

// For |x| < YK_TRIG_LIMIT only; vector loops use it after checking their input.
YK_INLINE float yk_sin_near_f32(float x)
{
	float y = yk_sin_wide(x, 0);
	return x == 0 ? x : y;
}

YK_INLINE float yk_cos_near_f32(float x)
{
	return yk_sin_wide(x, 1);
}

YK_INLINE float yk_sin_f32(float x)
{
	return yk_abs_f32(x) < YK_TRIG_LIMIT ? yk_sin_near_f32(x) : sinf(x);
}

YK_INLINE float yk_cos_f32(float x)
{
	return yk_abs_f32(x) < YK_TRIG_LIMIT ? yk_cos_near_f32(x) : cosf(x);
}

YK_INLINE float yk_sqrt_f32(float x)
{
	return __builtin_sqrtf(x);
}
YK_INLINE float yk_rsqrt_f32(float x)
{
	return 1.0f / __builtin_sqrtf(x);
}

// Box-Muller: two uniforms in [0,1) to one normal.
YK_INLINE float yk_normal_f32(float a, float b)
{
	float r = __builtin_sqrtf(-2.0f * yk_log_f32(1.0f - a));
	return r * yk_sin_wide((double)b * 6.28318530717958647692, 1);
}

// ---- f64 ----

YK_INLINE double yk_exp_f64(double x)
{
	return exp(x);
}
YK_INLINE double yk_expm1_f64(double x)
{
	return expm1(x);
}
YK_INLINE double yk_log_f64(double x)
{
	return log(x);
}
YK_INLINE double yk_log1p_f64(double x)
{
	return log1p(x);
}
YK_INLINE double yk_tanh_f64(double x)
{
	return tanh(x);
}
YK_INLINE double yk_erf_f64(double x)
{
	return erf(x);
}
YK_INLINE double yk_sin_f64(double x)
{
	return sin(x);
}
YK_INLINE double yk_cos_f64(double x)
{
	return cos(x);
}
YK_INLINE double yk_pow_f64(double x, double y)
{
	return pow(x, y);
}
YK_INLINE double yk_sqrt_f64(double x)
{
	return __builtin_sqrt(x);
}
YK_INLINE double yk_rsqrt_f64(double x)
{
	return 1.0 / __builtin_sqrt(x);
}

YK_INLINE double yk_sigmoid_f64(double x)
{
	double e = exp(-yk_abs_f64(x));
	return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

YK_INLINE double yk_normal_f64(double a, double b)
{
	return __builtin_sqrt(-2.0 * log(1.0 - a)) * cos(b * 6.28318530717958647692);
}

#endif
