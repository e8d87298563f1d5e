// SPDX-License-Identifier: Apache-2.0
// Attention backward with matrix units: probabilities are recomputed from lse, block by block (Dao
// et al. 2022). With P = exp(S - lse), M the dropout factors, r_t = sum_d g_td o_td (computed by
// attention_sums of attention_backward.cl):
// dv = (P M)' g, dP = M (g v'), dS = scale P (dP - r), dq = dS k, dk = dS' q.
// Reference: kern_attention_backward.c of the CPU backend.
// A group has TILE rows of its own side and loops over the rows of the other side: keys, to compute
// dk and dv, or queries, to compute dq. So no two groups write the same element, and sums have one
// order. A group computes HEAD / SLICES columns. Groups: one per tile of keys of each head of k and
// v, then one per tile of queries of each head, times SLICES.
#include "attention_blocks.cl"

#ifndef SLICES // more than 1 if the sums of all columns would not fit in registers
#define SLICES 1
#endif
#define COLUMNS (HEAD / SLICES)
#if TILE > BLOCK
#define MAX_QUERIES TILE
#else
#define MAX_QUERIES BLOCK
#endif

// lse and r of `rows` queries; queries beyond `count` are treated as seeing no key.
FN void load_queries(LOCAL_POINTER float *lse, LOCAL_POINTER float *r, GLOBAL const float *lse_from,
	GLOBAL const float *r_from, int rows, long count, int item)
{
	for (int i = item; i < rows; i += ITEMS) {
		lse[i] = i < count ? finite_lse(lse_from[i]) : INFINITY;
		r[i] = i < count ? r_from[i] : 0.0f;
	}
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) attention_matrix_backward(GLOBAL uchar *dq_base, ulong dq_at,
	GLOBAL uchar *dk_base, ulong dk_at, GLOBAL uchar *dv_base, ulong dv_at, GLOBAL uchar *q_base, ulong q_at,
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
	GLOBAL uchar *r_base, ulong r_at, GLOBAL uchar *g_base, ulong g_at, GLOBAL uchar *lse_base, ulong lse_at,
	GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base, ulong key_at,
	GLOBAL uchar *step_base, ulong step_at, GLOBAL uchar *seen_base, ulong seen_at,
	struct attention_args a)
{
	// q or k, and g or v: the group's own rows, and a block of the other side
	LOCAL matrix_element own_1[TILE * LD], own_2[TILE * LD], block_1[BLOCK * LD], block_2[BLOCK * LD];
	LOCAL matrix_element all[TILE * LW];
	LOCAL float lse[MAX_QUERIES], r[MAX_QUERIES];
	LOCAL int found;
	struct matrix_sums p[BLOCK / 16], ds[BLOCK / 16], sums_1[COLUMNS / 16], sums_2[COLUMNS / 16];
	float factor[MATRIX_ROWS];
	int item = LOCAL_ID(0), lane = item % WARP, line = item / WARP * 16;
	LOCAL_POINTER matrix_element *weights = all + line * LW;
	long key_tiles = (a.S + TILE - 1) / TILE, query_tiles = (a.T + TILE - 1) / TILE, group = a.H / a.G;
	long number = (long)GROUP_ID(0) / SLICES, key_groups = a.B * a.G * key_tiles;
	int part = (int)((long)GROUP_ID(0) % SLICES) * COLUMNS;
	bool keys = number < key_groups; // true if the group's own rows are keys
	long tiles = keys ? key_tiles : query_tiles;
	number -= keys ? 0 : key_groups;
	// causal: the first keys are seen by most queries, the last queries see most keys
	long heads = keys ? a.G : a.H, own = (keys ? number % tiles : tiles - 1 - number % tiles) * TILE;
	long b = number / tiles / heads, head = number / tiles % heads;
	long kv = keys ? head : head / group, h = keys ? head * group : head, last = keys ? h + group : h + 1;
	long seen = seen_of(seen_base, seen_at, &a, b);
	long key = number_whole(key_base, key_at, a.key);
	long step = number_whole(step_base, step_at, a.step);
	float kept = DROPOUT ? 1.0f / (1.0f - a.dropout) : 1.0f;
	GLOBAL const float *lse_in = (GLOBAL const float *)(lse_base + lse_at);
	GLOBAL const float *r_in = (GLOBAL const float *)(r_base + r_at);
	GLOBAL const beside *mask = (GLOBAL const beside *)(mask_base + mask_at) + b * a.mask_b;

	// The other side: queries that see any of these keys, or keys that these queries see.
	long from = 0, to = a.T;
	if (keys) {
		from = a.causal ? own + a.T - seen : 0;
		from = own >= seen ? a.T : from < 0 ? 0 : from;
		stage_rows(own_1, head_at(k_base, k_at, &a.k, b, own, kv), a.k.t, seen - own, TILE, a.D, item);
		stage_rows(own_2, head_at(v_base, v_at, &a.v, b, own, kv), a.v.t, seen - own, TILE, a.D, item);
	} else {
		GLOBAL const stored *g = head_at(g_base, g_at, &a.g, b, own, h);
		to = limit_of(&a, seen, min_of(own + TILE, a.T) - 1);
		stage_rows(own_1, head_at(q_base, q_at, &a.q, b, own, h), a.q.t, a.T - own, TILE, a.D, item);
		stage_rows(own_2, g, a.g.t, a.T - own, TILE, a.D, item);
		load_queries(lse, r, lse_in + (b * a.H + h) * a.T + own, r_in + (b * a.H + h) * a.T + own, TILE,
			a.T - own, item);
	}
	// A NaN in dq may come from keys hidden from its query: then repeat with the slow, exact
	// handling.
	bool seen_only = false;
	long first_head = h;
	do {
		UNROLL
		for (int c = 0; c < COLUMNS / 16; c++) {
			sums_1[c] = matrix_zero();
			sums_2[c] = matrix_zero();
		}
		for (h = first_head; h < last; h++)
			for (long x = from; x < to; x += BLOCK) {
				// first query, first key of the tile
				long t = keys ? x : own, j = keys ? own : x;
				// of the warp
				int line_t = keys ? 0 : line, line_j = keys ? line : 0;
				BARRIER();
				if (keys) {
					GLOBAL const stored *g = head_at(g_base, g_at, &a.g, b, x, h);
					stage_rows(block_1, head_at(q_base, q_at, &a.q, b, x, h), a.q.t, to - x, BLOCK, a.D, item);
					stage_rows(block_2, g, a.g.t, to - x, BLOCK, a.D, item);
					load_queries(lse, r, lse_in + (b * a.H + h) * a.T + x, r_in + (b * a.H + h) * a.T + x,
						BLOCK, to - x, item);
				} else {
					stage_rows(block_1, head_at(k_base, k_at, &a.k, b, x, kv), a.k.t, to - x, BLOCK, a.D, item);
					stage_rows(block_2, head_at(v_base, v_at, &a.v, b, x, kv), a.v.t, to - x, BLOCK, a.D, item);
				}
				BARRIER();
				rows_by_rows(p, own_1 + line * LD, block_1, lane);
				rows_by_rows(ds, own_2 + line * LD, block_2, lane);
				if (DROPOUT) {
					keep_tile(weights, ((b * a.H + h) * a.T + t + line_t) * a.S + j + line_j,
						keys ? 1 : a.S, keys ? a.S : 1, a.S % 4 == 0, key, step, a.dropout, lane);
					TEAM_SYNC();
				}
				// A query sees `sees` keys from j on; with causal masking, each
				// further query one more.
				bool cut = limit_of(&a, seen, t) < j + (keys ? TILE : BLOCK);
				long more = a.causal ? t + 1 + seen - a.T - j : seen - j;
				int sees = (int)(more < -TILE - BLOCK ? -TILE - BLOCK : min_of(more, TILE + BLOCK));
				int there = (int)min_of(seen - j, TILE + BLOCK);
				UNROLL
				for (int c = 0; c < BLOCK / 16; c++)
					UNROLL
					for (int e = 0; e < MATRIX_SUMS; e++) {
						int row = matrix_row(e, lane), column = c * 16 + matrix_column(e, lane);
						int query = line_t + (keys ? column : row), k = line_j + (keys ? row : column);
						float score = p[c].x[e] * a.scale;
						if (MASKED && t + query < a.T && j + k < a.S)
							score = masked_score(score, load_beside_one(mask + h * a.mask_h +
								(t + query) * a.mask_t + (j + k) * a.mask_s));
						if (cut && (k >= there || k >= sees + (a.causal ? query : 0)))
							score = -INFINITY;
						float m = DROPOUT && weights[row * LW + column] == 0 ? 0.0f : kept;
						// key hidden, or query does not exist
						bool none = score == -INFINITY || lse[query] == INFINITY;
						float w = none ? 0.0f : exp_one(score - lse[query]);
						p[c].x[e] = w * m;
						// g v' of a hidden value may be NaN
						ds[c].x[e] = w == 0.0f ? 0.0f : a.scale * w * (ds[c].x[e] * m - r[query]);
					}
				if (keys) {
					put_weights(weights, p, lane);
					TEAM_SYNC();
					add_weighted(sums_2, COLUMNS, weights, block_2 + part, lane);
					TEAM_SYNC();
				}
				put_weights(weights, ds, lane);
				TEAM_SYNC();
				if (seen_only)
					add_seen(sums_1, COLUMNS, weights, block_1 + part, lane);
				else
					add_weighted(sums_1, COLUMNS, weights, block_1 + part, lane);
			}
		seen_only = !keys && !seen_only && (MASKED || a.causal) &&
			group_any(sums_nan(sums_1, COLUMNS), &found, item);
	} while (seen_only);

	UNROLL
	for (int i = 0; i < MATRIX_ROWS; i++)
		factor[i] = 1.0f;
	own += line;
	BARRIER();
	if (keys) {
		put_rows(head_at(dk_base, dk_at, &a.dk, b, own, kv) + part, a.dk.t, own_1 + line * LD, sums_1, COLUMNS,
			a.S - own, a.D - part, factor, lane);
		put_rows(head_at(dv_base, dv_at, &a.dv, b, own, kv) + part, a.dv.t, own_2 + line * LD, sums_2, COLUMNS,
			a.S - own, a.D - part, factor, lane);
	} else {
		put_rows(head_at(dq_base, dq_at, &a.dq, b, own, h - 1) + part, a.dq.t, own_1 + line * LD, sums_1, COLUMNS,
			a.T - own, a.D - part, factor, lane);
	}
}
