// SPDX-License-Identifier: Apache-2.0
// Attention backward with matrix units: probabilities are recomputed from lse, block by block (Dao
// 2023). With P = exp(S - lse), M the dropout factors, r_t = sum_d g_td o_td (computed by
// attention_sums of attention_backward.cl):
// dv = (P M)' g, dP = M (g v'), dS = scale P (dP - r), dq = dS k, dk = dS' q.
// Reference: kern_attention_backward.c of the CPU backend.
// A group has TILE rows of its own side and loops over blocks of the other side: keys, to compute
// dk and dv, or queries, to compute dq. So no two groups write the same element, and sums have one
// order. A group computes HEAD / SLICES columns. Groups: one per tile of keys of each head of k and
// v, or of queries of each head, times SLICES. With STAGES 2 a block is copied to local memory
// while the one before is used.
#include "attention_blocks.cl"

#ifndef SLICES // more than 1 if the sums of all columns would not fit in registers
#define SLICES 1
#endif
#ifndef STAGES
#define STAGES 1
#endif
#define COLUMNS (HEAD / SLICES)
// Local memory: the own rows that are not in registers, of the second tensor first; then blocks of
// both tensors of the other side. Before and after the loop it holds the own rows of both tensors.
#define KEPT ((2 - HELD) * TILE * LD)
#define PAIR (2 * BLOCK * LD)
#define STAGE_ROOM (KEPT + STAGES * PAIR > 2 * TILE * LD ? KEPT + STAGES * PAIR : 2 * TILE * LD)
#define ALL_ROOM (STAGE_ROOM + TILE * LW) // weights that go through local memory are at the end

// What both kernels read.
struct inputs {
	GLOBAL const stored *q, *k, *v, *g;  // first rows of the batch entry, of head 0
	GLOBAL const float *lse, *r;         // of the batch entry
	GLOBAL const beside *mask;           // of the batch entry
	long key, step, first;               // of the random numbers; the batch entry's first one
	int T, S, seen, more;                // see keys_of
};

FN struct inputs inputs_of(GLOBAL uchar *q_base, ulong q_at, GLOBAL uchar *k_base, ulong k_at,
			   GLOBAL uchar *v_base, ulong v_at, GLOBAL uchar *r_base, ulong r_at,
			   GLOBAL uchar *g_base, ulong g_at, GLOBAL uchar *lse_base, ulong lse_at,
			   GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base,
			   ulong key_at, GLOBAL uchar *step_base, ulong step_at,
			   GLOBAL uchar *seen_base, ulong seen_at, const struct attention_args *a,
			   long b)
{
	struct inputs in;
	in.q = head_at(q_base, q_at, &a->q, b, 0, 0);
	in.k = head_at(k_base, k_at, &a->k, b, 0, 0);
	in.v = head_at(v_base, v_at, &a->v, b, 0, 0);
	in.g = head_at(g_base, g_at, &a->g, b, 0, 0);
	in.lse = (GLOBAL const float *)(lse_base + lse_at) + b * a->H * a->T;
	in.r = (GLOBAL const float *)(r_base + r_at) + b * a->H * a->T;
	in.mask = (GLOBAL const beside *)(mask_base + mask_at) + b * a->mask_b;
	in.key = in.step = 0;
	if (DROPOUT) {
		in.key = number_whole(key_base, key_at, a->key);
		in.step = number_whole(step_base, step_at, a->step);
	}
	in.first = b * a->H * a->T * a->S;
	in.T = (int)a->T;
	in.S = (int)a->S;
	in.seen = (int)seen_of(seen_base, seen_at, a, b);
	in.more = a->causal ? in.seen - in.T + 1 : in.seen;
	return in;
}

// p and ds [STACK][BLOCK / 16] = P M and dS of queries from t and keys from j on, from S and g v',
// of a warp's LINES rows by BLOCK rows of the other side. keys: the rows are keys. lse and r: of
// the columns' queries in local memory, or of the rows' queries, in units of log2 and times scale.
FN void weigh(bool keys, struct matrix_sums *p, struct matrix_sums *ds, const struct inputs *in,
	      int t, int j, int h, LOCAL_POINTER const float *lse, LOCAL_POINTER const float *r,
	      const float *row_lse, const float *row_r, LOCAL_POINTER matrix_element *weights,
	      const struct attention_args *a, int lane)
{
	bool plain = !MASKED && a->scale > 0.0f;
	float unit = plain ? a->scale * LOG2_E : LOG2_E,
	      kept = DROPOUT ? 1.0f / (1.0f - a->dropout) : 1.0f;
	if (DROPOUT) {
		keep_tile(weights, in->first + ((long)h * in->T + t) * in->S + j, keys ? 1 : in->S,
			  keys ? in->S : 1, in->S % 4 == 0, in->key, in->step, a->dropout, lane);
		TEAM_SYNC();
	}
	if (!plain) {
		GLOBAL const beside *mask =
			in->mask + h * a->mask_h + t * a->mask_t + j * a->mask_s;
		UNROLL
		for (int c = 0; c < STACK * (BLOCK / 16); c++)
			UNROLL
			for (int e = 0; e < MATRIX_SUMS; e++) {
				int row = c / (BLOCK / 16) * 16 + matrix_row(e, lane);
				int column = c % (BLOCK / 16) * 16 + matrix_column(e, lane);
				int query = keys ? column : row, k = keys ? row : column;
				float x = p[c].x[e] * a->scale;
				if (MASKED && t + query < in->T && j + k < in->S) {
					GLOBAL const beside *at =
						mask + query * a->mask_t + k * a->mask_s;
					x = masked_score(x, load_beside_one(at));
				}
				p[c].x[e] = x;
			}
	}
	// the first query does not see all of the keys
	if (keys_of(a, in->seen, in->more, t) < j + (keys ? LINES : BLOCK)) {
		int there = in->seen - j, first = in->more - j + (a->causal ? t : 0);
		UNROLL
		for (int c = 0; c < STACK * (BLOCK / 16); c++)
			UNROLL
			for (int e = 0; e < MATRIX_SUMS; e++) {
				int row = c / (BLOCK / 16) * 16 + matrix_row(e, lane);
				int column = c % (BLOCK / 16) * 16 + matrix_column(e, lane);
				int query = keys ? column : row, k = keys ? row : column;
				if (k >= there || k >= first + (a->causal ? query : 0))
					p[c].x[e] = -INFINITY;
			}
	}
	UNROLL
	for (int c = 0; c < STACK * (BLOCK / 16); c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int row = c / (BLOCK / 16) * 16 + matrix_row(e, lane);
			int column = c % (BLOCK / 16) * 16 + matrix_column(e, lane);
			int slot = c / (BLOCK / 16) * MATRIX_ROWS + matrix_slot(e);
			float l = keys ? lse[column] : row_lse[slot],
			      scaled_r = keys ? r[column] : row_r[slot];
			float w = l == INFINITY ? 0.0f : EXP2(FMA(p[c].x[e], unit, -l));
			float m = DROPOUT && weights[row * LW + column] == 0 ? 0.0f : kept;
			p[c].x[e] = w * m;
			// g v' of a hidden value may be NaN
			ds[c].x[e] =
				w == 0.0f ? 0.0f : w * FMA(ds[c].x[e], m * a->scale, -scaled_r);
		}
	if (DROPOUT)
		TEAM_SYNC();
}

// sums += weights times a block, for which p may go through local memory
FN void accumulate(struct matrix_sums *sums, const struct matrix_sums *p,
		   LOCAL_POINTER matrix_element *weights, LOCAL_POINTER const matrix_element *block,
		   bool seen_only, int lane)
{
	if (WEIGHTS_APART || seen_only) {
		put_weights(weights, p, lane);
		TEAM_SYNC();
	}
	if (seen_only)
		add_seen(sums, COLUMNS, weights, block, lane);
	else
		add_weighted(sums, COLUMNS, p, weights, block, lane);
	if (WEIGHTS_APART || seen_only)
		TEAM_SYNC();
}

// dk and dv
KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	attention_matrix_keys(GLOBAL uchar *dk_base, ulong dk_at, GLOBAL uchar *dv_base,
			      ulong dv_at, GLOBAL uchar *q_base, ulong q_at, GLOBAL uchar *k_base,
			      ulong k_at, GLOBAL uchar *v_base, ulong v_at, GLOBAL uchar *r_base,
			      ulong r_at, GLOBAL uchar *g_base, ulong g_at, GLOBAL uchar *lse_base,
			      ulong lse_at, GLOBAL uchar *mask_base, ulong mask_at,
			      GLOBAL uchar *key_base, ulong key_at, GLOBAL uchar *step_base,
			      ulong step_at, GLOBAL uchar *seen_base, ulong seen_at,
			      struct attention_args a)
{
	LOCAL_SIZED(matrix_element, rows, ALL_ROOM);
	LOCAL float lse[STAGES * BLOCK], r[STAGES * BLOCK];
	struct own_rows k_own, v_own;
	struct matrix_sums p[STACK * (BLOCK / 16)], ds[STACK * (BLOCK / 16)];
	struct matrix_sums dk[STACK * (COLUMNS / 16)], dv[STACK * (COLUMNS / 16)];
	float factor[STACK * MATRIX_ROWS];
	int item = LOCAL_ID(0), lane = item % WARP, line = item / WARP * LINES;
	LOCAL_POINTER matrix_element *weights = rows + STAGE_ROOM + line * LW, *own_v = rows,
				     *own_k = rows + TILE * LD;
	uint number = (uint)GROUP_ID(0) / SLICES, heads = (uint)(a.B * a.G),
	     b = number % heads / (uint)a.G;
	uint kv = number % heads % (uint)a.G, group = (uint)a.H / (uint)a.G;
	int part = (int)((uint)GROUP_ID(0) % SLICES) * COLUMNS;
	// causal: the first keys are seen by most queries, so these start first
	int own = (int)(number / heads) * TILE, mine = own + line;
	const struct inputs in =
		inputs_of(q_base, q_at, k_base, k_at, v_base, v_at, r_base, r_at, g_base, g_at,
			  lse_base, lse_at, mask_base, mask_at, key_base, key_at, step_base,
			  step_at, seen_base, seen_at, &a, b);

	// queries that see any of these keys
	int from = a.causal && own >= in.more ? own - in.more + 1 : 0;
	from = own >= in.seen || from > in.T ? in.T : from;
	stage_rows(own_k, in.k + kv * a.k.h + own * a.k.t, a.k.t, in.seen - own, TILE, a.D, item);
	stage_rows(own_v, in.v + kv * a.v.h + own * a.v.t, a.v.t, in.seen - own, TILE, a.D, item);
	COPIES_WAIT(0);
	BARRIER();
	hold_rows(&k_own, HELD > 0, own_k + line * LD, lane);
	hold_rows(&v_own, HELD > 1, own_v + line * LD, lane);
	UNROLL
	for (int c = 0; c < STACK * (COLUMNS / 16); c++) {
		dk[c] = matrix_zero();
		dv[c] = matrix_zero();
	}
	BARRIER();

	// Blocks of queries of each head of the group, the block that is used and the next one;
	// with two stages, its copy starts first.
	int h = (int)(kv * group), end = from < in.T ? h + (int)group : h, next_h = h, x = from,
	    next_x = from, stage = 0;
	bool started = STAGES == 1 || h == end;
	while (h < end) {
		int at = started && STAGES > 1 ? 1 - stage : stage;
		LOCAL_POINTER matrix_element *to = rows + KEPT + at * PAIR;
		if (started) {
			COPIES_WAIT(0);
			BARRIER();
		}
		if (next_h < end) {
			stage_rows(to, in.q + next_h * a.q.h + next_x * a.q.t, a.q.t, in.T - next_x,
				   BLOCK, a.D, item);
			stage_rows(to + BLOCK * LD, in.g + next_h * a.g.h + next_x * a.g.t, a.g.t,
				   in.T - next_x, BLOCK, a.D, item);
			for (int n = item; n < BLOCK; n += ITEMS) {
				long row = (long)next_h * in.T + next_x + n;
				bool there = next_x + n < in.T;
				lse[at * BLOCK + n] =
					there ? finite_lse(in.lse[row]) * LOG2_E : INFINITY;
				r[at * BLOCK + n] = there ? in.r[row] * a.scale : 0.0f;
			}
			next_x += BLOCK;
			if (next_x >= in.T) {
				next_x = from;
				next_h++;
			}
		}
		if (!started) {
			started = true;
			continue;
		}
		if (STAGES == 1) {
			COPIES_WAIT(0);
			BARRIER();
		}
		LOCAL_POINTER matrix_element *block_q = rows + KEPT + stage * PAIR,
					     *block_g = block_q + BLOCK * LD;
		LOCAL_POINTER const float *block_lse = lse + stage * BLOCK,
					  *block_r = r + stage * BLOCK;
		// a warp may skip queries that see none of its keys
		if (!WARPS_DIVERGE || keys_of(&a, in.seen, in.more,
					      x + BLOCK < in.T ? x + BLOCK - 1 : in.T - 1) > mine) {
			rows_by_rows(p, &k_own, HELD > 0, block_q, lane);
			rows_by_rows(ds, &v_own, HELD > 1, block_g, lane);
			weigh(true, p, ds, &in, x, mine, h, block_lse, block_r, factor, factor,
			      weights, &a, lane);
			accumulate(dv, p, weights, block_g + part, false, lane);
			accumulate(dk, ds, weights, block_q + part, false, lane);
		}
		stage = STAGES > 1 ? 1 - stage : 0;
		x += BLOCK;
		if (x >= in.T) {
			x = from;
			h++;
		}
	}

	UNROLL
	for (int i = 0; i < STACK * MATRIX_ROWS; i++)
		factor[i] = 1.0f;
	BARRIER();
	put_rows(head_at(dk_base, dk_at, &a.dk, b, mine, kv) + part, a.dk.t, own_k + line * LD, dk,
		 COLUMNS, in.S - mine, a.D - part, factor, lane);
	put_rows(head_at(dv_base, dv_at, &a.dv, b, mine, kv) + part, a.dv.t, own_v + line * LD, dv,
		 COLUMNS, in.S - mine, a.D - part, factor, lane);
}

// dq
KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	attention_matrix_queries(GLOBAL uchar *dq_base, ulong dq_at, GLOBAL uchar *q_base,
				 ulong q_at, GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base,
				 ulong v_at, GLOBAL uchar *r_base, ulong r_at, GLOBAL uchar *g_base,
				 ulong g_at, GLOBAL uchar *lse_base, ulong lse_at,
				 GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base,
				 ulong key_at, GLOBAL uchar *step_base, ulong step_at,
				 GLOBAL uchar *seen_base, ulong seen_at, struct attention_args a)
{
	LOCAL_SIZED(matrix_element, rows, ALL_ROOM);
	LOCAL int found;
	struct own_rows q_own, g_own;
	struct matrix_sums p[STACK * (BLOCK / 16)], ds[STACK * (BLOCK / 16)],
		dq[STACK * (COLUMNS / 16)];
	float lse[STACK * MATRIX_ROWS], r[STACK * MATRIX_ROWS];
	int item = LOCAL_ID(0), lane = item % WARP, line = item / WARP * LINES;
	LOCAL_POINTER matrix_element *weights = rows + STAGE_ROOM + line * LW, *own_g = rows,
				     *own_q = rows + TILE * LD;
	uint number = (uint)GROUP_ID(0) / SLICES, heads = (uint)(a.B * a.H),
	     b = number % heads / (uint)a.H;
	uint h = number % heads % (uint)a.H, kv = h / ((uint)a.H / (uint)a.G);
	int part = (int)((uint)GROUP_ID(0) % SLICES) * COLUMNS;
	const struct inputs in =
		inputs_of(q_base, q_at, k_base, k_at, v_base, v_at, r_base, r_at, g_base, g_at,
			  lse_base, lse_at, mask_base, mask_at, key_base, key_at, step_base,
			  step_at, seen_base, seen_at, &a, b);
	// causal: the last queries see most keys, so these start first
	int own = (int)((uint)(in.T - 1) / TILE - number / heads) * TILE, mine = own + line;
	int sees = keys_of(&a, in.seen, in.more, own + TILE < in.T ? own + TILE - 1 : in.T - 1);
	// of the warp
	int sees_any = mine < in.T ? keys_of(&a, in.seen, in.more,
					     mine + LINES < in.T ? mine + LINES - 1 : in.T - 1) :
				     0;

	stage_rows(own_q, in.q + h * a.q.h + own * a.q.t, a.q.t, in.T - own, TILE, a.D, item);
	stage_rows(own_g, in.g + h * a.g.h + own * a.g.t, a.g.t, in.T - own, TILE, a.D, item);
	UNROLL
	for (int s = 0; s < STACK; s++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int query = mine + s * 16 + matrix_row(e, lane);
			bool there = query < in.T;
			lse[s * MATRIX_ROWS + matrix_slot(e)] =
				there ? finite_lse(in.lse[(long)h * in.T + query]) * LOG2_E :
					INFINITY;
			r[s * MATRIX_ROWS + matrix_slot(e)] =
				there ? in.r[(long)h * in.T + query] * a.scale : 0.0f;
		}
	COPIES_WAIT(0);
	BARRIER();
	hold_rows(&q_own, HELD > 0, own_q + line * LD, lane);
	hold_rows(&g_own, HELD > 1, own_g + line * LD, lane);

	// A NaN in dq may come from keys hidden from its query: then repeat with the slow, exact
	// handling.
	bool seen_only = false;
	do {
		UNROLL
		for (int c = 0; c < STACK * (COLUMNS / 16); c++)
			dq[c] = matrix_zero();
		BARRIER();
		for (int i = (1 - STAGES) * BLOCK; i < sees; i += BLOCK) {
			int next = i + (STAGES - 1) * BLOCK;
			LOCAL_POINTER matrix_element *to =
				rows + KEPT + next / BLOCK % STAGES * PAIR;
			if (STAGES == 1 || i >= 0) {
				COPIES_WAIT(0);
				BARRIER();
			}
			if (next < sees) {
				stage_rows(to, in.k + kv * a.k.h + next * a.k.t, a.k.t, sees - next,
					   BLOCK, a.D, item);
				stage_rows(to + BLOCK * LD, in.v + kv * a.v.h + next * a.v.t, a.v.t,
					   sees - next, BLOCK, a.D, item);
			}
			if (i < 0)
				continue;
			if (STAGES == 1) {
				COPIES_WAIT(0);
				BARRIER();
			}
			if (WARPS_DIVERGE && i >= sees_any)
				continue;
			LOCAL_POINTER matrix_element *block_k =
				rows + KEPT + i / BLOCK % STAGES * PAIR;
			rows_by_rows(p, &q_own, HELD > 0, block_k, lane);
			rows_by_rows(ds, &g_own, HELD > 1, block_k + BLOCK * LD, lane);
			weigh(false, p, ds, &in, mine, i, (int)h, (LOCAL_POINTER const float *)0,
			      (LOCAL_POINTER const float *)0, lse, r, weights, &a, lane);
			accumulate(dq, ds, weights, block_k + part, seen_only, lane);
		}
		seen_only = !seen_only && (MASKED || a.causal) &&
			group_any(sums_nan(dq, STACK * (COLUMNS / 16)), &found, item);
	} while (seen_only);

	UNROLL
	for (int i = 0; i < STACK * MATRIX_ROWS; i++)
		lse[i] = 1.0f;
	BARRIER();
	put_rows(head_at(dq_base, dq_at, &a.dq, b, mine, h) + part, a.dq.t, own_q + line * LD, dq,
		 COLUMNS, in.T - mine, a.D - part, lse, lane);
}
