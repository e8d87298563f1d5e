// SPDX-License-Identifier: Apache-2.0
// QLINEAR with many rows of x, by matrix units (matrix.cl): x [M,K], w u8 [N,bytes] -> y [M,N].
// Reference: kern_qlinear.c of the CPU backend.
//
// The units multiply x with the integers of w, which 16 bits hold exactly; the sums of a group, or
// in Q6_K of a half, are then scaled and added in f32, in ascending order of K. MATRIX is 3 (f16) for
// x in f16, or 4 (bf16) for any x: f32 and f16 become two numbers of bf16, the second of which is the
// rounded remainder, with an error of at most 2^-16. F16 and BF16 weights have MATRIX's dtype.
// A group computes BM x BN elements with WARPS_M x WARPS_N warps, each with TILES_M x TILES_N
// matrices of 16 x 16. Groups: (ceil(N / BN), ceil(M / BM)).
#ifndef MATRIX
#define MATRIX 4
#endif
#ifndef WARPS_M
#define WARPS_M 2
#define WARPS_N 2
#endif
#ifndef ITEMS
#define ITEMS (WARPS_M * WARPS_N * WARP)
#endif
#include "matrix.cl"
#include "qlinear.cl"

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
#if MATRIX == 3 || STORE == 2
#define TERMS 1
#else
#define TERMS 2
#endif

// Four elements of a line of a tile, from their low 16 bits.
FN void bits_put(LOCAL_POINTER ushort *to, const uint *bits)
{
	UNROLL
	for (int i = 0; i < 4; i++)
		to[i] = (ushort)bits[i];
}

FN uint exact_bits(float x)
{
#if MATRIX == 3
	return f16_of_f32(x);
#else
	return AS_UINT(x) >> 16;
#endif
}

// Fills a part of a line of x's tiles from element `first` on; returns the sum of the part.
FN float x_fill(LOCAL_POINTER ushort *to, LOCAL_POINTER ushort *rest, GLOBAL const stored *row, long left, int part)
{
	float sum = 0.0f;
	UNROLL
	for (int e = 4 * part; e < BK; e += 4 * PARTS) {
		float x[4];
		uint bits[4];
		quad_get(row + e, left - e, x);
		UNROLL
		for (int i = 0; i < 4; i++) {
			sum += x[i];
			bits[i] = exact_bits(x[i]);
		}
		bits_put(to + e, bits);
#if TERMS == 2
		UNROLL
		for (int i = 0; i < 4; i++)
			bits[i] = bf16_of_f32(x[i] - AS_FLOAT(bits[i] << 16));
		bits_put(rest + e, bits);
#endif
	}
	return sum;
}

FN void w_fill(LOCAL_POINTER ushort *to, const struct group *b, long left, int part)
{
	UNROLL
	for (int e = 4 * part; e < BK; e += 4 * PARTS) {
		float q[4];
		uint bits[4];
		quad_numbers(b, e, left - e, q);
		UNROLL
		for (int i = 0; i < 4; i++)
			bits[i] = exact_bits(q[i]);
		bits_put(to + e, bits);
	}
}

// Scales the sums of a group or a half and adds them.
FN void fold(float *sum, const struct matrix_sums *s, LOCAL_POINTER const float *scale, int lane)
{
	UNROLL
	for (int e = 0; e < MATRIX_SUMS; e++)
		sum[e] = FMA(scale[matrix_column(e, lane)], s->x[e], sum[e]);
}

#ifdef HAS_MIN
FN void fold_min(float *sum, LOCAL_POINTER const float *min, LOCAL_POINTER const float *totals, int lane)
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

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) qlinear_matrix(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *x_base, ulong x_at,
	GLOBAL uchar *w_base, ulong w_at, struct qlinear s)
{
	LOCAL ushort x_tile[TERMS][BM * LD], w_tile[BN * LD];
	LOCAL float scale[2 * BN]; // of the halves
#ifdef HAS_MIN
	LOCAL float min[BN], totals[PARTS * BM];
#endif
	float sum[TILES_M][TILES_N][MATRIX_SUMS];
	int item = LOCAL_ID(0), lane = item % WARP, warp = item / WARP, line = item / PARTS, part = item % PARTS;
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
	for (long first = 0; first < s.k; first += BK) {
		struct group b = group_of(w, first / BK);
		float total = x_fill(x_tile[0] + line * LD, x_tile[TERMS - 1] + line * LD, row + first, s.k - first, part);
		w_fill(w_tile + line * LD, &b, s.k - first, part);
		if (part == 0) {
			scale[line] = b.scale[0];
			scale[BN + line] = b.scale[1];
		}
#ifdef HAS_MIN
		if (part == 0)
			min[line] = b.min;
		totals[part * BM + line] = total;
#endif
		BARRIER();
		struct matrix_part x[TILES_M][TERMS][STEPS];
		UNROLL
		for (int i = 0; i < TILES_M; i++)
			UNROLL
			for (int t = 0; t < TERMS; t++)
				UNROLL
				for (int k = 0; k < STEPS; k++)
					x[i][t][k] = matrix_a(x_tile[t] + (line_m + i * 16) * LD + k * MATRIX_K, LD, lane);
		UNROLL
		for (int j = 0; j < TILES_N; j++) {
			int column = line_n + j * 16;
			struct matrix_part y[STEPS];
			UNROLL
			for (int k = 0; k < STEPS; k++)
				y[k] = matrix_b(w_tile + column * LD + k * MATRIX_K, LD, lane);
			UNROLL
			for (int i = 0; i < TILES_M; i++) {
				struct matrix_sums z = matrix_zero();
				UNROLL
				for (int k = 0; k < STEPS; k++) {
					UNROLL
					for (int t = 0; t < TERMS; t++)
						matrix_multiply(&z, &x[i][t][k], &y[k], lane);
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
