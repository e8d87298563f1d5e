// SPDX-License-Identifier: Apache-2.0
// The links of chains: instructions on blocks of vectors that stay in registers between links, for
// each size of block (kern_map_links.h), and the tables that find them.
#include "config.h"

#include "kern_map_chain.h"
#include "../vector/philox.h"
#include "../vector/vhalf.h"

typedef uint32_t vu __attribute__((vector_size(VF * 4)));

#ifdef YK_SVE
typedef yk_sv link_vector; // others of its length are passed in memory
#else
typedef vf link_vector;
#endif
YK_INLINE vf taken(link_vector a)
{
	vf v;
	memcpy(&v, &a, sizeof v);
	return v;
}
YK_INLINE link_vector passed(vf v)
{
	link_vector a;
	memcpy(&a, &v, sizeof a);
	return a;
}

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
// Operations that take less time than the calls of a chain.
#define CHEAP(X) \
	X(ADD, f_add) X(SUB, f_sub) X(MUL, f_mul) X(MIN, vf_min_nan) X(MAX, vf_max_nan) \
		X(ADD, i_add) X(SUB, i_sub) X(MUL, i_mul) X(AND, i_and) X(OR, i_or) X(XOR, i_xor)

#define COUNT YK_SMALL_COUNT
#define NAME(x) x##_small
#include "kern_map_links.h"
#if YK_LARGE_COUNT > YK_SMALL_COUNT
#define COUNT YK_LARGE_COUNT
#define NAME(x) x##_large
#include "kern_map_links.h"
#define FNS(name) { { (yk_link_fn *)name##_small, (yk_link_fn *)name##_large } }
#else
#define FNS(name) { { (yk_link_fn *)name##_small } }
#endif
#define LINKS(name) ((struct yk_links)FNS(name))

// ---- which link ----

static const struct yk_links none;

struct yk_links ISA(yk_link_op)(int op, int dtype, enum yk_link_way way)
{
#define UNARY_ROW(code, f) \
	[YOKE_MAP_##code] = { [YK_LINK_A] = FNS(a_##f), [YK_LINK_M] = FNS(m_##f) },
#define BINARY_ROW(code, f) \
	[YOKE_MAP_##code] = { \
		[YK_LINK_AM] = FNS(am_##f##_f32), [YK_LINK_MA] = FNS(ma_##f##_f32), \
		[YK_LINK_AA] = FNS(aa_##f),       [YK_LINK_MM] = FNS(mm_##f), \
		[YK_LINK_AU] = FNS(au_##f),       [YK_LINK_UA] = FNS(ua_##f), \
		[YK_LINK_MU] = FNS(mu_##f),       [YK_LINK_UM] = FNS(um_##f) \
	},
#define BOOL_ROW(code, f) \
	[YOKE_MAP_##code] = { [YK_LINK_AM] = FNS(am_##f##_f32), [YK_LINK_AA] = FNS(aa_##f) },
	static const struct yk_links table[][YOKE_MAP_SELECT][YK_LINK_WAYS] = {
		{ UNARY(UNARY_ROW) TOGETHER(UNARY_ROW) BINARY(BINARY_ROW) },
		{ INT_UNARY(UNARY_ROW) INT_BINARY(BINARY_ROW) },
		{ BOOL_BINARY(BOOL_ROW)[YOKE_MAP_NOT] = { [YK_LINK_A] = FNS(a_i_not) } },
	};
#undef UNARY_ROW
#undef BINARY_ROW
#undef BOOL_ROW
	const int kind = dtype == yoke_f32  ? 0 :
			 dtype == yoke_i32  ? 1 :
			 dtype == yoke_bool ? 2 :
					      -1;
	return kind >= 0 && op < YOKE_MAP_SELECT ? table[kind][op][way] : none;
}

struct yk_links ISA(yk_link_op_narrow)(int op, enum yk_link_way way, int dtype)
{
#define ROW(code, f) \
	[YOKE_MAP_##code] = { { FNS(am_##f##_f16), FNS(ma_##f##_f16) }, \
			      { FNS(am_##f##_bf16), FNS(ma_##f##_bf16) } },
#define BOOL_ROW(code, f) [YOKE_MAP_##code] = FNS(am_##f##_bool),
	static const struct yk_links table[][2][2] = { BINARY(ROW) };
	static const struct yk_links bools[] = { BOOL_BINARY(BOOL_ROW) };
#undef ROW
#undef BOOL_ROW
	return dtype == yoke_bool ? bools[op] : table[op][dtype == yoke_bf16][way == YK_LINK_MA];
}

struct yk_links ISA(yk_link_cast)(int to, int from, bool in_registers)
{
	if (to == yoke_f32 && from == yoke_i32)
		return in_registers ? LINKS(a_f32_of_i32) : LINKS(m_f32_of_i32);
	if (to == yoke_i32 && from == yoke_f32)
		return in_registers ? LINKS(a_i32_of_f32) : LINKS(m_i32_of_f32);
	if (from == yoke_bool && in_registers)
		return to == yoke_f32 ? LINKS(a_f32_of_mask) :
		       to == yoke_i32 ? LINKS(a_i32_of_mask) :
					none;
	return none;
}

struct yk_links ISA(yk_link_fold)(int op, bool left)
{
	if (op == YOKE_MAP_SUB)
		return left ? LINKS(fold_from) : LINKS(fold_sub);
	return op == YOKE_MAP_ADD         ? LINKS(fold_add) :
	       op == YOKE_MAP_DIV && left ? LINKS(fold_div) :
					    none;
}

struct yk_links ISA(yk_link_select)(int in_registers, bool mask)
{
	static const struct yk_links table[][2] = {
		{ FNS(select_none_bool), FNS(select_none_mask) },
		{ FNS(select_m), FNS(select_m) },
		{ FNS(select_b_bool), FNS(select_b_mask) },
		{ FNS(select_c_bool), FNS(select_c_mask) },
	};
	return table[in_registers + 1][mask];
}

struct yk_links ISA(yk_link_round)(int dtype)
{
	return dtype == yoke_f16 ? LINKS(to_f16) : LINKS(to_bf16);
}

struct yk_links ISA(yk_link_load)(int dtype)
{
	switch (dtype) {
	case yoke_f16: return LINKS(load_f16);
	case yoke_bf16: return LINKS(load_bf16);
	case yoke_bool: return LINKS(load_bool);
	default: return LINKS(load_f32);
	}
}

struct yk_links ISA(yk_link_store)(int dtype, bool stream)
{
	switch (dtype) {
	case yoke_f16: return stream ? LINKS(stream_f16) : LINKS(store_f16);
	case yoke_bf16: return stream ? LINKS(stream_bf16) : LINKS(store_bf16);
	case YK_LINK_MASK: return LINKS(store_mask);
	default: return stream ? LINKS(stream_f32) : LINKS(store_f32);
	}
}

const struct yk_links ISA(yk_link_blend) = FNS(blend), ISA(yk_link_scale_add) = FNS(scale_add),
		      ISA(yk_link_end) = FNS(end);

yk_link_fn *ISA(yk_link_loop)(const struct yk_link *l, enum yk_link_size size)
{
#define ROW(code, f) \
	{ FNS(mm_##f), FNS(loop_mm_##f) }, { FNS(mu_##f), FNS(loop_mu_##f) }, \
		{ FNS(um_##f), FNS(loop_um_##f) },
	static const struct yk_links table[][2] = { CHEAP(ROW) };
#undef ROW
	if (l[1].fn != ISA(yk_link_store)(yoke_f32, false).fn[size] || l[1].mask[0] == 0 ||
	    l[2].fn != ISA(yk_link_end).fn[size])
		return NULL;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i][0].fn[size] == l->fn)
			return table[i][1].fn[size];
	return NULL;
}

void ISA(yk_chain_run)(const struct yk_link *first, enum yk_link_size size, int64_t n)
{
#if YK_LARGE_COUNT > YK_SMALL_COUNT
	if (size == YK_LINK_LARGE) {
		run_large(first, n);
		return;
	}
#endif
	(void)size;
	run_small(first, n);
}
