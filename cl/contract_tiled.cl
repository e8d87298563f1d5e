// SPDX-License-Identifier: Apache-2.0
// Contraction of any strides and dtype; with VEC_WIDTH 1 the sums have the type ACC.
//
// A work group computes a block of BM x BN elements of y; along K it goes in steps of BK:
// its items load both blocks into local memory, zeros where the matrices end, then each
// item computes TM rows of TN sums, that lie WG_M and WG_N apart so that neighbouring items
// write neighbours.  Each element is one sum over k in ascending order, whatever the parameters.
// Groups: (ceil(N / BN), ceil(M / BM), leading index).
#include "contract_op.cl"

#ifndef WG_M // items along rows, along columns
#define WG_M 16
#define WG_N 16
#endif
#ifndef TM // rows, columns of an item
#define TM 4
#define TN 4
#endif
#ifndef BK
#define BK 16
#endif
#define BM (WG_M * TM)
#define BN (WG_N * TN)
#define ITEMS (WG_M * WG_N)
#if DTYPE == 1 || DTYPE == 3 || DTYPE == 4
#define TILE_FMA(a, b, c) VEC_FMA(a, b, c)
#else
#define TILE_FMA(a, b, c) ((a) * (b) + (c))
#endif

// BK x width elements, [k][r]: row or column first_r + r, step first_k + k; zeros beyond the
// matrix.  Neighbouring items read along whichever axis is contiguous.
FN void load_block(LOCAL_POINTER ACC *to, int width, int item, GLOBAL STORED *from,
	long first_r, long r_size, long r_stride, long first_k, long k_size, long k_stride)
{
	for (int e = item; e < BK * width; e += ITEMS) {
		int k = k_stride == 1 ? e % BK : e / width;
		int r = k_stride == 1 ? e / BK : e % width;
		bool inside = first_k + k < k_size && first_r + r < r_size;
		long at = (first_r + r) * r_stride + (first_k + k) * k_stride;
		to[k * width + r] = inside ? LOAD(from[at]) : (ACC)0;
	}
}

KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M) contract_tiled(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	LOCAL ACC a_block[BK * BM], b_block[BK * BN]; // [k][m], [k][n]
	ACC sum[TM][TN];
	long first_m = (long)GROUP_ID(1) * BM, first_n = (long)GROUP_ID(0) * BN;
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	ulong index = GROUP_ID(2);
	long y_matrix = matrix_at(s, index, 0);
	GLOBAL STORED *a = (GLOBAL STORED *)(a_base + a_at) + matrix_at(s, index, 1);
	GLOBAL STORED *b = (GLOBAL STORED *)(b_base + b_at) + matrix_at(s, index, 2);

	UNROLL
	for (int i = 0; i < TM; i++)
		UNROLL
		for (int j = 0; j < TN; j++)
			sum[i][j] = (ACC)0;
	for (long first_k = 0; first_k < s.k; first_k += BK) {
		load_block(a_block, BM, item, a, first_m, s.m, s.a_m, first_k, s.k, s.a_k);
		load_block(b_block, BN, item, b, first_n, s.n, s.b_n, first_k, s.k, s.b_k);
		BARRIER();
		for (int k = 0; k < BK; k++) {
			ACC v[TN];
			UNROLL
			for (int j = 0; j < TN; j++)
				v[j] = b_block[k * BN + j * WG_N + item_n];
			UNROLL
			for (int i = 0; i < TM; i++) {
				ACC x = a_block[k * BM + i * WG_M + item_m];
				UNROLL
				for (int j = 0; j < TN; j++)
					sum[i][j] = TILE_FMA(x, v[j], sum[i][j]);
			}
		}
		BARRIER();
	}
	for (int i = 0; i < TM; i++)
		for (int j = 0; j < TN; j++) {
			long m = first_m + i * WG_M + item_m, n = first_n + j * WG_N + item_n;
			if (m < s.m && n < s.n)
				put_sum(sum[i][j], s, index, y_matrix, m, n Y_ARGS);
		}
}
