// SPDX-License-Identifier: Apache-2.0
// Shared by all contraction kernels: the problem, its dtypes, and how results are stored.
//
// a (..,M,K), b (..,K,N) -> y (..,M,N), any strides, up to 6 batch axes; sums in ACC. DTYPE is the
// dtype number (yoke-plugin.h) of a and b, RESULT that of the product: DTYPE, or 1 (f32) for f16
// and bf16, or 7 (i32) for i8 and u8. If MAP_PARAMS is defined, the preceding generated text
// defines map_store, which receives each rounded product instead of y. Reference: kern_contract.c
// of the CPU backend.
#include "half.cl"

#ifndef DTYPE
#define DTYPE 1
#endif
#ifndef RESULT
#define RESULT DTYPE
#endif

// Strides in elements; d: batch dims, unused ones are 1.
typedef struct {
	long m, n, k, swapped; // swapped: this is y^T = b^T a^T of the original problem
	long y_m, y_n, a_m, a_k, b_k, b_n;
	long d[6], y[6], a[6], b[6];
	long cut[4]; // block sizes; their meaning depends on the kernel
	long lines, all; // groups along rows; number of batch indexes, or of splits of them
} contraction;

#if DTYPE == 1
#define STORED float
#define ACC float
#define LOAD(x) (x)
#elif DTYPE == 2
#define STORED double
#define ACC double
#define LOAD(x) (x)
#elif DTYPE == 3
#define STORED ushort
#define ACC float
#define LOAD(x) f32_of_f16(x)
#elif DTYPE == 4
#define STORED ushort
#define ACC float
#define LOAD(x) f32_of_bf16(x)
#else // i8, u8, i32, i64: sums wrap
#if DTYPE == 5
#define STORED schar
#elif DTYPE == 6
#define STORED uchar
#elif DTYPE == 7
#define STORED int
#else
#define STORED long
#endif
#define ACC long
#define LOAD(x) ((long)(x))
#endif
// The type of partial sums.
#if DTYPE == 5 || DTYPE == 6
#define PART int // results have no more bits
#define ADD_PARTS(x, y) (int)((uint)(x) + (uint)(y))
#else
#define PART float
#define ADD_PARTS(x, y) ((x) + (y))
#endif

// A sum in the product's dtype: its value, and its stored form.
#if RESULT == 1 || RESULT == 2
#define PRODUCT ACC
#define ROUND(x) (x)
#define TO_PRODUCT(x) (x)
#elif RESULT == 3
#define PRODUCT ushort
#define ROUND(x) round_f16(x)
#define TO_PRODUCT(x) f16_of_f32(x)
#elif RESULT == 4
#define PRODUCT ushort
#define ROUND(x) round_bf16(x)
#define TO_PRODUCT(x) bf16_of_f32(x)
#else
#if RESULT == 7
#define PRODUCT int
#else
#define PRODUCT STORED
#endif
#define ROUND(x) ((PRODUCT)(x))
#define TO_PRODUCT(x) ((PRODUCT)(x))
#endif

// Loads VEC_WIDTH neighbouring elements.
#if DTYPE == 3
#define LOAD_VEC(from) VEC_LOAD_F16(from)
#elif DTYPE == 4
#define LOAD_VEC(from) VEC_LOAD_BF16(from)
#else
#define LOAD_VEC(from) VEC_LOAD(from)
#endif

#ifdef MAP_PARAMS
#define Y_PARAMS MAP_PARAMS
#define Y_ARGS MAP_ARGS
#else
#define Y_PARAMS , GLOBAL uchar *y_base, ulong y_at
#define Y_ARGS , y_base, y_at
#endif

FN long min_of(long a, long b)
{
	return a < b ? a : b;
}

// Groups use two axes, since a grid's third axis is limited: columns, and the rows of all batch
// indexes one after another. False: past the last.
FN bool line_of(contraction s, long *line, ulong *index)
{
	uint at = GROUP_LINE(), lines = (uint)s.lines;
	*index = at / lines;
	*line = (long)(at % lines);
	return *index < (ulong)s.all;
}

// Offset of matrix `index` in operand `which`. The index is below 2^32, which a launch guarantees.
FN long matrix_at(contraction s, ulong index, int which)
{
	uint left = (uint)index;
	long at = 0;
	UNROLL
	for (int i = 5; i >= 0; i--) {
		uint q = left ? left / (uint)s.d[i] : 0u, j = i ? left - q * (uint)s.d[i] : left;
		at += (long)j * (which == 0 ? s.y[i] : which == 1 ? s.a[i] : s.b[i]);
		left = q;
	}
	return at;
}

// Stores one finished sum. y_matrix: matrix_at of y; unused with a map.
FN void put_sum(ACC sum, contraction s, ulong index, long y_matrix, long m, long n Y_PARAMS)
{
#ifdef MAP_PARAMS
	if (s.swapped)
		map_store(ROUND(sum), index * (ulong)s.n + (ulong)n, (ulong)m MAP_ARGS);
	else
		map_store(ROUND(sum), index * (ulong)s.m + (ulong)m, (ulong)n MAP_ARGS);
#else
	GLOBAL PRODUCT *y = (GLOBAL PRODUCT *)(y_base + y_at) + y_matrix;
	y[m * s.y_m + n * s.y_n] = TO_PRODUCT(sum);
#endif
}

// Stores the sums of a tile, rows `step` apart, of which rows x columns exist, along the axis of y
// that is contiguous so that compilers vectorize. The loops must not read s: it might alias the
// operands, which would defeat EACH.
FN void put_tile(const ACC *tile, int step, contraction s, ulong index, long y_matrix, long m,
	long n, int rows, int columns Y_PARAMS)
{
	const bool swapped = s.swapped;
	const int outer = swapped ? columns : rows, inner = swapped ? rows : columns;
	const int by_outer = swapped ? 1 : step, by_inner = swapped ? step : 1;
#ifdef MAP_PARAMS
	const ulong r = swapped ? index * (ulong)s.n + (ulong)n : index * (ulong)s.m + (ulong)m;
	const ulong j = swapped ? (ulong)m : (ulong)n;

	WIDE();
	for (int o = 0; o < outer; o++) {
		const ACC *from = tile + o * by_outer;
		EACH
		for (int i = 0; i < inner; i++)
			map_store(ROUND(from[i * by_inner]), r + (ulong)o, j + (ulong)i MAP_ARGS);
	}
#else
	const long y_outer = swapped ? s.y_n : s.y_m, y_inner = swapped ? s.y_m : s.y_n;
	GLOBAL PRODUCT *y = (GLOBAL PRODUCT *)(y_base + y_at) + y_matrix + m * s.y_m + n * s.y_n;

	WIDE();
	for (int o = 0; o < outer; o++) {
		const ACC *from = tile + o * by_outer;
		EACH
		for (int i = 0; i < inner; i++)
			y[o * y_outer + i * y_inner] = TO_PRODUCT(from[i * by_inner]);
	}
#endif
}

// True if rows of y can be written directly as vectors.
#if RESULT == 1 && !defined MAP_PARAMS
#define DENSE_Y(s) ((s).y_n == 1)
#define PUT_VEC(sums, s, y_matrix, m, n) \
	VEC_STORE(sums, (GLOBAL float *)(y_base + y_at) + ((y_matrix) + (m) * (s).y_m + (n)))
#else
#define DENSE_Y(s) false
#define PUT_VEC(sums, s, y_matrix, m, n)
#endif
