// SPDX-License-Identifier: Apache-2.0
// Contractions of bf16 with AArch64's bfmmla, which adds to 2 x 2 sums in f32 the products of two
// rows of a and two columns of b, four elements long. A panel of a is [k / 4][MR / 2][2 rows][4],
// of b [k / 4][NR / 2][2 columns][4], zero-padded. Subnormals are treated as zero.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include <arm_neon.h>

#include "../vector/half.h"
#include "kern_contract.h"

#define ENTRY_RUN LEVEL(yk_gemm_bf16)
#define ENTRY_CUT LEVEL(yk_gemm_bf16_block)

enum { DEEP = 4, UNIT = 2 * DEEP }; // steps of k; elements of a register

// 24 registers of sums, six of b and one of a
#define VL 4
#define MR 8
#define NR 12
#define KC 768
#define K_UNIT DEEP
#define DEPTH(k) (((k) + DEEP - 1) / DEEP * (DEEP / 2))

#include "kern_contract_pairs.h"

// Packs `wide` rows of a, or columns of b, `many` of which a panel has: k <= `rows` elements from l
// on, in whole DEEPs.
FLAT void pack(P *panel, const int width, const char *from, int64_t across, int wide, int64_t along,
	       int64_t k)
{
	for (int64_t l = 0; l < k; l += DEEP, panel += width * DEEP / 2) {
		uint16_t cell[12 * DEEP];
		const int deep = k - l < DEEP ? (int)(k - l) : DEEP;

		if (wide < width || deep < DEEP)
			memset(cell, 0, sizeof cell);
		if (along == 1 && deep == DEEP)
			for (int i = 0; i < wide; i++)
				memcpy(cell + i * DEEP, half_at(from, i * across + l),
				       DEEP * sizeof *cell);
		else
			for (int q = 0; q < deep; q++)
				for (int i = 0; i < wide; i++)
					cell[i * DEEP + q] =
						*half_at(from, i * across + (l + q) * along);
		memcpy(panel, cell, (size_t)width * DEEP * sizeof *cell);
	}
}

// As in kern_contract_pack.h; l is a multiple of DEEP.
FLAT void pack_panels(P *to, const int width, const char *from, int64_t across, int64_t many,
		      int64_t along, int64_t k, int64_t l, int64_t rows)
{
	for (int64_t i = 0; i < many; i += width) {
		const int wide = many - i < width ? (int)(many - i) : width;
		pack(to + i * DEPTH(k) + DEPTH(l) * width, width,
		     (const char *)half_at(from, i * across + l * along), across, wide, along,
		     rows);
	}
}

static void pack_a(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t k, int64_t l,
		   int64_t rows)
{
	pack_panels(to, MR, a, g->am, m, g->ak, k, l, rows);
}

static void pack_b(P *to, const struct yk_gemm *g, const char *b, int64_t n, int64_t k, int64_t l,
		   int64_t rows)
{
	pack_panels(to, NR, b, g->bn, n, g->bk, k, l, rows);
}

// Loads two registers and advances the pointer.
FLAT void load_two(const P **from, uint16x8_t *to)
{
	__asm__ volatile("ldp %q0, %q1, [%2], #32"
			 : "=w"(to[0]), "=w"(to[1]), "+r"(*from)
			 : "m"(*(const P(*)[2 * UNIT / 2]) * from));
}

// c (MR, NR) = or += panels of a and b. In assembler and in this order, because compilers would
// load for later products before there are free registers, and copy sums from register to register.
static void multiply_tile(int64_t depth, const P *a, const P *b, T *c, int64_t ldc, bool add)
{
	float32x4_t sum[MR / 2][NR / 2];

#pragma GCC unroll 4
	for (int i = 0; i < MR / 2; i++)
#pragma GCC unroll 6
		for (int j = 0; j < NR / 2; j++)
			sum[i][j] = vdupq_n_f32(0);
	for (const P *end = a + depth * MR; a != end;) {
		uint16x8_t x[NR / 2], y[2];
#pragma GCC unroll 3
		for (int j = 0; j < NR / 2; j += 2)
			load_two(&b, x + j);
#pragma GCC unroll 4
		for (int i = 0; i < MR / 2; i++) {
			if (i % 2 == 0)
				load_two(&a, y);
#pragma GCC unroll 6
			for (int j = 0; j < NR / 2; j++)
				__asm__ volatile("bfmmla %0.4s, %1.8h, %2.8h"
						 : "+w"(sum[i][j])
						 : "w"(y[i % 2]), "w"(x[j]));
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < MR / 2; i++)
#pragma GCC unroll 3
		for (int j = 0; j < NR / 2; j += 2) {
			T *upper = c + 2 * i * ldc + 2 * j, *lower = upper + ldc;
			const float64x2_t s = vreinterpretq_f64_f32(sum[i][j]),
					  t = vreinterpretq_f64_f32(sum[i][j + 1]);
			float32x4_t u = vreinterpretq_f32_f64(vzip1q_f64(s, t)),
				    w = vreinterpretq_f32_f64(vzip2q_f64(s, t));
			if (add) {
				u = vaddq_f32(u, vld1q_f32(upper));
				w = vaddq_f32(w, vld1q_f32(lower));
			}
			vst1q_f32(upper, u);
			vst1q_f32(lower, w);
		}
}

// c (m,n) = or += packed a (m,k) times packed b (k,n).
static void multiply_panels(const P *a, const P *b, T *c, int64_t ldc, int64_t m, int64_t n,
			    int64_t k, bool add)
{
	const int64_t depth = DEPTH(k);
	T edge[MR * NR];

	for (int64_t i = 0; i < m; i += MR)
		for (int64_t j = 0; j < n; j += NR) {
			const int rows = m - i < MR ? (int)(m - i) : MR,
				  cols = n - j < NR ? (int)(n - j) : NR;
			T *to = c + i * ldc + j;

			if (rows == MR && cols == NR) {
				multiply_tile(depth, a + i * depth, b + j * depth, to, ldc, add);
				continue;
			}
			multiply_tile(depth, a + i * depth, b + j * depth, edge, NR, false);
			for (int p = 0; p < rows; p++)
				for (int q = 0; q < cols; q++)
					to[p * ldc + q] = add ? to[p * ldc + q] + edge[p * NR + q] :
								edge[p * NR + q];
		}
}

#include "kern_contract_gemm.h"
