// SPDX-License-Identifier: Apache-2.0
// Contraction on CPU drivers for small problems: one launch, no workspace, K up to K_MAX.
//
// A group (one item, no barriers) converts a panel of NV * VEC_WIDTH columns of b into local memory
// and multiplies cut[0] rows of a with it, MR at a time, reading a in place. Each element is summed
// over k in ascending order. Groups: (panels of columns, blocks of rows, batch index).
#include "contract_op.cl"

#ifndef MR // rows per tile; vectors per row of a tile
#define MR 12
#define NV 2
#endif
#ifndef K_MAX
#define K_MAX 256
#endif
#define NR (NV * VEC_WIDTH)

KERNEL void WORK_GROUP(1, 1) contract_direct(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	LOCAL float panel[K_MAX * NR]; // [k][column]
	ulong index;
	long line;
	if (!line_of(s, &line, &index))
		return;
	long n = (long)GROUP_ID(0) * NR, first = line * s.cut[0];
	long last = min_of(first + s.cut[0], s.m);
	int columns = (int)min_of(NR, s.n - n);
	long y_matrix = matrix_at(s, index, 0);
	GLOBAL STORED *as = (GLOBAL STORED *)(a_base + a_at) + matrix_at(s, index, 1);
	GLOBAL STORED *b = (GLOBAL STORED *)(b_base + b_at) +
		(matrix_at(s, index, 2) + n * s.b_n);

	if (s.b_n == 1 && columns == NR)
		for (long k = 0; k < s.k; k++)
			for (int j = 0; j < NR; j++)
				panel[k * NR + j] = LOAD(b[k * s.b_k + j]);
	else
		for (int j = 0; j < NR; j++)
			for (long k = 0; k < s.k; k++)
				panel[k * NR + j] = j < columns ?
					LOAD(b[k * s.b_k + j * s.b_n]) : 0.0f;
	for (long m = first; m < last; m += MR) {
		VEC sum[MR][NV];
		long row[MR]; // rows beyond the last repeat the last
		int rows = (int)min_of(MR, last - m);
		LOCAL_POINTER float *p = panel;
		GLOBAL STORED *a = as;
		UNROLL
		for (int i = 0; i < MR; i++) {
			row[i] = (m + min_of(i, rows - 1)) * s.a_m;
			UNROLL
			for (int j = 0; j < NV; j++)
				sum[i][j] = VEC_SPLAT(0.0f);
		}
		for (long k = 0; k < s.k; k++, p += NR, a += s.a_k) {
			VEC v[NV];
			UNROLL
			for (int j = 0; j < NV; j++)
				v[j] = VEC_LOAD(p + j * VEC_WIDTH);
			UNROLL
			for (int i = 0; i < MR; i++) {
				VEC x = VEC_SPLAT(LOAD(a[row[i]]));
				UNROLL
				for (int j = 0; j < NV; j++)
					sum[i][j] = VEC_FMA(x, v[j], sum[i][j]);
			}
		}
		if (DENSE_Y(s) && rows == MR && columns == NR) {
			UNROLL
			for (int i = 0; i < MR; i++)
				UNROLL
				for (int j = 0; j < NV; j++)
					PUT_VEC(sum[i][j], s, y_matrix, m + i, n + j * VEC_WIDTH);
			continue;
		}
		float tile[MR][NR];
		UNROLL
		for (int i = 0; i < MR; i++)
			UNROLL
			for (int j = 0; j < NV; j++)
				VEC_STORE(sum[i][j], tile[i] + j * VEC_WIDTH);
		put_tile(tile[0], NR, s, index, y_matrix, m, n, rows, columns Y_ARGS);
	}
}
