// SPDX-License-Identifier: Apache-2.0
// Tests the layouts of small matrices in the registers of a warp: the functions of cl/matrix_units.cl for each kind of matrix
// unit against the description in cl/matrix.cl. matrix_layout.sh compiles it for the host, without the instructions.
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
static size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
#define _Float16 short
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, ...) (c)
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, ...) (c)
// Products of bytes: the lane multiplies only the steps that it holds itself, as if the three lanes that share its row and
// column held the same. Combinations of several such products do not depend on which elements they use.
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
// ldmatrix, as the PTX ISA defines it: from the addresses that all lanes passed, in the second of two passes.
static const unsigned char *passed[WARP];
static int lane_now;
static void load_matrices(unsigned *to, const void *at, bool exchanged)
{
	passed[lane_now] = (const unsigned char *)at;
	if ((size_t)at % 16)
		printf("lane %d loads from an address that is not aligned\n", lane_now);
	for (int i = 0; i < 4; i++) {
		unsigned short pair[2] = {};
		for (int k = 0; k < 2; k++) {
			int line = exchanged ? lane_now % 4 * 2 + k : lane_now / 4;
			int column = exchanged ? lane_now / 4 : lane_now % 4 * 2 + k;
			if (passed[8 * i + line])
				memcpy(&pair[k], passed[8 * i + line] + 2 * column, 2);
		}
		memcpy(&to[i], pair, 4);
	}
}
#define MATRIX_LOAD(to, at, form) load_matrices(to, at, *form)
// Sums are whole numbers here, and stay so as elements of 16 bits.
#define MATRIX_PAIR(to, low, high) ((to) = (unsigned)(low) | (unsigned)(high) << 16)
#include TEXT
#if defined HAS_UNITS && !defined MATRIX_UNITS
#error "cl/matrix_units.cl lacks this kind of unit"
#endif

enum { N = 16, WIDE = 48 };

#ifdef MATRIX_UNITS
// The parts of all lanes by a function such as matrix_a.
struct parts {
	matrix_part of[WARP];
};
static parts all_parts(matrix_part (*load)(const matrix_unit *, int, int), const matrix_unit *from)
{
	parts p;

	memset(passed, 0, sizeof passed);
	for (int pass = 0; pass < 2; pass++)
		for (lane_now = 0; lane_now < WARP; lane_now++)
			p.of[lane_now] = load(from, WIDE, lane_now);
	return p;
}

static void compare(const parts &x, const parts &y, const char *what)
{
	for (int lane = 0; lane < WARP; lane++)
		if (memcmp(&x.of[lane], &y.of[lane], sizeof x.of[lane]))
			printf("lane %d has other elements of %s\n", lane, what);
}

#if __CUDA_ARCH__ >= 750
// The words that mma expects of each lane (PTX ISA, "Matrix Fragments for mma.m16n8k16" and others).
static parts mma_parts(const matrix_unit *from, bool columns)
{
	parts p;

	for (int lane = 0; lane < WARP; lane++)
		for (int i = 0; i < 4; i++) {
			int line = lane / 4 + 8 * (columns ? i / 2 : i % 2), word = lane % 4 + 4 * (columns ? i % 2 : i / 2);
			memcpy(&p.of[lane].x[i], from + line * WIDE + word * MATRIX_EACH, 4);
		}
	return p;
}
#endif
#endif

int main()
{
	static matrix_element tile[N * WIDE] __attribute__((aligned(16))), turned[MATRIX_K * WIDE] __attribute__((aligned(16)));
	bool seen[N][N] = {};

	srand(SEED);
	for (int line = 0; line < N; line++)
		for (int k = 0; k < MATRIX_K; k++)
			tile[line * WIDE + k] = turned[k * WIDE + line] = (matrix_element)(1 + rand() % 60000);
#ifdef MATRIX_UNITS // otherwise parts only say where a tile is
	const parts rows = all_parts(matrix_a, tile), columns = all_parts(matrix_b, tile);
	compare(rows, all_parts(matrix_a_turned, turned), "a turned tile of a");
	compare(columns, all_parts(matrix_b_turned, turned), "a turned tile of b");
#if __CUDA_ARCH__ >= 750
	compare(rows, mma_parts(tile, false), "a");
	compare(columns, mma_parts(tile, true), "b");
#endif
#ifdef MATRIX_A_OF_SUMS
	parts of_sums;
	for (int lane = 0; lane < WARP; lane++) {
		matrix_sums sums;
		for (int i = 0; i < MATRIX_SUMS; i++)
			sums.x[i] = tile[matrix_row(i, lane) * WIDE + matrix_column(i, lane)];
		of_sums.of[lane] = matrix_a_of_sums(&sums);
	}
	compare(rows, of_sums, "sums as operand a");
#endif
#endif
	for (int lane = 0; lane < WARP; lane++) {
#ifdef MATRIX_UNITS
#if defined MATRIX_MFMA && MATRIX >= 5
		matrix_part a = columns.of[lane], other = matrix_a(tile + 8 * WIDE, WIDE, lane % 8);
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
