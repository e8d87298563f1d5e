// SPDX-License-Identifier: Apache-2.0
// The links of chains for blocks of one size. kern_map_chain.c includes it once per size, after the
// functions of vectors and the lists of operations that it uses, with COUNT, the number of vectors
// of a block (4 or 8), and NAME(x), a name that only this size has. It defines the links as
// NAME(link) and NAME(run), which runs a chain of them.

// A link receives its vectors as arguments, for the calling convention, and uses them as v[].
#define ARGUMENT(i) link_vector a##i
#if COUNT == 8
#define VECTORS \
	ARGUMENT(0), ARGUMENT(1), ARGUMENT(2), ARGUMENT(3), \
	ARGUMENT(4), ARGUMENT(5), ARGUMENT(6), ARGUMENT(7)
#define TAKE \
	vf v[] = { taken(a0), taken(a1), taken(a2), taken(a3), \
		   taken(a4), taken(a5), taken(a6), taken(a7) }
#define CALL(f, link) \
	((NAME(link_fn) *)(f))(link, at, passed(v[0]), passed(v[1]), passed(v[2]), passed(v[3]), \
			       passed(v[4]), passed(v[5]), passed(v[6]), passed(v[7]))
#else
#define VECTORS ARGUMENT(0), ARGUMENT(1), ARGUMENT(2), ARGUMENT(3)
#define TAKE vf v[] = { taken(a0), taken(a1), taken(a2), taken(a3) }
#define CALL(f, link) \
	((NAME(link_fn) *)(f))(link, at, passed(v[0]), passed(v[1]), passed(v[2]), passed(v[3]))
#endif
// `at` is the block's offset in an f32 operand, in bytes.
typedef void NAME(link_fn)(const struct yk_link *, int64_t at, VECTORS);
#define LINK(name) static void NAME(name)(const struct yk_link *l, int64_t at, VECTORS)
#define NEXT CALL(l[1].fn, l + 1)
#define BLOCK (COUNT * VF) // elements
#define EACH _Pragma("GCC unroll 8") for (int i = 0; i < COUNT; i++)
// Loops over the block's vectors in steps of four, or of two.
#define FOURS _Pragma("GCC unroll 2") for (int i = 0; i < COUNT; i += 4)
#define PAIRS _Pragma("GCC unroll 4") for (int i = 0; i < COUNT; i += 2)
#define FROM(k) from_f32(l, k, at, i)

// A link whose `expression` is the new value of vector i of the block.
#define VECTOR_LINK(name, expression) \
	LINK(name) \
	{ \
		TAKE; \
		EACH v[i] = expression; \
		NEXT; \
	}
// The same with u, the vector of memory operand k, which is the same for all elements.
#define UNIFORM_LINK(name, k, expression) \
	LINK(name) \
	{ \
		TAKE; \
		const vf u = vf_load((const float *)l->p[k]); \
		EACH v[i] = expression; \
		NEXT; \
	}
#define A_LINK(f) VECTOR_LINK(a_##f, f(v[i]))
#define UNARY_LINKS(code, f) \
	A_LINK(f) \
	VECTOR_LINK(m_##f, f(FROM(0)))
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
#define AM_LINK(f, dtype) VECTOR_LINK(am_##f##_##dtype, f(v[i], from_##dtype(l, 0, at, i)))
#define AA_LINK(f) VECTOR_LINK(aa_##f, f(v[i], v[i]))
#define MIXED_LINKS(f, dtype) \
	AM_LINK(f, dtype) \
	VECTOR_LINK(ma_##f##_##dtype, f(from_##dtype(l, 0, at, i), v[i]))
#define FLOAT_LINKS(code, f) \
	MIXED_LINKS(f, f16) \
	MIXED_LINKS(f, bf16) \
	BINARY_LINKS(code, f)
#define BINARY_LINKS(code, f) \
	MIXED_LINKS(f, f32) \
	AA_LINK(f) \
	VECTOR_LINK(mm_##f, f(FROM(0), FROM(1))) \
	UNIFORM_LINK(au_##f, 0, f(v[i], u)) \
	UNIFORM_LINK(ua_##f, 0, f(u, v[i])) \
	UNIFORM_LINK(mu_##f, 1, f(FROM(0), u)) \
	UNIFORM_LINK(um_##f, 0, f(u, FROM(1)))

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

UNARY_LINKS(CAST, f32_of_i32)
UNARY_LINKS(CAST, i32_of_f32)
A_LINK(f32_of_mask)
A_LINK(i32_of_mask)

UNIFORM_LINK(fold_add, 1, v[i] + FROM(0) * u)
UNIFORM_LINK(fold_sub, 1, v[i] - FROM(0) * u)
UNIFORM_LINK(fold_from, 1, FROM(0) * u - v[i])
UNIFORM_LINK(fold_div, 1, FROM(0) * u / v[i])

LINK(blend)
{
	TAKE;
	const vf u = vf_load((const float *)l->p[1]), w = vf_load((const float *)l->p[2]);
	EACH v[i] = v[i] * w + FROM(0) * u;
	NEXT;
}

LINK(scale_add)
{
	TAKE;
	const vf u = vf_load((const float *)l->p[0]), w = vf_load((const float *)l->p[1]);
	EACH v[i] = v[i] * w + u;
	NEXT;
}

// ---- select ----

VECTOR_LINK(select_m, vf_select((vi)v[i], FROM(1), FROM(2)))

// `mask` loads the mask, operand 0.
#define SELECT_LINKS(name, mask) \
	VECTOR_LINK(select_b_##name, vf_select(mask, v[i], FROM(2))) \
	VECTOR_LINK(select_c_##name, vf_select(mask, FROM(1), v[i])) \
	VECTOR_LINK(select_none_##name, vf_select(mask, FROM(1), FROM(2)))
SELECT_LINKS(bool, bools(l, 0, at, i))
SELECT_LINKS(mask, (vi)FROM(0))

// ---- rounding, loads and stores ----

VECTOR_LINK(to_f16, vf_round_f16(v[i]))
VECTOR_LINK(to_bf16, vf_round_bf16(v[i]))
VECTOR_LINK(load_f32, from_f32(l, 0, at, i))
VECTOR_LINK(load_f16, from_f16(l, 0, at, i))
VECTOR_LINK(load_bf16, from_bf16(l, 0, at, i))
VECTOR_LINK(load_bool, from_bool(l, 0, at, i))

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
	int32_t m[BLOCK];
	uint8_t *y = (uint8_t *)(l->p[0] + ((at & l->mask[0]) >> 2));
	memcpy(m, v, sizeof m);
	YK_SIMD
	for (int i = 0; i < BLOCK; i++)
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

// ---- running ----

LINK(end)
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
		const int64_t last = at, step = BLOCK * 4; \
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
CHEAP(LOOPS)

static void NAME(run)(const struct yk_link *first, int64_t n)
{
	const vf v[COUNT] = { { 0 } };
	const struct yk_link *l = first - 1;
	const int64_t last = (n - BLOCK) * 4;
	int64_t at = last;

	if (first->loop) {
		CALL(first->loop, first);
		return;
	}
	for (at = 0; at <= last; at += BLOCK * 4)
		NEXT;
	if (n % BLOCK) {
		at = last;
		NEXT;
	}
}

#undef ARGUMENT
#undef VECTORS
#undef TAKE
#undef CALL
#undef LINK
#undef NEXT
#undef BLOCK
#undef EACH
#undef FOURS
#undef PAIRS
#undef FROM
#undef VECTOR_LINK
#undef UNIFORM_LINK
#undef A_LINK
#undef UNARY_LINKS
#undef TOGETHER_LINKS
#undef AM_LINK
#undef AA_LINK
#undef MIXED_LINKS
#undef FLOAT_LINKS
#undef BINARY_LINKS
#undef SELECT_LINKS
#undef HALF_STORE
#undef LOOP
#undef LOOPS
#undef COUNT
#undef NAME
