// SPDX-License-Identifier: Apache-2.0
// Cross entropy of logits [N,V] with ids [N], averaged over the ids that are not ignored, and its
// gradient. Reference: kern_xent.c of the CPU backend. dlogits may be logits. An id outside 0 ..
// V-1 is reported, and makes its loss, the mean and its gradient NaN; it is never used as an index.
// xent_rows and xent_backward: groups take chunks of `each` rows; xent_mean and xent_scale are one
// group.
#include "rows.cl"
#include "report.cl"

struct xent_args {
	struct rows x, out;
	long count, each, ignore; // number of rows; rows per chunk; the ignored id
	int cols, wide, stream;   // wide: ids are i64
	float smooth;             // target: (1 - smooth) one-hot + smooth / V
	struct number g;
};

FN long id_at(GLOBAL uchar *ids, long r, int wide)
{
	return wide ? ((GLOBAL long *)ids)[r] : ((GLOBAL int *)ids)[r];
}

// lse [N]; the workspace receives the loss of each row, 0 if ignored
KERNEL void WORK_GROUP(ITEMS, 1) xent_rows(GLOBAL uchar *lse_base, ulong lse_at,
	GLOBAL uchar *loss_base, ulong loss_at, GLOBAL uchar *x_base, ulong x_at,
	GLOBAL uchar *ids_base, ulong ids_at, struct xent_args a REPORT_PARAMS)
{
	LOCAL float tree[ITEMS];
	GLOBAL float *lse = (GLOBAL float *)(lse_base + lse_at);
	GLOBAL float *loss = (GLOBAL float *)(loss_base + loss_at);
	int item = LOCAL_ID(0), n = a.cols, first = item * VEC_WIDTH;

	for (struct walk w = first_row(a.each); w.row < a.count; w = row_after(w)) {
		long r = w.row;
		GLOBAL const stored *x = row_at(x_base, x_at, &a.x, r);
		GLOBAL const stored *later = row_at(x_base, x_at, &a.x, row_later(w, a.count));
		float largest = row_max(x, n, tree, item);
		float sum = row_exp(x, n, largest, later, tree, false, item);
		float logsum = log(group_sum(sum, tree, item));
		VEC m = VEC_SPLAT(largest), all = VEC_SPLAT(0.0f);
		for (int i = a.smooth > 0.0f ? first : n; i < n; i += STEP)
			all += load(x + i, n - i, largest) - m;
		float spread = group_sum(VEC_SUM(all), tree, item) / (float)n;
		if (item == 0) {
			long id = id_at(ids_base + ids_at, r, a.wide);
			float l = id == a.ignore ? 0.0f : NAN;
			// relative to the maximum, which may be large
			if (id >= 0 && id < n && id != a.ignore)
				l = logsum - (1.0f - a.smooth) * (load_one(x + id) - largest) -
					(a.smooth > 0.0f ? a.smooth * spread : 0.0f);
			if (id != a.ignore && (id < 0 || id >= n))
				report_bad(REPORT_AT, (ulong)r);
			lse[r] = largest + logsum;
			loss[r] = l;
		}
	}
}

// This item's part of the number of ids that count.
FN float counted(GLOBAL uchar *ids, struct xent_args a, int item)
{
	int count = 0;
	for (long r = item; r < a.count; r += ITEMS)
		count += id_at(ids, r, a.wide) != a.ignore;
	return (float)count;
}

// The mean over no ids is NaN.
KERNEL void WORK_GROUP(ITEMS, 1) xent_mean(GLOBAL uchar *mean_base, ulong mean_at,
	GLOBAL uchar *loss_base, ulong loss_at, GLOBAL uchar *ids_base, ulong ids_at,
	struct xent_args a)
{
	LOCAL float tree[ITEMS];
	GLOBAL const float *loss = (GLOBAL const float *)(loss_base + loss_at);
	int item = LOCAL_ID(0);
	VEC sum = VEC_SPLAT(0.0f), lost = VEC_SPLAT(0.0f); // Kahan 1965

	for (long r = item * VEC_WIDTH; r < a.count; r += STEP) {
		long left = a.count - r;
		VEC y = load_f32(loss + r, left < VEC_WIDTH ? (int)left : VEC_WIDTH, 0.0f) - lost;
		VEC t = sum + y;
		lost = (t - sum) - y;
		sum = t;
	}
	float total = group_sum(VEC_SUM(sum), tree, item);
	float count = group_sum(counted(ids_base + ids_at, a, item), tree, item);
	if (item == 0)
		*(GLOBAL float *)(mean_base + mean_at) = count > 0.0f ? total / count : NAN;
}

// g / count, or 0 if count is 0
KERNEL void WORK_GROUP(ITEMS, 1) xent_scale(GLOBAL uchar *scale_base, ulong scale_at,
	GLOBAL uchar *g_base, ulong g_at, GLOBAL uchar *ids_base, ulong ids_at,
	struct xent_args a)
{
	LOCAL float tree[ITEMS];
	int item = LOCAL_ID(0);
	float count = group_sum(counted(ids_base + ids_at, a, item), tree, item);
	float g = number_real(g_base, g_at, a.g);

	if (item == 0)
		*(GLOBAL float *)(scale_base + scale_at) = count > 0.0f ? g / count : 0.0f;
}

// dx = (exp(x - lse) - rest) scale
FN void xent_back_row(GLOBAL stored *dx, GLOBAL const stored *x, int n, VEC lse, VEC rest,
		      VEC scale, bool stream, int item)
{
	VEC e[4];
	int i = item * VEC_WIDTH;

	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP) {
		UNROLL
		for (int k = 0; k < 4; k++)
			e[k] = load(x + i + k * STEP, VEC_WIDTH, 0.0f) - lse;
		exp_each(e, 4);
		UNROLL
		for (int k = 0; k < 4; k++)
			store((e[k] - rest) * scale, dx + i + k * STEP, VEC_WIDTH, stream);
	}
	for (; i < n; i += STEP)
		store((exp_one(load(x + i, n - i, 0.0f) - lse) - rest) * scale, dx + i, n - i,
		      stream);
}

// dlogits = (exp(x - lse) - target) g / count
KERNEL void WORK_GROUP(ITEMS, 1) xent_backward(GLOBAL uchar *dx_base, ulong dx_at,
	GLOBAL uchar *scale_base, ulong scale_at, GLOBAL uchar *x_base, ulong x_at,
	GLOBAL uchar *ids_base, ulong ids_at, GLOBAL uchar *lse_base, ulong lse_at,
	struct xent_args a REPORT_PARAMS)
{
	GLOBAL const float *lse = (GLOBAL const float *)(lse_base + lse_at);
	int item = LOCAL_ID(0), n = a.cols, first = item * VEC_WIDTH;
	float scale = *(GLOBAL const float *)(scale_base + scale_at);
	float rest = a.smooth / (float)n;

	for (struct walk w = first_row(a.each); w.row < a.count; w = row_after(w)) {
		long r = w.row;
		GLOBAL const stored *x = row_at(x_base, x_at, &a.x, r);
		GLOBAL stored *dx = row_at(dx_base, dx_at, &a.out, r);
		long id = id_at(ids_base + ids_at, r, a.wide);
		bool skip = id == a.ignore, inside = id >= 0 && id < n;
		bool mine = inside && id / VEC_WIDTH % ITEMS == item;
		// the target's own probability, read before dx may overwrite it
		float p = mine ? exp(load_one(x + id) - lse[r]) : 0.0f;
		VEC l = VEC_SPLAT(lse[r]), s = VEC_SPLAT(inside ? scale : NAN);
		if (item == 0 && !inside && !skip)
			report_bad(REPORT_AT, (ulong)r);
		if (skip)
			for (int i = first; i < n; i += STEP)
				store(VEC_SPLAT(0.0f), dx + i, n - i, a.stream);
		else if (a.stream)
			xent_back_row(dx, x, n, l, VEC_SPLAT(rest), s, true, item);
		else
			xent_back_row(dx, x, n, l, VEC_SPLAT(rest), s, false, item);
		if (mine && !skip)
			store_one((p - (1.0f - a.smooth) - rest) * scale, dx + id);
	}
}
