// SPDX-License-Identifier: Apache-2.0
// Contraction with matrix units (matrix.cl): f16, bf16, i8 and u8 directly, f32 rounded to tf32.
// Tiles of a and b are double-buffered in local memory; the elements of a line along k are
// adjacent.
// A group computes BM x BN elements with WARPS_M x WARPS_N warps, each with TILES_M x TILES_N
// matrices of 16 x 16. Groups: see contract_load.cl. Reference: kern_contract.c of the CPU backend.
// MATRIX is DTYPE; WARP is the number of items per warp.
#ifndef MATRIX
#define MATRIX 3
#define DTYPE 3
#endif
#include "contract_load.cl"
#include "matrix.cl"

#ifndef WARPS_M
#define WARPS_M 2
#define WARPS_N 4
#endif
#ifndef TILES_M
#define TILES_M 4
#define TILES_N 2
#endif
#ifndef BK // steps of k in local memory
#define BK (4 * PER)
#endif
#define BM (WARPS_M * TILES_M * 16)
#define BN (WARPS_N * TILES_N * 16)
#define ITEMS (WARPS_M * WARPS_N * WARP)
#define LD (BK + PER) // padded so that lines read at the same time are in different banks
#define FETCH_A (BM * BK / PER / ITEMS) // quads per item
#define FETCH_B (BN * BK / PER / ITEMS)

FN void tile_put(uint quads[][4], int n, LOCAL_POINTER element *to, int form, int lines, int item)
{
	UNROLL
	for (int e = 0; e < n; e++) {
		int line, step;
		quad_place(e * ITEMS + item, form, false, lines, BK, &line, &step);
		if (form & ALONG_K) {
			quad_store(quads[e], to + line * LD + step);
			continue;
		}
		UNROLL
		for (int i = 0; i < 4; i++) {
#if PER == 4
			to[(line + i) * LD + step] = AS_FLOAT(quads[e][i]);
#else
			UNROLL
			for (int k = 0; k < EACH_WORD; k++)
				to[(line + EACH_WORD * i + k) * LD + step] =
					(element)(quads[e][i] >> 32 / EACH_WORD * k);
#endif
		}
	}
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) contract_matrix(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	LOCAL element a_tile[2][BM * LD], b_tile[2][BN * LD];
	struct matrix_sums sums[TILES_M][TILES_N];
	uint a_quads[FETCH_A][4], b_quads[FETCH_B][4];
	int item = LOCAL_ID(0), lane = item % WARP, warp = item / WARP, now = 0;
	int line_m = warp / WARPS_N * TILES_M * 16, line_n = warp % WARPS_N * TILES_N * 16;
	struct block block;
	if (!block_of(&block, s, BM, BN))
		return;
	struct side a = side_a(a_base, a_at, s, &block), b = side_b(b_base, b_at, s, &block);

	UNROLL
	for (int i = 0; i < TILES_M; i++)
		UNROLL
		for (int j = 0; j < TILES_N; j++)
			sums[i][j] = matrix_zero();
	tile_fetch(a_quads, FETCH_A, &a, A_FORM, false, BM, BK, 0, ITEMS, item);
	tile_fetch(b_quads, FETCH_B, &b, B_FORM, false, BN, BK, 0, ITEMS, item);
	tile_put(a_quads, FETCH_A, a_tile[0], A_FORM, BM, item);
	tile_put(b_quads, FETCH_B, b_tile[0], B_FORM, BN, item);
	BARRIER();
	for (long first = 0; first < a.steps; first += BK) {
		bool more = first + BK < a.steps;
		if (more) {
			tile_fetch(a_quads, FETCH_A, &a, A_FORM, false, BM, BK, first + BK, ITEMS,
				   item);
			tile_fetch(b_quads, FETCH_B, &b, B_FORM, false, BN, BK, first + BK, ITEMS,
				   item);
		}
		UNROLL_READS
		for (int k = 0; k < BK; k += MATRIX_K) {
			struct matrix_part x[TILES_M], y[TILES_N];
			UNROLL
			for (int i = 0; i < TILES_M; i++)
				x[i] = matrix_a(a_tile[now] + (line_m + i * 16) * LD + k, LD, lane);
			UNROLL
			for (int j = 0; j < TILES_N; j++)
				y[j] = matrix_b(b_tile[now] + (line_n + j * 16) * LD + k, LD, lane);
			UNROLL
			for (int i = 0; i < TILES_M; i++)
				UNROLL
				for (int j = 0; j < TILES_N; j++)
					matrix_multiply(&sums[i][j], &x[i], &y[j], lane);
		}
		now = 1 - now;
		if (more) {
			tile_put(a_quads, FETCH_A, a_tile[now], A_FORM, BM, item);
			tile_put(b_quads, FETCH_B, b_tile[now], B_FORM, BN, item);
		}
		BARRIER();
	}
	long y_matrix = matrix_at(s, block.index, 0);
	UNROLL
	for (int i = 0; i < TILES_M; i++)
		UNROLL
		for (int j = 0; j < TILES_N; j++)
			UNROLL
			for (int e = 0; e < MATRIX_SUMS; e++)
				finish_sum(sums[i][j].x[e], s, &block, y_matrix,
					block.m + line_m + i * 16 + matrix_row(e, lane),
					block.n + line_n + j * 16 + matrix_column(e, lane) Y_ARGS);
}
