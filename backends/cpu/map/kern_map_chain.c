// SPDX-License-Identifier: Apache-2.0
// The links of chains: instructions on blocks of vectors that stay in registers between links.
#include "config.h"

#include "kern_map_chain.h"
#include "../vector/philox.h"
#include "../vector/vhalf.h"

typedef uint32_t vu __attribute__((vector_size(VF * 4)));

// A link receives its vectors as arguments, for the calling convention, and uses them as v[].
#define LINK(name) static void name(const struct yk_link *l, int64_t at, YK_LINK_VECTORS)
YK_INLINE vf taken(yk_link_vector a)
{
	vf v;
	memcpy(&v, &a, sizeof v);
	return v;
}
YK_INLINE yk_link_vector passed(vf v)
{
	yk_link_vector a;
	memcpy(&a, &v, sizeof a);
	return a;
}
#if YK_LINK_COUNT == 8
#define TAKE \
	vf v[] = { taken(a0), taken(a1), taken(a2), taken(a3), \
		   taken(a4), taken(a5), taken(a6), taken(a7) }
#define CALL(f, link) \
	f(link, at, passed(v[0]), passed(v[1]), passed(v[2]), passed(v[3]), passed(v[4]), \
	  passed(v[5]), passed(v[6]), passed(v[7]))
#else
#define TAKE vf v[] = { taken(a0), taken(a1), taken(a2), taken(a3) }
#define CALL(f, link) f(link, at, passed(v[0]), passed(v[1]), passed(v[2]), passed(v[3]))
#endif
#define NEXT CALL(l[1].fn, l + 1)
#define EACH _Pragma("GCC unroll 8") for (int i = 0; i < YK_LINK_COUNT; i++)
// Loops over the block's vectors in steps of four, or of two.
#define FOURS _Pragma("GCC unroll 2") for (int i = 0; i < YK_LINK_COUNT; i += 4)
#define PAIRS _Pragma("GCC unroll 4") for (int i = 0; i < YK_LINK_COUNT; i += 2)

// Loads vector i of the block of memory operand k, by dtype.
YK_INLINE vf from_f32(const struct yk_link *l, int k, int64_t at, int i)
{
	return vf_load((const float *)(l->p[k] + (at & l->mask[k])) + i * VF);
}
YK_INLINE vf from_f16(const struct yk_link *l, int k, int64_t at, int i)
{
	return vf_of_f16(vh_load((const uint16_t *)(l->p[k] + (at >> 1)) + i * VF));
}
YK_INLINE vf from_bf16(const struct yk_link *l, int k, int64_t at, int i)
{
	return vf_of_bf16(vh_load((const uint16_t *)(l->p[k] + (at >> 1)) + i * VF));
}

// The same for bools, as masks.
YK_INLINE vi bools(const struct yk_link *l, int k, int64_t at, int i)
{
	const char *p = l->p[k] + ((at & l->mask[k]) >> 2) + i * VF;
#if defined __AVX512F__
	return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)) != 0;
#elif defined __AVX2__
	return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)) != 0;
#else
	typedef int8_t bytes __attribute__((vector_size(VF)));
	bytes b;
	memcpy(&b, p, sizeof b);
	return __builtin_convertvector(b, vi) != 0;
#endif
}
YK_INLINE vf from_bool(const struct yk_link *l, int k, int64_t at, int i)
{
	return (vf)bools(l, k, at, i);
}

// ---- vector functions ----

YK_INLINE vf f_add(vf a, vf b)
{
	return a + b;
}
YK_INLINE vf f_sub(vf a, vf b)
{
	return a - b;
}
YK_INLINE vf f_mul(vf a, vf b)
{
	return a * b;
}
YK_INLINE vf f_div(vf a, vf b)
{
	return a / b;
}
YK_INLINE vf f_neg(vf a)
{
	return -a;
}
YK_INLINE vf f_abs(vf a)
{
	return (vf)((vi)a & 0x7fffffff);
}
YK_INLINE vf f_sign(vf a) // preserves zeros and NaN
{
	return vf_select(a > 0, vf_splat(1), vf_select(a < 0, vf_splat(-1), a));
}
YK_INLINE vf f_recip(vf a)
{
	return 1.0f / a;
}
YK_INLINE vf f_square(vf a)
{
	return a * a;
}
YK_INLINE vf f_rsqrt(vf a)
{
	return 1.0f / vf_sqrt(a);
}
YK_INLINE vf f_uniform(vf a)
{
	return __builtin_convertvector((vi)((vu)a >> 8), vf) * 0x1p-24f;
}

// Makes a vector function from a function of one element.
#define LANES(name, element) \
	YK_INLINE vf name(vf x) \
	{ \
		float a[VF]; \
		vf_store(a, x); \
		YK_LANES \
		for (int i = 0; i < VF; i++) \
			a[i] = element(a[i]); \
		return vf_load(a); \
	}
LANES(f_floor, yk_floor_f32)
LANES(f_round, yk_round_f32)
LANES(f_ceil, yk_ceil_f32)
LANES(f_expm1, yk_expm1_f32)

#undef LANES

YK_INLINE vf f_eq(vf a, vf b)
{
	return (vf)(a == b);
}
YK_INLINE vf f_ne(vf a, vf b)
{
	return (vf)(a != b);
}
YK_INLINE vf f_lt(vf a, vf b)
{
	return (vf)(a < b);
}
YK_INLINE vf f_le(vf a, vf b)
{
	return (vf)(a <= b);
}
YK_INLINE vf f_gt(vf a, vf b)
{
	return (vf)(a > b);
}
YK_INLINE vf f_ge(vf a, vf b)
{
	return (vf)(a >= b);
}

YK_INLINE vf f_isfinite(vf a)
{
	return (vf)((vi)f_abs(a) < 0x7f800000);
}

// Integers, and masks; arithmetic wraps.
YK_INLINE vf i_add(vf a, vf b)
{
	return (vf)((vu)a + (vu)b);
}
YK_INLINE vf i_sub(vf a, vf b)
{
	return (vf)((vu)a - (vu)b);
}
YK_INLINE vf i_mul(vf a, vf b)
{
	return (vf)((vu)a * (vu)b);
}
YK_INLINE vf i_eq(vf a, vf b)
{
	return (vf)((vi)a == (vi)b);
}
YK_INLINE vf i_ne(vf a, vf b)
{
	return (vf)((vi)a != (vi)b);
}
YK_INLINE vf i_lt(vf a, vf b)
{
	return (vf)((vi)a < (vi)b);
}
YK_INLINE vf i_le(vf a, vf b)
{
	return (vf)((vi)a <= (vi)b);
}
YK_INLINE vf i_gt(vf a, vf b)
{
	return (vf)((vi)a > (vi)b);
}
YK_INLINE vf i_ge(vf a, vf b)
{
	return (vf)((vi)a >= (vi)b);
}
YK_INLINE vf i_min(vf a, vf b)
{
	return vf_select((vi)i_lt(a, b), a, b);
}
YK_INLINE vf i_max(vf a, vf b)
{
	return vf_select((vi)i_gt(a, b), a, b);
}
YK_INLINE vf i_and(vf a, vf b)
{
	return (vf)((vi)a & (vi)b);
}
YK_INLINE vf i_or(vf a, vf b)
{
	return (vf)((vi)a | (vi)b);
}
YK_INLINE vf i_xor(vf a, vf b)
{
	return (vf)((vi)a ^ (vi)b);
}
YK_INLINE vf i_xnor(vf a, vf b)
{
	return (vf) ~((vi)a ^ (vi)b);
}
// Counts outside 0..31 shift all bits out.
YK_INLINE vf i_shl(vf a, vf b)
{
	return (vf)(((vi)((vu)a << ((vu)b & 31))) & ((vi)((vu)b < 32)));
}
YK_INLINE vf i_shr(vf a, vf b)
{
	return (vf)((vi)a >> (vi)vf_select((vi)((vu)b < 32), b, (vf)vi_splat(31)));
}
YK_INLINE vf i_neg(vf a)
{
	return (vf)(0 - (vu)a);
}
YK_INLINE vf i_not(vf a)
{
	return (vf) ~(vi)a;
}
YK_INLINE vf i_abs(vf a)
{
	return vf_select((vi)a < 0, i_neg(a), a);
}
YK_INLINE vf i_sign(vf a)
{
	return (vf)(((vi)a < 0) - ((vi)a > 0));
}
YK_INLINE vf i_square(vf a)
{
	return i_mul(a, a);
}

// Casts; those of floating point truncate and saturate, and NaN becomes 0.
YK_INLINE vf f32_of_i32(vf a)
{
	return __builtin_convertvector((vi)a, vf);
}
YK_INLINE vf i32_of_f32(vf a)
{
	const vi high = a >= 0x1p31f, low = a < -0x1p31f, whole = ~(high | low) & (a == a);
	const vf y = (vf) __builtin_convertvector(vf_select(whole, a, vf_splat(0)), vi);
	return vf_select(high, (vf)vi_splat(INT32_MAX), vf_select(low, (vf)vi_splat(INT32_MIN), y));
}
YK_INLINE vf f32_of_mask(vf a)
{
	return vf_select((vi)a, vf_splat(1), vf_splat(0));
}
YK_INLINE vf i32_of_mask(vf a)
{
	return (vf)((vi)a & 1);
}

// ---- links ----

#define FROM(k) from_f32(l, k, at, i)

#define A_LINK(f) \
	LINK(a_##f) \
	{ \
		TAKE; \
		EACH v[i] = f(v[i]); \
		NEXT; \
	}
#define UNARY_LINKS(code, f) \
	A_LINK(f) \
	LINK(m_##f) \
	{ \
		TAKE; \
		EACH v[i] = f(FROM(0)); \
		NEXT; \
	}
// Links for functions that process several vectors step by step together.
#define TOGETHER_LINKS(code, f) \
	LINK(a_##f) \
	{ \
		TAKE; \
		FOURS f(v + i, 4); \
		NEXT; \
	} \
	LINK(m_##f) \
	{ \
		TAKE; \
		EACH v[i] = FROM(0); \
		FOURS f(v + i, 4); \
		NEXT; \
	}
#define AM_LINK(f, dtype) \
	LINK(am_##f##_##dtype) \
	{ \
		TAKE; \
		EACH v[i] = f(v[i], from_##dtype(l, 0, at, i)); \
		NEXT; \
	}
#define AA_LINK(f) \
	LINK(aa_##f) \
	{ \
		TAKE; \
		EACH v[i] = f(v[i], v[i]); \
		NEXT; \
	}
#define MIXED_LINKS(f, dtype) \
	AM_LINK(f, dtype) \
	LINK(ma_##f##_##dtype) \
	{ \
		TAKE; \
		EACH v[i] = f(from_##dtype(l, 0, at, i), v[i]); \
		NEXT; \
	}
#define FLOAT_LINKS(code, f) \
	MIXED_LINKS(f, f16) \
	MIXED_LINKS(f, bf16) \
	BINARY_LINKS(code, f)
#define BINARY_LINKS(code, f) \
	MIXED_LINKS(f, f32) \
	AA_LINK(f) \
	LINK(mm_##f) \
	{ \
		TAKE; \
		EACH v[i] = f(FROM(0), FROM(1)); \
		NEXT; \
	} \
	LINK(au_##f) \
	{ \
		TAKE; \
		const vf u = vf_load((const float *)l->p[0]); \
		EACH v[i] = f(v[i], u); \
		NEXT; \
	} \
	LINK(ua_##f) \
	{ \
		TAKE; \
		const vf u = vf_load((const float *)l->p[0]); \
		EACH v[i] = f(u, v[i]); \
		NEXT; \
	} \
	LINK(mu_##f) \
	{ \
		TAKE; \
		const vf u = vf_load((const float *)l->p[1]); \
		EACH v[i] = f(FROM(0), u); \
		NEXT; \
	} \
	LINK(um_##f) \
	{ \
		TAKE; \
		const vf u = vf_load((const float *)l->p[0]); \
		EACH v[i] = f(u, FROM(1)); \
		NEXT; \
	}

// POW, LOG1P, SIN, COS and NORMAL go through f64, as in the strip functions.
#define UNARY(X) \
	X(NEG, f_neg) \
	X(ABS, f_abs) \
	X(SIGN, f_sign) X(FLOOR, f_floor) X(ROUND, f_round) X(CEIL, f_ceil) X(EXPM1, f_expm1) \
		X(SQRT, vf_sqrt) X(RSQRT, f_rsqrt) X(RECIP, f_recip) X(SQUARE, f_square) \
			X(UNIFORM, f_uniform) X(ISFINITE, f_isfinite)
#define TOGETHER(X) \
	X(EXP, v_exp_any) \
	X(LOG, v_log) X(TANH, v_tanh) X(SIGMOID, v_sigmoid) X(ERF, v_erf)
#define BINARY(X) \
	X(ADD, f_add) \
	X(SUB, f_sub) \
	X(MUL, f_mul) \
	X(DIV, f_div) X(MIN, vf_min_nan) X(MAX, vf_max_nan) X(EQ, f_eq) X(NE, f_ne) X(LT, f_lt) \
		X(LE, f_le) X(GT, f_gt) X(GE, f_ge)
#define INT_UNARY(X) X(NEG, i_neg) X(NOT, i_not) X(ABS, i_abs) X(SIGN, i_sign) X(SQUARE, i_square)
#define INT_BINARY(X) \
	X(ADD, i_add) \
	X(SUB, i_sub) \
	X(MUL, i_mul) X(MIN, i_min) X(MAX, i_max) X(AND, i_and) X(OR, i_or) X(XOR, i_xor) \
		X(SHL, i_shl) X(SHR, i_shr) X(EQ, i_eq) X(NE, i_ne) X(LT, i_lt) X(LE, i_le) \
			X(GT, i_gt) X(GE, i_ge)
// Operations on masks; all are symmetric.
#define BOOL_BINARY(X) X(AND, i_and) X(OR, i_or) X(XOR, i_xor) X(NE, i_xor) X(EQ, i_xnor)
UNARY(UNARY_LINKS)
TOGETHER(TOGETHER_LINKS)
BINARY(FLOAT_LINKS)
INT_UNARY(UNARY_LINKS)
INT_BINARY(BINARY_LINKS)
AM_LINK(i_and, bool)
AM_LINK(i_or, bool)
AM_LINK(i_xor, bool)
AM_LINK(i_xnor, bool)
AM_LINK(i_xnor, f32)
AA_LINK(i_xnor)

yk_link_fn *ISA(yk_link_op)(int op, int dtype, enum yk_link_way way)
{
#define UNARY_ROW(code, f) [YOKE_MAP_##code] = { [YK_LINK_A] = a_##f, [YK_LINK_M] = m_##f },
#define BINARY_ROW(code, f) \
	[YOKE_MAP_##code] = { \
		[YK_LINK_AM] = am_##f##_f32, [YK_LINK_MA] = ma_##f##_f32, [YK_LINK_AA] = aa_##f, \
		[YK_LINK_MM] = mm_##f,       [YK_LINK_AU] = au_##f,       [YK_LINK_UA] = ua_##f, \
		[YK_LINK_MU] = mu_##f,       [YK_LINK_UM] = um_##f \
	},
#define BOOL_ROW(code, f) \
	[YOKE_MAP_##code] = { [YK_LINK_AM] = am_##f##_f32, [YK_LINK_AA] = aa_##f },
	static yk_link_fn *const table[][YOKE_MAP_SELECT][YK_LINK_WAYS] = {
		{ UNARY(UNARY_ROW) TOGETHER(UNARY_ROW) BINARY(BINARY_ROW) },
		{ INT_UNARY(UNARY_ROW) INT_BINARY(BINARY_ROW) },
		{ BOOL_BINARY(BOOL_ROW)[YOKE_MAP_NOT] = { [YK_LINK_A] = a_i_not } },
	};
#undef UNARY_ROW
#undef BINARY_ROW
#undef BOOL_ROW
	const int kind = dtype == yoke_f32  ? 0 :
			 dtype == yoke_i32  ? 1 :
			 dtype == yoke_bool ? 2 :
					      -1;
	return kind >= 0 && op < YOKE_MAP_SELECT ? table[kind][op][way] : NULL;
}

yk_link_fn *ISA(yk_link_op_narrow)(int op, enum yk_link_way way, int dtype)
{
#define ROW(code, f) \
	[YOKE_MAP_##code] = { { am_##f##_f16, ma_##f##_f16 }, { am_##f##_bf16, ma_##f##_bf16 } },
#define BOOL_ROW(code, f) [YOKE_MAP_##code] = am_##f##_bool,
	static yk_link_fn *const table[][2][2] = { BINARY(ROW) };
	static yk_link_fn *const bools[] = { BOOL_BINARY(BOOL_ROW) };
#undef ROW
#undef BOOL_ROW
	return dtype == yoke_bool ? bools[op] : table[op][dtype == yoke_bf16][way == YK_LINK_MA];
}

UNARY_LINKS(CAST, f32_of_i32)
UNARY_LINKS(CAST, i32_of_f32)
A_LINK(f32_of_mask)
A_LINK(i32_of_mask)

yk_link_fn *ISA(yk_link_cast)(int to, int from, bool in_registers)
{
	if (to == yoke_f32 && from == yoke_i32)
		return in_registers ? a_f32_of_i32 : m_f32_of_i32;
	if (to == yoke_i32 && from == yoke_f32)
		return in_registers ? a_i32_of_f32 : m_i32_of_f32;
	if (from == yoke_bool && in_registers)
		return to == yoke_f32 ? a_f32_of_mask : to == yoke_i32 ? a_i32_of_mask : NULL;
	return NULL;
}

#define FOLD(name, expression) \
	LINK(name) \
	{ \
		TAKE; \
		const vf u = vf_load((const float *)l->p[1]); \
		EACH v[i] = expression; \
		NEXT; \
	}
FOLD(fold_add, v[i] + FROM(0) * u)
FOLD(fold_sub, v[i] - FROM(0) * u)
FOLD(fold_from, FROM(0) * u - v[i])
FOLD(fold_div, FROM(0) * u / v[i])
#undef FOLD

void ISA(yk_link_blend)(const struct yk_link *l, int64_t at, YK_LINK_VECTORS)
{
	TAKE;
	const vf u = vf_load((const float *)l->p[1]), w = vf_load((const float *)l->p[2]);
	EACH v[i] = v[i] * w + FROM(0) * u;
	NEXT;
}

void ISA(yk_link_scale_add)(const struct yk_link *l, int64_t at, YK_LINK_VECTORS)
{
	TAKE;
	const vf u = vf_load((const float *)l->p[0]), w = vf_load((const float *)l->p[1]);
	EACH v[i] = v[i] * w + u;
	NEXT;
}

yk_link_fn *ISA(yk_link_fold)(int op, bool left)
{
	return op == YOKE_MAP_ADD         ? fold_add :
	       op == YOKE_MAP_SUB         ? (left ? fold_from : fold_sub) :
	       op == YOKE_MAP_DIV && left ? fold_div :
					    NULL;
}

// ---- select ----

LINK(select_m)
{
	TAKE;
	EACH v[i] = vf_select((vi)v[i], FROM(1), FROM(2));
	NEXT;
}

// `mask` loads the mask, operand 0.
#define SELECT_LINKS(name, mask) \
	LINK(select_b_##name) \
	{ \
		TAKE; \
		EACH v[i] = vf_select(mask, v[i], FROM(2)); \
		NEXT; \
	} \
	LINK(select_c_##name) \
	{ \
		TAKE; \
		EACH v[i] = vf_select(mask, FROM(1), v[i]); \
		NEXT; \
	} \
	LINK(select_none_##name) \
	{ \
		TAKE; \
		EACH v[i] = vf_select(mask, FROM(1), FROM(2)); \
		NEXT; \
	}
SELECT_LINKS(bool, bools(l, 0, at, i))
SELECT_LINKS(mask, (vi)FROM(0))

yk_link_fn *ISA(yk_link_select)(int in_registers, bool mask)
{
	static yk_link_fn *const table[][2] = { { select_none_bool, select_none_mask },
						{ select_m, select_m },
						{ select_b_bool, select_b_mask },
						{ select_c_bool, select_c_mask } };
	return table[in_registers + 1][mask];
}

// ---- rounding, loads and stores ----

LINK(to_f16)
{
	TAKE;
	EACH v[i] = vf_round_f16(v[i]);
	NEXT;
}

LINK(to_bf16)
{
	TAKE;
	EACH v[i] = vf_round_bf16(v[i]);
	NEXT;
}

yk_link_fn *ISA(yk_link_round)(int dtype)
{
	return dtype == yoke_f16 ? to_f16 : to_bf16;
}

#define LOAD(dtype) \
	LINK(load_##dtype) \
	{ \
		TAKE; \
		EACH v[i] = from_##dtype(l, 0, at, i); \
		NEXT; \
	}
LOAD(f32)
LOAD(f16)
LOAD(bf16)
LOAD(bool)
#undef LOAD

yk_link_fn *ISA(yk_link_load)(int dtype)
{
	switch (dtype) {
	case yoke_f16: return load_f16;
	case yoke_bf16: return load_bf16;
	case yoke_bool: return load_bool;
	default: return load_f32;
	}
}

LINK(store_f32)
{
	TAKE;
	float *y = (float *)(l->p[0] + (at & l->mask[0]));
	EACH vf_store(y + i * VF, v[i]);
	NEXT;
}

LINK(stream_f32)
{
	TAKE;
	float *y = (float *)(l->p[0] + at);
	EACH vf_stream(y + i * VF, v[i]);
	NEXT;
}

LINK(store_mask)
{
	TAKE;
	int32_t m[YK_LINK_COUNT * VF];
	uint8_t *y = (uint8_t *)(l->p[0] + ((at & l->mask[0]) >> 2));
	memcpy(m, v, sizeof m);
	YK_SIMD
	for (int i = 0; i < YK_LINK_COUNT * VF; i++)
		y[i] = m[i] & 1;
	NEXT;
}

#define HALF_STORE(name) \
	LINK(store_##name) \
	{ \
		TAKE; \
		uint16_t *y = (uint16_t *)(l->p[0] + (at >> 1)); \
		PAIRS vh2_store(y + i * VF, vf2_to_##name(v[i], v[i + 1])); \
		NEXT; \
	} \
	LINK(stream_##name) \
	{ \
		TAKE; \
		uint16_t *y = (uint16_t *)(l->p[0] + (at >> 1)); \
		PAIRS vh2_stream(y + i * VF, vf2_to_##name(v[i], v[i + 1])); \
		NEXT; \
	}
HALF_STORE(f16)
HALF_STORE(bf16)

yk_link_fn *ISA(yk_link_store)(int dtype, bool stream)
{
	switch (dtype) {
	case yoke_f16: return stream ? stream_f16 : store_f16;
	case yoke_bf16: return stream ? stream_bf16 : store_bf16;
	case YK_LINK_MASK: return store_mask;
	default: return stream ? stream_f32 : store_f32;
	}
}

// ---- running ----

void ISA(yk_link_end)(const struct yk_link *l, int64_t at, YK_LINK_VECTORS)
{
	TAKE;
	(void)l, (void)at, (void)v;
}

// Loops over all blocks of a chain that consists of an instruction on memory operands and a store,
// whose calls would take longer than the instruction. `at` is the offset of the last block.
#define LOOP(name, f, uniform, x, y) \
	LINK(loop_##name) \
	{ \
		TAKE; \
		const struct yk_link own = l[0]; \
		char *const to = l[1].p[0]; \
		const int64_t last = at, step = YK_LINK_BLOCK * 4; \
		const vf u = vf_load((const float *)own.p[uniform]); \
		(void)u; \
		l = &own; \
		for (at = 0; at <= last; at = at < last && at + step > last ? last : at + step) { \
			EACH v[i] = f(x, y); \
			EACH vf_store((float *)(to + at) + i * VF, v[i]); \
		} \
	}
#define LOOPS(code, f) \
	LOOP(mm_##f, f, 0, FROM(0), FROM(1)) \
	LOOP(mu_##f, f, 1, FROM(0), u) \
	LOOP(um_##f, f, 0, u, FROM(1))
#define CHEAP(X) \
	X(ADD, f_add) X(SUB, f_sub) X(MUL, f_mul) X(MIN, vf_min_nan) X(MAX, vf_max_nan) \
		X(ADD, i_add) X(SUB, i_sub) X(MUL, i_mul) X(AND, i_and) X(OR, i_or) X(XOR, i_xor)
CHEAP(LOOPS)

yk_link_fn *ISA(yk_link_loop)(const struct yk_link *l)
{
#define ROW(code, f) { mm_##f, loop_mm_##f }, { mu_##f, loop_mu_##f }, { um_##f, loop_um_##f },
	static yk_link_fn *const table[][2] = { CHEAP(ROW) };
#undef ROW
	if (l[1].fn != store_f32 || l[1].mask[0] == 0 || l[2].fn != ISA(yk_link_end))
		return NULL;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i][0] == l->fn)
			return table[i][1];
	return NULL;
}

void ISA(yk_chain_run)(const struct yk_link *first, int64_t n)
{
	const vf v[YK_LINK_COUNT] = { { 0 } };
	const struct yk_link *l = first - 1;
	const int64_t last = (n - YK_LINK_BLOCK) * 4;
	int64_t at = last;
	if (first->loop) {
		CALL(first->loop, first);
		return;
	}
	for (at = 0; at <= last; at += YK_LINK_BLOCK * 4)
		NEXT;
	if (n % YK_LINK_BLOCK) {
		at = last;
		NEXT;
	}
}
