// SPDX-License-Identifier: Apache-2.0
// What the kernels of contractions share: the problem, its dtypes, where results go.
//
// a (..,M,K), b (..,K,N) -> y (..,M,N), any strides, up to 6 leading axes, dense in memory or
// not; sums in ACC.  DTYPE is the number of yoke-plugin.h, of a and b, and RESULT that of the product, which
// is DTYPE, or 1 for f16 and bf16, or 7 for i8 and u8.  With MAP_PARAMS defined, the text
// before this one has map_store, which takes each rounded product in place of y.
// Reference: kern_contract.c of the CPU backend.
#include "half.cl"

#ifndef DTYPE
#define DTYPE 1
#endif
#ifndef RESULT
#define RESULT DTYPE
#endif

// Strides in elements; d: leading dims, those not used 1.
typedef struct {
	long m, n, k, swapped; // swapped: this is y^T = b^T a^T of the problem at hand
	long y_m, y_n, a_m, a_k, b_k, b_n;
	long d[6], y[6], a[6], b[6];
	long cut[4]; // how a kernel is cut; each says
	long lines, all; // groups along rows, and leading indexes, or parts of them
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
// What sums of parts of k are kept as.
#if DTYPE == 5 || DTYPE == 6
#define PART int // no result has more bits
#define ADD_PARTS(x, y) (int)((uint)(x) + (uint)(y))
#else
#define PART float
#define ADD_PARTS(x, y) ((x) + (y))
#endif

// A sum as the product's dtype has it: its value, and what is stored.
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

// VEC_WIDTH neighbours of storage.
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

FN long least(long a, long b)
{
	return a < b ? a : b;
}

// Groups lie along two axes, since the third of a grid has an end: columns, and all lines of one leading index after
// the other.  False: this one is past the last.
FN bool line_of(contraction s, long *line, ulong *index)
{
	uint at = GROUP_LINE(), lines = (uint)s.lines;
	*index = at / lines;
	*line = (long)(at % lines);
	return *index < (ulong)s.all;
}

// Where in memory matrix `index` of those with strides `stride` is: there are fewer than 2^32, which a launch counts.
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

// One finished sum.  y_matrix: matrix_at of y, not used with a map.
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

// The finished sums of a tile with rows `step` apart, of which rows x columns are there: along what is
// last in memory, as compilers make vectors of.  Nothing in the loops reads s: where operands
// may be the same memory, that read would undo what EACH says.
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

// Are rows of y written as they are, by vectors?
#if RESULT == 1 && !defined MAP_PARAMS
#define DENSE_Y(s) ((s).y_n == 1)
#define PUT_VEC(sums, s, y_matrix, m, n) \
	VEC_STORE(sums, (GLOBAL float *)(y_base + y_at) + ((y_matrix) + (m) * (s).y_m + (n)))
#else
#define DENSE_Y(s) false
#define PUT_VEC(sums, s, y_matrix, m, n)
#endif
