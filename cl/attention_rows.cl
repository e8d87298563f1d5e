// SPDX-License-Identifier: Apache-2.0
// Attention forward for few queries (token generation with a key/value cache): lanes are head
// elements, and each query loops over the keys on its own. Reference: kern_attention_row.c of the
// CPU backend.
// attention_rows: groups of PART keys and one query of one head. If a query has several parts, the
// workspace receives (B H T, parts, 2 + D): maximum, sum, and the output before division by the
// sum; attention_join, one group per query, combines them in order.
#include "attention_lanes.cl"

#ifndef PART
#define PART 512
#endif
#define AT_ONCE 4 // keys per step

// p [n] = q k_i; each item computes some of them
FN void dot_keys(LOCAL_POINTER const float *q, GLOBAL const stored *k, long step, int n, int D,
	LOCAL_POINTER float *p, int item)
{
	for (int i = item * AT_ONCE; i < n; i += ITEMS * AT_ONCE) {
		VEC sum[AT_ONCE];
		UNROLL
		for (int m = 0; m < AT_ONCE; m++)
			sum[m] = VEC_SPLAT(0.0f);
		for (int d = 0; d < D; d += VEC_WIDTH) {
			VEC x = VEC_LOAD(q + d);
			UNROLL
			for (int m = 0; m < AT_ONCE; m++) {
				int key = i + m < n ? i + m : n - 1;
				sum[m] = VEC_FMA(x, load(k + key * step + d, D - d, 0.0f), sum[m]);
			}
		}
		UNROLL
		for (int m = 0; m < AT_ONCE; m++)
			if (i + m < n)
				p[i + m] = VEC_SUM(sum[m]);
	}
}

// Elements from d on of the sum of p[i] v_i.
FN VEC weighted(LOCAL_POINTER const float *p, GLOBAL const stored *v, long step, int n, int left)
{
	VEC sum[AT_ONCE];
	int i = 0;
	UNROLL
	for (int m = 0; m < AT_ONCE; m++)
		sum[m] = VEC_SPLAT(0.0f);
	for (; i + AT_ONCE <= n; i += AT_ONCE) {
		UNROLL
		for (int m = 0; m < AT_ONCE; m++)
			sum[m] = VEC_FMA(VEC_SPLAT(p[i + m]), load(v + (i + m) * step, left, 0.0f),
				sum[m]);
	}
	for (; i < n; i++)
		sum[0] = VEC_FMA(VEC_SPLAT(p[i]), load(v + i * step, left, 0.0f), sum[0]);
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

// The same, skipping keys of weight 0 whatever their values are.
FN VEC weighted_seen(LOCAL_POINTER const float *p, GLOBAL const stored *v, long step, int n,
		     int left)
{
	VEC sum = VEC_SPLAT(0.0f);
	for (int i = 0; i < n; i++)
		if (p[i] != 0.0f)
			sum = VEC_FMA(VEC_SPLAT(p[i]), load(v + i * step, left, 0.0f), sum);
	return sum;
}

KERNEL void WORK_GROUP(ITEMS, 1) attention_rows(GLOBAL uchar *o_base, ulong o_at,
	GLOBAL uchar *lse_base, ulong lse_at, GLOBAL uchar *q_base, ulong q_at,
	GLOBAL uchar *k_base, ulong k_at, GLOBAL uchar *v_base, ulong v_at,
	GLOBAL uchar *mask_base, ulong mask_at, GLOBAL uchar *key_base, ulong key_at,
	GLOBAL uchar *step_base, ulong step_at, GLOBAL uchar *seen_base, ulong seen_at,
	GLOBAL uchar *part_base, ulong part_at, struct attention_args a)
{
	LOCAL float q[HEAD], p[PART + VEC_WIDTH], tree[ITEMS];
	int item = LOCAL_ID(0);
	long part = (long)GROUP_ID(0) % a.parts, row = (long)GROUP_ID(0) / a.parts;
	long t = row % a.T, h = row / a.T % a.H, b = row / a.T / a.H, kv = h / (a.H / a.G);
	long seen = seen_of(seen_base, seen_at, &a, b), j = part * PART;
	long sees = min_of(limit_of(&a, seen, t) - j, PART);
	int n = sees < 0 ? 0 : (int)sees;

	stage(q, head_at(q_base, q_at, &a.q, b, t, h), 0, 1, 1, a.D, a.scale, item);
	SYNC();
	dot_keys(q, head_at(k_base, k_at, &a.k, b, j, kv), a.k.t, n, a.D, p, item);
	SYNC();
	float largest = -INFINITY, sum = 0.0f;
	GLOBAL const beside *mask = (GLOBAL const beside *)(mask_base + mask_at) + b * a.mask_b +
		h * a.mask_h + t * a.mask_t + j * a.mask_s;
	for (int i = item; i < n; i += ITEMS) {
		if (a.masked)
			p[i] = masked_score(p[i], load_beside_one(mask + i * a.mask_s));
		largest = fmax(largest, p[i]);
	}
	largest = group_max(largest, tree, item);
	// all keys hidden: exp(-inf - 0) is 0
	float base = largest == -INFINITY ? 0.0f : largest;
	VEC sums = VEC_SPLAT(0.0f);
	if (item == 0)
		VEC_STORE(VEC_SPLAT(-INFINITY), p + n);
	SYNC();
	for (int i = item * VEC_WIDTH; i < n; i += STEP) {
		VEC x = exp_one(VEC_LOAD(p + i) - VEC_SPLAT(base));
		VEC_STORE(x, p + i);
		sums += x;
	}
	sum = group_sum(VEC_SUM(sums), tree, item);
	if (a.dropout > 0.0f) {
		long key = number_whole(key_base, key_at, a.key);
		long step = number_whole(step_base, step_at, a.step);
		SYNC();
		for (int i = item; i < n; i += ITEMS)
			p[i] *= kept_of(rand_bits(row * a.S + j + i, key, step), a.dropout);
	}
	SYNC();
	GLOBAL stored *o = head_at(o_base, o_at, &a.o, b, t, h);
	GLOBAL float *to = (GLOBAL float *)(part_base + part_at) + (long)GROUP_ID(0) * (2 + a.D);
	GLOBAL const stored *v = head_at(v_base, v_at, &a.v, b, j, kv);
	VEC inverse = VEC_SPLAT(sum == 0.0f ? 0.0f : 1.0f / sum);
	for (int d = item * VEC_WIDTH; d < a.D; d += STEP) {
		VEC x = weighted(p, v + d, a.v.t, n, a.D - d);
		if (a.masked && any_nan(&x, 1)) // a NaN may come from values hidden from the query
			x = weighted_seen(p, v + d, a.v.t, n, a.D - d);
		if (a.parts == 1)
			store(x * inverse, o + d, a.D - d, false);
		else
			store_f32(x, to + 2 + d, a.D - d);
	}
	if (item)
		return;
	if (a.parts == 1) {
		((GLOBAL float *)(lse_base + lse_at))[row] = largest + log(sum); // log 0 is -inf
	} else {
		to[0] = largest;
		to[1] = sum;
	}
}

KERNEL void WORK_GROUP(ITEMS, 1) attention_join(GLOBAL uchar *o_base, ulong o_at,
	GLOBAL uchar *lse_base, ulong lse_at, GLOBAL uchar *part_base, ulong part_at,
	struct attention_args a)
{
	int item = LOCAL_ID(0);
	long row = (long)GROUP_ID(0), size = 2 + a.D;
	long t = row % a.T, h = row / a.T % a.H, b = row / a.T / a.H;
	GLOBAL const float *part = (GLOBAL const float *)(part_base + part_at) +
		row * a.parts * size;
	GLOBAL stored *o = head_at(o_base, o_at, &a.o, b, t, h);
	float largest = -INFINITY, sum = 0.0f;

	for (long i = 0; i < a.parts; i++)
		largest = fmax(largest, part[i * size]);
	float base = largest == -INFINITY ? 0.0f : largest;
	for (long i = 0; i < a.parts; i++)
		sum += part[i * size + 1] * exp(part[i * size] - base);
	for (int d = item * VEC_WIDTH; d < a.D; d += STEP) {
		VEC x = VEC_SPLAT(0.0f);
		for (long i = 0; i < a.parts; i++)
			x += load_f32(part + i * size + 2 + d, a.D - d, 0.0f) *
				VEC_SPLAT(exp(part[i * size] - base));
		store(x * VEC_SPLAT(sum == 0.0f ? 0.0f : 1.0f / sum), o + d, a.D - d, false);
	}
	if (item == 0)
		((GLOBAL float *)(lse_base + lse_at))[row] = largest + log(sum);
}
