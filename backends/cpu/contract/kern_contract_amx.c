// SPDX-License-Identifier: Apache-2.0
// Contractions of bf16 with AMX: four tiles of sums, 32 by 32, over two tiles of a and two of b. A
// panel of a is [k / 32][half][16 rows][16 pairs], of b [k / 32][half][16 pairs][16 columns],
// zero-padded. Subnormals are treated as zero.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "../vector/amx.h"
#include "../vector/half.h"
#include "kern_contract.h"

#define ENTRY_RUN LEVEL(yk_gemm_bf16)
#define ENTRY_CUT LEVEL(yk_gemm_bf16_block)

enum { SIDE = 16, DEEP = 2 * SIDE, TILE = SIDE * SIDE }; // DEEP: steps of k; TILE: pairs per tile

#define VL SIDE
#define MR 32
#define NR 32
// A panel of b, 24 KiB, stays in L1 while panels of a stream from L2: with both from L2, a block of
// four tiles would need 64 bytes a cycle, which is more than L2 delivers.
#define KC 384
#define K_UNIT DEEP
#define DEPTH(k) (((k) + DEEP - 1) / DEEP * SIDE)

#include "kern_contract_pairs.h"

// Packs columns of b, of which wide <= 16 exist, k <= 32 deep: to[pair][column].
static void pack_columns(P *to, const char *from, int64_t across, int wide, int64_t along,
			 int k)
{
	if (wide < SIDE || k < DEEP)
		memset(to, 0, TILE * sizeof(P));
	pack_pairs(to, SIDE, from, across, wide, along, k);
}

// Packs rows of a: to[row][pair]. Rows that are dense across, as of a transposed matrix, are joined
// to pairs sixteen at a time.
static void pack_rows(P *to, const char *from, int64_t across, int wide, int64_t along,
		      int k)
{
	if (along != 1) {
		P columns[TILE];
		pack_columns(columns, from, across, wide, along, k);
		pack_transposed(to, SIDE, (const char *)columns, SIDE * sizeof(P), SIDE, SIDE);
		return;
	}
	if (wide < SIDE || k < DEEP)
		memset(to, 0, TILE * sizeof(P));
	for (int i = 0; i < wide; i++)
		memcpy(to + i * SIDE, half_at(from, i * across), (size_t)k * sizeof(uint16_t));
}

typedef void pack_fn(P *to, const char *from, int64_t across, int wide, int64_t along,
		     int k);

// As in kern_contract_pack.h; l is a multiple of DEEP.
static void pack(pack_fn *one, P *to, const char *from, int64_t across, int64_t many,
		 int64_t along, int64_t k, int64_t l, int64_t rows)
{
	int64_t end = l + rows, step = across == 1 && along != 1 ? PACK_ROWS : rows;

	for (; l < end; l += step)
		for (int64_t i = 0; i < many; i += MR) {
			int64_t stop = end - l < step ? end : l + step;
			P *panel = to + i * DEPTH(k) + DEPTH(l) * MR;
			for (int64_t q = l; q < stop; q += DEEP)
				for (int half = 0; half < 2; half++, panel += TILE) {
					int64_t at = i + half * SIDE, left = many - at;
					one(panel,
					    (const char *)half_at(from, at * across +
									      q * along),
					    across,
					    left > SIDE ? SIDE :
					    left > 0	? (int)left :
							  0,
					    along,
					    stop - q < DEEP ? (int)(stop - q) : DEEP);
				}
		}
}

static void pack_a(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(pack_rows, to, a, g->am, m, g->ak, k, l, rows);
}

static void pack_b(P *to, const struct yk_gemm *g, const char *b, int64_t n, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(pack_columns, to, b, g->bn, n, g->bk, k, l, rows);
}

// c (32,32) = or += panels of a and b. tall, wide: the second halves are not empty.
FLAT void multiply_four(int64_t depth, const P *a, const P *b, T *c, int64_t ldc,
			bool add, const bool tall, const bool wide)
{
	const int64_t line = ldc * (int64_t)sizeof(T), row = SIDE * sizeof(P);
	T *below = c + SIDE * ldc;

	yk_tile_zero(0);
	yk_tile_zero(1);
	yk_tile_zero(2);
	yk_tile_zero(3);
	if (add) {
		yk_tile_load(0, c, line);
		if (wide)
			yk_tile_load(1, c + SIDE, line);
		if (tall)
			yk_tile_load(2, below, line);
		if (tall && wide)
			yk_tile_load(3, below + SIDE, line);
	}
	for (int64_t l = 0; l < depth; l += SIDE, a += 2 * TILE, b += 2 * TILE) {
		yk_tile_load(4, a, row);
		yk_tile_load(6, b, row);
		yk_tile_multiply(0, 4, 6);
		if (wide) {
			yk_tile_load(7, b + TILE, row);
			yk_tile_multiply(1, 4, 7);
		}
		if (tall) {
			yk_tile_load(5, a + TILE, row);
			yk_tile_multiply(2, 5, 6);
			if (wide)
				yk_tile_multiply(3, 5, 7);
		}
	}
	yk_tile_store(0, c, line);
	if (wide)
		yk_tile_store(1, c + SIDE, line);
	if (tall)
		yk_tile_store(2, below, line);
	if (tall && wide)
		yk_tile_store(3, below + SIDE, line);
}

static void multiply_block(int64_t depth, const P *a, const P *b, T *c, int64_t ldc,
			   bool add, bool tall, bool wide)
{
	if (tall && wide)
		multiply_four(depth, a, b, c, ldc, add, true, true);
	else if (tall)
		multiply_four(depth, a, b, c, ldc, add, true, false);
	else if (wide)
		multiply_four(depth, a, b, c, ldc, add, false, true);
	else
		multiply_four(depth, a, b, c, ldc, add, false, false);
}

// c (m,n) = or += packed a (m,k) times packed b (k,n).
static void multiply_panels(const P *a, const P *b, T *c, int64_t ldc, int64_t m,
			    int64_t n, int64_t k, bool add)
{
	int64_t depth = DEPTH(k);
	T edge[MR * NR];

	yk_tiles_begin(SIDE, DEEP * 2);
	for (int64_t j = 0; j < n; j += NR)
		for (int64_t i = 0; i < m; i += MR) {
			int rows = m - i < MR ? (int)(m - i) : MR;
			int cols = n - j < NR ? (int)(n - j) : NR;
			bool tall = rows > SIDE, wide = cols > SIDE;
			const P *pa = a + i * depth, *pb = b + j * depth;
			T *to = c + i * ldc + j;

			if (rows % SIDE == 0 && cols % SIDE == 0) {
				multiply_block(depth, pa, pb, to, ldc, add, tall, wide);
				continue;
			}
			// uses a whole block, so that sums have the same order as inside
			for (int p = 0; p < rows && add; p++)
				memcpy(edge + p * NR, to + p * ldc,
				       (size_t)cols * sizeof(T));
			multiply_block(depth, pa, pb, edge, NR, add, tall, wide);
			for (int p = 0; p < rows; p++)
				memcpy(to + p * ldc, edge + p * NR,
				       (size_t)cols * sizeof(T));
		}
	yk_tiles_end();
}

#include "kern_contract_gemm.h"

// Tests one product of small integers, which is exact in any order.
bool LEVEL(yk_amx_works)(void)
{
	P a[2 * TILE], b[2 * TILE];
	T c[MR * NR];
	uint16_t x[MR * DEEP], y[DEEP * NR];
	bool works = true;

	for (int i = 0; i < MR * DEEP; i++) {
		x[i] = yk_bf16_of_f32((float)(i * 7 % 23 - 11));
		y[i] = yk_bf16_of_f32((float)(i * 5 % 19 - 9));
	}
	pack(pack_rows, a, (const char *)x, DEEP, MR, 1, DEEP, 0, DEEP);
	pack(pack_columns, b, (const char *)y, 1, NR, NR, DEEP, 0, DEEP);
	multiply_panels(a, b, c, NR, MR, NR, DEEP, false);
	for (int i = 0; i < MR; i++)
		for (int j = 0; j < NR; j++) {
			float sum = 0;
			for (int l = 0; l < DEEP; l++)
				sum += yk_f32_of_bf16(x[i * DEEP + l]) *
				       yk_f32_of_bf16(y[l * NR + j]);
			works &= c[i * NR + j] == sum;
		}
	return works;
}
