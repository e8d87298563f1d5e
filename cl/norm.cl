// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016), RMS norm (Zhang and Sennrich 2019) and their gradients over rows.
// RMS norm is layer norm with mean 0. Reference: kern_norm.c of the CPU backend. y may be x, dx may
// be x or g. Groups: chunks of `each` rows. dw and db are summed over the rows of a group in the
// workspace, then over the groups in order; the number of groups depends only on shapes.
#include "rows.cl"

#define HAS_W 1
#define HAS_B 2
#define HAS_MEAN 4
#define HAS_DX 8
#define HAS_DW 16
#define HAS_DB 32

// KEEP > 0: a row has at most KEEP vectors for each item, all of them whole, which stay in
// registers between the passes over the row, as do the sums of dw and db. Otherwise each pass loads
// the row, and the sums are in the workspace.
#ifndef KEEP
#define KEEP 0
#endif
#define KEPT (KEEP ? KEEP : 1)

// Unaligned rows need more address registers, so fewer groups fit.
#if VEC_WIDTH == 1
#define NORM_GROUP WORK_GROUP_REGISTERS(ITEMS, 1)
#else
#define NORM_GROUP WORK_GROUP(ITEMS, 1)
#endif

struct norm_args {
	struct rows x, g, out;
	long count, each; // number of rows; rows per chunk
	long groups;
	int cols, has, stream;
	float eps;
};

// This item's part of sum (x - mean)^power over a row, power 1 or 2.
FN float moment(GLOBAL const stored *x, int n, float mean, int power, int item)
{
	VEC m = VEC_SPLAT(mean), sum[4];
	int i = item * VEC_WIDTH;
	UNROLL
	for (int k = 0; k < 4; k++)
		sum[k] = VEC_SPLAT(0.0f);
	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP)
		UNROLL
		for (int k = 0; k < 4; k++) {
			VEC d = load(x + i + k * STEP, VEC_WIDTH, 0.0f) - m;
			sum[k] += power == 1 ? d : d * d;
		}
	for (; i < n; i += STEP) {
		VEC d = load(x + i, n - i, mean) - m;
		sum[0] += power == 1 ? d : d * d;
	}
	return VEC_SUM((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

FN VEC weight(GLOBAL const beside *w, int i, int left, bool has)
{
	return has ? load_beside(w + i, left, 0.0f) : VEC_SPLAT(1.0f);
}

// The position of vector k of those that this item keeps.
FN int kept_at(int k, int item)
{
	return item * VEC_WIDTH + k * STEP;
}

// This item's part of sum (x - mean)^power over a row that is kept in registers.
FN float kept_moment(const VEC *kept, int n, float mean, int power, int item)
{
	VEC m = VEC_SPLAT(mean), sum = VEC_SPLAT(0.0f);
	UNROLL
	for (int k = 0; k < KEEP; k++) {
		VEC d = kept[k] - m;
		if (kept_at(k, item) < n)
			sum += power == 1 ? d : d * d;
	}
	return VEC_SUM(sum);
}

// y = (x - mean) rstd w + b at i; `left` elements exist
FN void norm_at(GLOBAL stored *y, VEC x, GLOBAL const beside *w, GLOBAL const beside *b, int has,
		VEC mean, VEC rstd, int i, int left, bool stream)
{
	VEC v = (x - mean) * rstd * weight(w, i, left, has & HAS_W);
	if (has & HAS_B)
		v += load_beside(b + i, left, 0.0f);
	store(v, y + i, left, stream);
}

FN void norm_row(GLOBAL stored *y, GLOBAL const stored *x, GLOBAL const beside *w,
	GLOBAL const beside *b, GLOBAL const stored *later, int has, float mean, float rstd, int n,
	bool stream, int item)
{
	VEC m = VEC_SPLAT(mean), s = VEC_SPLAT(rstd);
	int i = item * VEC_WIDTH;

	for (; i + VEC_WIDTH <= n; i += STEP) {
		FETCH(later + i);
		norm_at(y, load(x + i, VEC_WIDTH, 0.0f), w, b, has, m, s, i, VEC_WIDTH, stream);
	}
	if (i < n)
		norm_at(y, load(x + i, n - i, 0.0f), w, b, has, m, s, i, n - i, false);
}

KERNEL void NORM_GROUP norm_rows(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *mean_base, ulong mean_at, GLOBAL uchar *rstd_base, ulong rstd_at,
	GLOBAL uchar *x_base, ulong x_at, GLOBAL uchar *w_base, ulong w_at,
	GLOBAL uchar *b_base, ulong b_at, struct norm_args a)
{
	LOCAL float tree[ITEMS];
	GLOBAL float *mean_out = (GLOBAL float *)(mean_base + mean_at);
	GLOBAL float *rstd_out = (GLOBAL float *)(rstd_base + rstd_at);
	GLOBAL const beside *w = (GLOBAL const beside *)(w_base + w_at);
	GLOBAL const beside *b = (GLOBAL const beside *)(b_base + b_at);
	int item = LOCAL_ID(0), n = a.cols;

	for (struct walk at = first_row(a.each); at.row < a.count; at = row_after(at)) {
		GLOBAL const stored *x = row_at(x_base, x_at, &a.x, at.row);
		GLOBAL const stored *later = row_at(x_base, x_at, &a.x, row_later(at, a.count));
		GLOBAL stored *y = row_at(y_base, y_at, &a.out, at.row);
		float mean = 0.0f;
		VEC kept[KEPT];
		UNROLL
		for (int k = 0; k < KEEP; k++)
			kept[k] = kept_at(k, item) < n ?
					  load(x + kept_at(k, item), VEC_WIDTH, 0.0f) :
					  VEC_SPLAT(0.0f);
		if (a.has & HAS_MEAN)
			mean = (KEEP ? kept_moment(kept, n, 0.0f, 1, item) :
				       moment(x, n, 0.0f, 1, item)) /
			       (float)n;
		mean = group_sum(mean, tree, item); // barriers must not depend on a condition
		float square =
			(KEEP ? kept_moment(kept, n, mean, 2, item) : moment(x, n, mean, 2, item)) /
			(float)n;
		square = group_sum(square, tree, item);
		float rstd = 1.0f / sqrt(square + a.eps);
		UNROLL
		for (int k = 0; k < KEEP; k++)
			if (kept_at(k, item) < n)
				norm_at(y, kept[k], w, b, a.has, VEC_SPLAT(mean), VEC_SPLAT(rstd),
					kept_at(k, item), VEC_WIDTH, false);
		if (!KEEP && a.stream)
			norm_row(y, x, w, b, later, a.has, mean, rstd, n, true, item);
		else if (!KEEP)
			norm_row(y, x, w, b, later, a.has, mean, rstd, n, false, item);
		if (item == 0) {
			if (a.has & HAS_MEAN)
				mean_out[at.row] = mean;
			rstd_out[at.row] = rstd;
		}
	}
}

// A row of the gradient; h = (x - mean) rstd, u = g w.
struct graded {
	GLOBAL const stored *x, *g;
	GLOBAL stored *dx;
	VEC mean, rstd, mean_u, mean_uh;
};

// this item's parts of the sums of u and of u h
struct row_sums {
	VEC u, uh;
};

FN void sums_at(const struct graded *row, const struct graded *later, GLOBAL const beside *w,
	GLOBAL float *dw, GLOBAL float *db, int has, struct row_sums *sum, int i, int left)
{
	FETCH(later->x + i);
	VEC g = load(row->g + i, left, 0.0f); // 0 beyond the end, and so are u and g h
	VEC h = (load(row->x + i, left, 0.0f) - row->mean) * row->rstd;
	VEC u = g * weight(w, i, left, has & HAS_W);

	sum->u += u;
	sum->uh += u * h;
	if (!(has & (HAS_DW | HAS_DB)))
		return;
	// read both before either is written: they may be a multiple of a page apart, which the
	// processor mistakes for a store-to-load dependency
	VEC to_w = load_f32(dw + i, left, 0.0f), to_b = load_f32(db + i, left, 0.0f);
	store_f32(to_w + g * h, dw + i, left);
	store_f32(to_b + g, db + i, left);
}

// dx = rstd (u - mean u - h mean(u h))
FN void back_at(const struct graded *row, const struct graded *later, GLOBAL const beside *w,
		int has, bool stream, int i, int left)
{
	FETCH(later->g + i);
	VEC h = (load(row->x + i, left, 0.0f) - row->mean) * row->rstd;
	VEC u = load(row->g + i, left, 0.0f) * weight(w, i, left, has & HAS_W);
	store(row->rstd * (u - row->mean_u - h * row->mean_uh), row->dx + i, left, stream);
}

FN void back_row(const struct graded *row, const struct graded *later, GLOBAL const beside *w,
		 int has, bool stream, int n, int item)
{
	int i = item * VEC_WIDTH;

	for (; i + VEC_WIDTH <= n; i += STEP)
		back_at(row, later, w, has, stream, i, VEC_WIDTH);
	if (i < n)
		back_at(row, later, w, has, false, i, n - i);
}

// The gradient of a row whose h and u stay in registers; adds this item's columns to dw and db.
FN void back_kept(const struct graded *row, GLOBAL const beside *w, int has, VEC *dw, VEC *db,
		  int n, LOCAL_POINTER float *tree, int item)
{
	VEC h[KEPT], u[KEPT];
	struct row_sums sum;

	sum.u = sum.uh = VEC_SPLAT(0.0f);
	UNROLL
	for (int k = 0; k < KEEP; k++) {
		int i = kept_at(k, item);
		if (i >= n)
			continue;
		VEC g = load(row->g + i, VEC_WIDTH, 0.0f);
		h[k] = (load(row->x + i, VEC_WIDTH, 0.0f) - row->mean) * row->rstd;
		u[k] = g * weight(w, i, VEC_WIDTH, has & HAS_W);
		sum.u += u[k];
		sum.uh += u[k] * h[k];
		dw[k] += g * h[k];
		db[k] += g;
	}
	float mean_u = group_sum(VEC_SUM(sum.u), tree, item) / (float)n;
	VEC u_mean = VEC_SPLAT(has & HAS_MEAN ? mean_u : 0.0f);
	VEC uh_mean = VEC_SPLAT(group_sum(VEC_SUM(sum.uh), tree, item) / (float)n);
	UNROLL
	for (int k = 0; k < KEEP; k++)
		if (has & HAS_DX && kept_at(k, item) < n)
			store(row->rstd * (u[k] - u_mean - h[k] * uh_mean),
			      row->dx + kept_at(k, item), VEC_WIDTH, false);
}

// dx, dw = sum g h, db = sum g; for RMS norm mean u is 0. partial: [groups][2][cols], dw and db.
KERNEL void NORM_GROUP norm_backward(GLOBAL uchar *dx_base, ulong dx_at,
	GLOBAL uchar *partial_base, ulong partial_at, GLOBAL uchar *x_base, ulong x_at,
	GLOBAL uchar *w_base, ulong w_at, GLOBAL uchar *mean_base, ulong mean_at,
	GLOBAL uchar *rstd_base, ulong rstd_at, GLOBAL uchar *g_base, ulong g_at,
	struct norm_args a)
{
	LOCAL float tree[ITEMS];
	GLOBAL const float *mean_in = (GLOBAL const float *)(mean_base + mean_at);
	GLOBAL const float *rstd_in = (GLOBAL const float *)(rstd_base + rstd_at);
	GLOBAL const beside *w = (GLOBAL const beside *)(w_base + w_at);
	int item = LOCAL_ID(0), n = a.cols, first = item * VEC_WIDTH;
	bool has_mean = a.has & HAS_MEAN;
	GLOBAL float *dw = (GLOBAL float *)(partial_base + partial_at) +
		(long)GROUP_ID(0) * 2 * n, *db = dw + n;

	VEC kept_dw[KEPT], kept_db[KEPT];
	UNROLL
	for (int k = 0; k < KEPT; k++)
		kept_dw[k] = kept_db[k] = VEC_SPLAT(0.0f);
	for (int i = !KEEP && a.has & (HAS_DW | HAS_DB) ? first : n; i < n; i += STEP) {
		store_f32(VEC_SPLAT(0.0f), dw + i, n - i);
		store_f32(VEC_SPLAT(0.0f), db + i, n - i);
	}
	for (struct walk at = first_row(a.each); at.row < a.count; at = row_after(at)) {
		// its x is prefetched in the first pass, g in the second
		long r = row_later(at, a.count);
		struct graded row, later;
		struct row_sums sum;
		int i = first;
		row.x = row_at(x_base, x_at, &a.x, at.row);
		row.g = row_at(g_base, g_at, &a.g, at.row);
		later.x = row_at(x_base, x_at, &a.x, r);
		later.g = row_at(g_base, g_at, &a.g, r);
		row.mean = VEC_SPLAT(has_mean ? mean_in[at.row] : 0.0f);
		row.rstd = VEC_SPLAT(rstd_in[at.row]);
		row.dx = row_at(dx_base, dx_at, &a.out, at.row);
		if (KEEP) {
			back_kept(&row, w, a.has, kept_dw, kept_db, n, tree, item);
			continue;
		}
		sum.u = sum.uh = VEC_SPLAT(0.0f);
		for (; i + VEC_WIDTH <= n; i += STEP)
			sums_at(&row, &later, w, dw, db, a.has, &sum, i, VEC_WIDTH);
		if (i < n)
			sums_at(&row, &later, w, dw, db, a.has, &sum, i, n - i);
		float mean_u = group_sum(VEC_SUM(sum.u), tree, item) / (float)n;
		row.mean_u = VEC_SPLAT(has_mean ? mean_u : 0.0f);
		row.mean_uh = VEC_SPLAT(group_sum(VEC_SUM(sum.uh), tree, item) / (float)n);
		if (!(a.has & HAS_DX))
			continue;
		if (a.stream)
			back_row(&row, &later, w, a.has, true, n, item);
		else
			back_row(&row, &later, w, a.has, false, n, item);
	}
	UNROLL
	for (int k = 0; k < KEEP; k++)
		if (a.has & (HAS_DW | HAS_DB) && kept_at(k, item) < n) {
			store_f32(kept_dw[k], dw + kept_at(k, item), VEC_WIDTH);
			store_f32(kept_db[k], db + kept_at(k, item), VEC_WIDTH);
		}
}

// Adds the groups' sums. A group has LANES vectors of columns; its items divide the partial sums of
// these among PARTS, which are then added in order.
#if ITEMS > 8
#define LANES 8
#else
#define LANES ITEMS
#endif
#define PARTS (ITEMS / LANES)

KERNEL void WORK_GROUP(ITEMS, 1) norm_sums(GLOBAL uchar *dw_base, ulong dw_at,
	GLOBAL uchar *db_base, ulong db_at, GLOBAL uchar *partial_base, ulong partial_at,
	struct norm_args a)
{
	LOCAL float sums[2][PARTS][LANES * VEC_WIDTH];
	GLOBAL const float *partial = (GLOBAL const float *)(partial_base + partial_at);
	int lane = LOCAL_ID(0) % LANES, part = LOCAL_ID(0) / LANES, n = a.cols;
	int i = ((int)GROUP_ID(0) * LANES + lane) * VEC_WIDTH;
	VEC dw = VEC_SPLAT(0.0f), db = VEC_SPLAT(0.0f);

	for (long k = part; i < n && k < a.groups; k += PARTS) {
		dw += load_f32(partial + k * 2 * n + i, n - i, 0.0f);
		db += load_f32(partial + (k * 2 + 1) * n + i, n - i, 0.0f);
	}
	float one[VEC_WIDTH], two[VEC_WIDTH];
	VEC_TO(dw, one);
	VEC_TO(db, two);
	EACH_LANE
	for (int l = 0; l < VEC_WIDTH; l++) {
		sums[0][part][lane * VEC_WIDTH + l] = one[l];
		sums[1][part][lane * VEC_WIDTH + l] = two[l];
	}
	BARRIER();
	if (part || i >= n)
		return;
	for (int k = 1; k < PARTS; k++)
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++) {
			one[l] += sums[0][k][lane * VEC_WIDTH + l];
			two[l] += sums[1][k][lane * VEC_WIDTH + l];
		}
	dw = VEC_OF(one);
	db = VEC_OF(two);
	if (a.has & HAS_DW)
		store_beside(dw, (GLOBAL beside *)(dw_base + dw_at) + i, n - i);
	if (a.has & HAS_DB)
		store_beside(db, (GLOBAL beside *)(db_base + db_at) + i, n - i);
}
