// SPDX-License-Identifier: Apache-2.0
// Attention over a paged cache of keys and values. Reference: kern_attention_paged.c of the CPU
// backend. Positions are divided into parts of PART, from 0 on. A part's maximum, sum and weighted
// values are computed alone; SPAN consecutive parts are folded in order, then the spans in order.
// So a query's bits depend neither on the other queries of its group nor on how the parts are
// divided among groups.
// attention_paged: a group has up to ROWS / heads consecutive queries and `heads` heads that share
// a key head, and one part (a.split) or one span. It computes runs of queries of the same sequence
// together; such a run reads each key once. With more than one part or span per query the
// workspace receives [T,H,units][SLOT]: the weighted values (HEAD), maximum, sum.
// attention_paged_join: one group per query and head folds them.
// HEAD: D rounded up to 16; ROWS: queries times heads of a group; KEYS: keys staged at a time,
// which divide PART; LANES: items along D in the weighted sums, a power of two.
#include "rows.cl"
#include "report.cl"

#define PAGE 16
#define PART 256
#define SPAN 16
#define VECTORS (HEAD / VEC_WIDTH)
#define LD (HEAD + VEC_WIDTH) // of staged keys: items read different rows, without bank conflicts
#define SLOT (HEAD + 4)
#if ITEMS > 1
#define TEAM_ITEMS 32 // items that reduce a row
#define SLICES (ITEMS / KEYS) // items that share a key
#define STEPS 1 // vectors of an item along D
#define SUBSETS (ITEMS / LANES) // subsets of the keys in weighted sums: position modulo SUBSETS
#define SYNC() BARRIER()
#else
#define TEAM_ITEMS 1
#define SLICES 1
#define STEPS VECTORS
#define SUBSETS 1
#define SYNC()
#endif
#define KEPT ((ROWS * VECTORS + ITEMS - 1) / ITEMS) // vectors of the result per item
#define ADDED (SUBSETS > 1 ? SUBSETS / 2 : 1)
#define STAGE (KEYS * LD > ADDED * ROWS * HEAD ? KEYS * LD : ADDED * ROWS * HEAD)
#define AT_ONCE 4 // values loaded before they are used

struct paged_args {
	long qt, qh, ot, oh;         // strides of q and o
	long kp, ks, kg, vp, vs, vg; // strides of pages, their positions and heads
	long T, H, G, heads, tiles;  // tiles: of the heads that share a key head
	long pages, M, rows;         // pages of the cache; size of the table
	long window, queries, units; // queries of a group; parts or spans of a query
	float scale, cap;
	int D, split;
};

struct range {
	int from, to;
};

// Positions that query t sees.
FN struct range seen_by(const struct paged_args *a, GLOBAL const int *pos, long t)
{
	long n = (long)pos[t] + 1, all = a->M * PAGE;
	struct range r;
	r.from = (int)(a->window > 0 && n > a->window ? n - a->window : 0);
	r.to = (int)(n < all ? n : all);
	if (r.to < r.from)
		r.to = r.from;
	return r;
}

// Factors for results with maximum *to_max and sum *to_sum, and for ones that are added to them.
FN void fold(float max, float sum, float *to_max, float *to_sum, float *was, float *now)
{
	float top = fmax(max, *to_max), base = top == -INFINITY ? 0.0f : top;
	*was = exp(*to_max - base);
	*now = exp(max - base);
	*to_sum = *to_sum * *was + sum * *now;
	*to_max = top;
}

// Weighted values: without weight, their content does not count.
FN VEC fold_values(VEC x, float was, VEC y, float now)
{
	if (now == 0.0f)
		return x * VEC_SPLAT(was);
	return was == 0.0f ? y * VEC_SPLAT(now) : x * VEC_SPLAT(was) + y * VEC_SPLAT(now);
}

FN float inverse_of(float sum)
{
	return sum == 0.0f ? 0.0f : 1.0f / sum;
}

// Element d of key s of a part whose pages are `page`.
FN long cached_at(LOCAL_POINTER const int *page, long by_page, long by_position, int s)
{
	return (long)page[s / PAGE] * by_page + s % PAGE * by_position;
}

// p [ROWS][PART] = scores of positions r.from .. r.to - 1 of a part; -inf where a row does not see
// them. Whole blocks of KEYS are written.
FN void score(LOCAL_POINTER float *p, LOCAL_POINTER const float *q, LOCAL_POINTER float *stage,
	      LOCAL_POINTER float *dots, LOCAL_POINTER const int *page,
	      LOCAL_POINTER const struct range *seen, GLOBAL const beside *k,
	      const struct paged_args *a, int part, struct range r, int item)
{
	for (int j = r.from / KEYS * KEYS; j < r.to; j += KEYS) {
		for (int i = item; i < KEYS * VECTORS; i += ITEMS) {
			int key = i / VECTORS, d = i % VECTORS * VEC_WIDTH, s = j + key;
			VEC x = VEC_SPLAT(0.0f);
			if (s >= r.from && s < r.to && d < a->D)
				x = load_beside(k + cached_at(page, a->kp, a->ks, s) + d, a->D - d,
						0.0f);
			VEC_STORE(x, stage + key * LD + d);
		}
		SYNC();
		for (int key = item % KEYS; key < KEYS; key += ITEMS) {
			int slice = item / KEYS;
			VEC sum[ROWS];
			UNROLL
			for (int i = 0; i < ROWS; i++)
				sum[i] = VEC_SPLAT(0.0f);
			for (int d = slice * VEC_WIDTH; d < HEAD; d += SLICES * VEC_WIDTH) {
				VEC x = VEC_LOAD(stage + key * LD + d);
				UNROLL
				for (int i = 0; i < ROWS; i++)
					sum[i] = VEC_FMA(VEC_LOAD(q + i * HEAD + d), x, sum[i]);
			}
			UNROLL
			for (int i = 0; i < ROWS; i++)
				dots[(slice * ROWS + i) * KEYS + key] = VEC_SUM(sum[i]);
		}
		SYNC();
		for (int i = item; i < ROWS * KEYS; i += ITEMS) {
			int row = i / KEYS, s = j + i % KEYS;
			float x = dots[i];
			UNROLL
			for (int n = 1; n < SLICES; n++)
				x += dots[n * ROWS * KEYS + i];
			if (a->cap > 0.0f)
				x = a->cap * tanh(x);
			p[row * PART + s] = part * PART + s >= seen[row].from &&
							    part * PART + s < seen[row].to ?
						    x :
						    -INFINITY;
		}
	}
	SYNC();
}

// Reduces each row's values in `tree` to `to`.
FN void reduce_rows(LOCAL_POINTER float *to, LOCAL_POINTER const float *tree, bool largest,
		    int item)
{
	SYNC();
	for (int row = item; row < ROWS; row += ITEMS) {
		float x = tree[row * TEAM_ITEMS];
		UNROLL
		for (int i = 1; i < TEAM_ITEMS; i++) {
			float y = tree[row * TEAM_ITEMS + i];
			x = largest ? fmax(x, y) : x + y;
		}
		to[row] = x;
	}
	SYNC();
}

// Scores p become weights; max and sum receive each row's. An item has the same positions of a part
// whatever r is.
FN void weigh(LOCAL_POINTER float *p, LOCAL_POINTER float *max, LOCAL_POINTER float *sum,
	      LOCAL_POINTER float *tree, struct range r, int item)
{
	int from = r.from / KEYS * KEYS, to = (r.to + KEYS - 1) / KEYS * KEYS,
	    lane = item % TEAM_ITEMS;
	for (int row = item / TEAM_ITEMS; row < ROWS; row += ITEMS / TEAM_ITEMS) {
		VEC m = VEC_SPLAT(-INFINITY);
		for (int s = lane * VEC_WIDTH; s < to; s += TEAM_ITEMS * VEC_WIDTH)
			if (s >= from)
				m = greater(VEC_LOAD(p + row * PART + s), m);
		tree[row * TEAM_ITEMS + lane] = VEC_MAX(m);
	}
	reduce_rows(max, tree, true, item);
	for (int row = item / TEAM_ITEMS; row < ROWS; row += ITEMS / TEAM_ITEMS) {
		VEC all = VEC_SPLAT(0.0f),
		    base = VEC_SPLAT(max[row] == -INFINITY ? 0.0f : max[row]);
		for (int s = lane * VEC_WIDTH; s < to; s += TEAM_ITEMS * VEC_WIDTH)
			if (s >= from) {
				VEC x = exp_one(VEC_LOAD(p + row * PART + s) - base);
				VEC_STORE(x, p + row * PART + s);
				all += x;
			}
		tree[row * TEAM_ITEMS + lane] = VEC_SUM(all);
	}
	reduce_rows(sum, tree, false, item);
}

// stage [ROWS][HEAD] = the values of positions of a part, weighted with p. Rows that do not see a
// position do not add it, since 0 times its content may be NaN; all rows see those in `all`.
FN void add_values(LOCAL_POINTER float *stage, LOCAL_POINTER const float *p,
		   LOCAL_POINTER const int *page, LOCAL_POINTER const struct range *seen,
		   GLOBAL const beside *v, const struct paged_args *a, int part, struct range r,
		   struct range all, int item)
{
	int lane = item % LANES, subset = item / LANES;
	VEC sum[STEPS * ROWS];
	UNROLL
	for (int i = 0; i < STEPS * ROWS; i++)
		sum[i] = VEC_SPLAT(0.0f);
	for (int j = r.from / SUBSETS * SUBSETS + subset; j < r.to && lane < VECTORS;
	     j += AT_ONCE * SUBSETS)
		for (int u = 0; u < STEPS; u++) {
			int d = (u * LANES + lane) * VEC_WIDTH;
			VEC x[AT_ONCE];
			UNROLL
			for (int m = 0; m < AT_ONCE; m++) {
				int s = j + m * SUBSETS;
				x[m] = VEC_SPLAT(0.0f);
				if (s >= r.from && s < r.to && d < a->D)
					x[m] = load_beside(v + cached_at(page, a->vp, a->vs, s) + d,
							   a->D - d, 0.0f);
			}
			UNROLL
			for (int m = 0; m < AT_ONCE; m++) {
				int s = j + m * SUBSETS;
				if (s >= all.from && s < all.to) {
					UNROLL
					for (int i = 0; i < ROWS; i++)
						sum[u * ROWS + i] =
							VEC_FMA(VEC_SPLAT(p[i * PART + s]), x[m],
								sum[u * ROWS + i]);
				} else if (s >= r.from && s < r.to) {
					UNROLL
					for (int i = 0; i < ROWS; i++)
						if (part * PART + s >= seen[i].from &&
						    part * PART + s < seen[i].to)
							sum[u * ROWS + i] =
								VEC_FMA(VEC_SPLAT(p[i * PART + s]),
									x[m], sum[u * ROWS + i]);
				}
			}
		}
	UNROLL
	for (int n = SUBSETS / 2; n; n /= 2) {
		LOCAL_POINTER float *to = stage + subset % n * ROWS * HEAD + lane * VEC_WIDTH;
		if (subset >= n && subset < 2 * n && lane < VECTORS)
			UNROLL
			for (int i = 0; i < ROWS; i++)
				VEC_STORE(sum[i], to + i * HEAD);
		SYNC();
		if (subset < n && lane < VECTORS)
			UNROLL
			for (int i = 0; i < ROWS; i++)
				sum[i] += VEC_LOAD(to + i * HEAD);
		SYNC();
	}
	if (subset == 0 && lane < VECTORS)
		for (int u = 0; u < STEPS; u++)
			UNROLL
			for (int i = 0; i < ROWS; i++)
				VEC_STORE(sum[u * ROWS + i],
					  stage + i * HEAD + (u * LANES + lane) * VEC_WIDTH);
	SYNC();
}

KERNEL void WORK_GROUP_REGISTERS(ITEMS, 1)
	attention_paged(GLOBAL uchar *o_base, ulong o_at, GLOBAL uchar *q_base, ulong q_at,
			GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
			GLOBAL uchar *table_base, ulong table_at, GLOBAL uchar *row_base,
			ulong row_at, GLOBAL uchar *pos_base, ulong pos_at, GLOBAL uchar *part_base,
			ulong part_at, struct paged_args a REPORT_PARAMS)
{
	LOCAL float q[ROWS * HEAD], p[ROWS * PART], stage[STAGE], dots[SLICES * ROWS * KEYS],
		tree[ROWS * TEAM_ITEMS];
	LOCAL float max[ROWS], sum[ROWS], all_max[ROWS], all_sum[ROWS];
	LOCAL int page[PART / PAGE];
	LOCAL struct range seen[ROWS];
	int item = LOCAL_ID(0), heads = (int)a.heads;
	uint units = (uint)a.units, unit = (uint)GROUP_ID(0) % units,
	     place = (uint)GROUP_ID(0) / units;
	uint tiles = (uint)a.tiles, tile = place % tiles, keys = place / tiles, groups = (uint)a.G;
	long g = keys % groups, t0 = (long)(keys / groups) * a.queries;
	long shared = (uint)a.H / groups, h0 = g * shared + tile * a.heads, h1 = (g + 1) * shared;
	GLOBAL const int *table = (GLOBAL const int *)(table_base + table_at),
			 *rows = (GLOBAL const int *)(row_base + row_at);
	GLOBAL const int *pos = (GLOBAL const int *)(pos_base + pos_at);
	GLOBAL const beside *k = (GLOBAL const beside *)(k_base + k_at) + g * a.kg;
	GLOBAL const beside *v = (GLOBAL const beside *)(v_base + v_at) + g * a.vg;
	int queries = (int)(a.T - t0 < a.queries ? a.T - t0 : a.queries);

	for (int i = item; i < ROWS * VECTORS; i += ITEMS) {
		int row = i / VECTORS, d = i % VECTORS * VEC_WIDTH;
		long t = t0 + row / heads, h = h0 + row % heads;
		VEC x = VEC_SPLAT(0.0f);
		if (t < a.T && h < h1 && d < a.D)
			x = load((GLOBAL const stored *)(q_base + q_at) + t * a.qt + h * a.qh + d,
				 a.D - d, 0.0f) *
			    VEC_SPLAT(a.scale);
		VEC_STORE(x, q + row * HEAD + d);
	}
	for (int begin = 0, end; begin < queries; begin = end) {
		long of = rows[t0 + begin];
		struct range run = seen_by(&a, pos, t0 + begin), all = run;
		for (end = begin + 1; end < queries && rows[t0 + end] == of; end++) {
			struct range own = seen_by(&a, pos, t0 + end);
			run.from = own.from < run.from ? own.from : run.from;
			run.to = own.to > run.to ? own.to : run.to;
			all.from = own.from > all.from ? own.from : all.from;
			all.to = own.to < all.to ? own.to : all.to;
		}
		if (end - begin < a.queries) // other rows of the group see nothing
			all.to = all.from;
		if (item == 0 && (of < -1 || of >= a.rows))
			report_bad(REPORT_AT, (ulong)(t0 + begin));
		if (of < 0 || of >= a.rows)
			run.to = run.from = all.to = all.from = 0;
		SYNC(); // the run before has read what follows
		for (int row = item; row < ROWS; row += ITEMS) {
			long t = t0 + row / heads;
			seen[row].from = seen[row].to = 0;
			if (row / heads >= begin && row / heads < end && run.to > run.from)
				seen[row] = seen_by(&a, pos, t);
			all_max[row] = -INFINITY;
			all_sum[row] = 0.0f;
		}
		VEC kept[KEPT];
		UNROLL
		for (int n = 0; n < KEPT; n++)
			kept[n] = VEC_SPLAT(0.0f);
		int part = (int)(a.split ? unit : unit * SPAN),
		    parts = a.split ? part + 1 : part + SPAN;
		if (part < run.from / PART)
			part = run.from / PART;
		bool empty = part >= parts || part * PART >= run.to;
		for (; part < parts && part * PART < run.to; part++) {
			struct range r = { run.from - part * PART, run.to - part * PART },
				     every = { all.from - part * PART, all.to - part * PART };
			r.from = r.from < 0 ? 0 : r.from;
			r.to = r.to < PART ? r.to : PART;
			for (int n = item; n < PART / PAGE; n += ITEMS) {
				bool needed = n * PAGE < r.to && (n + 1) * PAGE > r.from;
				long at = needed ? table[of * a.M + part * (PART / PAGE) + n] : 0;
				bool good = at >= 0 && at < a.pages;
				if (!good)
					report_bad(REPORT_AT, (ulong)(t0 + begin));
				page[n] = good ? (int)at : 0;
			}
			SYNC();
			score(p, q, stage, dots, page, seen, k, &a, part, r, item);
			weigh(p, max, sum, tree, r, item);
			add_values(stage, p, page, seen, v, &a, part, r, every, item);
			UNROLL
			for (int n = 0; n < KEPT; n++) {
				int i = n * ITEMS + item, row = i / VECTORS;
				if (i < ROWS * VECTORS) {
					float was, now, to_max = all_max[row],
							to_sum = all_sum[row];
					fold(max[row], sum[row], &to_max, &to_sum, &was, &now);
					kept[n] = fold_values(kept[n], was,
							      VEC_LOAD(stage + i * VEC_WIDTH), now);
				}
			}
			SYNC();
			for (int row = item; row < ROWS; row += ITEMS) {
				float was, now, to_max = all_max[row], to_sum = all_sum[row];
				fold(max[row], sum[row], &to_max, &to_sum, &was, &now);
				all_max[row] = to_max;
				all_sum[row] = to_sum;
			}
			SYNC();
		}
		SYNC();
		UNROLL
		for (int n = 0; n < KEPT; n++) {
			int i = n * ITEMS + item, row = i / VECTORS, d = i % VECTORS * VEC_WIDTH,
			    query = row / heads;
			long t = t0 + query, h = h0 + row % heads;
			if (i >= ROWS * VECTORS || query < begin || query >= end || h >= h1 ||
			    (empty && a.units > 1))
				continue;
			if (a.units > 1) {
				GLOBAL float *to = (GLOBAL float *)(part_base + part_at) +
						   ((t * a.H + h) * a.units + unit) * SLOT;
				VEC_STORE(kept[n], to + d);
				if (d == 0) {
					to[HEAD] = all_max[row];
					to[HEAD + 1] = all_sum[row];
				}
			} else if (d < a.D) {
				store(kept[n] * VEC_SPLAT(inverse_of(all_sum[row])),
				      (GLOBAL stored *)(o_base + o_at) + t * a.ot + h * a.oh + d,
				      a.D - d, false);
			}
		}
	}
}

KERNEL void WORK_GROUP(ITEMS, 1)
	attention_paged_join(GLOBAL uchar *o_base, ulong o_at, GLOBAL uchar *row_base, ulong row_at,
			     GLOBAL uchar *pos_base, ulong pos_at, GLOBAL uchar *part_base,
			     ulong part_at, struct paged_args a)
{
	uint heads = (uint)a.H;
	long t = (uint)GROUP_ID(0) / heads, h = (uint)GROUP_ID(0) % heads,
	     of = ((GLOBAL const int *)(row_base + row_at))[t];
	struct range r = seen_by(&a, (GLOBAL const int *)(pos_base + pos_at), t);
	GLOBAL const float *from =
		(GLOBAL const float *)(part_base + part_at) + (long)GROUP_ID(0) * a.units * SLOT;
	int each = a.split ? PART : PART * SPAN,
	    last = r.to == r.from || of < 0 || of >= a.rows ? 0 : (r.to + each - 1) / each;

	for (int d = LOCAL_ID(0) * VEC_WIDTH; d < a.D; d += STEP) {
		VEC x = VEC_SPLAT(0.0f), y = VEC_SPLAT(0.0f); // of all spans, of the current one
		float x_max = -INFINITY, x_sum = 0.0f, y_max = -INFINITY, y_sum = 0.0f, was, now;
		for (int i = r.from / each; i < last; i++) {
			GLOBAL const float *slot = from + (long)i * SLOT;
			fold(slot[HEAD], slot[HEAD + 1], &y_max, &y_sum, &was, &now);
			y = fold_values(y, was, VEC_LOAD(slot + d), now);
			if (a.split && i % SPAN != SPAN - 1 && i != last - 1)
				continue;
			fold(y_max, y_sum, &x_max, &x_sum, &was, &now);
			x = fold_values(x, was, y, now);
			y_max = -INFINITY;
			y_sum = 0.0f;
			y = VEC_SPLAT(0.0f);
		}
		store(x * VEC_SPLAT(inverse_of(x_sum)),
		      (GLOBAL stored *)(o_base + o_at) + t * a.ot + h * a.oh + d, a.D - d, false);
	}
}
