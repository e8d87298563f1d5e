// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and RMS norm (Zhang and Sennrich 2019) over the last axis,
// and their gradients, in f32.  RMS norm is layer norm whose mean is 0.
// dw and db are summed in two steps: over the rows of a piece, then over the pieces in
// order.
#include "config.h"

#include <math.h>
#include <stdatomic.h>

#include "operand.h"
#include "../vector/vec.h"

enum {
	MOST_PIECES = 64, // of the gradient: bounds the workspace
	COLUMNS = 512,    // summed by one piece of the second step
	LINE = 16,        // floats of a cache line
	LINES = 4         // of x, g or y, w and b
};

struct job {
	struct rows x, g, out;
	struct rows w, b;   // [C]; base NULL: none
	float *mean, *rstd; // [rows]; mean NULL: RMS norm
	struct rows dw, db; // [C]; base NULL: none
	float *partial;     // [pieces][2][C]: dw, db
	int64_t each;       // rows in a piece
	int64_t pieces;
	double eps;
	bool stream;    // out
	bool converted; // some of them are not f32
	atomic_bool no_memory;
};

// The thread's lines; NULL: no memory, which is noted.
static float *lines_of(struct job *j, int64_t cols)
{
	float *lines = row_lines(j->converted, LINES, cols);
	if (!lines)
		j->no_memory = true;
	return lines;
}

// [C] as floats, in `line` where it is converted; NULL: none.
static const float *columns(const struct rows *v, float *line)
{
	return v->base ? row_get(v, 0, line) : NULL;
}

static int64_t end_of(const struct job *j, int64_t piece)
{
	int64_t end = (piece + 1) * j->each;
	return end < j->x.count ? end : j->x.count;
}

static vf weight(const float *w, int64_t i, int64_t left)
{
	return w ? vf_get(w + i, left) : vf_splat(1);
}

// sum (x - mean)^power over a row, power 1 or 2; four sums hide the latency of an
// addition
static inline float row_sum(const float *x, int64_t n, float mean, int power)
{
	const vf m = vf_splat(mean);
	vf sum[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
	float tail = 0;
	int64_t i = 0;
	for (; i + 4 * VF <= n; i += 4 * VF)
		for (int k = 0; k < 4; k++) {
			vf d = vf_load(x + i + k * VF) - m;
			sum[k] += power == 1 ? d : d * d;
		}
	for (; i + VF <= n; i += VF) {
		vf d = vf_load(x + i) - m;
		sum[0] += power == 1 ? d : d * d;
	}
	for (; i < n; i++)
		tail += power == 1 ? x[i] - mean : (x[i] - mean) * (x[i] - mean);
	return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + tail;
}

// y = (x - mean) rstd w + b.  Meanwhile a row of x to come is fetched.
static inline void forward_row(int64_t n, float *y, const float *x, const float *w,
			       const float *b, const float *later, float mean, float rstd,
			       bool stream)
{
	const vf mv = vf_splat(mean), rv = vf_splat(rstd);
	for (int64_t i = 0; i < n; i += VF) {
		if (i % LINE == 0)
			__builtin_prefetch(later + i, 0, 2);
		vf v = (vf_get(x + i, n - i) - mv) * rv * weight(w, i, n - i);
		if (b)
			v += vf_get(b + i, n - i);
		vf_write(y + i, v, n - i, stream);
	}
}

static void forward(void *arg, int64_t piece)
{
	struct job *j = arg;
	const int64_t n = j->x.cols, end = end_of(j, piece);
	float *line = lines_of(j, n);
	if (!line)
		return;
	const float *w = columns(&j->w, line + n), *b = columns(&j->b, line + 2 * n);
	for (int64_t r = piece * j->each; r < end; r++) {
		const float *x = row_get(&j->x, r, line);
		const float *later = row_next(&j->x, r + 2 < end ? r + 2 : r, x);
		float *y = row_to(&j->out, r, line);
		const float mean = j->mean ? row_sum(x, n, 0, 1) / (float)n : 0;
		const float rstd =
			(float)(1 / sqrt(row_sum(x, n, mean, 2) / (double)n + j->eps));
		if (j->stream)
			forward_row(n, y, x, w, b, later, mean, rstd, true);
		else
			forward_row(n, y, x, w, b, later, mean, rstd, false);
		row_put(&j->out, r, y);
		if (j->mean)
			j->mean[r] = mean;
		j->rstd[r] = rstd;
	}
	vf_fence();
}

// dx = rstd (u - mean u - h mean(u h)). Meanwhile a row of g to come is fetched.
static inline void backward_row(int64_t n, float *dx, const float *x, const float *g,
				const float *w, const float *later, const vf c[4],
				bool stream)
{
	for (int64_t i = 0; i < n; i += VF) {
		if (i % LINE == 0)
			__builtin_prefetch(later + i, 0, 2);
		vf h = (vf_get(x + i, n - i) - c[0]) * c[1];
		vf u = vf_get(g + i, n - i) * weight(w, i, n - i);
		vf_write(dx + i, c[1] * (u - c[2] - h * c[3]), n - i, stream);
	}
}

// With h = (x - mean) rstd and u = g w:
// dx = rstd (u - mean u - h mean(u h)), dw = sum g h, db = sum g; RMS norm has no mean u.
static void backward(void *arg, int64_t piece)
{
	struct job *j = arg;
	const int64_t n = j->x.cols, end = end_of(j, piece);
	float *line = lines_of(j, n);
	if (!line)
		return;
	const float *w = columns(&j->w, line + 2 * n);
	float *dw = j->partial + piece * 2 * n, *db = dw + n;
	memset(dw, 0, (size_t)n * 2 * sizeof *dw);
	for (int64_t r = piece * j->each; r < end; r++) {
		// The row after the next comes into the second level meanwhile, x in the first
		// pass and g in the second, so that memory has work in both; in the first
		// level it would push out this row, dw and db.
		const int64_t later = r + 2 < end ? r + 2 : r;
		const float *x = row_get(&j->x, r, line), *g = row_get(&j->g, r, line + n);
		const float *later_x = row_next(&j->x, later, x);
		const float *later_g = row_next(&j->g, later, g);
		float *dx = j->out.base ? row_to(&j->out, r, line) : NULL;
		const vf mean = vf_splat(j->mean ? j->mean[r] : 0),
			 rstd = vf_splat(j->rstd[r]);
		vf su = { 0 }, suh = { 0 };
		for (int64_t i = 0; i < n; i += VF) {
			if (i % LINE == 0)
				__builtin_prefetch(later_x + i, 0, 2);
			vf gv = vf_get(g + i,
				       n - i); // 0 behind the end, and so are u and g h
			vf h = (vf_get(x + i, n - i) - mean) * rstd;
			vf u = gv * weight(w, i, n - i);
			su += u;
			suh += u * h;
			// read before either is written: they may be a page apart, which
			// looks like the same place to the processor
			vf sw = vf_get(dw + i, n - i), sb = vf_get(db + i, n - i);
			vf_put(dw + i, sw + gv * h, n - i);
			vf_put(db + i, sb + gv, n - i);
		}
		if (!dx)
			continue;
		const vf constant[4] = { mean, rstd,
					 vf_splat(j->mean ? vf_sum(su) / (float)n : 0),
					 vf_splat(vf_sum(suh) / (float)n) };
		if (j->stream)
			backward_row(n, dx, x, g, w, later_g, constant, true);
		else
			backward_row(n, dx, x, g, w, later_g, constant, false);
		row_put(&j->out, r, dx);
	}
	vf_fence();
}

// Columns from `first` on of [C], unless there is none.
static void put_columns(const struct rows *v, int64_t first, const float *from, int64_t n)
{
	if (v->base && v->store)
		v->store(v->base + first * v->size, from, 1, n);
	else if (v->base)
		memcpy(v->base + first * v->size, from, (size_t)n * sizeof *from);
}

static void sum_columns(void *arg, int64_t piece)
{
	const struct job *j = arg;
	const int64_t n = j->x.cols, first = piece * COLUMNS,
		      end = first + COLUMNS < n ? first + COLUMNS : n;
	float sums[2][COLUMNS];
	for (int64_t i = first; i < end; i += VF) {
		vf dw = { 0 }, db = { 0 };
		for (int64_t p = 0; p < j->pieces; p++) {
			const float *from = j->partial + p * 2 * n + i;
			dw += vf_get(from, end - i);
			db += vf_get(from + n, end - i);
		}
		vf_put(sums[0] + i - first, dw, end - i);
		vf_put(sums[1] + i - first, db, end - i);
	}
	put_columns(&j->dw, first, sums[0], end - first);
	put_columns(&j->db, first, sums[1], end - first);
}

// ---- operands ----

// Where the operands of the four ops stand; -1: the op has none.
struct places {
	int w, b, mean, rstd, g;
	int dw, db;
};
static const struct places layer_forward = {
	.w = 1, .b = 2, .mean = 1, .rstd = 2, .g = -1
};
static const struct places rms_forward = {
	.w = 1, .b = -1, .mean = -1, .rstd = 1, .g = -1
};
static const struct places layer_backward = { 1, -1, 2, 3, 4, 1, 2 };
static const struct places rms_backward = { 1, -1, -1, 2, 3, 1, -1 };

static float *at(const struct yoke_view *views, int k)
{
	return k >= 0 ? yk_ptr(&views[k]) : NULL;
}

static struct rows columns_at(const struct yoke_view *views, int k)
{
	return k >= 0 && present(&views[k]) ? rows_of(&views[k]) :
					      (struct rows){ .base = NULL };
}

static bool dense_at(const struct yoke_view *views, int k)
{
	return k < 0 || is_dense_or_none(&views[k]);
}

static bool statistic_at(const struct yoke_view *views, int k) // never absent
{
	return k < 0 || (is_f32(&views[k]) && yk_dense(&views[k]));
}

static uint64_t can_forward(const struct yoke_op *op, const struct places *p)
{
	return is_rows(&op->in[0]) && dense_at(op->in, p->w) && dense_at(op->in, p->b) &&
	       is_rows(&op->out[0]) && statistic_at(op->out, p->mean) &&
	       statistic_at(op->out, p->rstd);
}

static uint64_t can_backward(const struct yoke_op *op, const struct places *p)
{
	return is_rows(&op->in[0]) && dense_at(op->in, p->w) &&
	       statistic_at(op->in, p->mean) && statistic_at(op->in, p->rstd) &&
	       is_rows(&op->in[p->g]) &&
	       (!present(&op->out[0]) || is_rows(&op->out[0])) &&
	       dense_at(op->out, p->dw) && dense_at(op->out, p->db);
}

static int finished(const struct job *j)
{
	return j->no_memory ? yk_cpu_fail(YOKE_ENOMEM, "norm: no memory for a row") : 0;
}

static int run_forward(const struct yoke_op *op, const struct places *p)
{
	struct job j = {
		.x = rows_of(&op->in[0]),
		.out = rows_of(&op->out[0]),
		.w = columns_at(op->in, p->w),
		.b = columns_at(op->in, p->b),
		.mean = at(op->out, p->mean),
		.rstd = at(op->out, p->rstd),
		.eps = op->attr[0].f,
	};
	j.stream = is_streamed(op, &op->out[0]);
	j.converted = j.x.load || j.w.load || j.b.load || j.out.load;
	j.each = rows_per_piece(j.x.count, j.x.cols, 0);
	yk_team_run(pieces_of(j.x.count, j.each), forward, &j);
	return finished(&j);
}

static int run_backward(const struct yoke_op *op, const struct places *p)
{
	struct job j = {
		.x = rows_of(&op->in[0]),
		.g = rows_of(&op->in[p->g]),
		.w = columns_at(op->in, p->w),
		.mean = at(op->in, p->mean),
		.rstd = at(op->in, p->rstd),
		.dw = columns_at(op->out, p->dw),
		.db = columns_at(op->out, p->db),
	};
	if (present(&op->out[0])) {
		j.out = rows_of(&op->out[0]);
		j.stream = is_streamed(op, &op->out[0]);
	}
	j.converted = j.x.load || j.w.load || j.g.load || j.out.load;
	j.each = rows_per_piece(j.x.count, j.x.cols, MOST_PIECES);
	j.pieces = pieces_of(j.x.count, j.each);
	if (j.pieces && j.x.cols) {
		j.partial = yk_ptr(&op->workspace);
		yk_team_run(j.pieces, backward, &j);
	}
	if (j.dw.base || j.db.base)
		yk_team_run(pieces_of(j.x.cols, COLUMNS), sum_columns, &j);
	return finished(&j);
}

static uint64_t workspace_back(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	int64_t cols = op->in[0].dims[op->in[0].rank - 1];
	int64_t count = cols ? yk_elements(&op->in[0]) / cols : 0;
	int64_t pieces = pieces_of(count, rows_per_piece(count, cols, MOST_PIECES));
	return (uint64_t)(pieces * 2 * cols) * sizeof(float);
}

static uint64_t can_layer(const struct yoke_op *op)
{
	return can_forward(op, &layer_forward);
}

static int run_layer(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	return run_forward(op, &layer_forward);
}

static uint64_t can_layer_back(const struct yoke_op *op)
{
	return can_backward(op, &layer_backward);
}

static int run_layer_back(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	return run_backward(op, &layer_backward);
}

static uint64_t can_rms(const struct yoke_op *op)
{
	return can_forward(op, &rms_forward);
}

static int run_rms(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	return run_forward(op, &rms_forward);
}

static uint64_t can_rms_back(const struct yoke_op *op)
{
	return can_backward(op, &rms_backward);
}

static int run_rms_back(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	return run_backward(op, &rms_backward);
}

const struct yk_kernel ISA(yk_layer_norm) = {
	.can = can_layer,
	.run = run_layer,
	.impl = { "rows" },
};
const struct yk_kernel ISA(yk_layer_norm_back) = {
	.can = can_layer_back,
	.workspace = workspace_back,
	.run = run_layer_back,
	.impl = { "rows" },
};
const struct yk_kernel ISA(yk_rms_norm) = {
	.can = can_rms,
	.run = run_rms,
	.impl = { "rows" },
};
const struct yk_kernel ISA(yk_rms_norm_back) = {
	.can = can_rms_back,
	.workspace = workspace_back,
	.run = run_rms_back,
	.impl = { "rows" },
};
