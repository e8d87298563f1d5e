// SPDX-License-Identifier: Apache-2.0
// Decodes blocks of quantized weights (the formats of GGUF): 32 integers and, for each of a few
// rows, the scale and the minimum. A weight is scale * integer + minimum.
// A format is a constant argument of inlined functions, so each format gets code of its own.
#ifndef YK_BLOCKS_H
#define YK_BLOCKS_H

#include "../cpu.h"
#include "../vector/vhalf.h"

// blocks are little-endian there too
#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

// GGUF's numbers, as in yoke-quant.h.
enum {
	F16 = 1,
	Q4_0 = 2,
	Q4_1 = 3,
	Q5_0 = 6,
	Q5_1 = 7,
	Q8_0 = 8,
	Q4_K = 12,
	Q5_K = 13,
	Q6_K = 14,
	BF16 = 30
};

#define EACH_FORMAT(X) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K)

enum { GROUP = 32, CHUNK_GROUPS = 8 }; // elements per group; groups in a block of 256

YK_INLINE bool is_long(const int f) // blocks of 256
{
	return f == Q4_K || f == Q5_K || f == Q6_K;
}

YK_INLINE bool is_plain(const int f)
{
	return f == F16 || f == BF16;
}

YK_INLINE bool has_min(const int f)
{
	return f == Q4_1 || f == Q5_1 || f == Q4_K || f == Q5_K;
}

// Subtracted from the stored integers; those of Q6_K are decoded with it, because they are
// multiplied by the scales of their halves of the group.
YK_INLINE int middle(const int f)
{
	if (f == Q5_0)
		return 16;
	return f == Q4_0 ? 8 : 0;
}

static inline int block_elements(int f)
{
	if (is_plain(f))
		return 1;
	return is_long(f) ? 256 : 32;
}

static inline int block_bytes(int f) // 0: unknown
{
	switch (f) {
	case F16:
	case BF16: return 2;
	case Q4_0: return 18;
	case Q4_1: return 20;
	case Q5_0: return 22;
	case Q5_1: return 24;
	case Q8_0: return 34;
	case Q4_K: return 144;
	case Q5_K: return 176;
	case Q6_K: return 210;
	default: return 0;
	}
}

// ---- integers ----

enum { LANES = 2 * VF, PARTS = GROUP / LANES };
typedef int16_t vs __attribute__((vector_size(VF * 4)));
typedef uint16_t vus __attribute__((vector_size(VF * 4)));
typedef uint8_t vb __attribute__((vector_size(VF * 2)));
typedef int8_t vsb __attribute__((vector_size(VF * 2)));

struct group {
	vs part[PARTS];
};

YK_INLINE vus widen(const uint8_t *p)
{
	vb b;
	memcpy(&b, p, sizeof b);
	return __builtin_convertvector(b, vus);
}

YK_INLINE vus us_splat(int x)
{
	return (vus){ 0 } + (uint16_t)x;
}

// The nibbles of 16 bytes: all low ones are elements 0 .. 15, all high ones 16 .. 31.
YK_INLINE vus nibbles_16(const uint8_t *p, const int part)
{
#if VF == 16
	(void)part;
	const __m128i b = _mm_loadu_si128((const __m128i *)p);
	const __m512i w = _mm512_cvtepu8_epi16(_mm256_broadcastsi128_si256(b));
	const __m512i by = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
	return (vus)_mm512_and_si512(_mm512_srlv_epi16(w, by), _mm512_set1_epi16(15));
#else
	const vus w = widen(p + part * LANES % 16);
	return part * LANES < 16 ? w & 15 : w >> 4;
#endif
}

// Bit i of h, for each element i, as 0 or 16.
YK_INLINE vus fifth_16(uint32_t h, const int part)
{
#if VF == 16
	(void)part;
	return (vus)_mm512_maskz_set1_epi16((__mmask32)h, 16);
#elif VF == 8
	const vus bit = { 1,   2,   4,    8,    16,   32,   64,    128,
			  256, 512, 1024, 2048, 4096, 8192, 16384, 32768 };
	return (vus)((us_splat((int)(h >> part * LANES)) & bit) == bit) & 16;
#else
	const vus bit = { 1, 2, 4, 8, 16, 32, 64, 128 };
	return (vus)((us_splat((int)(h >> part * LANES)) & bit) == bit) & 16;
#endif
}

YK_INLINE uint32_t word_at(const uint8_t *p)
{
	uint32_t h;
	memcpy(&h, p, sizeof h);
	return BIG_ENDIAN_HOST ? __builtin_bswap32(h) : h;
}

// The scales of the halves of a group of Q6_K.
YK_INLINE vs halves(const uint8_t *a, const int part)
{
#if VF == 16
	(void)part;
	return (vs)_mm512_inserti64x4(_mm512_set1_epi16((int8_t)a[0]),
				      _mm256_set1_epi16((int8_t)a[1]), 1);
#else
	return (vs){ 0 } + (int16_t)(int8_t)a[part * LANES / 16];
#endif
}

// Group g of the block b. `scaled`: Q6_K's integers are multiplied by their scales.
YK_INLINE struct group group_of(const int f, const uint8_t *b, const int g, const bool scaled)
{
	struct group q;
#pragma GCC unroll 4
	for (int p = 0; p < PARTS; p++) {
		const int at = p * LANES;
		vus v;
		if (f == Q8_0) {
			vsb s;
			memcpy(&s, b + 2 + at, sizeof s);
			q.part[p] = __builtin_convertvector(s, vs);
			continue;
		}
		if (!is_long(f)) {
			const int from = (f == Q4_0 || f == Q5_0 ? 2 : 4),
				  fifth = f == Q5_0 || f == Q5_1;
			v = nibbles_16(b + from + (fifth ? 4 : 0), p);
			if (fifth)
				v |= fifth_16(word_at(b + from), p);
		} else if (f == Q6_K) {
			v = widen(b + 64 * (g / 4) + 32 * (g & 1) + at);
			v = g & 2 ? v >> 4 : v & 15;
			v |= (widen(b + 128 + 32 * (g / 4) + at) >> 2 * (g & 3) & 3) << 4;
			v -= 32;
			if (scaled)
				v = (vus)((vs)v * halves(b + 192 + 2 * g, p));
		} else {
			v = widen(b + (f == Q5_K ? 48 : 16) + 32 * (g / 2) + at);
			v = g & 1 ? v >> 4 : v & 15;
			if (f == Q5_K)
				v |= (widen(b + 16 + at) >> g & 1) << 4;
		}
		q.part[p] = (vs)v;
	}
	return q;
}

// ---- scales of VF rows: lane r belongs to row[r] ----

#define OF_ROWS_4(X) X(0), X(1), X(2), X(3)
#define OF_ROWS_8(X) OF_ROWS_4(X), X(4), X(5), X(6), X(7)
#define OF_ROWS_16(X) OF_ROWS_8(X), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15)
#if VF == 16
#define OF_ROWS OF_ROWS_16
#elif VF == 8
#define OF_ROWS OF_ROWS_8
#else
#define OF_ROWS OF_ROWS_4
#endif

YK_INLINE uint16_t half_at(const uint8_t *p)
{
	uint16_t h;
	memcpy(&h, p, sizeof h);
	return BIG_ENDIAN_HOST ? __builtin_bswap16(h) : h;
}

typedef uint32_t vu __attribute__((vector_size(VF * 4)));

YK_INLINE vu words_of_rows(const uint8_t *const *row, int64_t at)
{
#if VF == 8
	__m256i v = _mm256_set1_epi32(
		(int)word_at(row[0] + at)); // loads and blends use no shuffle unit
#define WITH(r) v = _mm256_blend_epi32(v, _mm256_set1_epi32((int)word_at(row[r] + at)), 1 << r)
	WITH(1);
	WITH(2);
	WITH(3);
	WITH(4);
	WITH(5);
	WITH(6);
	WITH(7);
#undef WITH
	return (vu)v;
#else
#define WORD(r) word_at(row[r] + at)
	return (vu){ OF_ROWS(WORD) };
#undef WORD
#endif
}

// f16 numbers in the low halves of words, or in the high ones.
YK_INLINE vf halves_of_words(vu words, const bool high)
{
	return vf_of_f16(__builtin_convertvector(high ? words >> 16 : words & 65535, vh));
}

YK_INLINE vf halves_of_rows(const uint8_t *const *row, int64_t at)
{
#define HALF(r) half_at(row[r] + at)
	return vf_of_f16((vh){ OF_ROWS(HALF) });
#undef HALF
}

// Byte i of each word, as a float.
YK_INLINE vf byte_of(vu words, const int i)
{
	return __builtin_convertvector((vi)(words >> 8 * i & 255), vf);
}

// Scales and minima of `groups` <= CHUNK_GROUPS groups from block `block` of VF rows on: to[g *
// step + lane]. Formats of 256 have CHUNK_GROUPS groups. The scale of Q6_K is without the scales of
// the halves.
YK_INLINE void scales_of_rows(const int f, const uint8_t *const *row, int64_t block,
			      const int groups, float *scale, float *min, const int step)
{
	const int bytes = block_bytes(f);
	int64_t at = block * bytes;
	if (!is_long(f)) {
		for (int g = 0; g < groups; g++, at += bytes) {
			const vu words = words_of_rows(row, at);
			vf_store(scale + g * step, halves_of_words(words, false));
			if (has_min(f))
				vf_store(min + g * step, halves_of_words(words, true));
		}
		return;
	}
	const vf d = halves_of_rows(row, f == Q6_K ? at + 208 : at);
	if (f == Q6_K) {
		for (int g = 0; g < CHUNK_GROUPS; g++)
			vf_store(scale + g * step, d);
		return;
	}
	const vf m = -halves_of_rows(row, at + 2);
	const vu s0 = words_of_rows(row, at + 4), s1 = words_of_rows(row, at + 8),
		 s2 = words_of_rows(row, at + 12);
	const vu a[2] = { s0 & 0x3f3f3f3f, (s2 & 0x0f0f0f0f) | (s0 >> 2 & 0x30303030) };
	const vu b[2] = { s1 & 0x3f3f3f3f, (s2 >> 4 & 0x0f0f0f0f) | (s1 >> 2 & 0x30303030) };
#pragma GCC unroll 8
	for (int g = 0; g < CHUNK_GROUPS; g++) {
		vf_store(scale + g * step, d * byte_of(a[g / 4], g % 4));
		vf_store(min + g * step, m * byte_of(b[g / 4], g % 4));
	}
}

#endif
