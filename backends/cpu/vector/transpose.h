// SPDX-License-Identifier: Apache-2.0
// Transposes a block of a matrix, 4 x 4 in registers. Files that include it define CELL, the unit
// moved, and CELL_ALIGN, its alignment in memory.

#include "shuffle.h"
#include "vmath.h"

typedef CELL four __attribute__((vector_size(4 * sizeof(CELL))));
typedef CELL four_u
	__attribute__((vector_size(4 * sizeof(CELL)), aligned(CELL_ALIGN), may_alias));
typedef CELL cell_u __attribute__((aligned(CELL_ALIGN), may_alias));

// from: 4 rows of 4, `stride` bytes apart -> to: transposed, rows `width` cells apart.
YK_INLINE void transpose4(const char *from, int64_t stride, CELL *to, int width)
{
	four a = *(const four_u *)from, b = *(const four_u *)(from + stride);
	four c = *(const four_u *)(from + 2 * stride),
	     d = *(const four_u *)(from + 3 * stride);
	four ab = YK_SHUFFLE(a, b, 0, 4, 1, 5);
	four cd = YK_SHUFFLE(c, d, 0, 4, 1, 5);
	four AB = YK_SHUFFLE(a, b, 2, 6, 3, 7);
	four CD = YK_SHUFFLE(c, d, 2, 6, 3, 7);

	*(four_u *)to = YK_SHUFFLE(ab, cd, 0, 1, 4, 5);
	*(four_u *)(to + width) = YK_SHUFFLE(ab, cd, 2, 3, 6, 7);
	*(four_u *)(to + 2 * width) = YK_SHUFFLE(AB, CD, 0, 1, 4, 5);
	*(four_u *)(to + 3 * width) = YK_SHUFFLE(AB, CD, 2, 3, 6, 7);
}

// Columns that are transposed for all rows before the next columns: few enough that they stay in
// L1, and several cache lines of each row.
enum { TRANSPOSE_COLS = 256 / sizeof(CELL) };

// to[l][i] = from[i][l] for i < wide, l < depth; rows of `from` are `stride` bytes apart, rows of
// `to` `width` cells. Meanwhile prefetches the next four rows, because rows are too far apart for
// the hardware.
YK_INLINE void pack_transposed(CELL *to, const int width, const char *from, int64_t stride,
			       int wide, int64_t depth)
{
	const int64_t size = sizeof(CELL);
	int64_t l = 0;

	for (; l + 4 <= depth;) {
		int64_t end = l + TRANSPOSE_COLS <= depth ? l + TRANSPOSE_COLS : depth - depth % 4;
		int i = 0;
		for (; i + 4 <= wide; i += 4) {
			const char *row = from + i * stride;
			const char *next =
				i + 8 <= wide ? row + 4 * stride + l * size : from + end * size;
			for (int64_t p = l, q = 0; p < end; p += 4, q++) {
				__builtin_prefetch(next + q % 4 * stride + q / 4 * 64);
				transpose4(row + p * size, stride, to + p * width + i, width);
			}
		}
		for (; i < wide; i++)
			for (int64_t p = l; p < end; p++)
				((cell_u *)to)[p * width + i] =
					*(const cell_u *)(from + i * stride + p * size);
		l = end;
	}
	for (; l < depth; l++)
		for (int i = 0; i < wide; i++)
			((cell_u *)to)[l * width + i] =
				*(const cell_u *)(from + i * stride + l * size);
}

#undef CELL
#undef CELL_ALIGN
