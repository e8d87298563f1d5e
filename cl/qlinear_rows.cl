// SPDX-License-Identifier: Apache-2.0
// QLINEAR for few rows of x: x [M,K], w u8 [N,bytes] -> y [M,N]. w is read once for ROWS rows of x
// and decoded in registers; sums are f32. Reference: kern_qlinear.c of the CPU backend.
//
// A group of ITEMS items computes COLUMNS columns of ROWS rows of y at a time. Its items take steps
// of two quads in turn, four in a group of 32 elements (e .. e + 3 and e + 16 .. e + 19 for e = 0,
// 4, 8, 12), and add their sums in tree order. The order depends on ITEMS alone.
#include "qlinear.cl"

#ifndef ROWS
#define ROWS 1
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif

// Products of two quads of x with the same elements of a row of w.
FN float step_sum(const struct group *b, const float q[2][4], const float x[2][4], float sum)
{
	UNROLL
	for (int h = 0; h < 2; h++) {
		float part = x[h][0] * q[h][0];
		UNROLL
		for (int i = 1; i < 4; i++)
			part = FMA(x[h][i], q[h][i], part);
		sum = FMA(b->scale[h], part, sum);
	}
#ifdef HAS_MIN
	float total = 0.0f;
	UNROLL
	for (int i = 0; i < 4; i++)
		total += x[0][i] + x[1][i];
	sum = FMA(b->min, total, sum);
#endif
	return sum;
}

FN void add_steps(float sum[ROWS][COLUMNS], GLOBAL const stored *const *row,
		  GLOBAL const uchar *const *w, long k, int item)
{
	long steps = (k + 31) / 32 * 4;
	for (long step = item; step < steps; step += ITEMS) {
		long at = step / 4 * 32 + step % 4 * 4;
		int e = (int)(step % 4) * 4;
		float x[ROWS][2][4];
		UNROLL
		for (int i = 0; i < ROWS; i++)
			UNROLL
			for (int h = 0; h < 2; h++)
				quad_get(row[i] + at + 16 * h, k - at - 16 * h, x[i][h]);
		UNROLL
		for (int c = 0; c < COLUMNS; c++) {
			struct group b = group_of(w[c], step / 4);
			float q[2][4];
			UNROLL
			for (int h = 0; h < 2; h++)
				quad_numbers(&b, e + 16 * h, k - at - 16 * h, q[h]);
			UNROLL
			for (int i = 0; i < ROWS; i++)
				sum[i][c] = step_sum(&b, q, x[i], sum[i][c]);
		}
	}
}

KERNEL void WORK_GROUP(ITEMS, 1)
	qlinear_rows(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *x_base, ulong x_at,
		     GLOBAL uchar *w_base, ulong w_at, struct qlinear s)
{
	LOCAL float tree[ITEMS];
	int item = LOCAL_ID(0);
	GLOBAL const stored *row[ROWS];
	long first = (long)GROUP_LINE() * ROWS, rows = s.m - first;

	if (rows <= 0)
		return;
	UNROLL
	for (int i = 0; i < ROWS; i++)
		row[i] = row_at(x_base, x_at, &s.x, first + (i < rows ? i : rows - 1));
	for (long n = (long)GROUP_ID(0) * COLUMNS; n < s.n; n += (long)GROUPS(0) * COLUMNS) {
		GLOBAL const uchar *w[COLUMNS];
		float sum[ROWS][COLUMNS];
		UNROLL
		for (int c = 0; c < COLUMNS; c++) {
			w[c] = w_base + w_at + (n + c < s.n ? n + c : s.n - 1) * s.step;
			UNROLL
			for (int i = 0; i < ROWS; i++)
				sum[i][c] = 0.0f;
		}
		add_steps(sum, row, w, s.k, item);
		UNROLL
		for (int i = 0; i < ROWS; i++)
			UNROLL
			for (int c = 0; c < COLUMNS; c++) {
				float all = group_sum(sum[i][c], tree, item);
				if (item == 0 && i < rows && n + c < s.n)
					store_one(all,
						  row_at(y_base, y_at, &s.y, first + i) + n + c);
			}
	}
}
