// SPDX-License-Identifier: Apache-2.0
// Softmax, log-softmax and their gradients over rows. Reference: kern_softmax.c of the CPU backend.
// y may be x, dx may be y or g. Groups: chunks of `each` rows. HELD: the number of vectors of a row
// that each item holds in registers, which reads a row once; 0: longer rows, and CPUs, read them
// again from the cache.
#include "rows.cl"

#ifndef HELD
#define HELD 0
#endif
#ifndef KEEP // max floats of a row whose exponentials stay in local memory
#define KEEP 4096
#endif
#if ITEMS == 1 // a finished row may wait while the next is computed
#define KEPT (2 * KEEP + VEC_WIDTH)
#else
#define KEPT (KEEP + VEC_WIDTH)
#endif

struct softmax_args {
	struct rows a, b, out; // b: g of the gradient
	long count, each;      // number of rows; rows per chunk
	int cols, logarithm, stream, pad;
};

// y = e * scale
FN void scale_row(GLOBAL stored *y, LOCAL_POINTER const float *e, int n, VEC scale, int item)
{
	for (int i = item * VEC_WIDTH; i < n; i += STEP)
		store(VEC_LOAD(e + i) * scale, y + i, n - i, false);
}

// y = x - largest - log_sum; not their sum, which would lose a small logarithm
FN void shift_row(GLOBAL stored *y, GLOBAL const stored *x, int n, VEC largest, VEC log_sum,
	int item)
{
	for (int i = item * VEC_WIDTH; i < n; i += STEP)
		store(load(x + i, n - i, 0.0f) - largest - log_sum, y + i, n - i, false);
}

// y = exp(x - largest) * scale
FN void exp_row(GLOBAL stored *y, GLOBAL const stored *x, int n, VEC largest, VEC scale, int item)
{
	for (int i = item * VEC_WIDTH; i < n; i += STEP)
		store(exp_one(load(x + i, n - i, 0.0f) - largest) * scale, y + i, n - i, false);
}

FN void softmax_row(GLOBAL const stored *x, GLOBAL const stored *later, GLOBAL stored *y,
		    const struct softmax_args *a, LOCAL_POINTER float *kept,
		    LOCAL_POINTER float *tree, int item)
{
	int n = a->cols;
	bool keep = n <= KEEP;
	float largest = row_max(x, n, tree, item), total;

	// no barriers inside branches: PoCL 3.1 generates crashing code for them
	if (keep && !a->logarithm)
		total = row_exp(x, n, largest, later, kept, true, item);
	else
		total = row_exp(x, n, largest, later, kept, false, item);
	total = group_sum(total, tree, item);
	if (a->logarithm)
		shift_row(y, x, n, VEC_SPLAT(largest), VEC_SPLAT(log(total)), item);
	else if (keep)
		scale_row(y, kept, n, VEC_SPLAT(1.0f / total), item);
	else
		exp_row(y, x, n, VEC_SPLAT(largest), VEC_SPLAT(1.0f / total), item);
}

// With non-temporal stores: a row is written while the exponentials of the next one are computed.
FN void softmax_late(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *x_base, ulong x_at,
	const struct softmax_args *a, bool keep, LOCAL_POINTER float *kept,
	LOCAL_POINTER float *tree, int item)
{
	struct late late;
	int n = a->cols, at = 0;
	bool waits = false;

	for (struct walk w = first_row(a->each); w.row < a->count; w = row_after(w)) {
		GLOBAL const stored *x = row_at(x_base, x_at, &a->a, w.row);
		GLOBAL const stored *later = row_at(x_base, x_at, &a->a, row_later(w, a->count));
		float largest = row_max(x, n, tree, item), total;
		if (waits)
			total = row_exp_late(x, n, largest, later, kept + at, keep, &late, true,
				item);
		else
			total = row_exp_late(x, n, largest, later, kept + at, keep, &late, false,
				item);
		total = group_sum(total, tree, item);
		late.y = row_at(y_base, y_at, &a->out, w.row);
		late.x = x;
		late.kept = kept + at;
		late.a = VEC_SPLAT(1.0f / total);
		late.largest = VEC_SPLAT(largest);
		late.log_sum = VEC_SPLAT(log(total));
		waits = true;
		at = at ? 0 : KEEP;
	}
	for (int i = item * VEC_WIDTH; waits && i < n; i += STEP)
		late_write(&late, keep, i);
}

#if HELD
FN void softmax_held(GLOBAL const stored *x, GLOBAL stored *y, const struct softmax_args *a,
		     LOCAL_POINTER float *tree, int item)
{
	VEC v[HELD], largest = VEC_SPLAT(-INFINITY), sum = VEC_SPLAT(0.0f), scale;
	int n = a->cols, at = item * VEC_WIDTH;

	UNROLL
	for (int h = 0; h < HELD; h++)
		v[h] = at + h * STEP < n ? load(x + at + h * STEP, n - at - h * STEP, -INFINITY) :
					   VEC_SPLAT(-INFINITY);
	UNROLL
	for (int h = 0; h < HELD; h++)
		largest = greater(v[h], largest);
	largest = VEC_SPLAT(group_max(VEC_MAX(largest), tree, item));
	UNROLL
	for (int h = 0; h < HELD; h++) {
		v[h] = v[h] - largest;
		VEC e = exp_one(v[h]);
		sum += e;
		if (!a->logarithm)
			v[h] = e;
	}
	float total = group_sum(VEC_SUM(sum), tree, item);
	scale = VEC_SPLAT(a->logarithm ? log(total) : 1.0f / total);
	UNROLL
	for (int h = 0; h < HELD; h++)
		if (at + h * STEP < n)
			store(a->logarithm ? v[h] - scale : v[h] * scale, y + at + h * STEP,
			      n - at - h * STEP, false);
}
#endif

KERNEL void WORK_GROUP(ITEMS, 1) softmax(GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *x_base, ulong x_at, struct softmax_args a)
{
	LOCAL float tree[ITEMS];
	int item = LOCAL_ID(0);
#if HELD
	for (struct walk w = first_row(a.each); w.row < a.count; w = row_after(w))
		softmax_held(row_at(x_base, x_at, &a.a, w.row), row_at(y_base, y_at, &a.out, w.row),
			     &a, tree, item);
#else
	LOCAL float kept[KEPT];

#if ITEMS == 1 // same as where rows are streamed
	if (a.stream && a.logarithm) {
		softmax_late(y_base, y_at, x_base, x_at, &a, false, kept, tree, item);
		return;
	}
	if (a.stream && a.cols <= KEEP) {
		softmax_late(y_base, y_at, x_base, x_at, &a, true, kept, tree, item);
		return;
	}
#endif
	for (struct walk w = first_row(a.each); w.row < a.count; w = row_after(w))
		softmax_row(row_at(x_base, x_at, &a.a, w.row),
			row_at(x_base, x_at, &a.a, row_later(w, a.count)),
			row_at(y_base, y_at, &a.out, w.row), &a, kept, tree, item);
#endif
}

// A row of softmax's gradient.
struct graded {
	GLOBAL const stored *y, *g;
	GLOBAL stored *dx;
	VEC sum; // sum of g y, in all lanes
};

FN struct graded row_of(GLOBAL uchar *dx_base, ulong dx_at, GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *g_base, ulong g_at, const struct softmax_args *a, long r)
{
	struct graded row;
	row.y = row_at(y_base, y_at, &a->a, r);
	row.g = row_at(g_base, g_at, &a->b, r);
	row.dx = row_at(dx_base, dx_at, &a->out, r);
	row.sum = VEC_SPLAT(0.0f);
	return row;
}

// This item's part of the sum of g y of row `in`, if `reads`; and dx = y (g - sum) of row `out`, if
// `writes`. One loop for both overlaps reading and writing.
FN VEC back_rows(const struct graded *in, const struct graded *out, bool reads, bool writes,
		 bool stream, int n, int item)
{
	VEC sum[2];
	int i = item * VEC_WIDTH, k = 0;

	sum[0] = sum[1] = VEC_SPLAT(0.0f);
	for (; i + STEP + VEC_WIDTH <= n; i += 2 * STEP)
		UNROLL
		for (k = 0; k < 2; k++) {
			int at = i + k * STEP;
			if (reads)
				sum[k] += load(in->g + at, VEC_WIDTH, 0.0f) *
					load(in->y + at, VEC_WIDTH, 0.0f);
			if (writes)
				store(load(out->y + at, VEC_WIDTH, 0.0f) *
					(load(out->g + at, VEC_WIDTH, 0.0f) - out->sum),
					out->dx + at, VEC_WIDTH, stream);
		}
	for (; i < n; i += STEP) {
		if (reads)
			sum[0] += load(in->g + i, n - i, 0.0f) * load(in->y + i, n - i, 0.0f);
		if (writes)
			store(load(out->y + i, n - i, 0.0f) *
				      (load(out->g + i, n - i, 0.0f) - out->sum),
			      out->dx + i, n - i, stream);
	}
	return sum[0] + sum[1];
}

// The same for log-softmax: this item's part of the sum of g, and dx = g - exp(y) sum.
FN VEC back_log_rows(const struct graded *in, const struct graded *out, bool reads, bool writes,
		     bool stream, int n, int item)
{
	VEC sum[4], e[4];
	int i = item * VEC_WIDTH;

	UNROLL
	for (int k = 0; k < 4; k++)
		sum[k] = e[k] = VEC_SPLAT(0.0f);
	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP) {
		UNROLL
		for (int k = 0; k < 4; k++)
			if (writes)
				e[k] = load(out->y + i + k * STEP, VEC_WIDTH, 0.0f);
		UNROLL
		for (int k = 0; k < 4; k++)
			if (reads)
				sum[k] += load(in->g + i + k * STEP, VEC_WIDTH, 0.0f);
		if (writes)
			exp_each(e, 4);
		UNROLL
		for (int k = 0; k < 4; k++)
			if (writes)
				store(load(out->g + i + k * STEP, VEC_WIDTH, 0.0f) -
					      e[k] * out->sum,
				      out->dx + i + k * STEP, VEC_WIDTH, stream);
	}
	for (; i < n; i += STEP) {
		if (reads)
			sum[0] += load(in->g + i, n - i, 0.0f);
		if (writes)
			store(load(out->g + i, n - i, 0.0f) -
				      exp_one(load(out->y + i, n - i, 0.0f)) * out->sum,
			      out->dx + i, n - i, stream);
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

FN VEC back_either(const struct graded *in, const struct graded *out, bool reads, bool writes,
	bool stream, bool logarithm, int n, int item)
{
	return logarithm ? back_log_rows(in, out, reads, writes, stream, n, item) :
		back_rows(in, out, reads, writes, stream, n, item);
}

// Loops over the rows of a group: each is written while the next one is read.
FN void back(GLOBAL uchar *dx_base, ulong dx_at, GLOBAL uchar *y_base, ulong y_at,
	GLOBAL uchar *g_base, ulong g_at, const struct softmax_args *a, bool logarithm,
	LOCAL_POINTER float *tree)
{
	int item = LOCAL_ID(0), n = a->cols;
	struct walk w = first_row(a->each);
	struct graded last = row_of(dx_base, dx_at, y_base, y_at, g_base, g_at, a, w.row),
		      row = last;
	VEC sum = back_either(&row, &row, true, false, false, logarithm, n, item);

	for (w = row_after(w); w.row < a->count; w = row_after(w)) {
		last.sum = VEC_SPLAT(group_sum(VEC_SUM(sum), tree, item));
		row = row_of(dx_base, dx_at, y_base, y_at, g_base, g_at, a, w.row);
		if (a->stream)
			sum = back_either(&row, &last, true, true, true, logarithm, n, item);
		else
			sum = back_either(&row, &last, true, true, false, logarithm, n, item);
		last = row;
	}
	last.sum = VEC_SPLAT(group_sum(VEC_SUM(sum), tree, item));
	if (a->stream)
		back_either(&last, &last, false, true, true, logarithm, n, item);
	else
		back_either(&last, &last, false, true, false, logarithm, n, item);
}

// dx = y (g - sum g y)
KERNEL void WORK_GROUP(ITEMS, 1) softmax_backward(GLOBAL uchar *dx_base, ulong dx_at,
	GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *g_base, ulong g_at,
	struct softmax_args a)
{
	LOCAL float tree[ITEMS];
	back(dx_base, dx_at, y_base, y_at, g_base, g_at, &a, false, tree);
}

// dx = g - exp(y) sum g
KERNEL void WORK_GROUP(ITEMS, 1) log_softmax_backward(GLOBAL uchar *dx_base, ulong dx_at,
	GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *g_base, ulong g_at,
	struct softmax_args a)
{
	LOCAL float tree[ITEMS];
	back(dx_base, dx_at, y_base, y_at, g_base, g_at, &a, true, tree);
}
