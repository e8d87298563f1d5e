// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by the items of a warp: 16 x 16 sums += 16 x MATRIX_K elements times
// MATRIX_K x 16. MATRIX is the elements' dtype: 3 (f16), 4 (bf16), 1 (f32 rounded to tf32), with
// sums in f32; 5 (i8) and 6 (u8), with wrapping sums in i32.
// Each item holds a part of the operands, loaded from tiles in local memory in which the steps of k
// of a line (row of a, column of b) are adjacent and lines are `stride` elements apart, in the
// turned form lines are adjacent and steps are apart; and MATRIX_SUMS of the sums, at the positions
// given by matrix_row and matrix_column. A tile and its stride are aligned to 16 bytes.
// matrix_units.cl defines these functions where the processor has instructions for it
// (MATRIX_UNITS). Otherwise the loops below read the tiles during the multiplication, so tiles must
// not change between load and multiply.
#include "half.cl"
#include "matrix_units.cl"

#ifndef WARP
#define WARP 32
#endif
#if MATRIX == 1
typedef float matrix_element;
#define MATRIX_K 8
#elif MATRIX == 5 || MATRIX == 6
typedef uchar matrix_element;
#define MATRIX_K 32
#else
typedef ushort matrix_element;
#define MATRIX_K 16
#endif
#define MATRIX_SUMS (256 / WARP)

#ifndef MATRIX_UNITS
#if MATRIX == 5
#define MATRIX_ADD(x, y, sum) (int)((uint)(sum) + (uint)((int)(schar)(x) * (int)(schar)(y)))
#elif MATRIX == 6
#define MATRIX_ADD(x, y, sum) (int)((uint)(sum) + (uint)(x) * (uint)(y))
#elif MATRIX == 1
// Rounds to nearest, ties away from zero, like cvt.rna.tf32; infinity and NaN are unchanged.
FN float matrix_tf32(float x)
{
	uint bits = AS_UINT(x), finite = (bits & 0x7f800000u) != 0x7f800000u;
	return AS_FLOAT(finite ? (bits + 0x1000u) & 0xffffe000u : bits);
}
#define MATRIX_ADD(x, y, sum) FMA(matrix_tf32(x), matrix_tf32(y), sum)
#elif MATRIX == 3
#define MATRIX_ADD(x, y, sum) FMA(f32_of_f16(x), f32_of_f16(y), sum)
#else
#define MATRIX_ADD(x, y, sum) FMA(f32_of_bf16(x), f32_of_bf16(y), sum)
#endif
#if MATRIX == 5 || MATRIX == 6
typedef int matrix_sum;
#else
typedef float matrix_sum;
#endif

#define MATRIX_ROWS 1
#define MATRIX_PEERS (16 / MATRIX_SUMS - 1)

struct matrix_part {
	LOCAL_POINTER const matrix_element *from;
	int line, step; // strides
};
struct matrix_sums {
	matrix_sum x[MATRIX_SUMS];
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

FN struct matrix_part matrix_a_turned(LOCAL_POINTER const matrix_element *from, int stride,
				      int lane)
{
	struct matrix_part p;
	p.from = from;
	p.line = 1;
	p.step = stride;
	return p;
}

FN struct matrix_part matrix_b_turned(LOCAL_POINTER const matrix_element *from, int stride,
				      int lane)
{
	return matrix_a_turned(from, stride, lane);
}

FN void matrix_multiply(struct matrix_sums *sums, const struct matrix_part *a,
			const struct matrix_part *b, int lane)
{
	for (int i = 0; i < MATRIX_SUMS; i++) {
		LOCAL_POINTER const matrix_element *x = a->from + matrix_row(i, lane) * a->line;
		LOCAL_POINTER const matrix_element *y = b->from + matrix_column(i, lane) * b->line;
		for (int k = 0; k < MATRIX_K; k++)
			sums->x[i] = MATRIX_ADD(x[k * a->step], y[k * b->step], sums->x[i]);
	}
}
#endif

FN struct matrix_sums matrix_zero(void)
{
	struct matrix_sums s;
	UNROLL
	for (int i = 0; i < MATRIX_SUMS; i++)
		s.x[i] = 0;
	return s;
}
