// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 (Salmon et al. 2011): the random bits of one element. Counter words 0-1 are index
// / 4, words 2-3 the step; the lane is index mod 4.
#include "prologue.h"

// The bits of elements 4 n .. 4 n + 3.
FN void rand_four(ulong n, long key, long step, uint *to)
{
	uint c0 = (uint)n, c1 = (uint)(n >> 32);
	uint c2 = (uint)step, c3 = (uint)((ulong)step >> 32);
	uint k0 = (uint)key, k1 = (uint)((ulong)key >> 32);
	UNROLL
	for (int round = 0; round < 10; round++) {
		ulong p = (ulong)0xd2511f53u * c0, q = (ulong)0xcd9e8d57u * c2;
		c0 = (uint)(q >> 32) ^ c1 ^ k0;
		c1 = (uint)q;
		c2 = (uint)(p >> 32) ^ c3 ^ k1;
		c3 = (uint)p;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	to[0] = c0;
	to[1] = c1;
	to[2] = c2;
	to[3] = c3;
}

FN int rand_bits(long index, long key, long step)
{
	uint w[4];
	rand_four((ulong)index >> 2, key, step, w);
	// no branch, so that EACH loops vectorize
	uint even = index & 2 ? w[2] : w[0], odd = index & 2 ? w[3] : w[1];
	return (int)(index & 1 ? odd : even);
}
