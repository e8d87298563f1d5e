// SPDX-License-Identifier: Apache-2.0
// The parts of a contraction whose k was split: each item adds those of one element in order and stores it.
// Parts lie as contract_load.cl says.  Items: (n, m, leading index), in groups of ACROSS x 1.
#include "contract_op.cl"

#ifndef ACROSS
#define ACROSS 64
#endif

KERNEL void WORK_GROUP(ACROSS, 1) contract_join(GLOBAL uchar *parts_base, ulong parts_at, contraction s Y_PARAMS)
{
	ulong index = GROUP_ID(2), all = GROUPS(2), m = GROUP_ID(1), n = GLOBAL_ID(0);
	GLOBAL const float *from = (GLOBAL const float *)(parts_base + parts_at);
	float sum = 0.0f;

	if (n >= (ulong)s.n)
		return;
	for (ulong part = 0; part < (ulong)s.cut[3]; part++)
		sum += from[((part * all + index) * (ulong)s.m + m) * (ulong)s.n + n];
	put_sum(sum, s, index, matrix_at(s, index, 0), (long)m, (long)n Y_ARGS);
}
