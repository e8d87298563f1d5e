// SPDX-License-Identifier: Apache-2.0
// Contraction on CPU drivers: packs panels of both operands in f32, then computes tiles of MR x NV
// vectors of sums in registers. One item per group and no barriers, since such drivers run a group
// as a loop.
//
// For each batch index, the workspace holds panels of MR rows of a as [panel][k][MR], then panels
// of NR columns of b as [panel][k][NR], zero-padded. A block of cut[0] x cut[1] panels is a group
// of contract_packed; a panel of b stays in L2 while those of a pass. Each element is summed over k
// in ascending order, so block sizes do not change any bit.
#include "contract_op.cl"

#ifndef MR // rows per tile; vectors per row of a tile
#define MR 12
#define NV 2
#endif
#define NR (NV * VEC_WIDTH)
#define STEP 16 // steps of k per transposed block

// Packs rows or columns first .. first + width of a matrix, steps k0 .. k1 - 1, to [k * width + r].
FN void pack(GLOBAL float *to, GLOBAL STORED *from, long first, long size, long r_stride,
	     long k0, long k1, long k_stride, int width)
{
	long rows = min_of(width, size - first), k = k0;
	from += first * r_stride;
	if (rows == width && r_stride == 1)
		for (; k < k1; k++)
			for (int r = 0; r < width; r++)
				to[k * width + r] = LOAD(from[k * k_stride + r]);
	if (rows == width && k_stride == 1)
		for (; k + STEP <= k1; k += STEP) {
			float piece[STEP][MR > NR ? MR : NR];
			for (int r = 0; r < width; r++)
				for (int i = 0; i < STEP; i++)
					piece[i][r] = LOAD(from[r * r_stride + k + i]);
			for (int i = 0; i < STEP; i++)
				for (int r = 0; r < width; r++)
					to[(k + i) * width + r] = piece[i][r];
		}
	for (; k < k1; k++)
		for (int r = 0; r < width; r++)
			to[k * width + r] =
				r < rows ? LOAD(from[r * r_stride + k * k_stride]) : 0.0f;
}

// Groups: (panels of a + panels of b, chunks of cut[2] steps of k, batch index).
KERNEL void WORK_GROUP(1, 1) contract_pack(GLOBAL uchar *work_base, ulong work_at,
	GLOBAL uchar *a_base, ulong a_at, GLOBAL uchar *b_base, ulong b_at, contraction s)
{
	ulong index;
	long line;
	if (!line_of(s, &line, &index))
		return;
	long a_panels = (s.m + MR - 1) / MR, b_panels = (s.n + NR - 1) / NR;
	long panel = (long)GROUP_ID(0), k0 = line * s.cut[2];
	long k1 = min_of(k0 + s.cut[2], s.k);
	GLOBAL float *to = (GLOBAL float *)(work_base + work_at) +
		(long)index * (a_panels * MR + b_panels * NR) * s.k;

	if (panel < a_panels) {
		GLOBAL STORED *a = (GLOBAL STORED *)(a_base + a_at) + matrix_at(s, index, 1);
		pack(to + panel * MR * s.k, a, panel * MR, s.m, s.a_m, k0, k1, s.a_k, MR);
	} else {
		GLOBAL STORED *b = (GLOBAL STORED *)(b_base + b_at) + matrix_at(s, index, 2);
		panel -= a_panels;
		pack(to + a_panels * MR * s.k + panel * NR * s.k, b, panel * NR, s.n, s.b_n,
		     k0, k1, s.b_k, NR);
	}
}

// Groups: (blocks of columns, blocks of rows, batch index).
KERNEL void WORK_GROUP(1, 1) contract_packed(GLOBAL uchar *work_base, ulong work_at,
	contraction s Y_PARAMS)
{
	ulong index;
	long line;
	if (!line_of(s, &line, &index))
		return;
	long a_panels = (s.m + MR - 1) / MR, b_panels = (s.n + NR - 1) / NR;
	long first_a = line * s.cut[0], first_b = (long)GROUP_ID(0) * s.cut[1];
	long last_a = min_of(first_a + s.cut[0], a_panels);
	long last_b = min_of(first_b + s.cut[1], b_panels);
	long y_matrix = matrix_at(s, index, 0);
	GLOBAL float *as = (GLOBAL float *)(work_base + work_at) +
		(long)index * (a_panels * MR + b_panels * NR) * s.k;
	GLOBAL float *bs = as + a_panels * MR * s.k;

	for (long pb = first_b; pb < last_b; pb++)
		for (long pa = first_a; pa < last_a; pa++) {
			GLOBAL float *a = as + pa * MR * s.k, *b = bs + pb * NR * s.k;
			VEC sum[MR][NV];
			UNROLL
			for (int i = 0; i < MR; i++)
				UNROLL
				for (int j = 0; j < NV; j++)
					sum[i][j] = VEC_SPLAT(0.0f);
			for (long k = 0; k < s.k; k++, a += MR, b += NR) {
				VEC v[NV];
				UNROLL
				for (int j = 0; j < NV; j++)
					v[j] = VEC_LOAD(b + j * VEC_WIDTH);
				UNROLL
				for (int i = 0; i < MR; i++) {
					VEC x = VEC_SPLAT(a[i]);
					UNROLL
					for (int j = 0; j < NV; j++)
						sum[i][j] = VEC_FMA(x, v[j], sum[i][j]);
				}
			}
			long m = pa * MR, n = pb * NR;
			int rows = (int)min_of(MR, s.m - m), columns = (int)min_of(NR, s.n - n);
			if (DENSE_Y(s) && rows == MR && columns == NR) {
				UNROLL
				for (int i = 0; i < MR; i++)
					UNROLL
					for (int j = 0; j < NV; j++)
						PUT_VEC(sum[i][j], s, y_matrix, m + i,
							n + j * VEC_WIDTH);
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
