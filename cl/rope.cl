// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021): x [B,T,H,D], cos and sin [T,D/2] -> y: (x0 cos - x1
// sin, x1 cos + x0 sin), where x0 and x1 are the halves of the last axis; y may be x. Definition:
// src/core/ops/rope.c. Groups: chunks of `each` rows of D elements.
#include "rows.cl"

struct rope_args {
	struct rows x, y, cosine, sine;
	long count, each;      // number of rows; rows per chunk
	long positions, heads; // T, H
	int pairs, pad;        // D / 2
};

// A row of a table with two axes.
FN GLOBAL const beside *table_row(GLOBAL uchar *base, ulong at, const struct rows *r, long i)
{
	return (GLOBAL const beside *)(base + at) + (r->rank ? i * r->strides[0] : 0);
}

KERNEL void WORK_GROUP(ITEMS, 1) rope(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *x_base, ulong x_at, GLOBAL uchar *cos_base, ulong cos_at,
	GLOBAL uchar *sin_base, ulong sin_at, struct rope_args a)
{
	int item = LOCAL_ID(0), n = a.pairs;

	for (struct walk w = first_row(a.each); w.row < a.count; w = row_after(w)) {
		long r = w.row, t = r / a.heads % a.positions;
		GLOBAL const stored *x = row_at(x_base, x_at, &a.x, r);
		GLOBAL const beside *c = table_row(cos_base, cos_at, &a.cosine, t);
		GLOBAL const beside *s = table_row(sin_base, sin_at, &a.sine, t);
		GLOBAL stored *y = row_at(y_base, y_at, &a.y, r);
		for (int i = item * VEC_WIDTH; i < n; i += STEP) {
			VEC x0 = load(x + i, n - i, 0.0f), x1 = load(x + n + i, n - i, 0.0f);
			VEC cv = load_beside(c + i, n - i, 0.0f),
			    sv = load_beside(s + i, n - i, 0.0f);
			store(x0 * cv - x1 * sv, y + i, n - i, false);
			store(x1 * cv + x0 * sv, y + n + i, n - i, false);
		}
	}
}
