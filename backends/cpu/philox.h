// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, the counter-based random bits of every device (Salmon et al., SC 2011).
// Counter words 0-1 are index / 4, words 2-3 the step, key words the key; lane = index
// mod 4.
#ifndef YK_PHILOX_H
#define YK_PHILOX_H

#include <string.h>

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

// The bits of one element.
YK_INLINE uint32_t yk_philox_at(uint64_t index, uint64_t key, uint64_t step)
{
	uint32_t c[4] = { (uint32_t)(index >> 2), (uint32_t)(index >> 34), (uint32_t)step,
			  (uint32_t)(step >> 32) };
	yk_philox(c, c + 1, c + 2, c + 3, (uint32_t)key, (uint32_t)(key >> 32));
	return c[index & 3];
}

// ---- runs of counters: a counter in each lane of 64 bits, whose upper half is noise ----

typedef uint64_t vq __attribute__((vector_size(VF * 4)));

enum { YK_PHILOX_LANES = VF / 2, YK_PHILOX_RUN = 4 * YK_PHILOX_LANES };

// The product of the lower halves.
static inline vq vq_mul(vq a, vq b)
{
#if VF == 16
	return (vq)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif VF == 8
	return (vq)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined __SSE2__
	return (vq)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
	return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

#if VF == 16
#define YK_EACH_LANE 0, 1, 2, 3, 4, 5, 6, 7
#define YK_ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define YK_ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif VF == 8
#define YK_EACH_LANE 0, 1, 2, 3
#define YK_ZIP_LOW 0, 4, 1, 5
#define YK_ZIP_HIGH 2, 6, 3, 7
#else
#define YK_EACH_LANE 0, 1
#define YK_ZIP_LOW 0, 2
#define YK_ZIP_HIGH 1, 3
#endif
#if defined __clang__
#define YK_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define YK_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vq){ __VA_ARGS__ })
#endif

// The bits of YK_PHILOX_RUN counters from `first` on, four of each.
static inline void yk_philox_run(uint32_t *to, uint64_t first, uint64_t key,
				 uint64_t step)
{
	const vq zero = { 0 }, m0 = zero + 0xd2511f53u, m1 = zero + 0xcd9e8d57u;
	vq x0[4], x1[4], x2[4], x3[4], k0 = zero + (uint32_t)key, k1 = zero + (key >> 32);
	for (int v = 0; v < 4; v++) {
		x0[v] = (vq){ YK_EACH_LANE } + (first + (unsigned)(v * YK_PHILOX_LANES));
		x1[v] = x0[v] >> 32, x2[v] = zero + step, x3[v] = zero + (step >> 32);
	}
	for (int round = 0; round < 10; round++) {
		for (int v = 0; v < 4; v++) {
			vq p = vq_mul(x0[v], m0), q = vq_mul(x2[v], m1);
			x0[v] = (q >> 32) ^ x1[v] ^ k0;
			x1[v] = q;
			x2[v] = (p >> 32) ^ x3[v] ^ k1;
			x3[v] = p;
		}
		k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
	}
	for (int v = 0; v < 4; v++) {
		vq low = (x0[v] & 0xffffffff) | x1[v] << 32;
		vq high = (x2[v] & 0xffffffff) | x3[v] << 32;
		vq y[2] = { YK_SHUFFLE(low, high, YK_ZIP_LOW),
			    YK_SHUFFLE(low, high, YK_ZIP_HIGH) };
		memcpy(to + 2 * v * VF, y, sizeof y);
	}
}

// The bits of elements first .. first + n - 1.
static inline void yk_philox_fill(uint32_t *to, uint64_t first, int64_t n, uint64_t key,
				  uint64_t step)
{
	uint32_t out[4 * YK_PHILOX_RUN];
	while (n > 0) {
		unsigned skip = first & 3;
		int64_t m = 4 * YK_PHILOX_RUN - skip;
		if (!skip && n >= m) {
			yk_philox_run(to, first >> 2, key, step);
		} else {
			m = m < n ? m : n;
			yk_philox_run(out, first >> 2, key, step);
			memcpy(to, out + skip, (size_t)m * sizeof *to);
		}
		to += m, first += (uint64_t)m, n -= m;
	}
}

// 24 bits of it as a float in [0,1).
YK_INLINE float yk_uniform_f32(uint32_t bits)
{
	return (float)(int32_t)(bits >> 8) * 0x1p-24f;
}

#endif
