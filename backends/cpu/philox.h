// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, the counter-based random bits of every device (Salmon et al., SC 2011).
// Counter words 0-1 are index / 4, words 2-3 the step, key words the key; lane = index
// mod 4.
#ifndef YK_PHILOX_H
#define YK_PHILOX_H

#include <string.h>

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

#define YK_PHILOX_RUN 32 // counters worked on together

// The bits of elements first .. first + n - 1.
static inline void yk_philox_fill(uint32_t *to, uint64_t first, int64_t n, uint64_t key,
				  uint64_t step)
{
	uint32_t w[4][YK_PHILOX_RUN], out[4 * YK_PHILOX_RUN];
	while (n > 0) {
		uint64_t q = first >> 2;
		unsigned skip = first & 3;
		for (int i = 0; i < YK_PHILOX_RUN; i++) {
			w[0][i] = (uint32_t)(q + (unsigned)i);
			w[1][i] = (uint32_t)((q + (unsigned)i) >> 32);
			w[2][i] = (uint32_t)step;
			w[3][i] = (uint32_t)(step >> 32);
		}
		YK_SIMD
		for (int i = 0; i < YK_PHILOX_RUN; i++)
			yk_philox(&w[0][i], &w[1][i], &w[2][i], &w[3][i], (uint32_t)key,
				  (uint32_t)(key >> 32));
		for (int i = 0; i < YK_PHILOX_RUN; i++)
			for (int lane = 0; lane < 4; lane++)
				out[4 * i + lane] = w[lane][i];
		int64_t m = 4 * YK_PHILOX_RUN - skip;
		m = m < n ? m : n;
		memcpy(to, out + skip, (size_t)m * sizeof *to);
		to += m, first += (uint64_t)m, n -= m;
	}
}

// 24 bits of it as a float in [0,1).
YK_INLINE float yk_uniform_f32(uint32_t bits)
{
	return (float)(int32_t)(bits >> 8) * 0x1p-24f;
}

#endif
