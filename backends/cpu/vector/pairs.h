// SPDX-License-Identifier: Apache-2.0
// Pairs of 16-bit elements, 32-bit words with the first element in the lower half: joins two rows
// to pairs, and transposes a square of 16 x 16 pairs in registers.
#ifndef YK_PAIRS_H
#define YK_PAIRS_H

#include <stdint.h>
#include <string.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

// to[i] = the pair of x[i] and y[i], i < 16; to2[i - 16] likewise, i = 16 .. 31
__attribute__((always_inline)) static inline void yk_join32(uint32_t *to, uint32_t *to2,
							    const uint16_t *x, const uint16_t *y)
{
#ifdef __AVX512BW__
	const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	const __m512i first = _mm512_or_si512(
		iota, _mm512_slli_epi32(_mm512_add_epi32(iota, _mm512_set1_epi32(32)), 16));
	const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
	const __m512i low = _mm512_loadu_si512(x), high = _mm512_loadu_si512(y);
	_mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, first, high));
	_mm512_storeu_si512(to2, _mm512_permutex2var_epi16(low, second, high));
#else
	for (int i = 0; i < 16; i++) {
		to[i] = x[i] | (uint32_t)y[i] << 16;
		to2[i] = x[16 + i] | (uint32_t)y[16 + i] << 16;
	}
#endif
}

#ifdef __AVX512BF16__
// The pair in all lanes.
__attribute__((always_inline)) static inline __m512bh yk_pair_in_all(uint32_t pair)
{
	__m512i all = _mm512_set1_epi32((int)pair);
#if defined __clang__ && __clang_major__ == 16
	// clang 16 crashes where it sees a cast of equal elements to bf16
	__asm__("" : "+v"(all));
#endif
	return (__m512bh)all;
}
#endif

// to[p][i] = from[i][p]; rows are ldt and ldf bytes apart, at any address
__attribute__((always_inline)) static inline void yk_transpose16(void *to, int64_t ldt,
								 const void *from, int64_t ldf)
{
#ifdef __AVX512F__
	// 32-bit, then 64-bit words within 128 bits, then 128-bit blocks
	__m512i x[16], y[16];
#pragma GCC unroll 16
	for (int r = 0; r < 16; r++)
		x[r] = _mm512_loadu_si512((const char *)from + r * ldf);
#pragma GCC unroll 8
	for (int r = 0; r < 16; r += 2) {
		y[r] = _mm512_unpacklo_epi32(x[r], x[r + 1]);
		y[r + 1] = _mm512_unpackhi_epi32(x[r], x[r + 1]);
	}
#pragma GCC unroll 4
	for (int r = 0; r < 16; r += 4) {
		x[r] = _mm512_unpacklo_epi64(y[r], y[r + 2]);
		x[r + 1] = _mm512_unpackhi_epi64(y[r], y[r + 2]);
		x[r + 2] = _mm512_unpacklo_epi64(y[r + 1], y[r + 3]);
		x[r + 3] = _mm512_unpackhi_epi64(y[r + 1], y[r + 3]);
	}
#pragma GCC unroll 4
	for (int r = 0; r < 4; r++) {
		y[r] = _mm512_shuffle_i32x4(x[r], x[r + 4], 0x88);
		y[r + 4] = _mm512_shuffle_i32x4(x[r], x[r + 4], 0xdd);
		y[r + 8] = _mm512_shuffle_i32x4(x[r + 8], x[r + 12], 0x88);
		y[r + 12] = _mm512_shuffle_i32x4(x[r + 8], x[r + 12], 0xdd);
	}
#pragma GCC unroll 8
	for (int r = 0; r < 8; r++) {
		_mm512_storeu_si512((char *)to + r * ldt,
				    _mm512_shuffle_i32x4(y[r], y[r + 8], 0x88));
		_mm512_storeu_si512((char *)to + (r + 8) * ldt,
				    _mm512_shuffle_i32x4(y[r], y[r + 8], 0xdd));
	}
#else
	for (int i = 0; i < 16; i++)
		for (int p = 0; p < 16; p++)
			memcpy((char *)to + p * ldt + 4 * i, (const char *)from + i * ldf + 4 * p,
			       4);
#endif
}

#endif
