// SPDX-License-Identifier: Apache-2.0
// Where the lanes of a warp hold the parts of small matrices, as cl/matrix.cl says and cl/prologue_cuda.h has it for each
// kind of matrix unit: compiled for the host, without the instructions, by matrix_layout.sh.  Prints what is wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __device__
#define __shared__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
static struct { unsigned x, y, z; } threadIdx, blockIdx, blockDim, gridDim;
static unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, sizeof u); return u; }
static float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, sizeof x); return x; }
static double __longlong_as_double(long long u) { double x; memcpy(&x, &u, sizeof x); return x; }
// Of the instructions only the conversion to tf32 is run: it keeps what it is given.
static unsigned r;
static float x;
#define asm(...) (void)(r = __float_as_uint(x))
#define _Float16 short
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, ...) (c)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, ...) (c)
// Products of bytes are of the steps that the lane has itself, as if the three lanes that share its row and column had
// the same: what is made of several such products does not depend on which elements they are of.
typedef int ints4 __attribute__((ext_vector_type(4)));
template <typename T> static ints4 bytes_product(T a, T b, ints4 c)
{
	signed char x[sizeof a], y[sizeof b];
	int sum = 0;

	memcpy(x, &a, sizeof a), memcpy(y, &b, sizeof b);
	for (size_t i = 0; i < sizeof x; i++)
		sum += 4 * x[i] * y[i];
	return c + sum;
}
#define __builtin_amdgcn_mfma_i32_16x16x16i8(a, b, c, ...) bytes_product(a, b, c)
#define __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, c, ...) bytes_product(a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c) (c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c) (c)
#define __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(s, a, t, b, c, d) (c)
#include TEXT

enum { N = 16, WIDE = 48 };

int main()
{
	static matrix_element tile[N * WIDE] __attribute__((aligned(16))), turned[MATRIX_K * WIDE] __attribute__((aligned(16)));
	bool seen[N][N] = {};

	srand(SEED);
	for (int line = 0; line < N; line++)
		for (int k = 0; k < MATRIX_K; k++)
			tile[line * WIDE + k] = turned[k * WIDE + line] = (matrix_element)(1 + rand() % 60000);
	for (int lane = 0; lane < WARP; lane++) {
#ifdef MATRIX_UNITS // otherwise parts only say where a tile is
		matrix_part a = matrix_b(tile, WIDE, lane), b = matrix_b_turned(turned, WIDE, lane);
		if (memcmp(&a, &b, sizeof a))
			printf("lane %d has other elements of a turned tile\n", lane);
#if defined MATRIX_MFMA && MATRIX >= 5
		matrix_part other = matrix_a(tile + 8 * WIDE, WIDE, lane % 8);
		matrix_sums sums = { 1, 2, 3, 4 };
		int want = 0;
		for (int k = 0; k < MATRIX_STEPS; k++)
			want += 4 * (MATRIX == 5 ? (signed char)a.x[k] * (signed char)other.x[k] : a.x[k] * other.x[k]);
		matrix_multiply(&sums, &a, &other, lane);
		for (int i = 0; i < MATRIX_SUMS; i++)
			if (sums.x[i] != want + 1 + i)
				printf("lane %d, sum %d: %d, not %d\n", lane, i, sums.x[i], want + 1 + i);
#endif
#endif
		for (int i = 0; i < MATRIX_SUMS; i++) {
			int row = matrix_row(i, lane), column = matrix_column(i, lane);
			if (row < 0 || row >= N || column < 0 || column >= N || seen[row][column]) {
				printf("lane %d, sum %d: row %d, column %d, not once\n", lane, i, row, column);
				continue;
			}
			seen[row][column] = true;
			if (matrix_slot(i) < 0 || matrix_slot(i) >= MATRIX_ROWS)
				printf("sum %d is of row number %d of %d\n", i, matrix_slot(i), MATRIX_ROWS);
			for (int k = 0; k < MATRIX_SUMS; k++)
				if ((matrix_slot(i) == matrix_slot(k)) != (row == matrix_row(k, lane)))
					printf("lane %d, sums %d and %d: rows %d and %d\n", lane, i, k, row, matrix_row(k, lane));
			for (int peer = 0; peer < WARP; peer++)
				if (!((peer ^ lane) & ~MATRIX_PEERS) != (matrix_row(i, peer) == row))
					printf("lanes %d and %d, sum %d: rows %d and %d\n", lane, peer, i, row, matrix_row(i, peer));
		}
	}
	return 0;
}
