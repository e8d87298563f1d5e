// SPDX-License-Identifier: Apache-2.0
// Contraction with matrix units (matrix.cl), tiles loaded by asynchronous copies: while the units
// multiply one stage of tiles, the copies of the next STAGES - 2 are in flight. Tiles keep the form
// that their operand has in memory, in lines along k or turned; bytes lie along k.
// A group computes BM x BN elements with WARPS_M x WARPS_N warps, each with TILES_M x TILES_N
// matrices of 16 x 16. Groups: see contract_load.cl, in bands as in contract_copies.cl. Reference:
// kern_contract.c of the CPU backend. MATRIX is DTYPE; WARP is the number of items per warp.
#include "contract_copies.cl"
#include "matrix.cl"

#ifndef WARPS_M
#define WARPS_M 2
#define WARPS_N 2
#endif
#ifndef TILES_M
#define TILES_M 4
#define TILES_N 4
#endif
#ifndef BK // steps of k per stage: an even number of MATRIX_K
#define BK (8 * PER)
#endif
#define BM (WARPS_M * TILES_M * 16)
#define BN (WARPS_N * TILES_N * 16)
#define ITEMS (WARPS_M * WARPS_N * WARP)
// Padded so that lines, or steps, that are read at the same time are in different banks.
#define LD_K (BK + PER)
#define LD_A (A_FORM & ALONG_K ? LD_K : BM + 8)
#define LD_B (B_FORM & ALONG_K ? LD_K : BN + 8)
#define SIZE_A (A_FORM & ALONG_K ? BM * LD_K : BK * (BM + 8))
#define SIZE_B (B_FORM & ALONG_K ? BN * LD_K : BK * (BN + 8))
#define STAGE (SIZE_A + SIZE_B)
#define COPIES_A (BM * BK / PER / ITEMS) // quads per item and stage
#define COPIES_B (BN * BK / PER / ITEMS)
#define PARTS (BK / MATRIX_K)

// The quads of an operand that an item copies: EACH stage, `hop` elements apart in memory.
struct copies {
	GLOBAL const element *from; // the item's first quad of the stage to copy next
	long hop, stage;            // distances to the item's next quad, and to the next stage
	int along, across;          // elements and hops that exist from the first quad on
	int to;                     // of the first quad in the tile
};

// `lines` of the tile.
FN struct copies copies_of(const struct side *s, int form, int lines, int item)
{
	const int row = form & ALONG_K ? BK / PER : lines / PER; // quads
	const int at = item % row * PER, other = item / row;
	struct copies c;
	c.to = other * (form & ALONG_K ? LD_K : lines + 8) + at;
	c.hop = ITEMS / row * (form & ALONG_K ? s->line : s->step);
	c.stage = BK * s->step;
	c.from = s->from +
		 (form & ALONG_K ? other * s->line + at * s->step : at * s->line + other * s->step);
	c.along = left_from(form & ALONG_K ? s->steps : s->lines, at);
	c.across = left_from(form & ALONG_K ? s->lines : s->steps, other);
	return c;
}

// Copies the item's quads number first..end to a tile; elements outside the operand become 0.
FN void copies_start(const struct copies *c, int form, int lines, int first, int end,
		     LOCAL_POINTER element *tile)
{
	const int row = form & ALONG_K ? BK / PER : lines / PER,
		  ld = form & ALONG_K ? LD_K : lines + 8;
	const int bytes = quad_bytes(c->along);

	UNROLL
	for (int e = first; e < end; e++)
		quad_copy(c->from + e * c->hop, tile + c->to + e * (ITEMS / row) * ld,
			e * (ITEMS / row) < c->across ? bytes : 0);
}

FN void copies_step(struct copies *c, int form)
{
	c->from += c->stage;
	if (form & ALONG_K)
		c->along -= BK;
	else
		c->across -= BK;
}

// Loads the parts of the warp's matrices at a step of a stage.
FN void parts_load(struct matrix_part *x, struct matrix_part *y, LOCAL_POINTER const element *stage,
		   int k, int line_m, int line_n, int lane)
{
	UNROLL
	for (int i = 0; i < TILES_M; i++)
		x[i] = A_FORM & ALONG_K ?
			       matrix_a(stage + (line_m + i * 16) * LD_A + k, LD_A, lane) :
			       matrix_a_turned(stage + k * LD_A + line_m + i * 16, LD_A, lane);
	stage += SIZE_A;
	UNROLL
	for (int j = 0; j < TILES_N; j++)
		y[j] = B_FORM & ALONG_K ?
			       matrix_b(stage + (line_n + j * 16) * LD_B + k, LD_B, lane) :
			       matrix_b_turned(stage + k * LD_B + line_n + j * 16, LD_B, lane);
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) contract_stages(GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, contraction s Y_PARAMS)
{
	LOCAL_SIZED(element, tiles, STAGES * STAGE);
	struct matrix_sums sums[TILES_M][TILES_N];
	struct matrix_part x[2][TILES_M], y[2][TILES_N];
	int item = LOCAL_ID(0), lane = item % WARP, warp = item / WARP;
	int line_m = warp / WARPS_N * TILES_M * 16, line_n = warp % WARPS_N * TILES_N * 16;
	struct block block;
	if (!block_of_band(&block, s, BM, BN))
		return;
	const struct side a = side_a(a_base, a_at, s, &block), b = side_b(b_base, b_at, s, &block);
	struct copies a_copies = copies_of(&a, A_FORM, BM, item),
		      b_copies = copies_of(&b, B_FORM, BN, item);
	int steps = (int)a.steps, now = 0, into = 0; // stages

	UNROLL
	for (int i = 0; i < TILES_M; i++)
		UNROLL
		for (int j = 0; j < TILES_N; j++)
			sums[i][j] = matrix_zero();
	ROLLED
	for (; into < (STAGES - 1) * STAGE; into += STAGE) {
		copies_start(&a_copies, A_FORM, BM, 0, COPIES_A, tiles + into);
		copies_start(&b_copies, B_FORM, BN, 0, COPIES_B, tiles + into + SIZE_A);
		copies_step(&a_copies, A_FORM);
		copies_step(&b_copies, B_FORM);
		COPIES_COMMIT();
	}
	COPIES_WAIT(STAGES - 2);
	BARRIER();
	parts_load(x[0], y[0], tiles, 0, line_m, line_n, lane);
	ROLLED
	for (int first = 0; first < steps; first += BK) {
		int next = now + STAGE == STAGES * STAGE ? 0 : now + STAGE;
		// the next stage is complete, and nobody reads the previous one, into which copies
		// go
		COPIES_WAIT(STAGES - 3);
		BARRIER();
		UNROLL
		for (int p = 0; p < PARTS; p++) {
			parts_load(x[(p + 1) % 2], y[(p + 1) % 2],
				   tiles + (p + 1 < PARTS ? now : next), (p + 1) % PARTS * MATRIX_K,
				   line_m, line_n, lane);
			copies_start(&a_copies, A_FORM, BM, COPIES_A * p / PARTS,
				     COPIES_A * (p + 1) / PARTS, tiles + into);
			copies_start(&b_copies, B_FORM, BN, COPIES_B * p / PARTS,
				     COPIES_B * (p + 1) / PARTS, tiles + into + SIZE_A);
			UNROLL
			for (int i = 0; i < TILES_M; i++)
				UNROLL
				for (int j = 0; j < TILES_N; j++)
					matrix_multiply(&sums[i][j], &x[p % 2][i], &y[p % 2][j],
							lane);
		}
		copies_step(&a_copies, A_FORM);
		copies_step(&b_copies, B_FORM);
		COPIES_COMMIT();
		into = now;
		now = next;
	}
	long y_matrix = matrix_at(s, block.index, 0);
	if (pairs_of(s, y_matrix Y_ARGS)) { // items hold neighbouring columns
		UNROLL
		for (int i = 0; i < TILES_M; i++)
			UNROLL
			for (int j = 0; j < TILES_N; j++)
				UNROLL
				for (int e = 0; e < MATRIX_SUMS; e += 2)
					finish_pair(sums[i][j].x[e], sums[i][j].x[e + 1], s, &block,
						    y_matrix,
						    block.m + line_m + i * 16 + matrix_row(e, lane),
						    block.n + line_n + j * 16 +
							    matrix_column(e, lane) Y_ARGS);
		return;
	}
	UNROLL
	for (int i = 0; i < TILES_M; i++)
		UNROLL
		for (int j = 0; j < TILES_N; j++)
			UNROLL
			for (int e = 0; e < MATRIX_SUMS; e++)
				finish_sum(sums[i][j].x[e], s, &block, y_matrix,
					block.m + line_m + i * 16 + matrix_row(e, lane),
					block.n + line_n + j * 16 + matrix_column(e, lane) Y_ARGS);
}
