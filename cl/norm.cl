// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016), RMS norm (Zhang and Sennrich 2019) and their gradients over rows;
// behind half.cl and rows.cl.  RMS norm is layer norm whose mean is 0.
// Reference: kern_norm.c of the CPU backend.  y may be x, dx may be x or g.
// Groups: each takes `each` rows, one after the other.  dw and db: sums over the rows of a group
// in the workspace, then over the groups in order.
#define HAS_W 1
#define HAS_B 2
#define HAS_MEAN 4
#define HAS_DX 8
#define HAS_DW 16
#define HAS_DB 32

struct norm_args {
	struct rows x, g, out;
	long count, each; // rows, of a group
	long groups;
	int cols, has, stream;
	float eps;
};

// This item's part of sum (x - mean)^power over a row, power 1 or 2.
FN float moment(GLOBAL const stored *x, int n, float mean, int power, int item)
{
	VEC m = VEC_SPLAT(mean), sum[4];
	int i = item * VEC_WIDTH;
	for (int k = 0; k < 4; k++)
		sum[k] = VEC_SPLAT(0.0f);
	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP)
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

FN VEC weight(GLOBAL const stored *w, int i, int left, bool has)
{
	return has ? load(w + i, left, 0.0f) : VEC_SPLAT(1.0f);
}

// y = (x - mean) rstd w + b
KERNEL void WORK_GROUP(ITEMS, 1) norm(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *mean_base, ulong mean_at, GLOBAL uchar *rstd_base, ulong rstd_at,
	GLOBAL uchar *x_base, ulong x_at, GLOBAL uchar *w_base, ulong w_at,
	GLOBAL uchar *b_base, ulong b_at, struct norm_args a)
{
	LOCAL float tree[ITEMS];
	GLOBAL float *mean_out = (GLOBAL float *)(mean_base + mean_at);
	GLOBAL float *rstd_out = (GLOBAL float *)(rstd_base + rstd_at);
	GLOBAL const stored *w = (GLOBAL const stored *)(w_base + w_at);
	GLOBAL const stored *b = (GLOBAL const stored *)(b_base + b_at);
	int item = LOCAL_ID(0), n = a.cols, first = item * VEC_WIDTH;
	bool has_w = a.has & HAS_W, has_b = a.has & HAS_B, stream = a.stream;
	long r = (long)GROUP_ID(0) * a.each, end = r + a.each;

	for (; r < end && r < a.count; r++) {
		GLOBAL const stored *x = row_at(x_base, x_at, &a.x, r);
		GLOBAL stored *y = row_at(y_base, y_at, &a.out, r);
		float mean = 0.0f;
		if (a.has & HAS_MEAN)
			mean = moment(x, n, 0.0f, 1, item) / (float)n;
		mean = group_sum(mean, tree, item); // no barrier depends on a condition
		float square = moment(x, n, mean, 2, item) / (float)n;
		square = group_sum(square, tree, item);
		float rstd = 1.0f / sqrt(square + a.eps);
		VEC m = VEC_SPLAT(mean), s = VEC_SPLAT(rstd);
		for (int i = first; i < n; i += STEP) {
			VEC v = (load(x + i, n - i, 0.0f) - m) * s * weight(w, i, n - i, has_w);
			if (has_b)
				v += load(b + i, n - i, 0.0f);
			store(v, y + i, n - i, stream);
		}
		if (item == 0) {
			if (a.has & HAS_MEAN)
				mean_out[r] = mean;
			rstd_out[r] = rstd;
		}
	}
}

// With h = (x - mean) rstd and u = g w: dx = rstd (u - mean u - h mean(u h)), dw = sum g h,
// db = sum g; RMS norm has no mean u.  partial: [groups][2][cols], dw and db.
KERNEL void WORK_GROUP(ITEMS, 1) norm_back(GLOBAL uchar *dx_base, ulong dx_at,
	GLOBAL uchar *partial_base, ulong partial_at, GLOBAL uchar *x_base, ulong x_at,
	GLOBAL uchar *w_base, ulong w_at, GLOBAL uchar *mean_base, ulong mean_at,
	GLOBAL uchar *rstd_base, ulong rstd_at, GLOBAL uchar *g_base, ulong g_at,
	struct norm_args a)
{
	LOCAL float tree[ITEMS];
	GLOBAL const float *mean_in = (GLOBAL const float *)(mean_base + mean_at);
	GLOBAL const float *rstd_in = (GLOBAL const float *)(rstd_base + rstd_at);
	GLOBAL const stored *w = (GLOBAL const stored *)(w_base + w_at);
	int item = LOCAL_ID(0), n = a.cols, first = item * VEC_WIDTH;
	bool has_w = a.has & HAS_W, has_mean = a.has & HAS_MEAN, stream = a.stream;
	bool sums = a.has & (HAS_DW | HAS_DB), has_dx = a.has & HAS_DX;
	GLOBAL float *dw = (GLOBAL float *)(partial_base + partial_at) +
		(long)GROUP_ID(0) * 2 * n, *db = dw + n;
	long begin = (long)GROUP_ID(0) * a.each, end = begin + a.each;

	for (long r = begin; r < end && r < a.count; r++) {
		GLOBAL const stored *x = row_at(x_base, x_at, &a.x, r);
		GLOBAL const stored *g = row_at(g_base, g_at, &a.g, r);
		VEC m = VEC_SPLAT(has_mean ? mean_in[r] : 0.0f), s = VEC_SPLAT(rstd_in[r]);
		VEC su = VEC_SPLAT(0.0f), suh = VEC_SPLAT(0.0f);
		for (int i = first; i < n; i += STEP) {
			VEC v = load(g + i, n - i, 0.0f); // 0 behind the end, and so are u and g h
			VEC h = (load(x + i, n - i, 0.0f) - m) * s;
			VEC u = v * weight(w, i, n - i, has_w);
			su += u;
			suh += u * h;
			if (!sums)
				continue;
			VEC to_w = v * h, to_b = v;
			if (r > begin) {
				to_w += load_f32(dw + i, n - i, 0.0f);
				to_b += load_f32(db + i, n - i, 0.0f);
			}
			store_f32(to_w, dw + i, n - i);
			store_f32(to_b, db + i, n - i);
		}
		float mu = group_sum(VEC_SUM(su), tree, item) / (float)n;
		VEC mean_u = VEC_SPLAT(has_mean ? mu : 0.0f);
		VEC mean_uh = VEC_SPLAT(group_sum(VEC_SUM(suh), tree, item) / (float)n);
		GLOBAL stored *dx = row_at(dx_base, dx_at, &a.out, r);
		for (int i = has_dx ? first : n; i < n; i += STEP) {
			VEC h = (load(x + i, n - i, 0.0f) - m) * s;
			VEC u = load(g + i, n - i, 0.0f) * weight(w, i, n - i, has_w);
			store(s * (u - mean_u - h * mean_uh), dx + i, n - i, stream);
		}
	}
}

// The groups' sums: each item takes vectors of columns that lie a launch apart.
KERNEL void WORK_GROUP(ITEMS, 1) norm_sums(GLOBAL uchar *dw_base, ulong dw_at,
	GLOBAL uchar *db_base, ulong db_at, GLOBAL uchar *partial_base, ulong partial_at,
	struct norm_args a)
{
	GLOBAL const float *partial = (GLOBAL const float *)(partial_base + partial_at);
	int n = a.cols, i = (int)GLOBAL_ID(0) * VEC_WIDTH;
	VEC dw = VEC_SPLAT(0.0f), db = VEC_SPLAT(0.0f);

	if (i >= n)
		return;
	for (long k = 0; k < a.groups; k++, partial += 2 * n) {
		dw += load_f32(partial + i, n - i, 0.0f);
		db += load_f32(partial + n + i, n - i, 0.0f);
	}
	if (a.has & HAS_DW)
		store(dw, (GLOBAL stored *)(dw_base + dw_at) + i, n - i, false);
	if (a.has & HAS_DB)
		store(db, (GLOBAL stored *)(db_base + db_at) + i, n - i, false);
}
