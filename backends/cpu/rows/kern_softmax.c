// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over the last axis, and their gradients, in f32. A work item is a range
// of whole rows; y may be x, dx may be y or g.
#include "config.h"

#include <math.h>
#include <stdatomic.h>

#include "operand.h"
#include "softrow.h"

struct job {
	struct rows a, b, out; // b: g of the gradient
	int64_t each;          // rows per work item
	bool logarithm, stream;
	bool converted; // some operand is not f32
	atomic_bool no_memory;
};

enum { LONGEST = 1 << 16 }; // max bytes of a row kept in cache until its non-temporal store

enum { LINES = 4 }; // scratch lines: two rows of y and of g

// The thread's scratch lines. NULL: out of memory, which is recorded.
static float *lines_of(struct job *j)
{
	float *lines = row_lines(j->converted, LINES, j->out.cols);
	if (!lines)
		j->no_memory = true;
	return lines;
}

static int64_t end_of(const struct job *j, int64_t item)
{
	int64_t end = (item + 1) * j->each;
	return end < j->out.count ? end : j->out.count;
}

// y = x * a
static void scale_row(float *y, const float *x, int64_t n, float a)
{
	const vf av = vf_splat(a);
	for (int64_t i = 0; i < n; i += VF)
		vf_put(y + i, vf_get(x + i, n - i) * av, n - i);
}

// y = x - a - b; not x - (a + b), which would lose a small b
static void shift_row(float *y, const float *x, int64_t n, float a, float b)
{
	const vf av = vf_splat(a), bv = vf_splat(b);
	for (int64_t i = 0; i < n; i += VF)
		vf_put(y + i, vf_get(x + i, n - i) - av - bv, n - i);
}

static void forward(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = j->out.cols, end = end_of(j, item);
	float *line = lines_of(j);
	for (int64_t r = item * j->each; line && r < end; r++) {
		const float *x = row_get(&j->a, r, line);
		const float *next = row_next(&j->a, r + 1 < end ? r + 1 : r, x);
		float *y = row_to(&j->out, r, line);
		float m = row_max(x, n);
		if (j->logarithm)
			shift_row(y, x, n, m, logf(row_exp(NULL, x, n, m, next)));
		else
			scale_row(y, y, n, 1 / row_exp(y, x, n, m, next));
		row_put(&j->out, r, y);
	}
}

// The same for f32 with non-temporal stores: a row is written while the exponentials of the next
// one are computed.
static void forward_late(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t n = j->out.cols, end = end_of(j, item);
	float *kept = yk_team_scratch((size_t)n * 2 * sizeof *kept);
	struct late_row late = { .y = NULL };
	if (!kept) {
		forward(arg, item);
		return;
	}
	for (int64_t r = item * j->each; r < end; r++) {
		const float *x = row_get(&j->a, r, NULL);
		const float *next = row_next(&j->a, r + 1 < end ? r + 1 : r, x);
		float *e = j->logarithm ? NULL : kept + (r & 1) * n;
		const float m = row_max(x, n);
		const float sum = late.y ? row_exp_late(e, x, n, m, next, &late) :
					   row_exp(e, x, n, m, next);
		late = (struct late_row){ .y = row_to(&j->out, r, NULL), .x = e ? e : x };
		late.product = !j->logarithm;
		late.a = 1 / sum, late.b = m, late.c = j->logarithm ? logf(sum) : 0;
	}
	for (int64_t i = 0; late.y && i < n; i += VF)
		late_write(&late, i);
	vf_fence();
}

// dx = g - exp(y) s
static inline void back_log_row(float *dx, const float *y, const float *g, int64_t n,
				float s, bool stream)
{
	const vf sv = vf_splat(s);
	for (int64_t i = 0; i < n; i += VF) {
		vf gv = vf_get(g + i, n - i), yv = vf_get(y + i, n - i);
		vf_write(dx + i, gv - vf_exp(yv) * sv, n - i, stream);
	}
}

static void backward_log(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = j->out.cols, end = end_of(j, item);
	float *line = lines_of(j);
	for (int64_t r = item * j->each; line && r < end; r++) {
		const float *y = row_get(&j->a, r, line);
		const float *g = row_get(&j->b, r, line + n);
		float *dx = row_to(&j->out, r, line);
		vf sum[2] = { { 0 }, { 0 } };
		for (int64_t i = 0, k = 0; i < n; i += VF, k ^= 1)
			sum[k] += vf_get(g + i, n - i);
		const float s = vf_sum(sum[0] + sum[1]);
		if (j->stream)
			back_log_row(dx, y, g, n, s, true);
		else
			back_log_row(dx, y, g, n, s, false);
		row_put(&j->out, r, dx);
	}
	vf_fence();
}

// A row of softmax's gradient.
struct row {
	const float *y, *g;
	float *dx;
	vf sum; // sum of g y, in all lanes
};

// For row `in`, unless NULL, computes the sum of g y; for row `out`, unless NULL, dx = y (g - sum).
// One loop for both overlaps reading and writing.
YK_INLINE void back_rows(struct row *in, const struct row *out, int64_t n, bool stream)
{
	vf sum[2] = { { 0 }, { 0 } };
	for (int64_t i = 0, k = 0; i < n; i += VF, k ^= 1) {
		if (in)
			sum[k] += vf_get(in->g + i, n - i) * vf_get(in->y + i, n - i);
		if (out) {
			vf g = vf_get(out->g + i, n - i), y = vf_get(out->y + i, n - i);
			vf_write(out->dx + i, y * (g - out->sum), n - i, stream);
		}
	}
	if (in)
		in->sum = vf_splat(vf_sum(sum[0] + sum[1]));
}

static void backward(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = j->out.cols, end = end_of(j, item);
	float *lines = lines_of(j);
	struct row last = { .dx = NULL };
	for (int64_t r = item * j->each; lines && r < end; r++) {
		float *line = lines + (r & 1) * 2 * n;
		struct row row = { row_get(&j->a, r, line), row_get(&j->b, r, line + n),
				   row_to(&j->out, r, line), { 0 } };
		if (!last.dx)
			back_rows(&row, NULL, n, false);
		else if (j->stream)
			back_rows(&row, &last, n, true);
		else
			back_rows(&row, &last, n, false);
		if (last.dx)
			row_put(&j->out, r - 1, last.dx);
		last = row;
	}
	if (last.dx && j->stream)
		back_rows(NULL, &last, n, true);
	else if (last.dx)
		back_rows(NULL, &last, n, false);
	if (last.dx)
		row_put(&j->out, end - 1, last.dx);
	vf_fence();
}

static uint64_t can(const struct yoke_op *op)
{
	return is_rows(&op->in[0]) && is_rows(&op->out[0]);
}

static uint64_t can_backward(const struct yoke_op *op)
{
	return can(op) && is_rows(&op->in[1]);
}

static int run_rows(const struct yoke_op *op, void (*fn)(void *, int64_t),
		    void (*streaming)(void *, int64_t), const struct yoke_view *b)
{
	struct job j = {
		.a = rows_of(&op->in[0]),
		.b = rows_of(b),
		.out = rows_of(&op->out[0]),
		.logarithm = op->attr[0].i,
	};
	j.converted = j.a.load || j.b.load || j.out.load;
	if (!yk_elements(&op->out[0]))
		return 0;
	j.stream = is_streamed(op, &op->out[0]) && j.out.cols * 4 <= LONGEST;
	j.stream &= !j.converted;
	j.each = rows_per_item(j.out.count, j.out.cols, 0);
	yk_team_run(items_of(j.out.count, j.each), j.stream ? streaming : fn, &j);
	return j.no_memory ? yk_cpu_fail(YOKE_ENOMEM, "softmax: no memory for a row") : 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	return run_rows(op, forward, forward_late, &op->in[0]);
}

static int run_backward(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	void (*fn)(void *, int64_t) = op->attr[0].i ? backward_log : backward;
	return run_rows(op, fn, fn, &op->in[1]);
}

YK_KERNEL(softmax, SOFTMAX) = { .can = can, .run = run, .impl = { "rows" } };
YK_KERNEL(softmax_backward, SOFTMAX_BACKWARD) = {
	.can = can_backward,
	.run = run_backward,
	.impl = { "rows" },
};
