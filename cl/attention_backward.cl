// SPDX-License-Identifier: Apache-2.0
// Attention backward: probabilities are recomputed from lse, block by block (Dao et al. 2022). With
// P = exp(S - lse), M the dropout factors, r_t = sum_d g_td o_td:
// dv = (P M)' g, dP = M (g v'), dS = P (dP - r), dq = scale dS k, dk = scale dS' q.
// Reference: kern_attention_backward.c of the CPU backend.
//
// attention_sums: r [B,H,T], SUM_ROWS of them per group.
// attention_back_keys: lanes are keys, each with its dk and dv. Groups: one tile of keys of one
// head of k and v; with WITH_DQ all tiles of a head in turn, which also sums dq over the tiles in
// f32: in place or, for 16-bit dtypes, in the workspace after r.
// attention_back_queries: lanes are queries, for dq. Groups: one tile of queries.
#include "attention_lanes.cl"

#ifndef WITH_DQ // requires one item per group
#define WITH_DQ 0
#endif
#define SUM_ROWS 64

KERNEL void WORK_GROUP(ITEMS, 1) attention_sums(GLOBAL uchar *r_base, ulong r_at,
	GLOBAL uchar *o_base, ulong o_at, GLOBAL uchar *g_base, ulong g_at,
	struct attention_args a)
{
	GLOBAL float *r = (GLOBAL float *)(r_base + r_at);
	long first = (long)GROUP_ID(0) * SUM_ROWS, end = min_of(first + SUM_ROWS, a.B * a.H * a.T);

	for (long row = first + LOCAL_ID(0); row < end; row += ITEMS) {
		long t = row % a.T, h = row / a.T % a.H, b = row / a.T / a.H;
		GLOBAL const stored *o = head_at(o_base, o_at, &a.o, b, t, h);
		GLOBAL const stored *g = head_at(g_base, g_at, &a.g, b, t, h);
		VEC sum = VEC_SPLAT(0.0f);
		for (int d = 0; d < a.D; d += VEC_WIDTH)
			sum += load(o + d, a.D - d, 0.0f) * load(g + d, a.D - d, 0.0f);
		r[row] = VEC_SUM(sum);
	}
}

// The weight of a hidden key is 0 even if the query's lse is NaN; that of a query that does not
// exist or sees no key is 0 even if the key is NaN.
FN VEC seen_weight(VEC weight, VEC score, VEC lse)
{
	weight = score == VEC_SPLAT(-INFINITY) ? VEC_SPLAT(0.0f) : weight;
	return lse == VEC_SPLAT(INFINITY) ? VEC_SPLAT(0.0f) : weight;
}

// P (dP - r), but 0 where P is 0, since g v' of a hidden value may be NaN
FN VEC seen_slope(VEC weight, VEC x)
{
	return weight == VEC_SPLAT(0.0f) ? VEC_SPLAT(0.0f) : weight * x;
}

#define PARAMETERS GLOBAL uchar *r_base, ulong r_at, GLOBAL uchar *q_base, ulong q_at, \
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at, \
	GLOBAL uchar *g_base, ulong g_at, GLOBAL uchar *lse_base, ulong lse_at, \
	GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base, ulong key_at, \
	GLOBAL uchar *step_base, ulong step_at, GLOBAL uchar *seen_base, ulong seen_at, \
	struct attention_args a

#if WITH_DQ
// dq [rows][HEAD], `step` apart, += ds [rows][LANES] keys [LANES][HEAD]. seen: skips where ds is 0,
// so that a hidden key's NaN has no effect.
FN void add_dq(GLOBAL float *dq, long step, const VEC *ds, LOCAL_POINTER const float *keys,
	       int rows, int D, bool seen)
{
	const float *f = (const float *)ds;
	for (int i = 0; i < rows; i += ROWS)
		for (int d = 0; d < D; d += VEC_WIDTH) {
			VEC sum[ROWS];
			UNROLL
			for (int r = 0; r < ROWS; r++)
				sum[r] = i + r < rows ?
					load_f32(dq + (i + r) * step + d, D - d, 0.0f) :
					VEC_SPLAT(0.0f);
			for (int l = 0; l < LANES; l++) {
				VEC x = VEC_LOAD(keys + l * HEAD + d);
				UNROLL
				for (int r = 0; r < ROWS; r++) {
					float w = f[(i + r) * LANES + l];
					if (!seen || w != 0.0f)
						sum[r] = VEC_FMA(VEC_SPLAT(w), x, sum[r]);
				}
			}
			UNROLL
			for (int r = 0; r < ROWS; r++)
				if (i + r < rows)
					store_f32(sum[r], dq + (i + r) * step + d, D - d);
		}
}

// True if n numbers are all finite.
FN bool all_finite(LOCAL_POINTER const float *x, int n)
{
	VEC sum = VEC_SPLAT(0.0f);
	for (int i = 0; i < n; i += VEC_WIDTH) {
		VEC v = VEC_LOAD(x + i);
		sum += v - v; // NaN if v is infinite
	}
	return VEC_SUM(sum) == 0.0f;
}

// The address where a head's dq is summed, and the distance of its rows.
FN GLOBAL float *dq_sums(GLOBAL uchar *dq_base, ulong dq_at, GLOBAL uchar *r_base, ulong r_at,
	const struct attention_args *a, long b, long h, long *step)
{
#if STORE == 0
	*step = a->dq.t;
	return head_at(dq_base, dq_at, &a->dq, b, 0, h);
#else
	*step = a->D;
	return (GLOBAL float *)(r_base + r_at) + a->B * a->H * a->T +
		(b * a->H + h) * a->T * a->D;
#endif
}

FN void clear_dq(GLOBAL float *dq, long step, const struct attention_args *a)
{
	for (long t = 0; t < a->T; t++)
		for (int d = 0; d < a->D; d += VEC_WIDTH)
			store_f32(VEC_SPLAT(0.0f), dq + t * step + d, a->D - d);
}
#endif

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1) attention_back_keys(GLOBAL uchar *dk_base, ulong dk_at,
	GLOBAL uchar *dv_base, ulong dv_at, GLOBAL uchar *dq_base, ulong dq_at, PARAMETERS)
{
	LOCAL float queries[BLOCK * HEAD], gradients[BLOCK * HEAD], lse[BLOCK], r[BLOCK],
		room[TEAM_ROOM];
	VEC k[SLICE * NV], v[SLICE * NV], dk[SLICE * NV], dv[SLICE * NV];
	VEC p[BLOCK * NV], ds[BLOCK * NV], keep[BLOCK * NV], number[NV];
	int item = LOCAL_ID(0), depth = EXTENT((a.D + ROWS - 1) / ROWS * ROWS, SLICE);
	int part = item % PARTS * SLICE; // first of the item's head elements
	long tiles = (a.S + TILE - 1) / TILE, group = a.H / a.G;
	long key = number_whole(key_base, key_at, a.key);
	long step = number_whole(step_base, step_at, a.step);
#if WITH_DQ
	LOCAL float keys[TILE * HEAD];
	long bg = (long)GROUP_ID(0), from = 0, to = tiles;
#else
	long bg = (long)GROUP_ID(0) / tiles, from = (long)GROUP_ID(0) % tiles, to = from + 1;
#endif
	long b = bg / a.G, kv = bg % a.G, seen = seen_of(seen_base, seen_at, &a, b);

	lane_numbers(number);
#if WITH_DQ
	for (long h = kv * group; h < (kv + 1) * group; h++) {
		long dq_step;
		GLOBAL float *dq = dq_sums(dq_base, dq_at, r_base, r_at, &a, b, h, &dq_step);
		clear_dq(dq, dq_step, &a);
	}
#endif
	for (long tile = from; tile < to; tile++) {
		long j = tile * TILE, mine = j + item / PARTS * LANES;
		// the first query that sees any of these keys
		long first = a.causal ? j + a.T - seen : 0;
		if (first < 0)
			first = 0;
		if (j >= seen)
			first = a.T;
		lanes_load(k, head_at(k_base, k_at, &a.k, b, mine, kv) + part, a.k.t,
			seen - mine, a.D - part, depth, a.scale);
		lanes_load(v, head_at(v_base, v_at, &a.v, b, mine, kv) + part, a.v.t,
			seen - mine, a.D - part, depth, 1.0f);
#if WITH_DQ
		if (first < a.T)
			stage(keys, head_at(k_base, k_at, &a.k, b, j, kv), a.k.t,
				(int)min_of(seen - j, TILE), TILE, a.D, a.scale, item);
		bool plain =
			first >= a.T || (!a.masked && !a.causal) || all_finite(keys, TILE * HEAD);
#endif
		UNROLL_ROWS
		for (int d = 0; d < depth * NV; d++) {
			dk[d] = VEC_SPLAT(0.0f);
			dv[d] = VEC_SPLAT(0.0f);
		}
		for (long h = kv * group; h < (kv + 1) * group; h++)
			for (long t = first; t < a.T; t += BLOCK) {
				int n = (int)min_of(a.T - t, BLOCK);
				int rows = EXTENT((n + ROWS - 1) / ROWS * ROWS, BLOCK);
				long row = (b * a.H + h) * a.T + t;
				SYNC();
				stage(queries, head_at(q_base, q_at, &a.q, b, t, h), a.q.t, n, rows,
					a.D, 1.0f, item);
				stage(gradients, head_at(g_base, g_at, &a.g, b, t, h), a.g.t, n,
					rows, a.D, 1.0f, item);
				for (int i = item; i < rows; i += ITEMS) {
					lse[i] = i < n ? finite_lse(((GLOBAL const float *)(
						lse_base + lse_at))[row + i]) : INFINITY;
					r[i] = i < n ? ((GLOBAL const float *)(
						r_base + r_at))[row + i] : 0.0f;
				}
				SYNC();
				product(p, queries + part, HEAD, 1, k, rows, depth, false);
				product(ds, gradients + part, HEAD, 1, v, rows, depth, false);
				team_add(p, room, item);
				team_add(ds, room, item);
				if (a.masked)
					add_mask(p, (GLOBAL const beside *)(mask_base + mask_at) +
						b * a.mask_b + h * a.mask_h + t * a.mask_t +
						mine * a.mask_s, a.mask_t, a.mask_s, n, a.S - mine);
				if (limit_of(&a, seen, t) < j + TILE) {
					UNROLL_ROWS
					for (int i = 0; i < rows; i++) {
						long sees = limit_of(&a, seen, t + i) - mine;
						VEC there = VEC_SPLAT((float)(int)(sees < 0 ? 0 :
							min_of(sees, LANES)));
						UNROLL
						for (int u = 0; u < NV; u++)
							p[i * NV + u] = number[u] < there ?
								p[i * NV + u] :
								VEC_SPLAT(-INFINITY);
					}
				}
				if (a.dropout > 0.0f) {
#ifdef WARP
					keep_team(keep, room, row * a.S + mine, a.S, false, key,
						  step, a.dropout, item);
#else
#if LANES % 4 == 0
					if (a.S % 4 == 0)
						keep_lanes(keep, row * a.S + mine, a.S, rows, key,
							step, a.dropout);
					else
#endif
						keep_any(keep, row * a.S + mine, a.S, 1, rows, key,
							step, a.dropout);
#endif
				}
				UNROLL_ROWS
				for (int i = 0; i < rows * NV; i += 4) {
					VEC e[4];
					UNROLL
					for (int u = 0; u < 4; u++)
						e[u] = p[i + u] - VEC_SPLAT(lse[(i + u) / NV]);
					exp_each(e, 4);
					UNROLL
					for (int u = 0; u < 4; u++) {
						int at = i + u;
						VEC m = a.dropout > 0.0f ? keep[at] :
									   VEC_SPLAT(1.0f);
						e[u] = seen_weight(e[u], p[at],
								   VEC_SPLAT(lse[at / NV]));
						p[at] = e[u] * m;
						ds[at] = seen_slope(
							e[u], ds[at] * m - VEC_SPLAT(r[at / NV]));
					}
				}
				product(dv, gradients + part, 1, HEAD, p, depth, rows, true);
				product(dk, queries + part, 1, HEAD, ds, depth, rows, true);
#if WITH_DQ
				long dq_step;
				GLOBAL float *dq = dq_sums(dq_base, dq_at, r_base, r_at, &a, b, h,
					&dq_step);
				if (plain)
					add_dq(dq + t * dq_step, dq_step, ds, keys, n, a.D, false);
				else
					add_dq(dq + t * dq_step, dq_step, ds, keys, n, a.D, true);
#endif
			}
		lanes_store(dk, head_at(dk_base, dk_at, &a.dk, b, mine, kv) + part, a.dk.t,
			    a.S - mine, a.D - part, depth, a.scale);
		lanes_store(dv, head_at(dv_base, dv_at, &a.dv, b, mine, kv) + part, a.dv.t,
			    a.S - mine, a.D - part, depth, 1.0f);
	}
#if WITH_DQ && STORE
	for (long h = kv * group; h < (kv + 1) * group; h++) {
		long dq_step;
		GLOBAL float *dq = dq_sums(dq_base, dq_at, r_base, r_at, &a, b, h, &dq_step);
		for (long t = 0; t < a.T; t++) {
			GLOBAL stored *out = head_at(dq_base, dq_at, &a.dq, b, t, h);
			for (int d = 0; d < a.D; d += VEC_WIDTH)
				store(load_f32(dq + t * dq_step + d, a.D - d, 0.0f), out + d,
					a.D - d, false);
		}
	}
#endif
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	attention_back_queries(GLOBAL uchar *dq_base, ulong dq_at, PARAMETERS)
{
	LOCAL float keys[BLOCK * HEAD], values[BLOCK * HEAD], room[TEAM_ROOM];
	LOCAL int found;
	VEC q[SLICE * NV], g[SLICE * NV], dq[SLICE * NV], lse[NV], r[NV];
	VEC p[BLOCK * NV], ds[BLOCK * NV], keep[BLOCK * NV];
	int item = LOCAL_ID(0), depth = EXTENT((a.D + ROWS - 1) / ROWS * ROWS, SLICE);
	int part = item % PARTS * SLICE; // first of the item's head elements
	long tiles = (a.T + TILE - 1) / TILE, bh = (long)GROUP_ID(0) / tiles;
	long t = (tiles - 1 - (long)GROUP_ID(0) % tiles) * TILE, mine = t + item / PARTS * LANES;
	long b = bh / a.H, h = bh % a.H, kv = h / (a.H / a.G), row = bh * a.T + mine;
	long seen = seen_of(seen_base, seen_at, &a, b);
	long sees = limit_of(&a, seen, min_of(t + TILE, a.T) - 1);
	long key = number_whole(key_base, key_at, a.key);
	long step = number_whole(step_base, step_at, a.step);

	lanes_load(q, head_at(q_base, q_at, &a.q, b, mine, h) + part, a.q.t, a.T - mine, a.D - part,
		   depth, a.scale);
	lanes_load(g, head_at(g_base, g_at, &a.g, b, mine, h) + part, a.g.t, a.T - mine, a.D - part,
		   depth, 1.0f);
	for (int l = 0; l < LANES; l++) {
		bool there = mine + l < a.T;
		((float *)lse)[l] = there ? finite_lse(((GLOBAL const float *)(
			lse_base + lse_at))[row + l]) : INFINITY;
		((float *)r)[l] = there ? ((GLOBAL const float *)(r_base + r_at))[row + l] : 0.0f;
	}

	// repeat as in attention_tiles.cl
	bool seen_only = false;
	do {
		UNROLL_ROWS
		for (int d = 0; d < depth * NV; d++)
			dq[d] = VEC_SPLAT(0.0f);
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
			product(ds, values + part, HEAD, 1, g, rows, depth, false);
			team_add(p, room, item);
			team_add(ds, room, item);
			if (a.masked)
				add_mask(p,
					 (GLOBAL const beside *)(mask_base + mask_at) +
						 b * a.mask_b + h * a.mask_h + mine * a.mask_t +
						 j * a.mask_s,
					 a.mask_s, a.mask_t, n, a.T - mine);
			if (j + rows > limit_of(&a, seen, t))
				hide_keys(p, &a, seen, mine, j, rows);
			if (a.dropout > 0.0f)
				keep_keys(keep, room, &a, row * a.S + j, rows, key, step, item);
			UNROLL_ROWS
			for (int i = 0; i < rows * NV; i += 4) {
				VEC e[4];
				UNROLL
				for (int u = 0; u < 4; u++)
					e[u] = p[i + u] - lse[u % NV];
				exp_each(e, 4);
				UNROLL
				for (int u = 0; u < 4; u++) {
					int at = i + u;
					if (a.dropout > 0.0f)
						ds[at] *= keep[at];
					ds[at] = seen_slope(seen_weight(e[u], p[at], lse[u % NV]),
							    ds[at] - r[u % NV]);
				}
			}
			if (seen_only)
				product_seen(dq, keys + part, 1, HEAD, ds, depth, rows);
			else
				product(dq, keys + part, 1, HEAD, ds, depth, rows, true);
		}
		seen_only = !seen_only && (a.masked || a.causal) &&
			group_any(any_nan(dq, depth * NV), &found, item);
	} while (seen_only);
	lanes_store(dq, head_at(dq_base, dq_at, &a.dq, b, mine, h) + part, a.dq.t, a.T - mine,
		    a.D - part, depth, a.scale);
}
