// SPDX-License-Identifier: Apache-2.0
// Contraction with few rows (vector times matrix, M up to 16): reads b once for M up to ROWS
// (contract_rows_t: any M).
//
// contract_rows_n is for dense rows of b: an item sums NV vectors of columns for every row of a,
// over every SLICES-th k; the slices' sums are added in ascending order.
// contract_rows_t is for dense columns of b (b_k = 1) and dense rows of a (a_k = 1);
// contract_rows_copy first copies other layouts of a to [batch index][m][k]. A group computes NC
// columns; its items and their lanes divide k among them in a round-robin way. Lanes are added in
// the order of VEC_SUM, items in tree order. On CPU drivers a group is one item.
#include "contract_op.cl"

#ifndef ROWS
#define ROWS 1
#endif
#ifndef ACROSS // items along columns, along slices of k
#define ACROSS 32
#define SLICES 8
#endif
#ifndef NV
#define NV 1
#endif
#ifndef NC
#define NC 4
#endif
#define ITEMS (ACROSS * SLICES)
#define COLUMNS (ACROSS * NV * VEC_WIDTH) // columns per group of contract_rows_n

#define PIECE 1024 // steps of k that a group copies

// Groups: (chunks of a row, rows, batch index).
KERNEL void WORK_GROUP(ITEMS, 1) contract_rows_copy(GLOBAL uchar *to_base, ulong to_at,
	GLOBAL uchar *a_base, ulong a_at, contraction s)
{
	ulong index;
	long first = (long)GROUP_ID(0) * PIECE, row;
	if (!line_of(s, &row, &index))
		return;
	GLOBAL STORED *a = (GLOBAL STORED *)(a_base + a_at) +
		(matrix_at(s, index, 1) + row * s.a_m);
	GLOBAL STORED *to = (GLOBAL STORED *)(to_base + to_at) +
		((long)index * s.m + row) * s.k;

	for (long k = first + LOCAL_ID(0); k < s.k && k < first + PIECE; k += ITEMS)
		to[k] = a[k * s.a_k];
}

// Rows beyond the last repeat the last.
FN void row_starts(long *row, long first, contraction s)
{
	UNROLL
	for (int i = 0; i < ROWS; i++)
		row[i] = min_of(first + i, s.m - 1) * s.a_m;
}

// Groups: (chunks of COLUMNS columns, 1, batch index); requires at least COLUMNS columns. The last
// group starts early enough to be full and stores only its own columns.
KERNEL void WORK_GROUP(ACROSS, SLICES) contract_rows_n(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
#if SLICES > 1
	LOCAL float part[ITEMS]; // VEC_WIDTH is 1
#endif
	int x = LOCAL_ID(0), slice = LOCAL_ID(1);
	ulong index;
	long line;
	if (!line_of(s, &line, &index))
		return;
	long own = (long)GROUP_ID(0) * COLUMNS, n = min_of(own, s.n - COLUMNS) + x * VEC_WIDTH;
	long y_matrix = matrix_at(s, index, 0), row[ROWS];
	GLOBAL STORED *a = (GLOBAL STORED *)(a_base + a_at) +
		(matrix_at(s, index, 1) + slice * s.a_k);
	GLOBAL STORED *b = (GLOBAL STORED *)(b_base + b_at) +
		(matrix_at(s, index, 2) + slice * s.b_k + n);
	VEC sum[ROWS][NV];

	row_starts(row, 0, s);
	UNROLL
	for (int i = 0; i < ROWS; i++)
		UNROLL
		for (int j = 0; j < NV; j++)
			sum[i][j] = VEC_SPLAT(0.0f);
	for (long k = slice; k < s.k; k += SLICES, a += SLICES * s.a_k, b += SLICES * s.b_k) {
		VEC v[NV];
		UNROLL
		for (int j = 0; j < NV; j++)
			v[j] = LOAD_VEC(b + j * ACROSS * VEC_WIDTH);
		UNROLL
		for (int i = 0; i < ROWS; i++) {
			VEC f = VEC_SPLAT(LOAD(a[row[i]]));
			UNROLL
			for (int j = 0; j < NV; j++)
				sum[i][j] = VEC_FMA(f, v[j], sum[i][j]);
		}
	}
#if SLICES > 1
	for (int i = 0; i < ROWS && i < s.m; i++)
		for (int j = 0; j < NV; j++) {
			part[slice * ACROSS + x] = sum[i][j];
			BARRIER();
			float all = 0.0f;
			for (int q = 0; q < SLICES; q++)
				all += part[q * ACROSS + x];
			if (slice == 0 && n + j * ACROSS >= own)
				put_sum(all, s, index, y_matrix, i, n + j * ACROSS Y_ARGS);
			BARRIER();
		}
#else
	float tile[ROWS][NV * VEC_WIDTH];
	UNROLL
	for (int i = 0; i < ROWS; i++)
		UNROLL
		for (int j = 0; j < NV; j++)
			VEC_STORE(sum[i][j], tile[i] + j * VEC_WIDTH);
	for (int i = 0; i < ROWS && i < s.m; i++)
		for (int j = 0; j < NV * VEC_WIDTH; j++) {
			long column = n + j / VEC_WIDTH * ACROSS * VEC_WIDTH + j % VEC_WIDTH;
			if (column >= own)
				put_sum(tile[i][j], s, index, y_matrix, i, column Y_ARGS);
		}
#endif
}

// Groups: (chunks of NC columns, 1, batch index).
KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) contract_rows_t(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	int item = LOCAL_ID(0);
#if ITEMS > 1
	LOCAL float part[ITEMS];
#endif
	ulong index;
	long line;
	if (!line_of(s, &line, &index))
		return;
	long n = (long)GROUP_ID(0) * NC, whole = s.k - s.k % (ITEMS * VEC_WIDTH);
	int columns = (int)min_of(NC, s.n - n);
	long y_matrix = matrix_at(s, index, 0), row[ROWS], column[NC];
	GLOBAL STORED *a = (GLOBAL STORED *)(a_base + a_at) + matrix_at(s, index, 1);
	GLOBAL STORED *b = (GLOBAL STORED *)(b_base + b_at) + matrix_at(s, index, 2);

	UNROLL
	for (int j = 0; j < NC; j++)
		column[j] = (n + min_of(j, columns - 1)) * s.b_n;
	for (long m = 0; m < s.m; m += ROWS) {
		VEC sum[ROWS][NC];
		float tile[ROWS][NC];
		row_starts(row, m, s);
		UNROLL
		for (int i = 0; i < ROWS; i++)
			UNROLL
			for (int j = 0; j < NC; j++)
				sum[i][j] = VEC_SPLAT(0.0f);
		for (long k = item * VEC_WIDTH; k < whole; k += ITEMS * VEC_WIDTH) {
			VEC v[NC];
			UNROLL
			for (int j = 0; j < NC; j++)
				v[j] = LOAD_VEC(b + column[j] + k);
			UNROLL
			for (int i = 0; i < ROWS; i++) {
				VEC f = LOAD_VEC(a + row[i] + k);
				UNROLL
				for (int j = 0; j < NC; j++)
					sum[i][j] = VEC_FMA(f, v[j], sum[i][j]);
			}
		}
		UNROLL
		for (int i = 0; i < ROWS; i++)
			UNROLL
			for (int j = 0; j < NC; j++) {
				tile[i][j] = VEC_SUM(sum[i][j]);
			}
		for (int i = 0; i < ROWS; i++)
			for (int j = 0; j < NC; j++)
				for (long k = whole + item; k < s.k; k += ITEMS)
					tile[i][j] += LOAD(a[row[i] + k]) * LOAD(b[column[j] + k]);
#if ITEMS > 1
		for (int i = 0; i < ROWS; i++)
			for (int j = 0; j < NC; j++) {
				part[item] = tile[i][j];
				BARRIER();
				for (int h = ITEMS / 2; h; h /= 2) {
					if (item < h)
						part[item] += part[item + h];
					BARRIER();
				}
				if (item == 0 && m + i < s.m && j < columns)
					put_sum(part[0], s, index, y_matrix, m + i,
						n + j Y_ARGS);
				BARRIER();
			}
#else
		for (int i = 0; i < ROWS && m + i < s.m; i++)
			for (int j = 0; j < columns; j++)
				put_sum(tile[i][j], s, index, y_matrix, m + i, n + j Y_ARGS);
#endif
	}
}
