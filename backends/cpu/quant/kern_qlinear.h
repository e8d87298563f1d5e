// SPDX-License-Identifier: Apache-2.0
// Products with quantized weights: the operands of the inner loops.
// Activations become integers of 16 or 8 bits with one scale per group of 32; a group's product is
// an exact integer, and the groups are added in f32 in order. All loops follow this order, so a row
// of the result has the same bits in any batch and on any instruction set with FMA.
#ifndef YK_KERN_QLINEAR_H
#define YK_KERN_QLINEAR_H

#include "activations.h"
#include "blocks.h"

// Rows of activations in integers.
struct activations {
	const int16_t *q;     // [rows,K]; in the loop for few rows in the order of group_of_x
	const int8_t *q8;     // the same memory, with 8-bit integers in order
	const float *scale;   // [rows,groups]
	const float *sum;     // scale times the sum of a group
	const int32_t *isum;  // the sum of a group
	const int32_t *first; // the sum of its first half
	int64_t k, groups;
};

// How loops multiply: 16-bit activations, the same with VNNI's sums of two products, 8-bit ones
// with AVX2's, AVX-512's or AArch64's products of bytes, or with VNNI's.  SPLIT: 16-bit ones as
// their upper, signed and lower, unsigned bytes, with AArch64's products of bytes.  The loop for
// many rows has 16 bits.
enum way { WORDS, PAIRS, BYTES, VNNI, SPLIT, WAYS };
// compilers whose assemblers know VNNI's instructions in both encodings
#if VF > 4 && (__GNUC__ >= 11 || (defined __clang__ && __clang_major__ >= 12))
#define HAVE_VNNI 1
#endif

// y [count,STRIP]: for rows m .. m + count - 1 of x at once
typedef void qlinear_rows_fn(const uint8_t *const *row, const uint8_t *next,
			     const struct activations *x, int64_t m, int64_t count, float *y);
// next: the memory to prefetch meanwhile, as long as the strip
typedef void qlinear_strip_fn(const uint8_t *const *row, const uint8_t *next,
			      const struct activations *x, int64_t m, float *y);
typedef void qlinear_pack_fn(const uint8_t *const *row, int64_t from, int groups, int16_t *panel,
			     float *scale, float *min, int64_t step);

// ---- integers ----

// Sums of products of pairs.
YK_INLINE vi pairs(vs a, vs b)
{
#if VF == 16
	return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VF == 8
	return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined __SSE2__
	return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined __aarch64__
	return (vi)vpaddq_s32(vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b)),
			      vmull_high_s16((int16x8_t)a, (int16x8_t)b));
#else
	vi sum;
	for (int i = 0; i < VF; i++)
		sum[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
	return sum;
#endif
}

// Does a way have 16-bit activations?
YK_INLINE bool is_words(const enum way way)
{
	return way == WORDS || way == PAIRS;
}

// to + pairs(a, b), which is one instruction of VNNI.  In assembler, because the build is for
// processors without it too.
YK_INLINE vi add_pairs(const enum way way, vi to, vs a, vs b)
{
#ifdef HAVE_VNNI
	if (way == PAIRS) {
#ifdef YK_VNNI_EMULATED // tests/vnni_emulated.h
		yk_vnni_add_pairs(&to, &a, &b, sizeof to);
#elif VF == 16
		__asm__("vpdpwssd %2, %1, %0" : "+v"(to) : "v"(a), "v"(b));
#else
		__asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(to) : "x"(a), "x"(b));
#endif
		return to;
	}
#endif
	(void)way;
	return to + pairs(a, b);
}

// Sums of neighbours: of a, then of b, in each 16 bytes.
YK_INLINE vi neighbours(vi a, vi b)
{
#if VF == 16
	return (vi)_mm512_shuffle_ps((__m512)a, (__m512)b, 0x88) +
	       (vi)_mm512_shuffle_ps((__m512)a, (__m512)b, 0xdd);
#elif VF == 8
	return (vi)_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88) +
	       (vi)_mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd);
#elif defined __SSE2__
	return (vi)_mm_shuffle_ps((__m128)a, (__m128)b, 0x88) +
	       (vi)_mm_shuffle_ps((__m128)a, (__m128)b, 0xdd);
#elif defined __aarch64__
	return (vi)vpaddq_s32((int32x4_t)a, (int32x4_t)b);
#else
	return (vi){ a[0] + a[1], a[2] + a[3], b[0] + b[1], b[2] + b[3] };
#endif
}

// acc + scale * sum + min * the sum of x.
YK_INLINE vf add_scaled(const int f, vi sum, vf scale, const float *min, float xscale, float xsum,
			vf acc)
{
	acc = vf_fma(__builtin_convertvector(sum, vf), scale * vf_splat(xscale), acc);
	return has_min(f) ? vf_fma(vf_load(min), vf_splat(xsum), acc) : acc;
}

// ---- few rows of x: a row times STRIP rows of w ----
// A vector has 16 bytes of each of VF / 4 rows: vector r has rows r, r + 4, .. The sums over the
// lanes of four vectors are then a vector in the order of the rows.

enum { STRIP = VF, FOUR = 4, LONG_ROW = 3072 }; // bytes

typedef uint8_t vub __attribute__((vector_size(VF * 4)));

// Sums of products of four bytes of a, signed or (in lower_products) unsigned, with four signed
// ones of q.
#ifdef YK_DOT
YK_INLINE vi upper_products(vi to, vub a, vub q)
{
	return (vi)vdotq_s32((int32x4_t)to, (int8x16_t)a, (int8x16_t)q);
}

// In assembler, because not all processors that run this build have it.
YK_INLINE vi lower_products(vi to, vub a, vub q)
{
	__asm__(".arch_extension i8mm\n\tusdot %0.4s, %1.16b, %2.16b" : "+w"(to) : "w"(a), "w"(q));
	return to;
}
#endif

// Elements 0 .. 15 and 16 .. 31 of a group, of the rows of a vector.
struct bytes {
	vub low, high;
};

YK_INLINE vub load_16(const uint8_t *const *row, const int r, int64_t at)
{
#if VF == 16
	__m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(row[r] + at)));
	v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(row[r + 4] + at)), 1);
	v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(row[r + 8] + at)), 2);
	return (vub)_mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(row[r + 12] + at)), 3);
#elif VF == 8
	const __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(row[r] + at)));
	return (vub)_mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)(row[r + 4] + at)),
					    1);
#else
	vub v;
	memcpy(&v, row[r] + at, sizeof v);
	return v;
#endif
}

// 16 bytes in each 16 bytes of a vector.
YK_INLINE vub repeat_16(const void *p)
{
#if VF == 16
	return (vub)_mm512_broadcast_i32x4(_mm_loadu_si128(p));
#elif VF == 8
	return (vub)_mm256_broadcastsi128_si256(_mm_loadu_si128(p));
#else
	vub v;
	memcpy(&v, p, sizeof v);
	return v;
#endif
}

// Bits 16 * high .. of a word at `at` of each row, as bytes 0 or 16.
YK_INLINE vub fifth_bits(const uint8_t *const *row, const int r, int64_t at, const int high)
{
#if VF == 16
	uint64_t bits = 0;
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		bits |= (uint64_t)half_at(row[r + 4 * i] + at + 2 * high) << 16 * i;
	return (vub)_mm512_maskz_set1_epi8(bits, 16);
#else
	typedef uint64_t vul __attribute__((vector_size(VF * 4)));
	const vub bit =
		(vub)((vul){ 0 } + (BIG_ENDIAN_HOST ? 0x0102040810204080 : 0x8040201008040201));
#if VF == 8
	const __m256i which = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0,
					       0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
	const __m256i two =
		_mm256_blend_epi32(_mm256_set1_epi32((int)word_at(row[r] + at)),
				   _mm256_set1_epi32((int)word_at(row[r + 4] + at)), 0xf0);
	const vub h = (vub)_mm256_shuffle_epi8(high ? _mm256_srli_epi32(two, 16) : two, which);
#else
	const uint64_t each = 0x0101010101010101;
	const uint8_t *b = row[r] + at + 2 * high;
	const vub h = (vub)(vul){ b[0] * each, b[1] * each };
#endif
	return (vub)((h & bit) == bit) & 16;
#endif
}

// Group g of the blocks at `at`; unsigned but for Q8_0, without the scales of Q6_K.
YK_INLINE struct bytes bytes_of(const int f, const uint8_t *const *row, const int r, int64_t at,
				const int g)
{
	struct bytes q;
	if (f == Q8_0)
		return (struct bytes){ load_16(row, r, at + 2), load_16(row, r, at + 18) };
	if (!is_long(f)) {
		const int from = f == Q4_0 || f == Q5_0 ? 2 : 4, fifth = f == Q5_0 || f == Q5_1;
		const vub b = load_16(row, r, at + from + (fifth ? 4 : 0));
		q.low = b & 15;
		q.high = (vub)((vus)b >> 4) & 15;
		if (fifth) {
			q.low |= fifth_bits(row, r, at + from, 0);
			q.high |= fifth_bits(row, r, at + from, 1);
		}
		return q;
	}
	const int64_t from = at + (f == Q6_K ? 64 * (g / 4) + 32 * (g & 1) :
					       (f == Q5_K ? 48 : 16) + 32 * (g / 2));
	const int by = f == Q6_K ? (g & 2 ? 4 : 0) : (g & 1 ? 4 : 0);
	q.low = (vub)((vus)load_16(row, r, from) >> by) & 15;
	q.high = (vub)((vus)load_16(row, r, from + 16) >> by) & 15;
	if (f == Q4_K)
		return q;
	// two bits of Q6_K, or one of Q5_K, at bit 4
	const int64_t upper = at + (f == Q6_K ? 128 + 32 * (g / 4) : 16);
	const int bit = f == Q6_K ? 2 * (g & 3) : g;
	const vus l = (vus)load_16(row, r, upper), h = (vus)load_16(row, r, upper + 16);
	const vub mask = (vub){ 0 } + (uint8_t)(f == Q6_K ? 48 : 16);
	q.low |= (vub)(bit < 4 ? l << (4 - bit) : l >> (bit - 4)) & mask;
	q.high |= (vub)(bit < 4 ? h << (4 - bit) : h >> (bit - 4)) & mask;
	return q;
}

// The bytes 0 2 4 .. of a vector in 16 bits, and the bytes 1 3 5 ..
YK_INLINE vs evens(vub q)
{
	return (vs)(BIG_ENDIAN_HOST ? (vus)q >> 8 : (vus)q & 255);
}

YK_INLINE vs odds(vub q)
{
	return (vs)(BIG_ENDIAN_HOST ? (vus)q & 255 : (vus)q >> 8);
}

// A group of x in each 16 bytes: in 16 bits the elements 0 2 .. 14, 1 3 .. 15, 16 18 .. 30,
// 17 19 .. 31, otherwise 0 .. 15, 16 .. 31; SPLIT has the lower bytes of these, then the upper
// ones.
struct group_of_x {
	vub part[4];
};

YK_INLINE struct group_of_x group_of_x(const enum way way, const struct activations *x, int64_t at)
{
	struct group_of_x v;
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		if (is_words(way) || way == SPLIT)
			v.part[i] = repeat_16(x->q + at + 8 * i);
		else if (i < 2)
			v.part[i] = repeat_16(x->q8 + at + 16 * i);
	return v;
}

#if VF > 4
// Sums of products of two bytes; q unsigned or, if `negative`, signed.
YK_INLINE vs pairs_of_bytes(vub q, vub x, const bool negative)
{
#if VF == 16
	if (negative) {
		x = (vub)_mm512_mask_sub_epi8((__m512i)x, _mm512_movepi8_mask((__m512i)q),
					      _mm512_setzero_si512(), (__m512i)x);
		q = (vub)_mm512_abs_epi8((__m512i)q);
	}
	return (vs)_mm512_maddubs_epi16((__m512i)q, (__m512i)x);
#else
	if (negative) {
		x = (vub)_mm256_sign_epi8((__m256i)x, (__m256i)q);
		q = (vub)_mm256_abs_epi8((__m256i)q);
	}
	return (vs)_mm256_maddubs_epi16((__m256i)q, (__m256i)x);
#endif
}
#endif

#ifdef HAVE_VNNI
// to += the products of four unsigned bytes of q with signed ones of x; see add_pairs.
YK_INLINE vi add_fours(vi to, vub q, vub x)
{
#ifdef YK_VNNI_EMULATED // tests/vnni_emulated.h
	yk_vnni_add(&to, &q, &x, sizeof to);
#elif VF == 16
	__asm__("vpdpbusd %2, %1, %0" : "+v"(to) : "v"(q), "v"(x));
#else
	__asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(to) : "x"(q), "x"(x));
#endif
	return to;
}
#endif

// Sums of each 4 lanes of the vectors, in the order of the rows.
YK_INLINE vi sums_of_four(const vi *v)
{
	return neighbours(neighbours(v[0], v[1]), neighbours(v[2], v[3]));
}

// The number that bytes_of adds to the integers of weights.
YK_INLINE int offset(const int f, const enum way way)
{
	if (f == Q8_0)
		return way == BYTES || way == SPLIT ? 0 : 128;
	return f == Q6_K ? 32 : middle(f);
}

// Products of a half of a group; with 16 bits, `part` is 0 or 2, of 4.
YK_INLINE vi half_product(const int f, const enum way way, vub q, const struct group_of_x *x,
			  const int part)
{
	(void)f;
	if (is_words(way))
		return add_pairs(way, add_pairs(way, (vi){ 0 }, evens(q), (vs)x->part[part]),
				 odds(q), (vs)x->part[part + 1]);
#ifdef HAVE_VNNI
	if (way == VNNI)
		return add_fours((vi){ 0 }, q, x->part[part / 2]);
#endif
#if defined YK_DOT
	if (way == SPLIT) {
		const vi upper = upper_products((vi){ 0 }, x->part[2 + part / 2], q);
		return lower_products(upper << 8, x->part[part / 2], q);
	}
	return upper_products((vi){ 0 }, x->part[part / 2], q);
#elif VF > 4
	return pairs(pairs_of_bytes(q, x->part[part / 2], f == Q8_0), (vs)us_splat(1));
#else
	return (vi){ 0 };
#endif
}

// Products of a whole group.
YK_INLINE vi whole_product(const int f, const enum way way, const struct bytes *q,
			   const struct group_of_x *x)
{
#if defined YK_DOT
	vi sum = { 0 };
	if (way == BYTES || way == SPLIT) {
		const int upper = way == SPLIT ? 2 : 0;
		sum = upper_products(upper_products(sum, x->part[upper], q->low),
				     x->part[upper + 1], q->high);
		return way == BYTES ? sum :
				      lower_products(lower_products(sum << 8, x->part[0], q->low),
						     x->part[1], q->high);
	}
#elif VF > 4
	if (way == BYTES && f != Q8_0) // at most 4 * 31 * 127
		return pairs(pairs_of_bytes(q->low, x->part[0], false) +
				     pairs_of_bytes(q->high, x->part[1], false),
			     (vs)us_splat(1));
#endif
	return half_product(f, way, q->low, x, 0) + half_product(f, way, q->high, x, 2);
}

// Products of a group of a vector of rows; of Q6_K, of its halves.
YK_INLINE void products(const int f, const enum way way, const struct bytes *q,
			const struct group_of_x *x, vi *low, vi *high)
{
	if (f != Q6_K) {
		*low = whole_product(f, way, q, x);
		return;
	}
	*low = half_product(f, way, q->low, x, 0);
	*high = half_product(f, way, q->high, x, 2);
}

// The products of a group of STRIP rows, of the sums over its halves; over the whole group in
// `low`, but for Q6_K, whose halves have the scales a and b.
YK_INLINE vi joined(const int f, const enum way way, const vi *low, const vi *high, int32_t isum,
		    int32_t first, vi a, vi b)
{
	vi sum = sums_of_four(low);
	if (f != Q6_K)
		return offset(f, way) ? sum - vi_splat(offset(f, way) * isum) : sum;
	sum -= vi_splat(offset(f, way) * first);
	return sum * a + (sums_of_four(high) - vi_splat(offset(f, way) * (isum - first))) * b;
}

// Products of a group of STRIP rows, as exact integers. a, b: the scales of the halves of Q6_K.
YK_INLINE vi group_product(const int f, const enum way way, const uint8_t *const *row, int64_t at,
			   const int g, const struct group_of_x *x, int32_t isum, int32_t first,
			   const vi *a, const vi *b)
{
	vi low[FOUR], high[FOUR];
#pragma GCC unroll 4
	for (int r = 0; r < FOUR; r++) {
		struct bytes q = bytes_of(f, row, r, at, g);
		if (offset(f, way) == 128) {
			q.low ^= 128;
			q.high ^= 128;
		}
		products(f, way, &q, x, low + r, high + r);
	}
	return joined(f, way, low, high, isum, first, *a, *b);
}

YK_INLINE vi signed_byte(vu words, const int i)
{
	return (vi)(words << (24 - 8 * i)) >> 24;
}

// Prefetches a strip while another is multiplied: bytes from .. to - 1 of each of its rows, which
// are `step` bytes apart. Processors find the rows themselves if they are long. Shorter ones are
// read in the order of memory, the same number of bytes.
YK_INLINE void prefetch_strip(const uint8_t *next, int64_t step, int64_t from, const int bytes)
{
	if (step >= LONG_ROW)
#pragma GCC unroll 16
		for (int r = 0; r < STRIP; r++)
#pragma GCC unroll 8
			for (int i = 0; i < bytes; i += 64)
				__builtin_prefetch(next + r * step + from + i);
	else
#pragma GCC unroll 64
		for (int i = 0; i < STRIP * bytes; i += 64)
			__builtin_prefetch(next + STRIP * from + i);
}

// The scales of the halves of Q6_K's groups in a block.
YK_INLINE void half_scales(const uint8_t *const *row, int64_t at, vi *a, vi *b)
{
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		const vu words = words_of_rows(row, at + 192 + 4 * i);
		a[2 * i] = signed_byte(words, 0);
		b[2 * i] = signed_byte(words, 1);
		a[2 * i + 1] = signed_byte(words, 2);
		b[2 * i + 1] = signed_byte(words, 3);
	}
}

YK_INLINE void add_groups(const int f, const enum way way, const uint8_t *const *row,
			  const uint8_t *next, const struct activations *x, int64_t m, int64_t from,
			  const int groups, vf *acc)
{
	float scale[CHUNK_GROUPS * STRIP], min[CHUNK_GROUPS * STRIP];
	vi a[CHUNK_GROUPS], b[CHUNK_GROUPS];
	const int bytes = block_bytes(f);
	const int64_t block = is_long(f) ? from / CHUNK_GROUPS : from;
	prefetch_strip(next, row[1] - row[0], block * bytes, is_long(f) ? bytes : groups * bytes);
	scales_of_rows(f, row, block, groups, scale, min, STRIP);
	if (f == Q6_K)
		half_scales(row, block * bytes, a, b);
#pragma GCC unroll 8
	for (int g = 0; g < groups; g++) {
		const int64_t at = m * x->groups + from + g;
		const struct group_of_x xg = group_of_x(way, x, m * x->k + (from + g) * GROUP);
		const vi sum = group_product(f, way, row, (is_long(f) ? block : block + g) * bytes,
					     g, &xg, x->isum[at], x->first[at], a + g, b + g);
		*acc = add_scaled(f, sum, vf_load(scale + g * STRIP), min + g * STRIP, x->scale[at],
				  x->sum[at], *acc);
	}
}

YK_INLINE void strip(const int f, const enum way way, const uint8_t *const *row,
		     const uint8_t *next, const struct activations *x, int64_t m, float *y)
{
	vf acc = { 0 };
	int64_t g = 0;
	for (; g + CHUNK_GROUPS <= x->groups; g += CHUNK_GROUPS)
		add_groups(f, way, row, next, x, m, g, CHUNK_GROUPS, &acc);
	for (; !is_long(f) && g < x->groups; g++)
		add_groups(f, way, row, next, x, m, g, 1, &acc);
	vf_store(y, acc);
}

// ---- several rows of x: the integers of STRIP rows of w are widened once for all of them ----

// Elements of a group of the rows of a vector, in the order of group_of_x: 16 bits, or bytes.
struct words {
	vs part[4];
	struct bytes bytes;
};

YK_INLINE void add_group_to_rows(const int f, const enum way way, const struct words *w,
				 const struct activations *x, int64_t m, int64_t count,
				 int64_t group, const float *scale, const float *min, vi a, vi b,
				 float *y)
{
	for (int64_t i = m; i < m + count; i++, y += STRIP) {
		const int64_t at = i * x->groups + group;
		const struct group_of_x xg = group_of_x(way, x, i * x->k + group * GROUP);
		vi low[FOUR], high[FOUR];
#pragma GCC unroll 4
		for (int r = 0; r < FOUR; r++) {
			if (!is_words(way)) {
				products(f, way, &w[r].bytes, &xg, low + r, high + r);
				continue;
			}
			low[r] = add_pairs(way, (vi){ 0 }, w[r].part[0], (vs)xg.part[0]);
			low[r] = add_pairs(way, low[r], w[r].part[1], (vs)xg.part[1]);
			high[r] = add_pairs(way, f == Q6_K ? (vi){ 0 } : low[r], w[r].part[2],
					    (vs)xg.part[2]);
			high[r] = add_pairs(way, high[r], w[r].part[3], (vs)xg.part[3]);
			if (f != Q6_K)
				low[r] = high[r];
		}
		const vi sum = joined(f, way, low, high, x->isum[at], x->first[at], a, b);
		vf_store(y, add_scaled(f, sum, vf_load(scale), min, x->scale[at], x->sum[at],
				       vf_load(y)));
	}
}

YK_INLINE void add_groups_to_rows(const int f, const enum way way, const uint8_t *const *row,
				  const uint8_t *next, const struct activations *x, int64_t m,
				  int64_t count, int64_t from, const int groups, float *y)
{
	float scale[CHUNK_GROUPS * STRIP], min[CHUNK_GROUPS * STRIP];
	vi a[CHUNK_GROUPS] = { { 0 } }, b[CHUNK_GROUPS] = { { 0 } };
	const int bytes = block_bytes(f);
	const int64_t block = is_long(f) ? from / CHUNK_GROUPS : from;
	prefetch_strip(next, row[1] - row[0], block * bytes, is_long(f) ? bytes : groups * bytes);
	scales_of_rows(f, row, block, groups, scale, min, STRIP);
	if (f == Q6_K)
		half_scales(row, block * bytes, a, b);
#pragma GCC unroll 8
	for (int g = 0; g < groups; g++) {
		struct words w[FOUR];
#pragma GCC unroll 4
		for (int r = 0; r < FOUR; r++) {
			struct bytes q =
				bytes_of(f, row, r, (is_long(f) ? block : block + g) * bytes, g);
			if (offset(f, way) == 128) {
				q.low ^= 128;
				q.high ^= 128;
			}
			if (is_words(way))
				w[r] = (struct words){ { evens(q.low), odds(q.low), evens(q.high),
							 odds(q.high) },
						       q };
			else
				w[r].bytes = q;
		}
		add_group_to_rows(f, way, w, x, m, count, from + g, scale + g * STRIP,
				  min + g * STRIP, a[g], b[g], y);
	}
}

YK_INLINE void strip_of_rows(const int f, const enum way way, const uint8_t *const *row,
			     const uint8_t *next, const struct activations *x, int64_t m,
			     int64_t count, float *y)
{
	int64_t g = 0;
	memset(y, 0, (size_t)(count * STRIP) * sizeof *y);
	for (; g + CHUNK_GROUPS <= x->groups; g += CHUNK_GROUPS)
		add_groups_to_rows(f, way, row, next, x, m, count, g, CHUNK_GROUPS, y);
	for (; !is_long(f) && g < x->groups; g++)
		add_groups_to_rows(f, way, row, next, x, m, count, g, 1, y);
}

// ---- many rows of x: tiles ----

#if VF == 16
enum { TILE_ROWS = 12 };
#else
enum { TILE_ROWS = 6 };
#endif
enum { TILE_COLS = 2 * VF };

// Packs `groups` groups, beginning with group `from`, of TILE_COLS rows of w: panel
// [groups,16,TILE_COLS,2], scale and min [groups,step].
YK_INLINE void pack(const int f, const uint8_t *const *row, int64_t from, const int groups,
		    int16_t *panel, float *scale, float *min, int64_t step)
{
	const int bytes = block_bytes(f);
	const int64_t block = is_long(f) ? from / CHUNK_GROUPS : from;
	for (int i = 0; i < TILE_COLS; i += VF)
		scales_of_rows(f, row + i, block, groups, scale + i, min + i, (int)step);
	for (int r = 0; r < TILE_COLS; r++)
#pragma GCC unroll 8
		for (int g = 0; g < groups; g++) {
			const struct group q = group_of(
				f, row[r] + (is_long(f) ? block : block + g) * bytes, g, true);
			int16_t *to = panel + ((int64_t)g * (GROUP / 2) * TILE_COLS + r) * 2;
			int32_t two[GROUP / 2];
			memcpy(two, &q, sizeof two);
			for (int i = 0; i < GROUP / 2; i++)
				memcpy(to + (int64_t)i * TILE_COLS * 2, two + i, sizeof *two);
		}
}

// acc (rows, TILE_COLS), rows `step` apart, += x (rows) times a packed panel.
YK_INLINE void tile(const int f, const enum way way, const int rows, const struct activations *x,
		    int64_t m, int64_t from, int64_t groups, const int16_t *panel,
		    const float *scale, const float *min, int64_t step, float *acc)
{
	for (int64_t g = 0; g < groups;
	     g++, panel += GROUP * TILE_COLS, scale += step, min += step) {
		const int16_t *xg = x->q + m * x->k + (from + g) * GROUP;
		vi sum[TILE_ROWS][2];
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++)
			sum[r][0] = sum[r][1] = (vi){ 0 };
		for (int i = 0; i < GROUP / 2; i++) {
			vs w[2];
			// one vector at a time: compilers copy more through the stack, in smaller
			// parts
			memcpy(&w[0], panel + (int64_t)i * TILE_COLS * 2, sizeof w[0]);
			memcpy(&w[1], panel + (int64_t)i * TILE_COLS * 2 + TILE_COLS, sizeof w[1]);
#pragma GCC unroll 12
			for (int r = 0; r < rows; r++) {
				int32_t two;
				memcpy(&two, xg + r * x->k + 2 * i, sizeof two);
				const vs xv = (vs)vi_splat(two);
				sum[r][0] = add_pairs(way, sum[r][0], w[0], xv);
				sum[r][1] = add_pairs(way, sum[r][1], w[1], xv);
			}
		}
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++) {
			const int64_t at = (m + r) * x->groups + from + g;
#pragma GCC unroll 2
			for (int i = 0; i < 2; i++) {
				float *to = acc + r * step + i * VF;
				const vi exact =
					middle(f) ? sum[r][i] - vi_splat(middle(f) * x->isum[at]) :
						    sum[r][i];
				vf_store(to,
					 add_scaled(f, exact, vf_load(scale + i * VF), min + i * VF,
						    x->scale[at], x->sum[at], vf_load(to)));
			}
		}
	}
}

#endif
