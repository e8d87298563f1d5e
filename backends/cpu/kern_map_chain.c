// SPDX-License-Identifier: Apache-2.0
// The links of chains: instructions on four vectors that are passed on in registers.
#include "config.h"

#include "kern_map_chain.h"
#include "philox.h"
#include "vhalf.h"

typedef uint32_t vu __attribute__((vector_size(VF * 4)));

#define LINK(name) \
	static void name(const struct yk_link *l, int64_t at, vf a0, vf a1, vf a2, vf a3)
#define NEXT l[1].fn(l + 1, at, a0, a1, a2, a3)

// Vector i of the block of memory operand k.
YK_INLINE vf from(const struct yk_link *l, int k, int64_t at, int i)
{
	return vf_load((const float *)(l->p[k] + (at & l->mask[k])) + i * VF);
}

// The same of bools, as masks.
YK_INLINE vi bools(const struct yk_link *l, int k, int64_t at, int i)
{
	const char *p = l->p[k] + ((at & l->mask[k]) >> 2) + i * VF;
#if VF == 16
	return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)) != 0;
#elif VF == 8
	return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)) != 0;
#else
	return (vi){ p[0], p[1], p[2], p[3] } != 0;
#endif
}

// ---- functions of vectors ----

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
YK_INLINE vf f_min(vf a, vf b) // NaN wins
{
	return vf_select((a < b) | (a != a), a, b);
}
YK_INLINE vf f_max(vf a, vf b)
{
	return vf_select((a > b) | (a != a), a, b);
}
YK_INLINE vf f_neg(vf a)
{
	return -a;
}
YK_INLINE vf f_abs(vf a)
{
	return (vf)((vi)a & 0x7fffffff);
}
YK_INLINE vf f_sign(vf a) // zeros and NaN stay
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

// Of functions of one element.
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
LANES(f_log, yk_log_f32)
LANES(f_erf, yk_erf_f32)

#undef LANES

// ---- links ----

#define EACH(f) a0 = f(a0), a1 = f(a1), a2 = f(a2), a3 = f(a3)
#define FROM(k, i) from(l, k, at, i)

#define UNARY_LINKS(code, f) \
	LINK(a_##f) \
	{ \
		EACH(f); \
		NEXT; \
	} \
	LINK(m_##f) \
	{ \
		a0 = f(FROM(0, 0)), a1 = f(FROM(0, 1)); \
		a2 = f(FROM(0, 2)), a3 = f(FROM(0, 3)); \
		NEXT; \
	}
#define BINARY_LINKS(code, f) \
	LINK(am_##f) \
	{ \
		a0 = f(a0, FROM(0, 0)), a1 = f(a1, FROM(0, 1)); \
		a2 = f(a2, FROM(0, 2)), a3 = f(a3, FROM(0, 3)); \
		NEXT; \
	} \
	LINK(ma_##f) \
	{ \
		a0 = f(FROM(0, 0), a0), a1 = f(FROM(0, 1), a1); \
		a2 = f(FROM(0, 2), a2), a3 = f(FROM(0, 3), a3); \
		NEXT; \
	} \
	LINK(aa_##f) \
	{ \
		a0 = f(a0, a0), a1 = f(a1, a1), a2 = f(a2, a2), a3 = f(a3, a3); \
		NEXT; \
	} \
	LINK(mm_##f) \
	{ \
		a0 = f(FROM(0, 0), FROM(1, 0)), a1 = f(FROM(0, 1), FROM(1, 1)); \
		a2 = f(FROM(0, 2), FROM(1, 2)), a3 = f(FROM(0, 3), FROM(1, 3)); \
		NEXT; \
	}

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

// POW, LOG1P, SIN and COS go through f64, NORMAL too: strips do.
#define UNARY(X) \
	X(NEG, f_neg) X(ABS, f_abs) X(SIGN, f_sign) X(FLOOR, f_floor) X(ROUND, f_round) \
	X(CEIL, f_ceil) X(EXP, vf_exp_any) X(LOG, f_log) X(EXPM1, f_expm1) X(SQRT, vf_sqrt) \
	X(RSQRT, f_rsqrt) X(RECIP, f_recip) X(SQUARE, f_square) X(TANH, vf_tanh) \
	X(SIGMOID, vf_sigmoid) X(ERF, f_erf) X(UNIFORM, f_uniform)
#define BINARY(X) \
	X(ADD, f_add) X(SUB, f_sub) X(MUL, f_mul) X(DIV, f_div) X(MIN, f_min) X(MAX, f_max) \
	X(EQ, f_eq) X(NE, f_ne) X(LT, f_lt) X(LE, f_le) X(GT, f_gt) X(GE, f_ge)
UNARY(UNARY_LINKS)
BINARY(BINARY_LINKS)

yk_link_fn *ISA(yk_link_op)(int op, enum yk_link_way way)
{
#define UNARY_ROW(code, f) [YOKE_MAP_##code] = { [YK_LINK_A] = a_##f, [YK_LINK_M] = m_##f },
#define BINARY_ROW(code, f) \
	[YOKE_MAP_##code] = { [YK_LINK_AM] = am_##f, [YK_LINK_MA] = ma_##f, \
			      [YK_LINK_AA] = aa_##f, [YK_LINK_MM] = mm_##f },
	static yk_link_fn *const table[][6] = { UNARY(UNARY_ROW) BINARY(BINARY_ROW) };
#undef UNARY_ROW
#undef BINARY_ROW
	return op < (int)(sizeof table / sizeof *table) ? table[op][way] : NULL;
}

// ---- select ----

LINK(select_m)
{
	a0 = vf_select((vi)a0, FROM(1, 0), FROM(2, 0));
	a1 = vf_select((vi)a1, FROM(1, 1), FROM(2, 1));
	a2 = vf_select((vi)a2, FROM(1, 2), FROM(2, 2));
	a3 = vf_select((vi)a3, FROM(1, 3), FROM(2, 3));
	NEXT;
}

LINK(select_b)
{
	a0 = vf_select(bools(l, 0, at, 0), a0, FROM(2, 0));
	a1 = vf_select(bools(l, 0, at, 1), a1, FROM(2, 1));
	a2 = vf_select(bools(l, 0, at, 2), a2, FROM(2, 2));
	a3 = vf_select(bools(l, 0, at, 3), a3, FROM(2, 3));
	NEXT;
}

LINK(select_c)
{
	a0 = vf_select(bools(l, 0, at, 0), FROM(1, 0), a0);
	a1 = vf_select(bools(l, 0, at, 1), FROM(1, 1), a1);
	a2 = vf_select(bools(l, 0, at, 2), FROM(1, 2), a2);
	a3 = vf_select(bools(l, 0, at, 3), FROM(1, 3), a3);
	NEXT;
}

LINK(select_none)
{
	a0 = vf_select(bools(l, 0, at, 0), FROM(1, 0), FROM(2, 0));
	a1 = vf_select(bools(l, 0, at, 1), FROM(1, 1), FROM(2, 1));
	a2 = vf_select(bools(l, 0, at, 2), FROM(1, 2), FROM(2, 2));
	a3 = vf_select(bools(l, 0, at, 3), FROM(1, 3), FROM(2, 3));
	NEXT;
}

yk_link_fn *ISA(yk_link_select)(int in_registers)
{
	static yk_link_fn *const table[] = { select_none, select_m, select_b, select_c };
	return table[in_registers + 1];
}

// ---- rounding and stores ----

LINK(to_f16)
{
	EACH(vf_round_f16);
	NEXT;
}

LINK(to_bf16)
{
	EACH(vf_round_bf16);
	NEXT;
}

yk_link_fn *ISA(yk_link_round)(int dtype)
{
	return dtype == yoke_f16 ? to_f16 : to_bf16;
}

LINK(store_f32)
{
	float *y = (float *)(l->p[0] + at);
	vf_store(y, a0), vf_store(y + VF, a1);
	vf_store(y + 2 * VF, a2), vf_store(y + 3 * VF, a3);
	NEXT;
}

LINK(stream_f32)
{
	float *y = (float *)(l->p[0] + at);
	vf_stream(y, a0), vf_stream(y + VF, a1);
	vf_stream(y + 2 * VF, a2), vf_stream(y + 3 * VF, a3);
	NEXT;
}

LINK(store_mask)
{
	vf v[4] = { a0, a1, a2, a3 };
	int32_t m[4 * VF];
	uint8_t *y = (uint8_t *)(l->p[0] + (at >> 2));
	memcpy(m, v, sizeof m);
	YK_SIMD
	for (int i = 0; i < 4 * VF; i++)
		y[i] = m[i] & 1;
	NEXT;
}

#define HALF_STORE(name) \
	LINK(store_##name) \
	{ \
		uint16_t *y = (uint16_t *)(l->p[0] + (at >> 1)); \
		vh_store(y, vf_to_##name(a0)), vh_store(y + VF, vf_to_##name(a1)); \
		vh_store(y + 2 * VF, vf_to_##name(a2)); \
		vh_store(y + 3 * VF, vf_to_##name(a3)); \
		NEXT; \
	} \
	LINK(stream_##name) \
	{ \
		uint16_t *y = (uint16_t *)(l->p[0] + (at >> 1)); \
		vh_stream(y, vf_to_##name(a0)), vh_stream(y + VF, vf_to_##name(a1)); \
		vh_stream(y + 2 * VF, vf_to_##name(a2)); \
		vh_stream(y + 3 * VF, vf_to_##name(a3)); \
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

void ISA(yk_link_load)(const struct yk_link *l, int64_t at, vf a0, vf a1, vf a2, vf a3)
{
	a0 = FROM(0, 0), a1 = FROM(0, 1), a2 = FROM(0, 2), a3 = FROM(0, 3);
	NEXT;
}

void ISA(yk_link_end)(const struct yk_link *l, int64_t at, vf a0, vf a1, vf a2, vf a3)
{
	(void)l, (void)at, (void)a0, (void)a1, (void)a2, (void)a3;
}

void ISA(yk_chain_run)(const struct yk_link *l, int64_t n)
{
	const vf none = { 0 };
	for (int64_t at = 0; at < n * 4; at += YK_LINK_BLOCK * 4)
		l->fn(l, at, none, none, none, none);
}
