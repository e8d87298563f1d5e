// SPDX-License-Identifier: Apache-2.0
// Contractions of bf16 with AMX: four tiles of sums, 32 by 32, over two tiles of a and two of b.
// Rows of a are read in place, or from panels where they are not contiguous along k. A panel of a
// is [k / 32][half] [16 rows][16 pairs], of b [k / 32][half][16 pairs][16 columns], zero-padded.
// Subnormals are treated as zero.
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
// Long panels, because storing a block of sums takes as long as two or three steps along k.
#define KC 768
#define K_UNIT DEEP
#define BANDS
#define DEPTH(k) (((k) + DEEP - 1) / DEEP * SIDE)

#include "kern_contract_pairs.h"

// Packs columns of b, of which wide <= 16 exist, k <= 32 deep: to[pair][column].
static void pack_columns(P *to, const char *from, int64_t across, int wide, int64_t along,
			 int k)
{
	if (along == 1 && wide == SIDE && k == DEEP) {
		yk_transpose16(to, SIDE * sizeof(P), from, across * 2);
		return;
	}
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
		yk_transpose16(to, SIDE * sizeof(P), columns, SIDE * sizeof(P));
		return;
	}
	if (wide < SIDE || k < DEEP)
		memset(to, 0, TILE * sizeof(P));
	for (int i = 0; i < wide; i++)
		memcpy(to + i * SIDE, half_at(from, i * across), (size_t)k * sizeof(uint16_t));
}

enum operand { ROWS_OF_A, COLUMNS_OF_B };

// Packs DEEP columns of b or rows of a, k <= DEEP deep, whose first `left` exist.
static void pack_block(enum operand what, P *to, const uint16_t *from, int64_t across, int64_t left,
		       int64_t along, int k)
{
	for (int half = 0; half < 2; half++, to += TILE, from += SIDE * across) {
		const int wide = left < SIDE ? (int)left : SIDE;
		if (what == ROWS_OF_A)
			pack_rows(to, (const char *)from, across, wide, along, k);
		else
			pack_columns(to, (const char *)from, across, wide, along, k);
		left -= wide;
	}
}

// The same for `panels` neighbouring whole blocks that are dense across, `stride` pairs apart in
// the packed matrix. Rows of several blocks are read at once, because a row alone has only a cache
// line of a block.
static void pack_dense(enum operand what, P *to, int64_t stride, const uint16_t *from, int panels,
		       int64_t along)
{
	P columns[2 * TILE];

	if (what == COLUMNS_OF_B) {
		for (int l = 0; l < SIDE; l++, from += 2 * along, to += SIDE)
			for (int i = 0; i < panels; i++)
				yk_join32(to + i * stride, to + i * stride + TILE, from + i * DEEP,
					  from + along + i * DEEP);
		return;
	}
	for (int i = 0; i < panels; i++, from += DEEP, to += stride) {
		for (int l = 0; l < SIDE; l++)
			yk_join32(columns + l * SIDE, columns + TILE + l * SIDE,
				  from + 2 * l * along, from + (2 * l + 1) * along);
		yk_transpose16(to, SIDE * sizeof(P), columns, SIDE * sizeof(P));
		yk_transpose16(to + TILE, SIDE * sizeof(P), columns + TILE, SIDE * sizeof(P));
	}
}

// As in kern_contract_pack.h; l is a multiple of DEEP.
static void pack(enum operand what, P *to, const char *from, int64_t across, int64_t many,
		 int64_t along, int64_t k, int64_t l, int64_t rows)
{
	enum { PANELS = 4 };
	const bool dense = across == 1 && along != 1;
	const int64_t end = l + rows, stride = MR * DEPTH(k), group = dense ? PANELS * MR : MR;

	for (int64_t i = 0; i < many; i += group)
		for (int64_t q = l; q < end; q += DEEP) {
			const int64_t stop = many < i + group ? many : i + group;
			const int k_here = end - q < DEEP ? (int)(end - q) : DEEP;
			const uint16_t *x = half_at(from, i * across + q * along);
			P *panel = to + i / MR * stride + DEPTH(q) * MR;
			int64_t at = i;
			if (dense && k_here == DEEP && stop - at >= MR) {
				const int whole = (int)((stop - at) / MR);
				pack_dense(what, panel, stride, x, whole, along);
				at += whole * MR;
				panel += whole * stride;
			}
			for (; at < stop; at += MR, panel += stride)
				pack_block(what, panel, x + (at - i) * across, across, many - at,
					   along, k_here);
		}
}

static void pack_a(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(ROWS_OF_A, to, a, g->am, m, g->ak, k, l, rows);
}

static void pack_b(P *to, const struct yk_gemm *g, const char *b, int64_t n, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(COLUMNS_OF_B, to, b, g->bn, n, g->bk, k, l, rows);
}

// MR rows of a, K_UNIT columns of which a pair of tiles holds: in memory, or in a panel.
struct band {
	const char *at;
	int64_t row;  // bytes from a row to the next
	int64_t deep; // bytes from K_UNIT columns to the next
	int64_t half; // bytes from the first SIDE rows to the others
};

static struct band packed_band(const P *panel)
{
	return (struct band){ (const char *)panel, SIDE * sizeof(P), 2 * TILE * sizeof(P),
			      TILE * sizeof(P) };
}

static struct band band_in_place(const char *a, int64_t am)
{
	return (struct band){ a, 2 * am, DEEP * 2, SIDE * 2 * am };
}

// Prefetches a quarter of the tiles of b that are multiplied two steps later. It costs 4 % where a
// core runs one thread. Where another thread shares the core, products wait for every load, and it
// gains 20 %.
FLAT void prefetch_quarter(const P *b, int quarter)
{
	enum { LINE = 64 / sizeof(P), AHEAD = 2 * 2 * TILE, QUARTER = TILE / 2 };

#pragma GCC unroll 8
	for (int i = 0; i < QUARTER; i += LINE)
		__builtin_prefetch(b + AHEAD + quarter * QUARTER + i);
}

// c (32,32) = or += a band times a panel of b. tall, wide: the second halves are not empty.
FLAT void multiply_four(int64_t depth, const struct band *s, const P *b, T *c, int64_t ldc,
			bool add, const bool tall, const bool wide)
{
	const int64_t line = ldc * (int64_t)sizeof(T), row = SIDE * sizeof(P), a_row = s->row,
		      deep = s->deep;
	const char *a = s->at, *a_below = a + s->half;
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
	for (int64_t l = 0; l < depth; l += SIDE, a += deep, a_below += deep, b += 2 * TILE) {
		yk_tile_load(4, a, a_row);
		yk_tile_load(6, b, row);
		yk_tile_multiply(0, 4, 6);
		prefetch_quarter(b, 0);
		if (wide) {
			yk_tile_load(7, b + TILE, row);
			yk_tile_multiply(1, 4, 7);
		}
		prefetch_quarter(b, 1);
		if (tall) {
			yk_tile_load(5, a_below, a_row);
			yk_tile_multiply(2, 5, 6);
			prefetch_quarter(b, 2);
			if (wide)
				yk_tile_multiply(3, 5, 7);
		}
		prefetch_quarter(b, 3);
	}
	yk_tile_store(0, c, line);
	if (wide)
		yk_tile_store(1, c + SIDE, line);
	if (tall)
		yk_tile_store(2, below, line);
	if (tall && wide)
		yk_tile_store(3, below + SIDE, line);
}

static void multiply_block(int64_t depth, const struct band *a, const P *b, T *c, int64_t ldc,
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

// c (m,n) = or += a band (m,k) times packed b (k,n); m <= MR. The tiles are configured.
static void multiply_band(const struct band *a, const P *b, T *c, int64_t ldc, int64_t m,
			  int64_t n, int64_t k, bool add)
{
	const int64_t depth = DEPTH(k);
	T edge[MR * NR];

	for (int64_t j = 0; j < n; j += NR, c += NR, b += NR * depth) {
		int cols = n - j < NR ? (int)(n - j) : NR;
		bool tall = m > SIDE, wide = cols > SIDE;

		if (m % SIDE == 0 && cols % SIDE == 0) {
			multiply_block(depth, a, b, c, ldc, add, tall, wide);
			continue;
		}
		// uses a whole block, so that sums have the same order as inside
		for (int p = 0; p < m && add; p++)
			memcpy(edge + p * NR, c + p * ldc, (size_t)cols * sizeof(T));
		multiply_block(depth, a, b, edge, NR, add, tall, wide);
		for (int p = 0; p < m; p++)
			memcpy(c + p * ldc, edge + p * NR, (size_t)cols * sizeof(T));
	}
}

static void begin_tiles(void)
{
	yk_tiles_begin(SIDE, DEEP * 2);
}

static void end_tiles(void)
{
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
	pack(ROWS_OF_A, a, (const char *)x, DEEP, MR, 1, DEEP, 0, DEEP);
	pack(COLUMNS_OF_B, b, (const char *)y, 1, NR, NR, DEEP, 0, DEEP);
	const struct band band = packed_band(a);
	begin_tiles();
	multiply_band(&band, b, c, NR, MR, NR, DEEP, false);
	end_tiles();
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
