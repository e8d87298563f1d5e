// SPDX-License-Identifier: Apache-2.0
// Attention forward with matrix units: softmax(scale q k' + mask) v by blocks of keys, with a
// running maximum and sum (Milakov and Gimelshein 2018; Dao 2023). Reference: kern_attention.c of
// the CPU backend. Groups: one tile of queries of one head; 16 STACK queries per warp.
// With STAGES 1 a block's values are copied to local memory while its scores are computed, and the
// next block's keys while the values are multiplied. With more, keys and values of the next blocks,
// STAGES - 1 of them, are copied meanwhile, and a block costs one barrier; without DROPOUT only.
#include "attention_blocks.cl"

#ifndef STAGES
#define STAGES 1
#endif
// Local memory: with STAGES 1, values, then keys; otherwise PAIR elements per stage, keys first.
// The same memory holds the tile of queries before and after the loop over keys; if the products
// read that tile in the loop, it follows the stages. Weights that go through local memory replace
// the keys, or the second stage while there is only one, or have memory of their own, at the end.
#define PAIR (2 * BLOCK * LD)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#if STAGES > 1
#define BLOCKS_ROOM LARGER(STAGES * PAIR, PAIR + TILE * LW)
#elif WEIGHTS_APART
#define BLOCKS_ROOM PAIR
#else
#define BLOCKS_ROOM (BLOCK * LD + LARGER(TILE * LW, BLOCK * LD))
#endif
#define STAGE_ROOM (HELD ? LARGER(BLOCKS_ROOM, TILE * LD) : BLOCKS_ROOM)
#define QUERY_ROOM (HELD ? 0 : TILE * LD)
#define ALL_ROOM (STAGE_ROOM + QUERY_ROOM + (WEIGHTS_APART ? TILE * LW : 0))
#define AHEAD (STAGES > 1 ? STAGES - 2 : 0) // groups of copies in flight while a block is used

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) attention_matrix(GLOBAL uchar *o_base, ulong o_at,
	GLOBAL uchar *lse_base, ulong lse_at, GLOBAL uchar *q_base, ulong q_at,
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
	GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base, ulong key_at,
	GLOBAL uchar *step_base, ulong step_at, GLOBAL uchar *seen_base, ulong seen_at,
	struct attention_args a)
{
	LOCAL_SIZED(matrix_element, memory, ALL_ROOM);
	LOCAL float room[PEER_ROOM];
	LOCAL int found;
	struct own_rows own;
	struct matrix_sums out[STACK * (HEAD / 16)], p[STACK * (BLOCK / 16)];
	float largest[STACK * MATRIX_ROWS], sum[STACK * MATRIX_ROWS];
	int item = LOCAL_ID(0), lane = item % WARP, line = item / WARP * LINES;
	LOCAL_POINTER matrix_element *tile = memory + (HELD ? 0 : STAGE_ROOM);
	LOCAL_POINTER matrix_element *weights = memory + line * LW +
		(WEIGHTS_APART ? STAGE_ROOM + QUERY_ROOM : STAGES > 1 ? PAIR : BLOCK * LD);
	// causal: the last tile of a head sees most keys, so these start first
	uint heads = (uint)(a.B * a.H), bh = (uint)GROUP_ID(0) % heads, b = bh / (uint)a.H,
	     h = bh % (uint)a.H;
	uint kv = h / ((uint)a.H / (uint)a.G);
	int T = (int)a.T, t = (int)(((uint)T - 1u) / TILE - (uint)GROUP_ID(0) / heads) * TILE,
	    mine = t + line;
	int seen = (int)seen_of(seen_base, seen_at, &a, b);
	// keys that query 0 sees; with causal masking the next sees one more
	int more = a.causal ? seen - T + 1 : seen;
	int sees = keys_of(&a, seen, more, t + TILE < T ? t + TILE - 1 : T - 1);
	// of the warp: all its queries see the keys before `sure`, none sees keys from `sees_any`
	// on
	int sure = keys_of(&a, seen, more, mine);
	int sees_any =
		mine < T ? keys_of(&a, seen, more, mine + LINES < T ? mine + LINES - 1 : T - 1) : 0;
	GLOBAL const stored *k_rows = head_at(k_base, k_at, &a.k, b, 0, kv);
	GLOBAL const stored *v_rows = head_at(v_base, v_at, &a.v, b, 0, kv);
	// Scores stay as products, in units of `unit` / log2 e, if that keeps their order.
	bool plain = !MASKED && a.scale > 0.0f;
	float unit = plain ? a.scale * LOG2_E : LOG2_E;

	stage_rows(tile, head_at(q_base, q_at, &a.q, b, t, h), a.q.t, T - t, TILE, a.D, item);
	COPIES_WAIT(0);
	BARRIER();
	hold_rows(&own, HELD > 0, tile + line * LD, lane);

	// A NaN in the result may come from values hidden from the query: then repeat with the
	// slow, exact handling.
	bool seen_only = false;
	do {
		bool keys_replaced = !WEIGHTS_APART && (DROPOUT || seen_only);
		bool staged = STAGES > 1 && !seen_only;
		LOCAL_POINTER matrix_element *values = memory, *keys = memory + BLOCK * LD;
		UNROLL
		for (int r = 0; r < STACK * MATRIX_ROWS; r++) {
			largest[r] = -INFINITY;
			sum[r] = 0.0f; // over this item's columns
		}
		UNROLL
		for (int c = 0; c < STACK * (HEAD / 16); c++)
			out[c] = matrix_zero();
		BARRIER();
		if (STAGES == 1)
			stage_rows(keys, k_rows, a.k.t, sees, BLOCK, a.D, item);
		for (int j = staged ? (1 - STAGES) * BLOCK : 0; j < sees; j += BLOCK) {
			bool any = !WARPS_DIVERGE || j < sees_any;
			if (STAGES > 1) {
				int next = staged ? j + (STAGES - 1) * BLOCK : j;
				if (j >= 0) {
					// the block is complete, and all have finished the one
					// before, which copies replace
					COPIES_WAIT(AHEAD);
					BARRIER();
				}
				if (next < sees) {
					LOCAL_POINTER matrix_element *to =
						memory +
						(staged ? (uint)next / BLOCK % STAGES : 0) * PAIR;
					copy_rows(to, k_rows + (long)next * a.k.t, a.k.t,
						  sees - next, BLOCK, a.D, item);
					copy_rows(to + BLOCK * LD, v_rows + (long)next * a.v.t,
						  a.v.t, sees - next, BLOCK, a.D, item);
				}
				COPIES_COMMIT();
				if (j < 0)
					continue;
				if (seen_only) {
					COPIES_WAIT(0);
					BARRIER();
				}
				keys = memory + (staged ? (uint)j / BLOCK % STAGES : 0) * PAIR;
				values = keys + BLOCK * LD;
			} else {
				COPIES_WAIT(0);
				BARRIER();
				stage_rows(values, v_rows + (long)j * a.v.t, a.v.t, sees - j, BLOCK,
					   a.D, item);
			}
			if (any) {
				float top[STACK * MATRIX_ROWS];
				rows_by_rows(p, &own, HELD > 0, keys, lane);
				if (!plain) {
					GLOBAL const beside *mask =
						(GLOBAL const beside *)(mask_base + mask_at) +
						b * a.mask_b + h * a.mask_h +
						(long)mine * a.mask_t + j * a.mask_s;
					UNROLL
					for (int c = 0; c < STACK * (BLOCK / 16); c++)
						UNROLL
						for (int e = 0; e < MATRIX_SUMS; e++) {
							int query = c / (BLOCK / 16) * 16 +
								    matrix_row(e, lane);
							int k = c % (BLOCK / 16) * 16 +
								matrix_column(e, lane);
							float x = p[c].x[e] * a.scale;
							const bool there = mine + query < T &&
										   j + k < (int)a.S;
							GLOBAL const beside *at =
								mask + query * a.mask_t +
								k * a.mask_s;
							if (MASKED && there)
								x = masked_score(
									x, load_beside_one(at));
							p[c].x[e] = x;
						}
				}
				if (j + BLOCK > sure) {
					int there = seen - j,
					    first = more - j + (a.causal ? mine : 0);
					UNROLL
					for (int c = 0; c < STACK * (BLOCK / 16); c++)
						UNROLL
						for (int e = 0; e < MATRIX_SUMS; e++) {
							int query = c / (BLOCK / 16) * 16 +
								    matrix_row(e, lane);
							int k = c % (BLOCK / 16) * 16 +
								matrix_column(e, lane);
							if (k >= there ||
							    k >= first + (a.causal ? query : 0))
								p[c].x[e] = -INFINITY;
						}
				}
				UNROLL
				for (int r = 0; r < STACK * MATRIX_ROWS; r++)
					top[r] = largest[r];
				UNROLL
				for (int c = 0; c < STACK * (BLOCK / 16); c++)
					UNROLL
					for (int e = 0; e < MATRIX_SUMS; e++) {
						int r = c / (BLOCK / 16) * MATRIX_ROWS +
							matrix_slot(e);
						top[r] = fmax(top[r], p[c].x[e]);
					}
				UNROLL
				for (int r = 0; r < STACK * MATRIX_ROWS; r++) {
					top[r] = row_join(top[r], true, room, item);
					// a query that has seen no key yet keeps -inf; 2^(-inf - 0)
					// is 0
					float base = top[r] == -INFINITY ? 0.0f : top[r] * unit;
					float shrink = EXP2(FMA(largest[r], unit, -base));
					const int first = r / MATRIX_ROWS * (HEAD / 16);
					sum[r] *= shrink;
					largest[r] = top[r];
					top[r] = base;
					UNROLL
					for (int c = 0; c < HEAD / 16; c++)
						UNROLL
						for (int e = 0; e < MATRIX_SUMS; e++)
							if (matrix_slot(e) == r % MATRIX_ROWS)
								out[first + c].x[e] *= shrink;
				}
				UNROLL
				for (int c = 0; c < STACK * (BLOCK / 16); c++)
					UNROLL
					for (int e = 0; e < MATRIX_SUMS; e++) {
						int r = c / (BLOCK / 16) * MATRIX_ROWS +
							matrix_slot(e);
						p[c].x[e] = EXP2(FMA(p[c].x[e], unit, -top[r]));
						sum[r] += p[c].x[e];
					}
			}
			if (STAGES == 1) {
				COPIES_WAIT(0);
				BARRIER();
			}
			if (STAGES == 1 && !keys_replaced && j + BLOCK < sees)
				stage_rows(keys, k_rows + (long)(j + BLOCK) * a.k.t, a.k.t,
					   sees - j - BLOCK, BLOCK, a.D, item);
			if (any) {
				if (DROPOUT) {
					keep_tile(weights, ((long)bh * T + mine) * a.S + j, a.S, 1,
						  a.S % 4 == 0,
						  number_whole(key_base, key_at, a.key),
						  number_whole(step_base, step_at, a.step),
						  a.dropout, lane);
					TEAM_SYNC();
					drop_weights(p, weights, lane);
					TEAM_SYNC();
				}
				if (WEIGHTS_APART || seen_only) {
					put_weights(weights, p, lane);
					TEAM_SYNC();
				}
				if (seen_only)
					add_seen(out, HEAD, weights, values, lane);
				else
					add_weighted(out, HEAD, p, weights, values, lane);
			}
			if (STAGES == 1 && keys_replaced && j + BLOCK < sees) {
				BARRIER();
				stage_rows(keys, k_rows + (long)(j + BLOCK) * a.k.t, a.k.t,
					   sees - j - BLOCK, BLOCK, a.D, item);
			}
		}
		COPIES_WAIT(0);
		seen_only = !seen_only && (MASKED || a.causal) &&
			group_any(sums_nan(out, STACK * (HEAD / 16)), &found, item);
	} while (seen_only);

	GLOBAL float *lse = (GLOBAL float *)(lse_base + lse_at) + (long)bh * T + mine;
	float factor[STACK * MATRIX_ROWS];
	UNROLL
	for (int r = 0; r < STACK * MATRIX_ROWS; r++) {
		sum[r] = row_join(sum[r], false, room, item);
		// all keys hidden: 0, and log 0 = -inf
		factor[r] = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
		if (DROPOUT)
			factor[r] *= 1.0f / (1.0f - a.dropout);
	}
	UNROLL
	for (int s = 0; s < STACK; s++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int query = s * 16 + matrix_row(e, lane),
			    r = s * MATRIX_ROWS + matrix_slot(e);
			if (matrix_column(e, lane) == 0 && mine + query < T)
				lse[query] = largest[r] * (plain ? a.scale : 1.0f) + log(sum[r]);
		}
	BARRIER();
	put_rows(head_at(o_base, o_at, &a.o, b, mine, h), a.o.t, tile + line * LD, out, HEAD,
		 T - mine, a.D, factor, lane);
}
