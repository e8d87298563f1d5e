// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm, and their gradients, over rows; behind half.cl and rows.cl.
// Reference: kern_softmax.c of the CPU backend.  y may be x, dx may be y or g.
// Groups: each takes `each` rows, one after the other.
#ifndef KEEP // floats of a row whose exponentials stay in local memory
#define KEEP 4096
#endif

struct softmax_args {
	struct rows a, b, out; // b: g of the gradient
	long count, each;      // rows, of a group
	int cols, logarithm, stream, pad;
};

FN void softmax_row(GLOBAL const stored *x, GLOBAL stored *y, const struct softmax_args *a,
	LOCAL_POINTER float *kept, LOCAL_POINTER float *tree, int item)
{
	int n = a->cols, first = item * VEC_WIDTH;
	bool keep = n <= KEEP, stream = a->stream;
	float most = row_max(x, n, tree, item);
	VEC m = VEC_SPLAT(most), sum[2] = { VEC_SPLAT(0.0f), VEC_SPLAT(0.0f) };

	if (a->logarithm || !keep)
		for (int i = first, k = 0; i < n; i += STEP, k ^= 1)
			sum[k] += exp(load(x + i, n - i, -INFINITY) - m);
	else
		for (int i = first, k = 0; i < n; i += STEP, k ^= 1) {
			VEC e = exp(load(x + i, n - i, -INFINITY) - m);
			VEC_STORE(e, kept + i);
			sum[k] += e;
		}
	float total = group_sum(VEC_SUM(sum[0] + sum[1]), tree, item);
	if (a->logarithm) {
		// their sum would round away a small logarithm
		VEC shift = VEC_SPLAT(log(total));
		for (int i = first; i < n; i += STEP)
			store(load(x + i, n - i, 0.0f) - m - shift, y + i, n - i, stream);
		return;
	}
	VEC scale = VEC_SPLAT(1.0f / total);
	if (keep)
		for (int i = first; i < n; i += STEP)
			store(VEC_LOAD(kept + i) * scale, y + i, n - i, stream);
	else
		for (int i = first; i < n; i += STEP)
			store(exp(load(x + i, n - i, 0.0f) - m) * scale, y + i, n - i, stream);
}

KERNEL void WORK_GROUP(ITEMS, 1) softmax(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *x_base, ulong x_at, struct softmax_args a)
{
	LOCAL float tree[ITEMS], kept[KEEP + VEC_WIDTH];
	int item = LOCAL_ID(0);
	long r = (long)GROUP_ID(0) * a.each, end = r + a.each;

	for (; r < end && r < a.count; r++)
		softmax_row(row_at(x_base, x_at, &a.a, r), row_at(y_base, y_at, &a.out, r), &a,
			kept, tree, item);
}

// dx = y (g - sum g y), of the logarithm g - exp(y) sum g
KERNEL void WORK_GROUP(ITEMS, 1) softmax_back(GLOBAL uchar *dx_base, ulong dx_at,
	GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *g_base, ulong g_at,
	struct softmax_args a)
{
	LOCAL float tree[ITEMS];
	int item = LOCAL_ID(0), n = a.cols, first = item * VEC_WIDTH;
	bool stream = a.stream;
	long r = (long)GROUP_ID(0) * a.each, end = r + a.each;

	for (; r < end && r < a.count; r++) {
		GLOBAL const stored *y = row_at(y_base, y_at, &a.a, r);
		GLOBAL const stored *g = row_at(g_base, g_at, &a.b, r);
		GLOBAL stored *dx = row_at(dx_base, dx_at, &a.out, r);
		VEC sum[2] = { VEC_SPLAT(0.0f), VEC_SPLAT(0.0f) };
		for (int i = first, k = 0; i < n; i += STEP, k ^= 1) {
			VEC v = load(g + i, n - i, 0.0f);
			sum[k] += a.logarithm ? v : v * load(y + i, n - i, 0.0f);
		}
		VEC s = VEC_SPLAT(group_sum(VEC_SUM(sum[0] + sum[1]), tree, item));
		if (a.logarithm)
			for (int i = first; i < n; i += STEP) {
				VEC e = exp(load(y + i, n - i, 0.0f));
				store(load(g + i, n - i, 0.0f) - e * s, dx + i, n - i, stream);
			}
		else
			for (int i = first; i < n; i += STEP) {
				VEC v = load(y + i, n - i, 0.0f);
				store(v * (load(g + i, n - i, 0.0f) - s), dx + i, n - i, stream);
			}
	}
}
