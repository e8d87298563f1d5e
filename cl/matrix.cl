// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by the items of a warp: 16 x 16 sums of f32 += 16 x MATRIX_K elements times MATRIX_K x 16.
// MATRIX: the dtype of the elements, 3 (f16), 4 (bf16), or 1: f32 rounded to tf32.  Each item holds parts of the
// operands, which it loads from tiles of local memory whose rows, a's lines and b's columns, have their steps of k side
// by side, `stride` elements apart; and MATRIX_SUMS of the sums, whose places matrix_row and matrix_column tell.
// The prologue has these functions where there are instructions for it (MATRIX_UNITS).  Elsewhere they are loops below, which
// read the tiles when they multiply: these must not change in between.
#include "half.cl"

#ifndef WARP
#define WARP 32
#endif
#if MATRIX == 1
typedef float matrix_element;
#define MATRIX_K 8
#else
typedef ushort matrix_element;
#define MATRIX_K 16
#endif
#define MATRIX_SUMS (256 / WARP)

#ifndef MATRIX_UNITS
#if MATRIX == 1
#define MATRIX_VALUE(x) (x)
#elif MATRIX == 3
#define MATRIX_VALUE(x) f32_of_f16(x)
#else
#define MATRIX_VALUE(x) f32_of_bf16(x)
#endif

#define MATRIX_ROWS 1
#define MATRIX_PEERS (16 / MATRIX_SUMS - 1)

struct matrix_part {
	LOCAL_POINTER const matrix_element *from;
	int line, step; // strides
};
struct matrix_sums {
	float x[MATRIX_SUMS];
};

FN int matrix_row(int i, int lane)
{
	return (lane * MATRIX_SUMS + i) / 16;
}

FN int matrix_column(int i, int lane)
{
	return (lane * MATRIX_SUMS + i) % 16;
}

FN int matrix_slot(int i)
{
	return 0;
}

FN struct matrix_part matrix_a(LOCAL_POINTER const matrix_element *from, int stride, int lane)
{
	struct matrix_part p;
	p.from = from;
	p.line = stride;
	p.step = 1;
	return p;
}

FN struct matrix_part matrix_b(LOCAL_POINTER const matrix_element *from, int stride, int lane)
{
	return matrix_a(from, stride, lane);
}

FN struct matrix_part matrix_b_turned(LOCAL_POINTER const matrix_element *from, int stride, int lane)
{
	struct matrix_part p;
	p.from = from;
	p.line = 1;
	p.step = stride;
	return p;
}

FN void matrix_multiply(struct matrix_sums *sums, const struct matrix_part *a, const struct matrix_part *b, int lane)
{
	for (int i = 0; i < MATRIX_SUMS; i++) {
		LOCAL_POINTER const matrix_element *x = a->from + matrix_row(i, lane) * a->line;
		LOCAL_POINTER const matrix_element *y = b->from + matrix_column(i, lane) * b->line;
		for (int k = 0; k < MATRIX_K; k++)
			sums->x[i] = FMA(MATRIX_VALUE(x[k * a->step]), MATRIX_VALUE(y[k * b->step]), sums->x[i]);
	}
}
#endif

FN struct matrix_sums matrix_zero(void)
{
	struct matrix_sums s;
	UNROLL
	for (int i = 0; i < MATRIX_SUMS; i++)
		s.x[i] = 0.0f;
	return s;
}
