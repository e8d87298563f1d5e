// SPDX-License-Identifier: Apache-2.0
// What a device reaches at most: chains of multiply-adds in registers that do not depend on each other, more of them
// than any core's latency times its throughput so far; and a kernel that does nothing.
#include "prologue.h"

#define CHAINS 12

KERNEL void limit_f32(GLOBAL float *to, ulong rounds)
{
	VEC s[CHAINS], a = VEC_SPLAT(0.5f), b = VEC_SPLAT(1.0f), all;
	UNROLL
	for (int k = 0; k < CHAINS; k++)
		s[k] = VEC_SPLAT((float)(GLOBAL_ID(0) + k)); // equal chains would be one
	for (ulong i = 0; i < rounds; i++) {
		UNROLL
		for (int k = 0; k < CHAINS; k++)
			s[k] = VEC_FMA(s[k], a, b);
	}
	all = s[0];
	UNROLL
	for (int k = 1; k < CHAINS; k++)
		all = all + s[k];
	if (VEC_SUM(all) == -1.0f) // never
		to[0] = 0.0f;
}

KERNEL void limit_nothing(GLOBAL float *to, ulong rounds)
{
	if (rounds == 1)
		to[0] = 0.0f;
}

#ifdef USE_F64
KERNEL void limit_f64(GLOBAL float *to, ulong rounds)
{
	double s[CHAINS], all = 0.0;
	UNROLL
	for (int k = 0; k < CHAINS; k++)
		s[k] = (double)(GLOBAL_ID(0) + k);
	for (ulong i = 0; i < rounds; i++) {
		UNROLL
		for (int k = 0; k < CHAINS; k++)
			s[k] = fma(s[k], 0.5, 1.0);
	}
	UNROLL
	for (int k = 0; k < CHAINS; k++)
		all += s[k];
	if (all == -1.0)
		to[0] = 0.0f;
}
#endif
