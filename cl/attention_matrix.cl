// SPDX-License-Identifier: Apache-2.0
// Attention forward with matrix units: softmax(scale q k' + mask) v by blocks of keys, with a
// running maximum and sum (Milakov and Gimelshein 2018; Dao et al. 2022). Reference:
// kern_attention.c of the CPU backend. Groups: one tile of queries of one head; 16 queries per
// warp.
#include "attention_blocks.cl"

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) attention_matrix(GLOBAL uchar *o_base, ulong o_at,
	GLOBAL uchar *lse_base, ulong lse_at, GLOBAL uchar *q_base, ulong q_at,
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
	GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base, ulong key_at,
	GLOBAL uchar *step_base, ulong step_at, GLOBAL uchar *seen_base, ulong seen_at,
	struct attention_args a)
{
	LOCAL matrix_element queries[TILE * LD], keys[BLOCK * LD], values[BLOCK * LD], all[TILE * LW];
	LOCAL float room[PEER_ROOM];
	LOCAL int found;
	struct matrix_sums out[HEAD / 16], p[BLOCK / 16];
	float largest[MATRIX_ROWS], sum[MATRIX_ROWS];
	int item = LOCAL_ID(0), lane = item % WARP, line = item / WARP * 16;
	LOCAL_POINTER matrix_element *weights = all + line * LW;
	long tiles = (a.T + TILE - 1) / TILE, bh = (long)GROUP_ID(0) / tiles;
	// causal: the last tile of a head sees most keys, so it starts first
	long t = (tiles - 1 - (long)GROUP_ID(0) % tiles) * TILE, mine = t + line;
	long b = bh / a.H, h = bh % a.H, kv = h / (a.H / a.G), row = bh * a.T + mine;
	long seen = seen_of(seen_base, seen_at, &a, b);
	long sees = limit_of(&a, seen, min_of(t + TILE, a.T) - 1);
	long key = number_whole(key_base, key_at, a.key);
	long step = number_whole(step_base, step_at, a.step);
	GLOBAL const beside *mask = (GLOBAL const beside *)(mask_base + mask_at) + b * a.mask_b + h * a.mask_h +
		mine * a.mask_t;

	stage_rows(queries, head_at(q_base, q_at, &a.q, b, t, h), a.q.t, a.T - t, TILE, a.D, item);

	// A NaN in the result may come from values hidden from the query: then repeat with the
	// slow, exact handling.
	bool seen_only = false;
	do {
		UNROLL
		for (int r = 0; r < MATRIX_ROWS; r++) {
			largest[r] = -INFINITY;
			sum[r] = 0.0f; // over this item's columns
		}
		UNROLL
		for (int c = 0; c < HEAD / 16; c++)
			out[c] = matrix_zero();
		for (long j = 0; j < sees; j += BLOCK) {
			BARRIER();
			stage_rows(keys, head_at(k_base, k_at, &a.k, b, j, kv), a.k.t, sees - j, BLOCK, a.D, item);
			stage_rows(values, head_at(v_base, v_at, &a.v, b, j, kv), a.v.t, sees - j, BLOCK, a.D, item);
			BARRIER();
			rows_by_rows(p, queries + line * LD, keys, lane);

			bool cut = j + BLOCK > limit_of(&a, seen, t);
			float top[MATRIX_ROWS], shrink[MATRIX_ROWS];
			int limit[MATRIX_ROWS];
			UNROLL
			for (int e = 0; e < MATRIX_SUMS; e++) {
				long n = limit_of(&a, seen, min_of(mine + matrix_row(e, lane), a.T - 1)) - j;
				limit[matrix_slot(e)] = n < 0 ? 0 : (int)min_of(n, BLOCK);
				top[matrix_slot(e)] = largest[matrix_slot(e)];
			}
			UNROLL
			for (int c = 0; c < BLOCK / 16; c++)
				UNROLL
				for (int e = 0; e < MATRIX_SUMS; e++) {
					int r = matrix_slot(e), i = c * 16 + matrix_column(e, lane), query = matrix_row(e, lane);
					float x = p[c].x[e] * a.scale;
					if (MASKED && mine + query < a.T && j + i < a.S)
						x = masked_score(x, load_beside_one(mask + query * a.mask_t + (j + i) * a.mask_s));
					x = !cut || i < limit[r] ? x : -INFINITY;
					p[c].x[e] = x;
					top[r] = fmax(top[r], x);
				}
			UNROLL
			for (int r = 0; r < MATRIX_ROWS; r++) {
				top[r] = row_join(top[r], true, room, item);
				// a query that has seen no key yet keeps -inf; exp(-inf - 0) is 0
				float base = top[r] == -INFINITY ? 0.0f : top[r];
				shrink[r] = exp_one(largest[r] - base);
				sum[r] *= shrink[r];
				largest[r] = top[r];
				top[r] = base;
			}
			UNROLL
			for (int c = 0; c < BLOCK / 16; c++)
				UNROLL
				for (int e = 0; e < MATRIX_SUMS; e++) {
					p[c].x[e] = exp_one(p[c].x[e] - top[matrix_slot(e)]);
					sum[matrix_slot(e)] += p[c].x[e];
				}
			UNROLL
			for (int c = 0; c < HEAD / 16; c++)
				UNROLL
				for (int e = 0; e < MATRIX_SUMS; e++)
					out[c].x[e] *= shrink[matrix_slot(e)];
			if (DROPOUT) {
				keep_tile(weights, row * a.S + j, a.S, 1, a.S % 4 == 0, key, step, a.dropout, lane);
				TEAM_SYNC();
				UNROLL
				for (int c = 0; c < BLOCK / 16; c++)
					UNROLL
					for (int e = 0; e < MATRIX_SUMS; e++)
						if (weights[matrix_row(e, lane) * LW + c * 16 + matrix_column(e, lane)] == 0)
							p[c].x[e] = 0.0f;
			}
			put_weights(weights, p, lane);
			TEAM_SYNC();
			if (seen_only)
				add_seen(out, HEAD, weights, values, lane);
			else
				add_weighted(out, HEAD, weights, values, lane);
		}
		seen_only = !seen_only && (MASKED || a.causal) &&
			group_any(sums_nan(out, HEAD), &found, item);
	} while (seen_only);

	GLOBAL float *lse = (GLOBAL float *)(lse_base + lse_at) + row;
	float factor[MATRIX_ROWS];
	UNROLL
	for (int r = 0; r < MATRIX_ROWS; r++) {
		sum[r] = row_join(sum[r], false, room, item);
		// all keys hidden: 0, and log 0 = -inf
		factor[r] = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
		if (DROPOUT)
			factor[r] *= 1.0f / (1.0f - a.dropout);
	}
	UNROLL
	for (int e = 0; e < MATRIX_SUMS; e++) {
		int query = matrix_row(e, lane);
		if (matrix_column(e, lane) == 0 && mine + query < a.T)
			lse[query] = largest[matrix_slot(e)] + log(sum[matrix_slot(e)]);
	}
	BARRIER();
	put_rows(head_at(o_base, o_at, &a.o, b, mine, h), a.o.t, queries + line * LD, out, HEAD, a.T - mine, a.D, factor, lane);
}
