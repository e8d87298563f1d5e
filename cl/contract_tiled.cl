// SPDX-License-Identifier: Apache-2.0
// Contraction of any dtype and strides; with VEC_WIDTH 1 the sums have the type ACC.
//
// The items of a group load blocks of both matrices, zero-padded, and add their products. Groups:
// (ceil(N / BN), ceil(M / BM), batch index).
#include "contract_op.cl"
#include "tile.cl"

// Loads BK x width elements as [k][r]: row or column first_r + r, step first_k + k; zeros beyond
// the matrix. Neighbouring items read along the contiguous axis.
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
	ulong index;
	long line;
	if (!line_of(s, &line, &index))
		return;
	long first_m = line * BM, first_n = (long)GROUP_ID(0) * BN;
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	long y_matrix = matrix_at(s, index, 0);
	GLOBAL STORED *a = (GLOBAL STORED *)(a_base + a_at) + matrix_at(s, index, 1);
	GLOBAL STORED *b = (GLOBAL STORED *)(b_base + b_at) + matrix_at(s, index, 2);

	clear_tile(sum);
	for (long first_k = 0; first_k < s.k; first_k += BK) {
		load_block(a_block, BM, item, a, first_m, s.m, s.a_m, first_k, s.k, s.a_k);
		load_block(b_block, BN, item, b, first_n, s.n, s.b_n, first_k, s.k, s.b_k);
		BARRIER();
		add_blocks(sum, a_block, b_block, item_m, item_n);
		BARRIER();
	}
	for (int i = 0; i < TM; i++)
		for (int j = 0; j < TN; j++) {
			long m = first_m + i * WG_M + item_m, n = first_n + j * WG_N + item_n;
			if (m < s.m && n < s.n)
				put_sum(sum[i][j], s, index, y_matrix, m, n Y_ARGS);
		}
}
