// SPDX-License-Identifier: Apache-2.0
// Tiled products: a work group computes BM x BN sums, an item TM rows of TN, spaced WG_M and WG_N
// apart so that neighbouring items write neighbouring elements. The summed axis is processed in
// steps of BK, whose blocks are in local memory. Sums are in ascending order, whatever the
// parameters. The including text defines ACC, the type of sums, and DTYPE.

#ifndef WG_M // items along rows, along columns
#define WG_M 16
#define WG_N 16
#endif
#ifndef TM // rows, columns per item
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
#define TILE_FMA(a, b, c) FMA(a, b, c)
#else
#define TILE_FMA(a, b, c) ((a) * (b) + (c))
#endif

FN void clear_tile(ACC sum[TM][TN])
{
	UNROLL
	for (int i = 0; i < TM; i++)
		UNROLL
		for (int j = 0; j < TN; j++)
			sum[i][j] = (ACC)0;
}

// Adds the product of two blocks, [k][row] and [k][column].
FN void add_blocks(ACC sum[TM][TN], const LOCAL_POINTER ACC *a_block,
		   const LOCAL_POINTER ACC *b_block, int item_m, int item_n)
{
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
}
