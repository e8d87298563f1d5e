// SPDX-License-Identifier: Apache-2.0
// The strip functions of an integer type. The including file defines T, U (its unsigned
// counterpart, for wrapping arithmetic) and INT_TABLE, the name of the lookup function.
#include "kern_map.h"
#include "../vector/vmath.h"

#include "kern_map_each.h"

YK_INLINE bool negative(T a)
{
	return !(a > 0 || a == 0);
} // unsigned values are never negative
YK_INLINE T f_add(T a, T b)
{
	return (T)((U)a + (U)b);
}
YK_INLINE T f_sub(T a, T b)
{
	return (T)((U)a - (U)b);
}
YK_INLINE T f_mul(T a, T b)
{
	return (T)((U)a * (U)b);
}
YK_INLINE T f_min(T a, T b)
{
	return a < b ? a : b;
}
YK_INLINE T f_max(T a, T b)
{
	return a > b ? a : b;
}
YK_INLINE T f_neg(T a)
{
	return (T)(0 - (U)a);
}
YK_INLINE T f_abs(T a)
{
	return negative(a) ? (T)(0 - (U)a) : a;
}
YK_INLINE T f_sign(T a)
{
	return (T)((a > 0) - negative(a));
}
YK_INLINE T f_same(T a)
{
	return a;
}
YK_INLINE T f_square(T a)
{
	return f_mul(a, a);
}

// Truncates; x / 0 = 0, min / -1 = min.
YK_INLINE T f_div(T a, T b)
{
	if (b == 0)
		return 0;
	return negative(b) && b == (T)-1 ? f_neg(a) : (T)(a / b);
}
YK_INLINE T f_mod(T a, T b)
{
	return b == 0 || (negative(b) && b == (T)-1) ? 0 : (T)(a % b);
}
YK_INLINE T f_and(T a, T b)
{
	return (T)(a & b);
}
YK_INLINE T f_or(T a, T b)
{
	return (T)(a | b);
}
YK_INLINE T f_xor(T a, T b)
{
	return (T)(a ^ b);
}
YK_INLINE T f_not(T a)
{
	return (T)~a;
}

// Counts outside 0..BITS - 1, including negative ones, shift all bits out.
enum { BITS = 8 * sizeof(T) };
YK_INLINE T f_shl(T a, T b)
{
	T y = (T)((U)a << ((U)b & (BITS - 1)));
	return (U)b < BITS ? y : 0;
}
YK_INLINE T f_shr(T a, T b)
{
	T y = (T)(a >> ((U)b & (BITS - 1)));
	return (U)b < BITS ? y : (T)-negative(a);
}

// By repeated squaring, wrapping; a negative exponent gives 1 / (a to the positive exponent),
// truncated.
YK_INLINE T f_pow(T a, T b)
{
	U r = 1, p = (U)a;
	if (negative(b))
		return a == 1 ? 1 : a == (T)-1 ? (b & 1 ? (T)-1 : 1) : 0;
	for (U k = (U)b; k; k >>= 1) {
		if (k & 1)
			r = (U)(r * p);
		p = (U)(p * p);
	}
	return (T)r;
}

STRIP2(s_add, f_add)
STRIP2(s_sub, f_sub)
STRIP2(s_mul, f_mul)
STRIP2(s_div, f_div)
STRIP2(s_mod, f_mod)
STRIP2(s_and, f_and)
STRIP2(s_or, f_or)
STRIP2(s_xor, f_xor)
STRIP2(s_shl, f_shl)
STRIP2(s_shr, f_shr)
STRIP2(s_pow, f_pow)
STRIP2(s_min, f_min)
STRIP2(s_max, f_max)
STRIP1(s_neg, f_neg)
STRIP1(s_not, f_not)
STRIP1(s_abs, f_abs)
STRIP1(s_sign, f_sign)
STRIP1(s_same, f_same)
STRIP1(s_square, f_square)

// Every integer is finite.
static void s_isfinite(void *to, const struct yk_arg *a, const struct yk_arg *b,
		       const struct yk_arg *c, int64_t n)
{
	(void)b, (void)c;
	test2(to, a, a, n, f_eq);
}

static yk_strip_fn *const table[] = {
	[YOKE_MAP_ADD] = s_add,       [YOKE_MAP_SUB] = s_sub,
	[YOKE_MAP_MUL] = s_mul,       [YOKE_MAP_DIV] = s_div,
	[YOKE_MAP_POW] = s_pow,       [YOKE_MAP_MIN] = s_min,
	[YOKE_MAP_MAX] = s_max,       [YOKE_MAP_NEG] = s_neg,
	[YOKE_MAP_ABS] = s_abs,       [YOKE_MAP_SIGN] = s_sign,
	[YOKE_MAP_FLOOR] = s_same,    [YOKE_MAP_ROUND] = s_same,
	[YOKE_MAP_CEIL] = s_same,     [YOKE_MAP_SQUARE] = s_square,
	[YOKE_MAP_MOD] = s_mod,       [YOKE_MAP_AND] = s_and,
	[YOKE_MAP_OR] = s_or,         [YOKE_MAP_XOR] = s_xor,
	[YOKE_MAP_NOT] = s_not,       [YOKE_MAP_SHL] = s_shl,
	[YOKE_MAP_SHR] = s_shr,
	[YOKE_MAP_EQ] = s_eq,         [YOKE_MAP_NE] = s_ne,
	[YOKE_MAP_LT] = s_lt,         [YOKE_MAP_LE] = s_le,
	[YOKE_MAP_GT] = s_gt,         [YOKE_MAP_GE] = s_ge,
	[YOKE_MAP_ISFINITE] = s_isfinite,
};

yk_strip_fn *ISA(INT_TABLE)(int op)
{
	return op < (int)(sizeof table / sizeof *table) ? table[op] : NULL;
}
