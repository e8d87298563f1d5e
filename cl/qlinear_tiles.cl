// SPDX-License-Identifier: Apache-2.0
// QLINEAR with many rows of x: x [M,K], w u8 [N,bytes] -> y [M,N]. Tiles of x and decoded tiles of
// w are in local memory, sums in f32 registers, in ascending order of K. Reference: kern_qlinear.c
// of the CPU backend.
//
// A group computes BM x BN elements, an item TM x TN of them in blocks of 4 x 4 that are 4 WG_M
// rows and 4 WG_N columns apart. Groups: (ceil(N / BN), ceil(M / BM)).
#ifndef WG_M // items along rows, along columns
#define WG_M 16
#define WG_N 16
#endif
#ifndef ITEMS
#define ITEMS (WG_M * WG_N)
#endif
#include "qlinear.cl"

#ifndef TM // rows and columns per item: multiples of 4
#define TM 4
#define TN 4
#endif
#define BK 32 // a group of elements
#define BM (WG_M * TM)
#define BN (WG_N * TN)
#define LDA (BM + 4) // padded so that neighbouring steps of a tile are in different banks
#define LDB (BN + 4)

FN void x_put(LOCAL_POINTER float *to, GLOBAL uchar *base, ulong at, const struct qlinear *s,
	      long m, long first, int item)
{
	for (int i = item; i < BM * 8; i += ITEMS) {
		int r = i / 8, e = i % 8 * 4;
		float x[4];
		GLOBAL const stored *row = row_at(base, at, &s->x, m + r < s->m ? m + r : s->m - 1);
		quad_get(row + first + e, s->k - first - e, x);
		UNROLL
		for (int j = 0; j < 4; j++)
			to[(e + j) * LDA + r] = x[j];
	}
}

FN void w_put(LOCAL_POINTER float *to, GLOBAL const uchar *w, const struct qlinear *s, long n,
	      long first, int item)
{
	for (int i = item; i < BN * 4; i += ITEMS) {
		int c = i / 4;
		struct group b =
			group_of(w + (n + c < s->n ? n + c : s->n - 1) * s->step, first / 32);
		UNROLL
		for (int h = 0; h < 2; h++) {
			int e = i % 4 * 4 + 16 * h;
			float q[4];
			quad_numbers(&b, e, s->k - first - e, q);
			UNROLL
			for (int j = 0; j < 4; j++)
				to[(e + j) * LDB + c] = weight_of(&b, h, q[j]);
		}
	}
}

// n values in blocks of 4
FN void values_load(float *to, int n, LOCAL_POINTER const float *from, int apart)
{
	UNROLL
	for (int i = 0; i < n; i += VEC_WIDTH)
		VEC_TO(VEC_LOAD(from + i / 4 * apart + i % 4), to + i);
}

KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M)
	qlinear_tiles(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *x_base, ulong x_at,
		      GLOBAL uchar *w_base, ulong w_at, struct qlinear s)
{
	LOCAL float x_tile[BK * LDA], w_tile[BK * LDB]; // [step][line]
	float sum[TM][TN];
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	long m = (long)GROUP_LINE() * BM, n = (long)GROUP_ID(0) * BN;
	if (m >= s.m)
		return;

	UNROLL
	for (int i = 0; i < TM; i++)
		UNROLL
		for (int j = 0; j < TN; j++)
			sum[i][j] = 0.0f;
	for (long first = 0; first < s.k; first += BK) {
		x_put(x_tile, x_base, x_at, &s, m, first, item);
		w_put(w_tile, w_base + w_at, &s, n, first, item);
		BARRIER();
		UNROLL_READS
		for (int k = 0; k < BK; k++) {
			float x[TM], w[TN];
			values_load(x, TM, x_tile + k * LDA + item_m * 4, 4 * WG_M);
			values_load(w, TN, w_tile + k * LDB + item_n * 4, 4 * WG_N);
			UNROLL
			for (int i = 0; i < TM; i++)
				UNROLL
				for (int j = 0; j < TN; j++)
					sum[i][j] = FMA(x[i], w[j], sum[i][j]);
		}
		BARRIER();
	}
	UNROLL
	for (int i = 0; i < TM; i++) {
		long r = m + item_m * 4 + i / 4 * 4 * WG_M + i % 4;
		if (r >= s.m)
			continue;
		GLOBAL stored *y = row_at(y_base, y_at, &s.y, r);
		UNROLL
		for (int j = 0; j < TN; j += 4) {
			long c = n + item_n * 4 + j / 4 * 4 * WG_N;
			quad_put(sum[i] + j, y + c, s.n - c);
		}
	}
}
