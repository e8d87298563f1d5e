// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, the counter-based random number generator used on all devices (Salmon et al., SC
// 2011). Counter words 0-1 are index / 4, words 2-3 the step, the key words the key; lane = index
// mod 4.
#ifndef YK_PHILOX_H
#define YK_PHILOX_H

#include <string.h>

#include "shuffle.h"
#include "vec.h"
#include "vmath.h"

// counter c[4], key k[2] -> c
YK_INLINE void yk_philox(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3,
			 uint32_t k0, uint32_t k1)
{
	uint32_t x0 = *c0, x1 = *c1, x2 = *c2, x3 = *c3;
	for (int round = 0; round < 10; round++) {
		uint64_t p = (uint64_t)x0 * 0xd2511f53u, q = (uint64_t)x2 * 0xcd9e8d57u;
		x0 = (uint32_t)(q >> 32) ^ x1 ^ k0;
		x1 = (uint32_t)q;
		x2 = (uint32_t)(p >> 32) ^ x3 ^ k1;
		x3 = (uint32_t)p;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	*c0 = x0, *c1 = x1, *c2 = x2, *c3 = x3;
}

// The random bits of one element.
YK_INLINE uint32_t yk_philox_at(uint64_t index, uint64_t key, uint64_t step)
{
	uint32_t c[4] = { (uint32_t)(index >> 2), (uint32_t)(index >> 34), (uint32_t)step,
			  (uint32_t)(step >> 32) };
	yk_philox(c, c + 1, c + 2, c + 3, (uint32_t)key, (uint32_t)(key >> 32));
	return c[index & 3];
}

// ---- runs of counters: one counter per 64-bit lane, whose upper half is undefined ----

typedef uint64_t vq __attribute__((vector_size(VF * 4)));

enum { YK_PHILOX_LANES = VF / 2, YK_PHILOX_RUN = 4 * YK_PHILOX_LANES };

// The product of the lower halves of the lanes.
static inline vq vq_mul(vq a, vq b)
{
#if defined __AVX512F__
	return (vq)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined __AVX2__
	return (vq)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined __SSE2__
	return (vq)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
	return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

#define YK_EACH_RUN(v) _Pragma("GCC unroll 4") for (int v = 0; v < 4; v++)

// Counter order such that interleaving the words of a vector's even lanes, and of its odd lanes,
// gives consecutive counters.
#if VF == 16
#define YK_EACH_LANE 0, 4, 1, 5, 2, 6, 3, 7
#define YK_ZIP_EVEN 0, 8, 2, 10, 4, 12, 6, 14
#define YK_ZIP_ODD 1, 9, 3, 11, 5, 13, 7, 15
#elif VF == 8
#define YK_EACH_LANE 0, 2, 1, 3
#define YK_ZIP_EVEN 0, 4, 2, 6
#define YK_ZIP_ODD 1, 5, 3, 7
#else
#define YK_EACH_LANE 0, 1
#define YK_ZIP_EVEN 0, 2
#define YK_ZIP_ODD 1, 3
#endif

// Both output words of a last round: the second is the product's lower half; the first is its upper
// half xor x xor the upper half of key.
static inline vq vq_words(vq q, vq x, vq key)
{
	q ^= x << 32 ^ key;
	// the first word comes first in memory
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? q : q >> 32 | q << 32;
}

// Generates the bits of YK_PHILOX_RUN consecutive counters, four words each, whose upper halves are
// equal; the common parts of the first two rounds are computed once.
static inline void yk_philox_run(uint32_t *to, uint64_t first, uint64_t key,
				 uint64_t step)
{
	const uint32_t w0 = 0x9e3779b9u, w1 = 0xbb67ae85u;
	const vq zero = { 0 }, m0 = zero + 0xd2511f53u, m1 = zero + 0xcd9e8d57u;
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	// words 0 and 1 after one round, 2 and 3 after two, without the varying parts
	const uint64_t q1 = (uint64_t)(uint32_t)step * 0xcd9e8d57u;
	const uint64_t p2 = ((uint32_t)(q1 >> 32) ^ (uint32_t)(first >> 32) ^ k0) *
			    (uint64_t)0xd2511f53u;
	vq x0[4], x1[4], x2[4], x3[4];
	const vq a1 = zero + ((uint32_t)(step >> 32) ^ k1),
		 a2 = zero + ((uint32_t)q1 ^ (k0 + w0)),
		 b2 = zero + ((uint32_t)(p2 >> 32) ^ (k1 + w1)),
		 b3 = zero + ((uint32_t)p2 ^ (k1 + 2 * w1)), a3 = zero + (k0 + 2 * w0);
	YK_EACH_RUN(v)
	{
		vq p = vq_mul((vq){ YK_EACH_LANE } +
				      (first + (unsigned)(v * YK_PHILOX_LANES)),
			      m0);
		vq q = vq_mul((p >> 32) ^ a1, m1);
		x0[v] = (q >> 32) ^ a2;
		x2[v] = p ^ b2;
		p = vq_mul(x0[v], m0), x1[v] = q, q = vq_mul(x2[v], m1);
		x0[v] = (q >> 32) ^ x1[v] ^ a3;
		x1[v] = q;
		x2[v] = (p >> 32) ^ b3;
		x3[v] = p;
	}
	k0 += 3 * w0, k1 += 3 * w1;
	for (int round = 3; round < 9; round++) {
		const vq key0 = zero + k0, key1 = zero + k1;
		YK_EACH_RUN(v)
		{
			vq p = vq_mul(x0[v], m0), q = vq_mul(x2[v], m1);
			x0[v] = (q >> 32) ^ x1[v] ^ key0;
			x1[v] = q;
			x2[v] = (p >> 32) ^ x3[v] ^ key1;
			x3[v] = p;
		}
		k0 += w0, k1 += w1;
	}
	YK_EACH_RUN(v)
	{
		vq low = vq_words(vq_mul(x2[v], m1), x1[v], zero + ((uint64_t)k0 << 32));
		vq high = vq_words(vq_mul(x0[v], m0), x3[v], zero + ((uint64_t)k1 << 32));
		vq y[2] = { YK_SHUFFLE(low, high, YK_ZIP_EVEN),
			    YK_SHUFFLE(low, high, YK_ZIP_ODD) };
		memcpy(to + 2 * v * VF, y, sizeof y);
	}
}

// The random bits of elements first .. first + n - 1.
static inline void yk_philox_fill(uint32_t *to, uint64_t first, int64_t n, uint64_t key,
				  uint64_t step)
{
	uint32_t out[4 * YK_PHILOX_RUN];
	while (n > 0) {
		unsigned skip = first & 3;
		int64_t m = 4 * YK_PHILOX_RUN - skip;
		const uint64_t min = first >> 2, max = min + YK_PHILOX_RUN - 1;
		if (min >> 32 != max >> 32) {
			m = m < n ? m : n;
			for (int64_t i = 0; i < m; i++)
				to[i] = yk_philox_at(first + (uint64_t)i, key, step);
		} else if (!skip && n >= m) {
			yk_philox_run(to, first >> 2, key, step);
		} else {
			m = m < n ? m : n;
			yk_philox_run(out, first >> 2, key, step);
			memcpy(to, out + skip, (size_t)m * sizeof *to);
		}
		to += m, first += (uint64_t)m, n -= m;
	}
}

// Converts 24 of the bits to a float in [0,1).
YK_INLINE float yk_uniform_f32(uint32_t bits)
{
	return (float)(int32_t)(bits >> 8) * 0x1p-24f;
}

#endif
