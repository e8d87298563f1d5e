// SPDX-License-Identifier: Apache-2.0
// Element-wise reduction of several arrays, one block at a time. A stack of partial sums that grows
// like a binary counter gives order T with all partial sums in the L1 cache, so that each term and
// result crosses memory once.
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "base/half.h"
#include "comm/sums.h"
#include "yoke.h"

enum { BLOCK = 512, DEPTH = 34 };

// A block of any accumulator type, at most 8 bytes per element.
union block {
	float f[BLOCK];
	double d[BLOCK];
	int64_t q[BLOCK];
	uint32_t w[BLOCK];
	int32_t i[BLOCK];
	int8_t c[BLOCK];
	uint8_t u[BLOCK];
};

// GCC's -O2 does not vectorize loops of unknown length.
#if defined __GNUC__ && !defined __clang__
#define VECTORS __attribute__((optimize("O3")))
#else
#define VECTORS
#endif

// ---- two operands ----

#define ADD(a, b) ((a) + (b))
#define MAXIMUM(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MINIMUM(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define TWO(NAME, T, OP) \
	VECTORS static void NAME(T *to, const T *a, const T *b, size_t n) \
	{ \
		for (size_t i = 0; i < n; i++) \
			to[i] = (T)OP(a[i], b[i]); \
	}
#define THREE(N, T, SUM) TWO(add_##N, SUM, ADD) TWO(max_##N, T, MAXIMUM) TWO(min_##N, T, MINIMUM)

THREE(f, float, float)
THREE(d, double, double)
THREE(c, int8_t, uint8_t) // sums wrap
THREE(u, uint8_t, uint8_t)
THREE(i, int32_t, uint32_t)
THREE(q, int64_t, uint64_t)

// Combines two blocks in the accumulator's dtype; `to` may be a or b.
static void two(int dtype, int kind, void *to, const void *a, const void *b, size_t n)
{
#define CASE(N) \
	if (kind == YOKE_REDUCE_SUM) \
		add_##N(to, a, b, n); \
	else if (kind == YOKE_REDUCE_MAX) \
		max_##N(to, a, b, n); \
	else \
		min_##N(to, a, b, n); \
	return
	switch (dtype) {
	case yoke_f64: CASE(d);
	case yoke_i8: CASE(c);
	case yoke_u8: CASE(u);
	case yoke_i32: CASE(i);
	case yoke_i64: CASE(q);
	default: CASE(f);
	}
#undef CASE
}

// ---- blocks ----

static bool is_half(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16;
}

// A term's n elements in the accumulator's dtype: in place, or converted into `room`.
static const void *load(int dtype, const void *from, union block *room, size_t n)
{
	const uint16_t *h = from;
	if (!is_half(dtype))
		return from;
	for (size_t i = 0; i < n; i++)
		room->f[i] = dtype == yoke_f16 ? yk_float_of_f16(h[i]) : yk_float_of_bf16(h[i]);
	return room;
}

static void store(int dtype, void *to, const void *x, size_t n)
{
	const float *f = x;
	uint16_t *h = to;
	if (!is_half(dtype) && to != x)
		memcpy(to, x, n * yoke_dtype_size(dtype));
	for (size_t i = 0; i < n && is_half(dtype); i++)
		h[i] = dtype == yoke_f16 ? yk_f16_of_float(f[i]) : yk_bf16_of_float(f[i]);
}

static void block(int dtype, int kind, uint32_t terms, const void *const *in, uint32_t results,
		  void *const *out, size_t at, size_t n)
{
	union block part[DEPTH], other;
	const void *top[DEPTH]; // partial sums of decreasing numbers of terms
	int depth = 0;
	for (uint32_t i = 0; i < terms; i++) {
		top[depth] = load(dtype, (const char *)in[i] + at, &part[depth], n);
		// merges the sums that end with this term
		for (uint32_t k = i; k & 1; k >>= 1, depth--) {
			two(dtype, kind, &part[depth - 1], top[depth - 1], top[depth], n);
			top[depth - 1] = &part[depth - 1];
		}
		depth++;
	}
	while (depth-- > 1) {
		two(dtype, kind, &part[depth - 1], top[depth - 1], top[depth], n);
		top[depth - 1] = &part[depth - 1];
	}
	if (!is_half(dtype) && top[0] != &part[0]) // single term: a result may overlap it
		top[0] = memcpy(&other, top[0], n * yoke_dtype_size(dtype));
	for (uint32_t i = 0; i < results; i++)
		store(dtype, (char *)out[i] + at, top[0], n);
}

// Two terms that need no conversion: writes the first result directly, and copies the others from
// it while it is in cache.
static void pair(int dtype, int kind, const void *const *in, uint32_t results, void *const *out,
		 size_t at, size_t n)
{
	char *first = (char *)out[0] + at;
	two(dtype, kind, first, (const char *)in[0] + at, (const char *)in[1] + at, n);
	for (uint32_t i = 1; i < results; i++)
		memcpy((char *)out[i] + at, first, n * yoke_dtype_size(dtype));
}

void yk_sums(int dtype, int kind, uint32_t terms, const void *const *in, uint32_t results,
	     void *const *out, size_t count)
{
	const size_t size = yoke_dtype_size(dtype);
	const bool paired = terms == 2 && !is_half(dtype);
	for (size_t at = 0; at < count; at += BLOCK) {
		const size_t n = count - at < BLOCK ? count - at : BLOCK;
		if (paired)
			pair(dtype, kind, in, results, out, at * size, n);
		else
			block(dtype, kind, terms, in, results, out, at * size, n);
	}
}
