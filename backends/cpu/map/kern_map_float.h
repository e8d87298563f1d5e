// SPDX-License-Identifier: Apache-2.0
// The strip functions of a floating-point type. The including file defines T and FN(name), which
// gives yk_name_f32 or _f64.

#include "kern_map_each.h"

YK_INLINE T f_add(T a, T b)
{
	return a + b;
}
YK_INLINE T f_sub(T a, T b)
{
	return a - b;
}
YK_INLINE T f_mul(T a, T b)
{
	return a * b;
}
YK_INLINE T f_div(T a, T b)
{
	return a / b;
}
YK_INLINE T f_mod(T a, T b)
{
	return _Generic(a, float: fmodf, double: fmod)(a, b);
}
YK_INLINE T f_min(T a, T b)
{
	return ((a < b) | (a != a)) ? a : b;
} // NaN propagates
YK_INLINE T f_max(T a, T b)
{
	return ((a > b) | (a != a)) ? a : b;
}
YK_INLINE T f_neg(T a)
{
	return -a;
}
YK_INLINE T f_sign(T a)
{
	return a > 0 ? 1 : a < 0 ? -1 : a;
} // preserves zeros and NaN
YK_INLINE T f_recip(T a)
{
	return 1 / a;
}
YK_INLINE T f_square(T a)
{
	return a * a;
}

STRIP2(s_add, f_add)
STRIP2(s_sub, f_sub)
STRIP2(s_mul, f_mul)
STRIP2(s_div, f_div)
STRIP2(s_mod, f_mod)
STRIP2(s_pow, FN(pow))
STRIP2(s_min, f_min)
STRIP2(s_max, f_max)
STRIP1(s_neg, f_neg)
STRIP1(s_abs, FN(abs))
STRIP1(s_sign, f_sign)
STRIP1(s_floor, FN(floor))
STRIP1(s_round, FN(round))
STRIP1(s_ceil, FN(ceil))
STRIP1(s_exp, FN(exp))
STRIP1(s_log, FN(log))
STRIP1(s_log1p, FN(log1p))
STRIP1(s_expm1, FN(expm1))
STRIP1(s_sqrt, FN(sqrt))
STRIP1(s_rsqrt, FN(rsqrt))
STRIP1(s_recip, f_recip)
STRIP1(s_square, f_square)
STRIP1(s_tanh, FN(tanh))
STRIP1(s_sigmoid, FN(sigmoid))
STRIP1(s_erf, FN(erf))
STRIP2(s_normal, FN(normal))

static void s_isfinite(void *to, const struct yk_arg *va, const struct yk_arg *b,
		       const struct yk_arg *c, int64_t n)
{
	uint8_t *y = to;
	const T *a = va->at;
	(void)b, (void)c;
	for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK, a += va->step) {
		int m = n < YK_BLOCK ? (int)n : YK_BLOCK;
		YK_SIMD
		for (int i = 0; i < m; i++)
			y[i] = a[i] - a[i] == 0;
	}
}

// Random bits to [0,1); f32 and f64 represent all 24 bits used.
static void s_uniform(void *to, const struct yk_arg *va, const struct yk_arg *b,
		      const struct yk_arg *c, int64_t n)
{
	T *y = to;
	const uint32_t *a = va->at;
	(void)b, (void)c;
	for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK, a += va->step) {
		int m = n < YK_BLOCK ? (int)n : YK_BLOCK;
		YK_SIMD
		for (int i = 0; i < m; i++)
			y[i] = yk_uniform_f32(a[i]);
	}
}

static yk_strip_fn *const table[] = {
	[YOKE_MAP_UNIFORM] = s_uniform,
	[YOKE_MAP_NORMAL] = s_normal,
	[YOKE_MAP_ADD] = s_add,
	[YOKE_MAP_SUB] = s_sub,
	[YOKE_MAP_MUL] = s_mul,
	[YOKE_MAP_DIV] = s_div,
	[YOKE_MAP_MOD] = s_mod,
	[YOKE_MAP_POW] = s_pow,
	[YOKE_MAP_MIN] = s_min,
	[YOKE_MAP_MAX] = s_max,
	[YOKE_MAP_NEG] = s_neg,
	[YOKE_MAP_ABS] = s_abs,
	[YOKE_MAP_SIGN] = s_sign,
	[YOKE_MAP_FLOOR] = s_floor,
	[YOKE_MAP_ROUND] = s_round,
	[YOKE_MAP_CEIL] = s_ceil,
	[YOKE_MAP_EXP] = s_exp,
	[YOKE_MAP_LOG] = s_log,
	[YOKE_MAP_LOG1P] = s_log1p,
	[YOKE_MAP_EXPM1] = s_expm1,
	[YOKE_MAP_SQRT] = s_sqrt,
	[YOKE_MAP_RSQRT] = s_rsqrt,
	[YOKE_MAP_RECIP] = s_recip,
	[YOKE_MAP_SQUARE] = s_square,
	[YOKE_MAP_SIN] = s_sin,
	[YOKE_MAP_COS] = s_cos,
	[YOKE_MAP_TANH] = s_tanh,
	[YOKE_MAP_SIGMOID] = s_sigmoid,
	[YOKE_MAP_ERF] = s_erf,
	[YOKE_MAP_EQ] = s_eq,
	[YOKE_MAP_NE] = s_ne,
	[YOKE_MAP_LT] = s_lt,
	[YOKE_MAP_LE] = s_le,
	[YOKE_MAP_GT] = s_gt,
	[YOKE_MAP_GE] = s_ge,
	[YOKE_MAP_ISFINITE] = s_isfinite,
};
