// SPDX-License-Identifier: Apache-2.0
// Attention forward: softmax(scale q k' + mask) v by blocks of keys; a running maximum and sum
// avoid storing a T x S matrix (Milakov and Gimelshein 2018; Dao et al. 2022). Lanes are queries.
// Reference: kern_attention.c of the CPU backend. Groups: one tile of queries of one head.
#include "attention_lanes.cl"

struct running {
	VEC largest[NV], sum[NV];
};

// p [n][NV]: turns scores into exp(score - maximum); rescales the sum and the output so far by the
// change of the maximum.
FN void soften(struct running *r, VEC *p, VEC *out, int n, int depth)
{
	UNROLL
	for (int v = 0; v < NV; v++) {
		VEC largest = r->largest[v], none = VEC_SPLAT(-INFINITY);
		UNROLL_ROWS
		for (int i = 0; i < n; i++)
			largest = greater(p[i * NV + v], largest);
		// a query that has seen no key yet keeps -inf; exp(-inf - 0) is 0
		VEC base = largest == none ? VEC_SPLAT(0.0f) : largest;
		VEC shrink = exp_one(r->largest[v] - base), sum = r->sum[v] * shrink;
		UNROLL_ROWS
		for (int i = 0; i < n; i += 4) {
			VEC e[4];
			UNROLL
			for (int k = 0; k < 4; k++)
				e[k] = p[(i + k) * NV + v] - base;
			exp_each(e, 4);
			UNROLL
			for (int k = 0; k < 4; k++) {
				p[(i + k) * NV + v] = e[k];
				sum += e[k];
			}
		}
		UNROLL_ROWS
		for (int d = 0; d < depth; d++)
			out[d * NV + v] *= shrink;
		r->largest[v] = largest;
		r->sum[v] = sum;
	}
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) attention_tiles(GLOBAL uchar *o_base, ulong o_at,
	GLOBAL uchar *lse_base, ulong lse_at, GLOBAL uchar *q_base, ulong q_at,
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
	GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base, ulong key_at,
	GLOBAL uchar *step_base, ulong step_at, GLOBAL uchar *seen_base, ulong seen_at,
	struct attention_args a)
{
	LOCAL float keys[BLOCK * HEAD], values[BLOCK * HEAD], room[TEAM_ROOM];
	LOCAL int found;
	VEC q[SLICE * NV], out[SLICE * NV], p[BLOCK * NV], keep[BLOCK * NV];
	struct running r;
	int item = LOCAL_ID(0), depth = EXTENT((a.D + ROWS - 1) / ROWS * ROWS, SLICE);
	int part = item % PARTS * SLICE; // first of the item's head elements
	long tiles = (a.T + TILE - 1) / TILE, bh = (long)GROUP_ID(0) / tiles;
	// causal: the last tile of a head sees most keys, so it starts first
	long t = (tiles - 1 - (long)GROUP_ID(0) % tiles) * TILE, mine = t + item / PARTS * LANES;
	long b = bh / a.H, h = bh % a.H, kv = h / (a.H / a.G), row = bh * a.T + mine;
	long seen = seen_of(seen_base, seen_at, &a, b);
	long sees = limit_of(&a, seen, min_of(t + TILE, a.T) - 1);
	long key = number_whole(key_base, key_at, a.key);
	long step = number_whole(step_base, step_at, a.step);

	lanes_load(q, head_at(q_base, q_at, &a.q, b, mine, h) + part, a.q.t, a.T - mine, a.D - part,
		   depth, a.scale);

	// A NaN in the result may come from values hidden from the query: then repeat with the
	// slow, exact handling.
	bool seen_only = false;
	do {
		UNROLL
		for (int v = 0; v < NV; v++) {
			r.largest[v] = VEC_SPLAT(-INFINITY);
			r.sum[v] = VEC_SPLAT(0.0f);
		}
		UNROLL_ROWS
		for (int d = 0; d < depth * NV; d++)
			out[d] = VEC_SPLAT(0.0f);
		for (long j = 0; j < sees; j += BLOCK) {
			int n = (int)min_of(sees - j, BLOCK);
			int rows = EXTENT((n + ROWS - 1) / ROWS * ROWS, BLOCK);
			SYNC();
			stage(keys, head_at(k_base, k_at, &a.k, b, j, kv), a.k.t, n, rows, a.D,
			      1.0f, item);
			stage(values, head_at(v_base, v_at, &a.v, b, j, kv), a.v.t, n, rows, a.D,
			      1.0f, item);
			SYNC();
			product(p, keys + part, HEAD, 1, q, rows, depth, false);
			team_add(p, room, item);
			if (a.masked)
				add_mask(p,
					 (GLOBAL const beside *)(mask_base + mask_at) +
						 b * a.mask_b + h * a.mask_h + mine * a.mask_t +
						 j * a.mask_s,
					 a.mask_s, a.mask_t, n, a.T - mine);
			if (j + rows > limit_of(&a, seen, t))
				hide_keys(p, &a, seen, mine, j, rows);
			soften(&r, p, out, rows, depth);
			if (a.dropout > 0.0f) {
				keep_keys(keep, room, &a, row * a.S + j, rows, key, step, item);
				UNROLL_ROWS
				for (int i = 0; i < rows * NV; i++)
					p[i] *= keep[i];
			}
			if (seen_only)
				product_seen(out, values + part, 1, HEAD, p, depth, rows);
			else
				product(out, values + part, 1, HEAD, p, depth, rows, true);
		}
		seen_only = !seen_only && (a.masked || a.causal) &&
			group_any(any_nan(out, depth * NV), &found, item);
	} while (seen_only);

	GLOBAL float *lse = (GLOBAL float *)(lse_base + lse_at) + row;
	UNROLL
	for (int v = 0; v < NV; v++) {
		VEC none = VEC_SPLAT(0.0f), sum = r.sum[v];
		// all keys hidden: 0, and log 0 = -inf
		VEC inverse = sum == none ? none : VEC_SPLAT(1.0f) / sum;
		UNROLL_ROWS
		for (int d = 0; d < depth; d++)
			out[d * NV + v] *= inverse;
		long left = a.T - mine - v * VEC_WIDTH;
		if (left > 0 && part == 0)
			store_f32(r.largest[v] + log(sum), lse + v * VEC_WIDTH,
				(int)min_of(left, VEC_WIDTH));
	}
	lanes_store(out, head_at(o_base, o_at, &a.o, b, mine, h) + part, a.o.t, a.T - mine,
		    a.D - part, depth, 1.0f);
}
