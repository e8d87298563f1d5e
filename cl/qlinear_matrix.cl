// SPDX-License-Identifier: Apache-2.0
// QLINEAR with many rows of x, by matrix units (matrix.cl): x [M,K], w u8 [N,bytes] -> y [M,N].
// Reference: kern_qlinear.c of the CPU backend.
//
// The units multiply x with the integers of w, which 16 bits hold exactly; the sums of a group, or
// in Q6_K of a half, are then scaled and added in f32, in ascending order of K. MATRIX is 3 (f16)
// for x in f16, or 4 (bf16) for any x: f32 and f16 become two numbers of bf16, the second of which
// is the rounded remainder, with an error of at most 2^-16. F16 and BF16 weights have MATRIX's
// dtype, and x is not f32.
// A group computes BM x BN elements with WARPS_M x WARPS_N warps, each with TILES_M x TILES_N
// matrices of 16 x 16. Groups: (ceil(N / BN), ceil(M / BM)).
#ifndef MATRIX
#define MATRIX 4
#endif
#ifndef WARPS_M
#define WARPS_M 2
#define WARPS_N 2
#endif
#ifndef ITEMS // WARPS_M * WARPS_N * WARP
#define ITEMS 128
#endif
#include "qlinear.cl"
#include "matrix.cl"

#ifndef TILES_M
#define TILES_M 2
#define TILES_N 2
#endif
#define BK 32 // a group of elements
#define STEPS (BK / MATRIX_K)
#define BM (WARPS_M * TILES_M * 16)
#define BN (WARPS_N * TILES_N * 16)
#define LD (BK + 8) // padded so that lines read at the same time are in different banks
#define PARTS (ITEMS / BM) // items that fill a line of a tile; BM = BN
#define QUADS (BK / 4 / PARTS)
#if MATRIX == 3 || STORE == 2
#define TERMS 1
#else
#define TERMS 2
#endif

// x in 16 bits; truncated for bf16.
FN ushort exact_bits(float x)
{
#if MATRIX == 3
	return f16_of_f32(x);
#else
	return (ushort)(AS_UINT(x) >> 16);
#endif
}

// An item's part of a line of x and of a line of w, in registers between global memory and the
// tiles.
struct lines {
	float x[QUADS][4], q[QUADS][4];
	struct group b;
};

FN struct lines lines_load(GLOBAL const stored *row, GLOBAL const uchar *w, long first, long k,
			   int part)
{
	struct lines l;
	l.b = group_of(w, first / BK);
	UNROLL
	for (int i = 0; i < QUADS; i++) {
		int e = 4 * (part + i * PARTS);
		quad_get(row + first + e, k - first - e, l.x[i]);
		quad_numbers(&l.b, e, k - first - e, l.q[i]);
	}
	return l;
}

// `to` and `rest`: the terms of x. Returns the sum of the part.
FN float x_store(LOCAL_POINTER ushort *to, LOCAL_POINTER ushort *rest, const struct lines *l,
		 int part)
{
	float sum = 0.0f;
	UNROLL
	for (int i = 0; i < QUADS; i++) {
		int at = 4 * (part + i * PARTS);
		UNROLL
		for (int j = 0; j < 4; j++) {
			float x = l->x[i][j];
			ushort bits = exact_bits(x);
			sum += x;
			to[at + j] = bits;
#if TERMS == 2
			rest[at + j] = bf16_of_f32(x - f32_of_bf16(bits));
#endif
		}
	}
	return sum;
}

FN void w_store(LOCAL_POINTER ushort *to, const struct lines *l, int part)
{
	UNROLL
	for (int i = 0; i < QUADS; i++)
		UNROLL
		for (int j = 0; j < 4; j++)
			to[4 * (part + i * PARTS) + j] = exact_bits(l->q[i][j]);
}

// Scales the sums of a group or a half and adds them.
FN void fold(float *sum, const struct matrix_sums *s, LOCAL_POINTER const float *scale, int lane)
{
	UNROLL
	for (int e = 0; e < MATRIX_SUMS; e++)
		sum[e] = FMA(scale[matrix_column(e, lane)], s->x[e], sum[e]);
}

#ifdef HAS_MIN
FN void fold_min(float *sum, LOCAL_POINTER const float *min, LOCAL_POINTER const float *totals,
		 int lane)
{
	UNROLL
	for (int e = 0; e < MATRIX_SUMS; e++) {
		float total = 0.0f;
		UNROLL
		for (int p = 0; p < PARTS; p++)
			total += totals[p * BM + matrix_row(e, lane)];
		sum[e] = FMA(min[matrix_column(e, lane)], total, sum[e]);
	}
}
#endif

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	qlinear_matrix(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *x_base, ulong x_at,
		       GLOBAL uchar *w_base, ulong w_at, struct qlinear s)
{
	LOCAL ushort x_tile[TERMS][BM * LD], w_tile[BN * LD];
	LOCAL float scale[2 * BN]; // of the halves
#ifdef HAS_MIN
	LOCAL float min[BN], totals[PARTS * BM];
#endif
	float sum[TILES_M][TILES_N][MATRIX_SUMS];
	int item = LOCAL_ID(0), lane = item % WARP, warp = item / WARP, line = item / PARTS,
	    part = item % PARTS;
	int line_m = warp / WARPS_N * TILES_M * 16, line_n = warp % WARPS_N * TILES_N * 16;
	long m = (long)GROUP_LINE() * BM, n = (long)GROUP_ID(0) * BN;
	if (m >= s.m)
		return;
	GLOBAL const stored *row = row_at(x_base, x_at, &s.x, m + line < s.m ? m + line : s.m - 1);
	GLOBAL const uchar *w = w_base + w_at + (n + line < s.n ? n + line : s.n - 1) * s.step;

	UNROLL
	for (int i = 0; i < TILES_M; i++)
		UNROLL
		for (int j = 0; j < TILES_N; j++)
			UNROLL
			for (int e = 0; e < MATRIX_SUMS; e++)
				sum[i][j][e] = 0.0f;
	struct lines next = lines_load(row, w, 0, s.k, part);
	for (long first = 0; first < s.k; first += BK) {
		float total =
			x_store(x_tile[0] + line * LD, x_tile[TERMS - 1] + line * LD, &next, part);
		w_store(w_tile + line * LD, &next, part);
		if (part == 0) {
			scale[line] = next.b.scale[0];
			scale[BN + line] = next.b.scale[1];
		}
#ifdef HAS_MIN
		if (part == 0)
			min[line] = next.b.min;
		totals[part * BM + line] = total;
#else
		(void)total;
#endif
		BARRIER();
		if (first + BK < s.k) // its loads overlap with the products
			next = lines_load(row, w, first + BK, s.k, part);
		struct matrix_part y[TILES_N][STEPS];
		UNROLL
		for (int j = 0; j < TILES_N; j++)
			UNROLL
			for (int k = 0; k < STEPS; k++)
				y[j][k] = matrix_b(w_tile + (line_n + j * 16) * LD + k * MATRIX_K,
						   LD, lane);
		UNROLL
		for (int i = 0; i < TILES_M; i++) {
			struct matrix_part x[TERMS][STEPS];
			UNROLL
			for (int t = 0; t < TERMS; t++)
				UNROLL
				for (int k = 0; k < STEPS; k++)
					x[t][k] = matrix_a(x_tile[t] + (line_m + i * 16) * LD +
								   k * MATRIX_K,
							   LD, lane);
			UNROLL
			for (int j = 0; j < TILES_N; j++) {
				int column = line_n + j * 16;
				struct matrix_sums z = matrix_zero();
				UNROLL
				for (int k = 0; k < STEPS; k++) {
					UNROLL
					for (int t = 0; t < TERMS; t++)
						matrix_multiply(&z, &x[t][k], &y[j][k], lane);
#if FORMAT == 14
					fold(sum[i][j], &z, scale + k * BN + column, lane);
					z = matrix_zero();
#endif
				}
#if FORMAT != 14
				fold(sum[i][j], &z, scale + column, lane);
#endif
#ifdef HAS_MIN
				fold_min(sum[i][j], min + column, totals + line_m + i * 16, lane);
#endif
			}
		}
		BARRIER();
	}
	UNROLL
	for (int i = 0; i < TILES_M; i++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			long r = m + line_m + i * 16 + matrix_row(e, lane);
			if (r >= s.m)
				continue;
			GLOBAL stored *y = row_at(y_base, y_at, &s.y, r);
			UNROLL
			for (int j = 0; j < TILES_N; j++) {
				long c = n + line_n + j * 16 + matrix_column(e, lane);
				if (c < s.n)
					store_one(sum[i][j][e], y + c);
			}
		}
}
