// SPDX-License-Identifier: Apache-2.0
// Converting strip functions: casts between registers, rounding to f16 and bf16, select, logic, and
// loads and stores between memory and registers.
#include "config.h"

#include <string.h>

#include "kern_map.h"
#include "../vector/second.h"
#include "../vector/vhalf.h"

// ---- casts ----

// Floating point to integer: truncates, saturates, NaN becomes 0. TOP is the smallest power of two
// above the range.
#define FLOAT_TO_INT(name, F, I, TOP, LOW, MAX) \
	YK_INLINE I name(F x) \
	{ \
		F c = x >= (F)(LOW) ? x : (F)(LOW); \
		c = c < (F)(TOP) ? c : 0; \
		I y = (I)c; \
		y = x >= (F)(TOP) ? (MAX) : y; \
		return x != x ? 0 : y; \
	}
FLOAT_TO_INT(i32_of_f32, float, int32_t, 0x1p31, -0x1p31, INT32_MAX)
FLOAT_TO_INT(i64_of_f32, float, int64_t, 0x1p63, -0x1p63, INT64_MAX)
FLOAT_TO_INT(i32_of_f64, double, int32_t, 0x1p31, -0x1p31, INT32_MAX)
FLOAT_TO_INT(i64_of_f64, double, int64_t, 0x1p63, -0x1p63, INT64_MAX)
#undef FLOAT_TO_INT

YK_INLINE int8_t i8_of_f32(float x)
{
	int32_t y = i32_of_f32(x);
	return (int8_t)(y < -128 ? -128 : y > 127 ? 127 : y);
}

YK_INLINE uint8_t u8_of_f32(float x)
{
	int32_t y = i32_of_f32(x);
	return (uint8_t)(y < 0 ? 0 : y > 255 ? 255 : y);
}

YK_INLINE int8_t i8_of_f64(double x)
{
	int32_t y = i32_of_f64(x);
	return (int8_t)(y < -128 ? -128 : y > 127 ? 127 : y);
}

YK_INLINE uint8_t u8_of_f64(double x)
{
	int32_t y = i32_of_f64(x);
	return (uint8_t)(y < 0 ? 0 : y > 255 ? 255 : y);
}

// Defines the strip function to_from; `as` converts one element.
#define CAST(to, T, from, F, as) \
	static void cast_##to##_##from(void *vy, const struct yk_arg *va, \
				       const struct yk_arg *b, const struct yk_arg *c, \
				       int64_t n) \
	{ \
		T *y = vy; \
		const F *a = va->at; \
		(void)b, (void)c; \
		for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK, a += va->step) { \
			int m = n < YK_BLOCK ? (int)n : YK_BLOCK; \
			YK_SIMD \
			for (int i = 0; i < m; i++) \
				y[i] = as; \
		} \
	}
// Casts from one type to all others; conversions to 8 bits and to bool are parameters.
#define CASTS(from, F, to_i8, to_u8, to_i32, to_i64) \
	CAST(f32, float, from, F, (float)a[i]) \
	CAST(f64, double, from, F, (double)a[i]) \
	CAST(i8, int8_t, from, F, to_i8(a[i])) \
	CAST(u8, uint8_t, from, F, to_u8(a[i])) \
	CAST(i32, int32_t, from, F, to_i32(a[i])) \
	CAST(i64, int64_t, from, F, to_i64(a[i])) \
	CAST(bool, uint8_t, from, F, a[i] != 0)
CASTS(f32, float, i8_of_f32, u8_of_f32, i32_of_f32, i64_of_f32)
CASTS(f64, double, i8_of_f64, u8_of_f64, i32_of_f64, i64_of_f64)
CASTS(i8, int8_t, (int8_t), (uint8_t), (int32_t), (int64_t))
CASTS(u8, uint8_t, (int8_t), (uint8_t), (int32_t), (int64_t))
CASTS(i32, int32_t, (int8_t), (uint8_t), (int32_t), (int64_t))
CASTS(i64, int64_t, (int8_t), (uint8_t), (int32_t), (int64_t))
// To f16 and bf16 from types wider than f32: to f32 rounded to odd, so that the second rounding
// gives the same bits as a direct conversion.
CAST(half, float, f64, double, yk_f32_odd_of_f64(a[i]))
CAST(half, float, i64, int64_t, yk_f32_odd_of_f64(yk_f64_odd_of_i64(a[i])))
CAST(half, float, i32, int32_t, yk_f32_odd_of_f64(a[i]))
#undef CASTS

#define ROUND(name) \
	static void round_##name(void *to, const struct yk_arg *va, \
				 const struct yk_arg *b, const struct yk_arg *c, \
				 int64_t n) \
	{ \
		float *y = to; \
		const float *a = va->at; \
		(void)b, (void)c; \
		for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK, a += va->step) { \
			const int64_t m = n < YK_BLOCK ? n : YK_BLOCK; \
			for (int64_t i = 0; i < m; i += VF) \
				vf_put(y + i, vf_round_##name(vf_get(a + i, m - i)), \
				       m - i); \
		} \
	}
ROUND(f16)
ROUND(bf16)
#undef ROUND

yk_strip_fn *ISA(yk_strip_round)(int dtype)
{
	return dtype == yoke_f16  ? round_f16 :
	       dtype == yoke_bf16 ? round_bf16 :
				    NULL;
}

yk_strip_fn *ISA(yk_strip_cast)(int to, int from)
{
#define ROW(from) \
	{ \
		[yoke_f32] = cast_f32_##from, [yoke_f64] = cast_f64_##from, \
		[yoke_i8] = cast_i8_##from, [yoke_u8] = cast_u8_##from, \
		[yoke_i32] = cast_i32_##from, [yoke_i64] = cast_i64_##from, \
		[yoke_bool] = cast_bool_##from \
	}
	static yk_strip_fn *const cast[][yoke_bool + 1] = {
		[yoke_f32] = ROW(f32), [yoke_f64] = ROW(f64), [yoke_i8] = ROW(i8),
		[yoke_u8] = ROW(u8),   [yoke_i32] = ROW(i32), [yoke_i64] = ROW(i64),
		[yoke_bool] = ROW(u8),
	};
#undef ROW
	if (yk_is_half(to) && from == yoke_f64)
		return cast_half_f64;
	if (yk_is_half(to) && from == yoke_i64)
		return cast_half_i64;
	if (yk_is_half(to) && from == yoke_i32)
		return cast_half_i32;
	return cast[yk_reg(from)][yk_reg(to)];
}

// ---- select, logic ----

#define SELECT(name, T) \
	static void name(void *to, const struct yk_arg *va, const struct yk_arg *vb, \
			 const struct yk_arg *vc, int64_t n) \
	{ \
		T *y = to; \
		const uint8_t *a = va->at; \
		const T *b = vb->at, *c = vc->at; \
		for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK) { \
			int m = n < YK_BLOCK ? (int)n : YK_BLOCK; \
			YK_SIMD \
			for (int i = 0; i < m; i++) { \
				T p = b[i], q = c[i]; \
				y[i] = a[i] ? p : q; \
			} \
			a += va->step, b += vb->step, c += vc->step; \
		} \
	}
SELECT(select_8, uint8_t)
SELECT(select_32, uint32_t)
SELECT(select_64, uint64_t)
#undef SELECT

yk_strip_fn *ISA(yk_strip_select)(int dtype)
{
	size_t size = yk_esize(yk_reg(dtype));
	return size == 1 ? select_8 : size == 4 ? select_32 : select_64;
}

#define T uint8_t
#include "kern_map_each.h"

YK_INLINE uint8_t f_and(uint8_t a, uint8_t b)
{
	return (a != 0) & (b != 0);
}
YK_INLINE uint8_t f_or(uint8_t a, uint8_t b)
{
	return (a | b) != 0;
}
YK_INLINE uint8_t f_xor(uint8_t a, uint8_t b)
{
	return (a != 0) ^ (b != 0);
}
YK_INLINE uint8_t f_not(uint8_t a)
{
	return a == 0;
}
STRIP2(s_and, f_and)
STRIP2(s_or, f_or)
STRIP2(s_xor, f_xor)
STRIP1(s_not, f_not)
#undef T

yk_strip_fn *ISA(yk_strip_bool)(int op)
{
	static yk_strip_fn *const table[] = {
		[YOKE_MAP_MIN] = s_and, [YOKE_MAP_MAX] = s_or,  [YOKE_MAP_EQ] = s_eq,
		[YOKE_MAP_NE] = s_ne,   [YOKE_MAP_LT] = s_lt,   [YOKE_MAP_LE] = s_le,
		[YOKE_MAP_GT] = s_gt,   [YOKE_MAP_GE] = s_ge,   [YOKE_MAP_AND] = s_and,
		[YOKE_MAP_OR] = s_or,   [YOKE_MAP_XOR] = s_xor, [YOKE_MAP_NOT] = s_not,
	};
	return op < (int)(sizeof table / sizeof *table) ? table[op] : NULL;
}

// ---- memory ----

#define COPY(name, T) \
	static void load_##name(void *to, const void *from, int64_t stride, int64_t n) \
	{ \
		T *y = to; \
		const T *x = from; \
		const T all = n > 0 && !stride ? *x : 0; \
		if (stride == 1) \
			vf_copy(y, x, (size_t)n * sizeof *y); \
		else if (!stride) \
			for (int64_t i = 0; i < n; i++) \
				y[i] = all; \
		else if (stride == 2 && sizeof *y == 4) \
			yk_take_second(y, x, n); \
		else \
			for (int64_t i = 0; i < n; i++) \
				y[i] = x[i * stride]; \
	} \
	static void store_##name(void *to, const void *from, int64_t stride, int64_t n) \
	{ \
		T *y = to; \
		const T *x = from; \
		if (stride == 1) \
			vf_copy(y, x, (size_t)n * sizeof *y); \
		else \
			for (int64_t i = 0; i < n; i++) \
				y[i * stride] = x[i]; \
	}
COPY(8, uint8_t)
COPY(32, uint32_t)
COPY(64, uint64_t)
#undef COPY

#define HALF(name) \
	static void load_##name(void *to, const void *from, int64_t stride, int64_t n) \
	{ \
		float *y = to; \
		const uint16_t *x = from; \
		int64_t i = 0; \
		for (; stride == 1 && i + VF <= n; i += VF) \
			vf_store(y + i, vf_of_##name(vh_load(x + i))); \
		for (; i < n; i++) { /* rows of quantized formats may have any alignment */ \
			uint16_t h; \
			memcpy(&h, x + i * stride, sizeof h); \
			y[i] = yk_f32_of_##name(h); \
		} \
	} \
	static void store_##name(void *to, const void *from, int64_t stride, int64_t n) \
	{ \
		uint16_t *y = to; \
		const float *x = from; \
		int64_t i = 0; \
		for (; stride == 1 && i + VF <= n; i += VF) \
			vh_store(y + i, vf_to_##name(vf_load(x + i))); \
		for (; i < n; i++) \
			y[i * stride] = yk_##name##_of_f32(x[i]); \
	}
HALF(f16)
HALF(bf16)
#undef HALF

yk_load_fn *ISA(yk_load)(int dtype)
{
	size_t size = yk_esize(dtype);
	if (yk_is_half(dtype))
		return dtype == yoke_f16 ? load_f16 : load_bf16;
	return size == 1 ? load_8 : size == 4 ? load_32 : load_64;
}

yk_store_fn *ISA(yk_store)(int dtype)
{
	size_t size = yk_esize(dtype);
	if (yk_is_half(dtype))
		return dtype == yoke_f16 ? store_f16 : store_bf16;
	return size == 1 ? store_8 : size == 4 ? store_32 : store_64;
}
