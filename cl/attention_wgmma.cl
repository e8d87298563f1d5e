// SPDX-License-Identifier: Apache-2.0
// Attention forward by warp groups (wgmma.cl; CUDA C++ only), without mask and dropout and with a
// positive scale: softmax(scale q k') v by blocks of keys, as in attention_matrix.cl. The scores of
// the next block are multiplied while this one's weights and values are (as in FlashAttention-3,
// Shah et al. 2024), so exponentials overlap with products; blocks are copied STAGES - 1 ahead.
// Rows of all operands are aligned to 16 bytes and a multiple of that long (QUADS_OUT: of the
// result, too). Reference: kern_attention.c of the CPU backend. Groups: one tile of queries of one
// head; 64 queries per warp group. HEAD is 64 or 128, D at most that.
#ifndef MATRIX
#define MATRIX 3
#define STORE 1
#define ITEMS 256
#define WARP 32
#define HEAD 64
#define BLOCK 128
#endif
#include "attention.cl"
#include "wgmma.cl"

#ifndef STAGES // at least 2
#define STAGES 2
#endif
#ifndef QUADS_OUT
#define QUADS_OUT 0
#endif
#define TILE (ITEMS / WG_ITEMS * WG_LINES)
#define PER 8
#define PASS (ITEMS / 8)          // rows whose quads the items copy at a time
#define APART(rows) ((rows) * 128) // bytes between the blocks of 64 columns of a tile
// The number of wg_rows of a tile of keys, or of values.
#define QUERY_ROOM (TILE * HEAD / 512)
#define BLOCK_ROOM (BLOCK * HEAD / 512)

// The quads that an item copies: one of every PASS rows, in each block of 64 columns.
struct row_copies {
	GLOBAL const stored *from; // the first
	long step;                 // between rows
	int left, columns;         // rows and columns that exist from there on
};

FN struct row_copies copies_of(GLOBAL const stored *from, long step, int count, int D, int item)
{
	const int row = item / 8, column = item % 8 * PER;
	struct row_copies c;
	c.from = from + row * step + column;
	c.step = step;
	c.left = count - row;
	c.columns = D - column;
	return c;
}

// Begins the copies of a tile of `rows` rows of HEAD columns, and moves on to the next rows;
// elements that do not exist become 0.
FN void rows_copy(struct wg_rows *to, int rows, struct row_copies *c, int item)
{
	const int place = wg_place(item / 8, item % 8);

	wg_here(c->from);
	GLOBAL const stored *at = c->from;
	UNROLL
	for (int e = 0; e < rows; e += PASS) {
		if (rows - e < PASS && e + item / 8 >= rows)
			break;
		UNROLL
		for (int d = 0; d < HEAD; d += WG_ROW)
			quad_copy(at + d, to->x + place + d * rows + e * WG_ROW,
				  e < c->left && d < c->columns ? 16 : 0);
		at += PASS * c->step;
	}
	c->from += rows * c->step;
	c->left -= rows;
}

// scores [64][BLOCK] of a warp group = queries times the transpose of keys
FN void scores_start(float (&scores)[BLOCK / 2], ulong queries, ulong keys)
{
	UNROLL
	for (int d = 0; d < HEAD; d += WG_K)
		wg_multiply<MATRIX, 0, 0>(
			scores, wg_from(queries, d / 64 * APART(TILE) + d % 64 / WG_K * WG_STEP(0)),
			wg_from(keys, d / 64 * APART(BLOCK) + d % 64 / WG_K * WG_STEP(0)), d > 0);
}

// Hides keys from `there` on, and from `first` plus the query's number on if causal.
FN void scores_hide(float (&scores)[BLOCK / 2], int there, int first, bool causal, int lane)
{
	int limit[2];

	UNROLL
	for (int r = 0; r < 2; r++) {
		limit[r] = first + (causal ? wg_line(2 * r, lane) : 0);
		limit[r] = (limit[r] < there ? limit[r] : there) - wg_column(0, lane);
	}
	UNROLL
	for (int i = 0; i < BLOCK / 2; i++)
		scores[i] = wg_column(i, 0) < limit[i / 2 % 2] ? scores[i] : -INFINITY;
}

// Largest score and sum of weights of the item's two queries; the sum is over the item's columns.
struct softmax_state {
	float largest[2], sum[2];
};

FN float four_join(float x, bool largest)
{
	float y = SHUFFLE_XOR(x, 1);
	x = largest ? fmax(x, y) : x + y;
	y = SHUFFLE_XOR(x, 2);
	return largest ? fmax(x, y) : x + y;
}

// Replaces scores by weights; earlier sums shrink by a factor.
FN void scores_weigh(float (&scores)[BLOCK / 2], struct softmax_state *s, float unit,
		     float (&shrink)[2])
{
	float top[2] = { s->largest[0], s->largest[1] };

	UNROLL
	for (int i = 0; i < BLOCK / 2; i++)
		top[i / 2 % 2] = fmax(top[i / 2 % 2], scores[i]);
	UNROLL
	for (int r = 0; r < 2; r++) {
		top[r] = four_join(top[r], true);
		// a query that has seen no key yet keeps -inf; 2^(-inf - 0) is 0
		float base = top[r] == -INFINITY ? 0.0f : top[r] * unit;
		shrink[r] = EXP2(FMA(s->largest[r], unit, -base));
		s->sum[r] *= shrink[r];
		s->largest[r] = top[r];
		top[r] = base;
	}
	UNROLL
	for (int i = 0; i < BLOCK / 2; i++) {
		scores[i] = EXP2(FMA(scores[i], unit, -top[i / 2 % 2]));
		s->sum[i / 2 % 2] += scores[i];
	}
}

// The weights as operand a: the item holds the same elements of both.
FN void weights_pack(uint (&words)[BLOCK / WG_K][4], const float (&weights)[BLOCK / 2])
{
	UNROLL
	for (int i = 0; i < BLOCK / 4; i++)
		words[i / 4][i % 4] = wg_pair<MATRIX>(weights[2 * i], weights[2 * i + 1]);
}

// out [64][HEAD] += weights times values
FN void values_start(float (&out)[HEAD / 2], const uint (&words)[BLOCK / WG_K][4], ulong values)
{
	UNROLL
	for (int k = 0; k < BLOCK / WG_K; k++)
		wg_multiply_held<MATRIX, 1>(out, words[k], wg_from(values, k * WG_STEP(1)), 1);
}

FN void out_shrink(float (&out)[HEAD / 2], const float (&shrink)[2])
{
	UNROLL
	for (int i = 0; i < HEAD / 2; i++)
		out[i] *= shrink[i / 2 % 2];
}

// Like values_start, with weights in local memory [64][BLOCK], but skips weights of 0 whatever the
// values are, because 0 * NaN would be NaN.
FN void values_seen(float (&out)[HEAD / 2], const ushort *weights, const struct wg_rows *values,
		    int lane)
{
	UNROLL
	for (int i = 0; i < HEAD / 2; i++) {
		const ushort *row = weights + wg_line(i, lane) * BLOCK;
		int column = wg_column(i, lane);
		ROLLED
		for (int k = 0; k < BLOCK; k++) {
			float w = f32_of_bits(row[k], STORE);
			ushort v = values->x[column / 64 * (BLOCK * WG_ROW) +
					     wg_place(k, column % 64 / 8) + column % 8];
			out[i] = w == 0.0f ? out[i] : FMA(w, f32_of_bits(v, STORE), out[i]);
		}
	}
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) attention_wgmma(GLOBAL uchar *o_base, ulong o_at,
	GLOBAL uchar *lse_base, ulong lse_at, GLOBAL uchar *q_base, ulong q_at,
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
	GLOBAL uchar *seen_base, ulong seen_at, struct attention_args a)
{
	WG_TILES(tiles, QUERY_ROOM + STAGES * 2 * BLOCK_ROOM);
	// of each: keys, and the values of the block before
	struct wg_rows *stages = tiles + QUERY_ROOM;
	float scores[BLOCK / 2], out[HEAD / 2], shrink[2];
	uint words[BLOCK / WG_K][4];
	int item = LOCAL_ID(0), lane = item % WG_ITEMS, group = wg_number(item);
	// causal: the last tile of a head sees most keys, so these start first
	uint heads = (uint)(a.B * a.H), bh = (uint)GROUP_ID(0) % heads, b = bh / (uint)a.H,
	     h = bh % (uint)a.H;
	uint kv = h / ((uint)a.H / (uint)a.G);
	int T = (int)a.T, t = (int)(((uint)T - 1u) / TILE - (uint)GROUP_ID(0) / heads) * TILE,
	    mine = t + group * WG_LINES;
	int seen = (int)seen_of(seen_base, seen_at, &a, b);
	// keys that query 0 sees; with causal masking the next sees one more
	int more = a.causal ? seen - T + 1 : seen;
	int sees = keys_of(&a, seen, more, t + TILE < T ? t + TILE - 1 : T - 1),
	    blocks = (sees + BLOCK - 1) / BLOCK;
	// all queries of the warp group see the keys before
	int sure = keys_of(&a, seen, more, mine);
	struct row_copies k =
		copies_of(head_at(k_base, k_at, &a.k, b, 0, kv), a.k.t, sees, a.D, item);
	struct row_copies v =
		copies_of(head_at(v_base, v_at, &a.v, b, 0, kv), a.v.t, sees, a.D, item);
	struct softmax_state state = { { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
	const float unit = a.scale * LOG2_E;
	const ulong queries = wg_tile(tiles[group * 8].x, 0),
		    staged = wg_tile(stages->x, APART(BLOCK));
	int into = 0, now = 0; // stages

	UNROLL
	for (int i = 0; i < HEAD / 2; i++)
		out[i] = 0.0f;
	if (blocks) {
		struct row_copies q =
			copies_of(head_at(q_base, q_at, &a.q, b, t, h), a.q.t, T - t, a.D, item);
		rows_copy(tiles, TILE, &q, item);
		rows_copy(stages + (STAGES - 1) * 2 * BLOCK_ROOM, BLOCK, &k, item);
		COPIES_COMMIT();
		ROLLED
		for (; into < STAGES - 1; into++) {
			rows_copy(stages + into * 2 * BLOCK_ROOM, BLOCK, &k, item);
			rows_copy(stages + (into * 2 + 1) * BLOCK_ROOM, BLOCK, &v, item);
			COPIES_COMMIT();
		}
		COPIES_WAIT(STAGES - 1);
		WG_VISIBLE();
		BARRIER();
		WG_FENCE();
		scores_start(scores, queries,
			     wg_from(staged, (STAGES - 1) * 2 * BLOCK_ROOM * 1024));
		WG_COMMIT();
		WG_WAIT(0);
		wg_settle(scores);
		if (BLOCK > sure)
			scores_hide(scores, seen, more + (a.causal ? mine : 0), a.causal, lane);
		scores_weigh(scores, &state, unit, shrink);
		weights_pack(words, scores);
		ROLLED
		for (int j = 1; j < blocks; j++) { // scores of block j, values of block j - 1
			// A stage is complete, and all have finished the previous one, into which
			// copies go.
			COPIES_WAIT(STAGES - 2);
			WG_VISIBLE();
			BARRIER();
			WG_FENCE();
			scores_start(scores, queries, wg_from(staged, now * 2 * BLOCK_ROOM * 1024));
			WG_COMMIT();
			values_start(out, words,
				     wg_from(staged, (now * 2 + 1) * BLOCK_ROOM * 1024));
			WG_COMMIT();
			k.left = v.left - BLOCK; // as it is, and takes no register
			rows_copy(stages + into * 2 * BLOCK_ROOM, BLOCK, &k, item);
			rows_copy(stages + (into * 2 + 1) * BLOCK_ROOM, BLOCK, &v, item);
			COPIES_COMMIT();
			into = into + 1 == STAGES ? 0 : into + 1;
			now = now + 1 == STAGES ? 0 : now + 1;
			WG_WAIT(1);
			wg_settle(scores);
			if ((j + 1) * BLOCK > sure)
				scores_hide(scores, seen - j * BLOCK,
					    more - j * BLOCK + (a.causal ? mine : 0), a.causal,
					    lane);
			scores_weigh(scores, &state, unit, shrink);
			wg_before(state.sum[0] + state.sum[1]);
			WG_WAIT(0);
			wg_settle(out);
			out_shrink(out, shrink);
			weights_pack(words, scores);
		}
		COPIES_WAIT(0);
		WG_VISIBLE();
		BARRIER();
		WG_FENCE();
		values_start(out, words, wg_from(staged, (now * 2 + 1) * BLOCK_ROOM * 1024));
		WG_COMMIT();
		WG_WAIT(0);
		wg_settle(out);
	}
	// A NaN in the result may come from values hidden from the query: then repeat with exact
	// handling, one block at a time. Weights are stored where the other stages would be.
	bool odd = false;
	UNROLL
	for (int i = 0; i < HEAD / 2; i++)
		odd = odd || out[i] != out[i];
	if (group_any(odd && a.causal, (int *)stages[2 * BLOCK_ROOM].x, item)) {
		k = copies_of(head_at(k_base, k_at, &a.k, b, 0, kv), a.k.t, sees, a.D, item);
		v = copies_of(head_at(v_base, v_at, &a.v, b, 0, kv), a.v.t, sees, a.D, item);
		ushort *weights = stages[2 * BLOCK_ROOM].x + group * WG_LINES * BLOCK;
		UNROLL
		for (int r = 0; r < 2; r++) {
			state.largest[r] = -INFINITY;
			state.sum[r] = 0.0f;
		}
		UNROLL
		for (int i = 0; i < HEAD / 2; i++)
			out[i] = 0.0f;
		ROLLED
		for (int j = 0; j < blocks; j++) {
			rows_copy(stages, BLOCK, &k, item);
			rows_copy(stages + BLOCK_ROOM, BLOCK, &v, item);
			COPIES_COMMIT();
			COPIES_WAIT(0);
			WG_VISIBLE();
			BARRIER();
			WG_FENCE();
			scores_start(scores, queries, staged);
			WG_COMMIT();
			WG_WAIT(0);
			wg_settle(scores);
			scores_hide(scores, seen - j * BLOCK,
				    more - j * BLOCK + (a.causal ? mine : 0), a.causal, lane);
			scores_weigh(scores, &state, unit, shrink);
			out_shrink(out, shrink);
			UNROLL
			for (int i = 0; i < BLOCK / 2; i++)
				weights[wg_line(i, lane) * BLOCK + wg_column(i, lane)] =
					bits_of_f32(scores[i], STORE);
			BARRIER();
			values_seen(out, weights, stages + BLOCK_ROOM, lane);
			BARRIER();
		}
	}

	GLOBAL float *lse = (GLOBAL float *)(lse_base + lse_at) + (long)bh * T + mine;
	UNROLL
	for (int r = 0; r < 2; r++) {
		const int query = wg_line(2 * r, lane);
		state.sum[r] = four_join(state.sum[r], false);
		// all keys hidden: 0, and log 0 = -inf
		shrink[r] = state.sum[r] == 0.0f ? 0.0f : 1.0f / state.sum[r];
		if (lane % 4 == 0 && mine + query < T)
			lse[query] = state.largest[r] * a.scale + log(state.sum[r]);
	}
	out_shrink(out, shrink);
	// through the warp's queries, so that rows are stored 16 bytes at a time
	BARRIER();
	ushort *rows = tiles[group * 8].x;
	UNROLL
	for (int i = 0; i < HEAD / 2; i += 2) {
		int column = wg_column(i, lane);
		ushort *at = rows + column / 64 * (TILE * WG_ROW) +
			     wg_place(wg_line(i, lane), column % 64 / 8) + column % 8;
		*(uint *)at = wg_pair<MATRIX>(out[i], out[i + 1]);
	}
	WARP_SYNC();
	GLOBAL stored *o = head_at(o_base, o_at, &a.o, b, mine, h);
	ROLLED
	for (int i = lane % 32; i < 16 * (HEAD / PER); i += 32) {
		int line = lane / 32 * 16 + i / (HEAD / PER), d = i % (HEAD / PER) * PER;
		const ushort *at = rows + d / 64 * (TILE * WG_ROW) + wg_place(line, d % 64 / 8);
		if (mine + line >= T || d >= a.D)
			continue;
#if QUADS_OUT
		quad_move(at, o + line * a.o.t + d);
#else
		for (int k = 0; k < PER; k++)
			o[line * a.o.t + d + k] = at[k];
#endif
	}
}
