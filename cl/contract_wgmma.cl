// SPDX-License-Identifier: Apache-2.0
// Contraction of f16 or bf16 by warp groups (wgmma.cl; CUDA C++ only), tiles loaded by asynchronous
// copies: while a stage of tiles is multiplied, the copies of the next STAGES - 2 are in flight,
// and the multiplications of the previous stage may still run. Both operands have whole quads
// (QUADS of contract_load.cl) and keep the form they have in memory.
// A group computes 64 GROUPS_M x BN elements, a warp group 64 x BN of them, by 64 steps of k per
// stage. Groups: see contract_load.cl, in bands as in contract_copies.cl. Reference:
// kern_contract.c of the CPU backend. MATRIX is DTYPE.
#include "contract_copies.cl"
#include "wgmma.cl"

#ifndef GROUPS_M
#define GROUPS_M 2
#endif
#ifndef BN
#define BN 128
#endif
#ifndef MIN_GROUPS // groups that share a unit
#define MIN_GROUPS 1
#endif
#define BK WG_ROW
#define BM (GROUPS_M * WG_LINES)
#define ITEMS (GROUPS_M * WG_ITEMS)
#define STAGE ((BM + BN) / 8) // of wg_rows; a tile has as many rows as lines
#define TURNED(form) (!((form) & ALONG_K))
#define PASS (ITEMS / 8) // rows whose quads the items copy at a time

// The quads of an operand that an item copies: one of every PASS rows of a tile.
struct copies {
	GLOBAL const element *from; // the first quad of the stage to copy next
	long line, step;            // strides
	int lines, steps;           // that exist from the first quad on
	int to;                     // its place in the tile
};

FN struct copies copies_of(const struct side *s, int form, int item)
{
	const int row = item / 8, at = item % 8 * PER;
	struct copies c;
	c.to = wg_place(row, item % 8);
	c.line = s->line;
	c.step = s->step;
	c.from = s->from +
		 (TURNED(form) ? at * s->line + row * s->step : row * s->line + at * s->step);
	c.lines = left_from(s->lines, TURNED(form) ? at : row);
	c.steps = left_from(s->steps, TURNED(form) ? row : at);
	return c;
}

// Begins the copies of a tile of `lines` and moves on to the next stage; elements outside the
// operand become 0.
FN void copies_start(struct copies *c, int form, int lines, LOCAL_POINTER ushort *tile)
{
	UNROLL
	for (int e = 0; e < lines / PASS; e++) {
		// turned: rows are steps, in blocks of 64 lines
		const int line = TURNED(form) ? e * PASS / WG_ROW * WG_ROW : e * PASS;
		const int step = TURNED(form) ? e * PASS % WG_ROW : 0;
		const int along = TURNED(form) ? c->lines - line : c->steps;
		const bool there = TURNED(form) ? step < c->steps : line < c->lines;
		quad_copy(c->from + line * c->line + step * c->step,
			  tile + c->to + e * PASS * WG_ROW, there ? quad_bytes(along) : 0);
	}
	c->from += BK * c->step;
	c->steps -= BK;
}

// True if rows of y can be written 16 bytes at a time.
FN bool whole_quads(contraction s, long y_matrix Y_PARAMS)
{
#if !defined SPLIT && !defined MAP_PARAMS && (RESULT == 3 || RESULT == 4)
	return s.y_n == 1 && s.y_m % PER == 0 && s.n % PER == 0 &&
	       ((ulong)(y_base + y_at) + (ulong)y_matrix * 2) % 16 == 0;
#else
	return false;
#endif
}

// Stores the warp's 16 lines of sums from (m, n) on, through a tile of 16 rows in local memory.
FN void put_quads(const float (&sums)[BN / 2], contraction s, ushort *tile, long m, long n,
		  long y_matrix, int lane Y_PARAMS)
{
#if !defined SPLIT && !defined MAP_PARAMS && (RESULT == 3 || RESULT == 4)
	UNROLL
	for (int i = 0; i < BN / 2; i += 2) {
		const int column = wg_column(i, lane);
		ushort *at = tile + column / WG_ROW * (16 * WG_ROW) +
			     wg_place(wg_line(i, lane % WARP), column % WG_ROW / PER) +
			     column % PER;
		*(uint *)at = wg_pair<MATRIX>(sums[i], sums[i + 1]);
	}
	WARP_SYNC();
	ROLLED
	for (int quad = lane % WARP; quad < 16 * BN / PER; quad += WARP) {
		const int line = quad / (BN / PER), column = quad % (BN / PER) * PER;
		if (m + line < s.m && n + column < s.n)
			quad_move(tile + column / WG_ROW * (16 * WG_ROW) +
					  wg_place(line, column % WG_ROW / PER),
				  (GLOBAL ushort *)(y_base + y_at) +
					  (y_matrix + (m + line) * s.y_m + n + column));
	}
#endif
}

KERNEL void __launch_bounds__(ITEMS, MIN_GROUPS) contract_wgmma(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	WG_TILES(tiles, STAGES * STAGE);
	float sums[BN / 2];
	int item = LOCAL_ID(0), lane = item % WG_ITEMS, mine = wg_number(item) * WG_LINES;
	struct block block;
	if (!block_of_band(&block, s, BM, BN))
		return;
	const struct side a = side_a(a_base, a_at, s, &block), b = side_b(b_base, b_at, s, &block);
	struct copies a_copies = copies_of(&a, A_FORM, item),
		      b_copies = copies_of(&b, B_FORM, item);
	const ulong a_tile = wg_tile(tiles[mine / 8].x, WG_ROW * 128),
		    b_tile = wg_tile(tiles[BM / 8].x, WG_ROW * 128);
	int steps = (int)a.steps, now = 0, into = 0; // stages

	UNROLL
	for (int i = 0; i < BN / 2; i++)
		sums[i] = 0.0f;
	ROLLED
	for (; into < STAGES - 2; into++) {
		copies_start(&a_copies, A_FORM, BM, tiles[into * STAGE].x);
		copies_start(&b_copies, B_FORM, BN, tiles[into * STAGE + BM / 8].x);
		COPIES_COMMIT();
	}
	ROLLED
	for (int first = 0; first < steps; first += BK) {
		// This stage is complete, and all have finished the one before the previous one,
		// into which copies go.
		COPIES_WAIT(STAGES - 3);
		WG_VISIBLE();
		BARRIER();
		WG_FENCE();
		UNROLL
		for (int k = 0; k < BK / WG_K; k++)
			wg_multiply<MATRIX, TURNED(A_FORM), TURNED(B_FORM)>(
				sums,
				wg_from(a_tile, now * (STAGE * 1024) + k * WG_STEP(TURNED(A_FORM))),
				wg_from(b_tile, now * (STAGE * 1024) + k * WG_STEP(TURNED(B_FORM))),
				1);
		WG_COMMIT();
		copies_start(&a_copies, A_FORM, BM, tiles[into * STAGE].x);
		copies_start(&b_copies, B_FORM, BN, tiles[into * STAGE + BM / 8].x);
		COPIES_COMMIT();
		now = now + 1 == STAGES ? 0 : now + 1;
		into = into + 1 == STAGES ? 0 : into + 1;
		WG_WAIT(1);
	}
	WG_WAIT(0);
	wg_settle(sums);
	long y_matrix = matrix_at(s, block.index, 0);
	if (whole_quads(s, y_matrix Y_ARGS)) {
		COPIES_WAIT(0);
		WG_VISIBLE();
		BARRIER(); // nobody reads or writes tiles any more
		put_quads(sums, s, tiles[item / WARP * (BN / 32)].x,
			  block.m + mine + lane / WARP * 16, block.n, y_matrix, lane Y_ARGS);
		return;
	}
	UNROLL
	for (int i = 0; i < BN / 2; i++)
		finish_sum(sums[i], s, &block, y_matrix, block.m + mine + wg_line(i, lane),
			   block.n + wg_column(i, lane) Y_ARGS);
}
