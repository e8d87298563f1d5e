// SPDX-License-Identifier: Apache-2.0
// Adds the partial sums of a contraction whose k was split: each item adds those of one element in
// order and stores it. Their layout is described in contract_load.cl. Items: (n, m of each batch
// index), in groups of ACROSS x 1.
#include "contract_op.cl"

#ifndef ACROSS
#define ACROSS 64
#endif

KERNEL void WORK_GROUP(ACROSS, 1)
	contract_join(GLOBAL uchar *parts_base, ulong parts_at, contraction s Y_PARAMS)
{
	ulong index, all = (ulong)s.all, n = GLOBAL_ID(0);
	long m;
	GLOBAL const PART *from = (GLOBAL const PART *)(parts_base + parts_at);
	PART sum = 0;

	if (!line_of(s, &m, &index) || n >= (ulong)s.n)
		return;
	for (ulong part = 0; part < (ulong)s.cut[3]; part++)
		sum = ADD_PARTS(
			sum, from[((part * all + index) * (ulong)s.m + (ulong)m) * (ulong)s.n + n]);
	put_sum(sum, s, index, matrix_at(s, index, 0), m, (long)n Y_ARGS);
}
