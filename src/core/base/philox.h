// SPDX-License-Identifier: Apache-2.0
// The counter-based generator of random numbers: the same numbers on every device, in any order.
#ifndef YK_PHILOX_H
#define YK_PHILOX_H

#include <stdint.h>

// Philox 4x32-10 (Salmon et al. 2011): word index % 4 of the block of counter (index / 4, step)
static inline uint32_t yk_philox(uint64_t index, uint64_t key, uint64_t step)
{
	uint32_t c[4] = { (uint32_t)(index / 4), (uint32_t)(index / 4 >> 32),
			  (uint32_t)step, (uint32_t)(step >> 32) };
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int r = 0; r < 10; r++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
		uint64_t p = (uint64_t)0xD2511F53 * c[0], q = (uint64_t)0xCD9E8D57 * c[2];
		uint32_t a = (uint32_t)(q >> 32) ^ c[1] ^ k0,
			 b = (uint32_t)(p >> 32) ^ c[3] ^ k1;
		c[0] = a, c[1] = (uint32_t)q, c[2] = b, c[3] = (uint32_t)p;
	}
	return c[index % 4];
}

#endif
