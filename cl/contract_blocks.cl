// SPDX-License-Identifier: Apache-2.0
// Contraction of f32, f16 and bf16 on GPUs without matrix units, any strides: sums in registers,
// tiles of a and b double-buffered in local memory. Each element is summed over k in ascending
// order, so it has the same bits as contract_tiled.cl; except with SPLIT, where contract_join adds
// partial sums.
// A group computes BM x BN elements, an item TM x TN of them in blocks of 4 x 4 that are 4 WG_M
// rows and 4 WG_N columns apart. Groups: see contract_load.cl. Reference: kern_contract.c of the
// CPU backend.
#include "contract_load.cl"

#ifndef WG_M // items along rows, along columns
#define WG_M 16
#define WG_N 16
#endif
#ifndef TM // rows and columns per item: multiples of 4
#define TM 8
#define TN 8
#endif
#ifndef BK // steps of k in local memory
#define BK 16
#endif
#define BM (WG_M * TM)
#define BN (WG_N * TN)
#define ITEMS (WG_M * WG_N)
#define LDA (BM + 4) // padded so that neighbouring steps of a tile are in different banks
#define LDB (BN + 4)
#define FETCH_A (BM * BK / PER / ITEMS) // quads per item
#define FETCH_B (BN * BK / PER / ITEMS)

// Writes the values of a quad to [step][line] of a tile.
FN void quad_put(const uint *quad, LOCAL_POINTER float *to, int stride, int form, int line,
		 int step)
{
	float x[PER];
	UNROLL
	for (int i = 0; i < 4; i++) {
#if PER == 4
		x[i] = AS_FLOAT(quad[i]);
#else
		x[2 * i] = LOAD((ushort)(quad[i] & 0xffffu));
		x[2 * i + 1] = LOAD((ushort)(quad[i] >> 16));
#endif
	}
	UNROLL
	for (int i = 0; i < PER; i++)
		if (form & ALONG_K)
			to[(step + i) * stride + line] = x[i];
		else
			to[step * stride + line + i] = x[i];
}

FN void tile_put(uint quads[][4], int n, LOCAL_POINTER float *to, int stride, int form, int lines,
		 int item)
{
	UNROLL
	for (int e = 0; e < n; e++) {
		int line, step;
		quad_place(e * ITEMS + item, form, true, lines, BK, &line, &step);
		quad_put(quads[e], to, stride, form, line, step);
	}
}

FN void values_load(float *to, int n, LOCAL_POINTER const float *from, int apart)
{
	UNROLL
	for (int i = 0; i < n; i += 4)
		VEC_TO(VEC_LOAD(from + i / 4 * apart), to + i);
}

KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M) contract_blocks(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	LOCAL float a_tile[2][BK * LDA], b_tile[2][BK * LDB];
	float sum[TM][TN];
	uint a_quads[FETCH_A][4], b_quads[FETCH_B][4];
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n, now = 0;
	struct block block;
	if (!block_of(&block, s, BM, BN))
		return;
	struct side a = side_a(a_base, a_at, s, &block), b = side_b(b_base, b_at, s, &block);

	UNROLL
	for (int i = 0; i < TM; i++)
		UNROLL
		for (int j = 0; j < TN; j++)
			sum[i][j] = 0.0f;
	tile_fetch(a_quads, FETCH_A, &a, A_FORM, true, BM, BK, 0, ITEMS, item);
	tile_fetch(b_quads, FETCH_B, &b, B_FORM, true, BN, BK, 0, ITEMS, item);
	tile_put(a_quads, FETCH_A, a_tile[0], LDA, A_FORM, BM, item);
	tile_put(b_quads, FETCH_B, b_tile[0], LDB, B_FORM, BN, item);
	BARRIER();
	for (long first = 0; first < a.steps; first += BK) {
		bool more = first + BK < a.steps;
		if (more) {
			tile_fetch(a_quads, FETCH_A, &a, A_FORM, true, BM, BK, first + BK, ITEMS,
				   item);
			tile_fetch(b_quads, FETCH_B, &b, B_FORM, true, BN, BK, first + BK, ITEMS,
				   item);
		}
		UNROLL_READS
		for (int k = 0; k < BK; k++) {
			float x[TM], y[TN];
			values_load(x, TM, a_tile[now] + k * LDA + item_m * 4, 4 * WG_M);
			values_load(y, TN, b_tile[now] + k * LDB + item_n * 4, 4 * WG_N);
			UNROLL
			for (int i = 0; i < TM; i++)
				UNROLL
				for (int j = 0; j < TN; j++)
					sum[i][j] = FMA(x[i], y[j], sum[i][j]);
		}
		now = 1 - now;
		if (more) {
			tile_put(a_quads, FETCH_A, a_tile[now], LDA, A_FORM, BM, item);
			tile_put(b_quads, FETCH_B, b_tile[now], LDB, B_FORM, BN, item);
		}
		BARRIER();
	}
	long y_matrix = matrix_at(s, block.index, 0);
	UNROLL
	for (int i = 0; i < TM; i++)
		UNROLL
		for (int j = 0; j < TN; j++)
			finish_sum(sum[i][j], s, &block, y_matrix,
				   block.m + item_m * 4 + i / 4 * 4 * WG_M + i % 4,
				   block.n + item_n * 4 + j / 4 * 4 * WG_N + j % 4 Y_ARGS);
}
