// SPDX-License-Identifier: Apache-2.0
// Measures a device's peak arithmetic rate: independent chains of multiply-adds in registers, more
// than any core's latency times throughput to date; and an empty kernel.
#include "prologue.h"

#define CHAINS 12

KERNEL void limit_f32(GLOBAL float *to, ulong rounds)
{
	VEC s[CHAINS], a = VEC_SPLAT(0.5f), b = VEC_SPLAT(1.0f), all;
	UNROLL
	for (int k = 0; k < CHAINS; k++)
		// equal chains would be merged into one
		s[k] = VEC_SPLAT((float)(GLOBAL_ID(0) + k));
	for (ulong i = 0; i < rounds; i++) {
		UNROLL
		for (int k = 0; k < CHAINS; k++)
			s[k] = VEC_FMA(s[k], a, b);
	}
	all = s[0];
	UNROLL
	for (int k = 1; k < CHAINS; k++)
		all = all + s[k];
	if (VEC_SUM(all) == -1.0f) // never true
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
