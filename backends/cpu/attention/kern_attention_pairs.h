// SPDX-License-Identifier: Apache-2.0
// Attention of bf16 with instructions that multiply pairs: vdpbf16ps, AArch64's bfdot, or AMX tiles
// if YK_AMX is defined. Operands are copied into scratch, padded with zeros to whole UNITs. Sums
// are f32; probabilities and their gradients are rounded to bf16 before they are multiplied. An
// operand with an infinity or a NaN is left to the kernels in f32, where 0 times it can be skipped.
// Included by kern_attention_bf16*.c only.
#ifndef YK_ATTENTION_PAIRS_H
#define YK_ATTENTION_PAIRS_H

#ifdef YK_AMX
#include "../vector/amx.h"
#endif
#include "../vector/pairs.h"
#include "kern_attention_tile.h"

// Two bf16 along the axis that is summed over; the element of the smaller index in the lower half.
typedef uint32_t P;

enum {
	UNIT = 32,  // head elements and keys are padded to multiples of it
	AHEAD = 16, // rows to prefetch, because they are far apart in memory
	MANY = 32   // work items that suffice for load balance
};

static inline int64_t padded(int64_t n)
{
	return (n + UNIT - 1) / UNIT * UNIT;
}

// A negative scale would turn -inf, the score of hidden keys, into inf.
static inline bool takes(const struct attention *a)
{
	return a->scale > 0 && a->q.dtype == yoke_bf16 && a->k.dtype == yoke_bf16 &&
	       a->v.dtype == yoke_bf16 && a->o.dtype == yoke_bf16;
}

// ---- products ----

#ifdef YK_AMX

YK_INLINE void four_tiles(int64_t depth, const P *a, int64_t lda, const P *b, int64_t ldb, float *c,
			  int64_t ldc, const bool add)
{
	enum { SIDE = 16, WORD = 4 };
	yk_tile_zero(0);
	yk_tile_zero(1);
	yk_tile_zero(2);
	yk_tile_zero(3);
	if (add) {
		yk_tile_load(0, c, ldc * WORD);
		yk_tile_load(1, c + SIDE, ldc * WORD);
		yk_tile_load(2, c + SIDE * ldc, ldc * WORD);
		yk_tile_load(3, c + SIDE * ldc + SIDE, ldc * WORD);
	}
	for (int64_t p = 0; p < depth; p += SIDE, a += SIDE, b += SIDE * ldb) {
		yk_tile_load(4, a, lda * WORD);
		yk_tile_load(6, b, ldb * WORD);
		yk_tile_multiply(0, 4, 6);
		yk_tile_load(7, b + SIDE, ldb * WORD);
		yk_tile_multiply(1, 4, 7);
		yk_tile_load(5, a + SIDE * lda, lda * WORD);
		yk_tile_multiply(2, 5, 6);
		yk_tile_multiply(3, 5, 7);
	}
	yk_tile_store(0, c, ldc * WORD);
	yk_tile_store(1, c + SIDE, ldc * WORD);
	yk_tile_store(2, c + SIDE * ldc, ldc * WORD);
	yk_tile_store(3, c + SIDE * ldc + SIDE, ldc * WORD);
}

// c (m, n) = or += a (m, depth) b (depth, n); m and n are multiples of UNIT, depth of UNIT / 2
static void multiply(int64_t m, int64_t n, int64_t depth, const P *a, int64_t lda, const P *b,
		     int64_t ldb, float *c, int64_t ldc, bool add)
{
	for (int64_t i = 0; i < m; i += UNIT)
		for (int64_t j = 0; j < n; j += UNIT) {
			float *to = c + i * ldc + j;
			if (add)
				four_tiles(depth, a + i * lda, lda, b + j, ldb, to, ldc, true);
			else
				four_tiles(depth, a + i * lda, lda, b + j, ldb, to, ldc, false);
		}
}

static inline void begin_products(void)
{
	yk_tiles_begin(UNIT / 2, UNIT * 2);
}

static inline void end_products(void)
{
	yk_tiles_end();
}

#else

enum { PAIR_ROWS = 8 }; // divides UNIT

// sum + the products of the pairs of y and x
YK_INLINE vf vf_dot(vf sum, P y, vf x)
{
#if defined __AVX512F__
	return (vf)_mm512_dpbf16_ps((__m512)sum, yk_pair_in_all(y), (__m512bh)x);
#elif defined YK_SVE
	__asm__("bfdot %0.s, %1.h, %2.h" : "+w"(sum) : "w"(vi_splat((int32_t)y)), "w"(x));
	return sum;
#else
	__asm__("bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(vi_splat((int32_t)y)), "w"(x));
	return sum;
#endif
}

YK_INLINE void pairs_block(const int mr, const int nv, int64_t depth, const P *a, int64_t lda,
			   const P *b, int64_t ldb, float *c, int64_t ldc, const bool add)
{
	vf sum[PAIR_ROWS][BV];
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			sum[i][v] = add ? vf_load(c + i * ldc + v * VF) : (vf){ 0 };
	for (int64_t p = 0; p < depth; p++, b += ldb) {
		vf x[BV];
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			memcpy(&x[v], b + v * VF, sizeof x[v]);
#pragma GCC unroll 16
		for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
			for (int v = 0; v < nv; v++)
				sum[i][v] = vf_dot(sum[i][v], a[i * lda + p], x[v]);
	}
#pragma GCC unroll 16
	for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			vf_store(c + i * ldc + v * VF, sum[i][v]);
}

// c (m, n) = or += a (m, depth) b (depth, n); m and n are multiples of UNIT
static void multiply(int64_t m, int64_t n, int64_t depth, const P *a, int64_t lda, const P *b,
		     int64_t ldb, float *c, int64_t ldc, bool add)
{
	for (int64_t j = 0; j < n; j += BV * VF)
		for (int64_t i = 0; i < m; i += PAIR_ROWS) {
			const P *from = a + i * lda;
			float *to = c + i * ldc + j;
			if (add)
				pairs_block(PAIR_ROWS, BV, depth, from, lda, b + j, ldb, to, ldc,
					    true);
			else
				pairs_block(PAIR_ROWS, BV, depth, from, lda, b + j, ldb, to, ldc,
					    false);
		}
}

static inline void begin_products(void)
{
}

static inline void end_products(void)
{
}

#endif

// ---- operands in scratch ----

// Copies n elements, a multiple of a vector's; returns which of them are not finite.
static inline vh2 copy_halves(uint16_t *to, const void *from, int64_t n)
{
	vh2 infinite = { 0 };
	for (int64_t d = 0; d < n; d += 2 * VF) {
		vh2 x;
		memcpy(&x, (const char *)from + 2 * d, sizeof x);
		vh2_store(to + d, x);
		infinite |= (vh2)((x & 0x7f80) == 0x7f80);
	}
	return infinite;
}

// Copies n rows from t on to `to` (padded(n), ld), zero-padded. False if some are not finite.
static bool copy_rows(const struct attention *a, const struct heads *from, int64_t b, int64_t t,
		      int64_t h, int64_t n, uint16_t *to, int64_t ld)
{
	const int64_t step = from->t * 2, whole = a->D / UNIT * UNIT, rest = a->D - whole;
	const char *row = head_at(from, b, t, h);
	vh2 infinite = { 0 };
	for (int64_t i = 0; i < n; i++, row += step, to += ld) {
		for (int64_t d = 0; d < a->D; d += UNIT)
			__builtin_prefetch(row + AHEAD * step + 2 * d);
		infinite |= copy_halves(to, row, whole);
		if (rest) {
			uint16_t some[UNIT] = { 0 };
			memcpy(some, row + 2 * whole, (size_t)rest * sizeof *some);
			infinite |= copy_halves(to + whole, some, UNIT);
		}
	}
	memset(to, 0, (size_t)((padded(n) - n) * ld) * sizeof *to);
	return !memcmp(&infinite, &(vh2){ 0 }, sizeof infinite);
}

// to[p][i] = the pair of elements i of rows 2 p and 2 p + 1, i < ld; n rows
static void pair_rows(P *to, const uint16_t *rows, int64_t n, int64_t ld)
{
	for (int64_t p = 0; p < n / 2; p++, to += ld, rows += 2 * ld)
		for (int64_t i = 0; i < ld; i += UNIT)
			yk_join32(to + i, to + i + 16, rows + i, rows + ld + i);
}

// to[p][i] = from[i][p], n rows of `depth`; both are multiples of 16
static void transpose_pairs(P *to, int64_t ldt, const P *from, int64_t ldf, int64_t n,
			    int64_t depth)
{
	for (int64_t i = 0; i < n; i += 16)
		for (int64_t p = 0; p < depth; p += 16)
			yk_transpose16(to + p * ldt + i, ldt * (int64_t)sizeof *to,
				       from + i * ldf + p, ldf * (int64_t)sizeof *from);
}

// Rows of a block of KEYS keys as the left operand of a product that sums over keys:
// to[d][p] = elements d of rows 2 p and 2 p + 1, d < ld; n rows, a multiple of UNIT. KEYS / 2 pairs
// per row of `to`; `pairs` (KEYS / 2, ld) is scratch.
static void pair_block(P *to, const uint16_t *rows, int64_t n, int64_t ld, P *pairs)
{
	pair_rows(pairs, rows, n, ld);
	transpose_pairs(to, KEYS / 2, pairs, ld, n / 2, ld);
}

// UNIT floats as bf16.
static inline void put_lanes(uint16_t *to, const vf *x)
{
#if defined __AVX512BF16__
	for (int v = 0; v < NV; v += 2) {
		const __m512bh h = _mm512_cvtne2ps_pbh((__m512)x[v + 1], (__m512)x[v]);
		memcpy(to + v * VF, &h, sizeof h);
	}
#else
	for (int v = 0; v < NV; v++)
		vh_store(to + v * VF, vf_to_bf16(x[v]));
#endif
}

// Stores the tile's rows: `factors` (one per lane) * from (ld, TILE), transposed. Two buffers of
// (ld, TILE).
static void store_queries(const struct attention *a, const struct heads *x, const struct tile *i,
			  const vf *factors, const float *from, int64_t ld, uint16_t *lanes,
			  P *rows)
{
	for (int64_t d = 0; d < ld; d++) {
		vf y[NV];
		for (int v = 0; v < NV; v++)
			y[v] = vf_load(from + d * TILE + v * VF) * factors[v];
		put_lanes(lanes + d * TILE, y);
	}
	pair_rows(rows, lanes, ld, TILE);
	transpose_pairs((P *)(void *)lanes, ld / 2, rows, TILE, ld / 2, TILE);
	for (int r = 0; r < i->rows; r++)
		memcpy(head_at(x, i->b, i->t + r, i->h), lanes + r * ld,
		       (size_t)a->D * sizeof *lanes);
}

// ---- scores ----

// Scores are multiplied by the scale when they are used, or before the mask is added.
static inline float late_scale(const struct attention *a)
{
	return a->mask ? 1 : a->scale;
}

// Adds the mask to scores (n, TILE) of keys j ..; hidden ones and those of keys from `keys` on
// become -inf.
static void finish_scores(const struct attention *a, const struct tile *x, int64_t j, int64_t keys,
			  int64_t n, float *to)
{
	const struct strip all = { 0, keys, 0 };
	for (int64_t i = 0; a->mask && i < n * NV; i++)
		vf_store(to + i * VF, vf_load(to + i * VF) * vf_splat(a->scale));
	if (a->mask && a->mask_dtype == yoke_f32)
		add_mask(yoke_f32, a, x, j, &all, 1, to);
	else if (a->mask && a->mask_dtype == yoke_bf16)
		add_mask(yoke_bf16, a, x, j, &all, 1, to);
	else if (a->mask)
		add_mask(yoke_f16, a, x, j, &all, 1, to);
	for (int v = 0; v < NV; v++) {
		// the last key that lane 0 of the vector sees
		const int64_t last = a->causal ? x->t + v * VF + x->seen - a->T : j + keys - 1;
		for (int64_t i = last + 1 - j < 0 ? 0 : last + 1 - j; i < n; i++) {
			float *at = to + i * TILE + v * VF;
			const vi hidden = a->causal && i < keys ?
						  vi_iota() < vi_splat((int32_t)(j + i - last)) :
						  vi_splat(-1);
			vf_store(at, vf_select(hidden, vf_splat(-__builtin_inff()), vf_load(at)));
		}
	}
}

// Dropout factors of a block of `keys` keys; 0 for keys up to n and for lanes without a query.
static inline void keep_factors(const struct attention *a, const struct tile *x, int64_t j,
				int64_t keys, int64_t n, float *to)
{
	const struct strip all = { 0, keys, 0 };
	memset(to, 0, (size_t)(n * TILE) * sizeof *to);
	ISA(yk_attention_keep)(a, x, j, &all, 1, to);
	memset(to + keys * TILE, 0, (size_t)((n - keys) * TILE) * sizeof *to);
}

// Tiles of a head that a work item processes, which share its copies of k and v.
static inline int64_t tiles_per_item(const struct attention *a)
{
	const int64_t tiles = items_of(a->T, TILE), heads = a->B * a->H,
		      parts = items_of(MANY, heads);
	return items_of(tiles, parts < tiles ? parts : tiles);
}

// The queries of a work item: first .. end - 1 of head h in batch b, which see `keys` keys at most.
struct stretch {
	int64_t b, h, first, end, keys;
};

// run: tiles per work item; runs: work items per head.  The last tiles of a causal head see most
// keys, so they start first.
static inline struct stretch stretch_of(const struct attention *a, int64_t run, int64_t runs,
					int64_t item)
{
	const int64_t first = (runs - 1 - item % runs) * run * TILE, bh = item / runs,
		      end = first + run * TILE < a->T ? first + run * TILE : a->T;
	const struct tile last = tile_of(a, bh / a->H, bh % a->H, end - 1);
	return (struct stretch){ bh / a->H, bh % a->H, first, end, last.sees[last.nv - 1] };
}

// Scratch is a sequence of arrays, each aligned to 64 bytes: returns the next one's address.
static inline void *next_array(uintptr_t *at, int64_t bytes)
{
	const uintptr_t p = *at;
	*at += (uintptr_t)(bytes + 63) / 64 * 64;
	return (void *)p;
}

#endif
