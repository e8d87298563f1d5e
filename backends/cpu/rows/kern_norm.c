// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and RMS norm (Zhang and Sennrich 2019) over the last axis, and their
// gradients, in f32. RMS norm is layer norm with mean 0. dw and db are summed in two steps: over
// the rows of a work item, then over the items in order.
#include "config.h"

#include <math.h>
#include <stdatomic.h>

#include "operand.h"
#include "../vector/vec.h"

enum {
	MAX_ITEMS = 64, // max work items of the gradient: bounds the workspace
	COLUMNS = 512,    // columns per work item of the second step
	LINE = 16,        // floats per cache line
	LINES = 2         // lines of scratch, for x and g
};

struct job {
	struct rows x, g, out;
	const float *w, *b; // [C] or NULL
	float *mean, *rstd; // [rows]; mean NULL: RMS norm
	struct rows dw, db; // [C]; base NULL: not requested
	float *partial;     // [items][2][C]: dw, db
	int64_t each;       // rows per work item
	int64_t items;
	double eps;
	bool stream;    // write `out` with non-temporal stores
	bool converted; // some operand is not f32
	atomic_bool no_memory;
};

// The thread's scratch lines. NULL: out of memory, which is recorded.
static float *lines_of(struct job *j, int64_t cols)
{
	float *lines = row_lines(j->converted, LINES, cols);
	if (!lines)
		j->no_memory = true;
	return lines;
}

static int64_t end_of(const struct job *j, int64_t item)
{
	int64_t end = (item + 1) * j->each;
	return end < j->x.count ? end : j->x.count;
}

static vf weight(const float *w, int64_t i, int64_t left)
{
	return w ? vf_get(w + i, left) : vf_splat(1);
}

// sum (x - mean)^power over a row, power 1 or 2; four partial sums hide the latency of additions
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

// y = (x - mean) rstd w + b. Prefetches a later row of x.
static inline void forward_row(const struct job *j, float *y, const float *x,
			       const float *later, float mean, float rstd, bool stream)
{
	const vf mv = vf_splat(mean), rv = vf_splat(rstd);
	const int64_t n = j->x.cols;
	for (int64_t i = 0; i < n; i += VF) {
		if (i % LINE == 0)
			__builtin_prefetch(later + i, 0, 2);
		vf v = (vf_get(x + i, n - i) - mv) * rv * weight(j->w, i, n - i);
		if (j->b)
			v += vf_get(j->b + i, n - i);
		vf_write(y + i, v, n - i, stream);
	}
}

static void forward(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = j->x.cols, end = end_of(j, item);
	float *line = lines_of(j, n);
	for (int64_t r = item * j->each; line && r < end; r++) {
		const float *x = row_get(&j->x, r, line);
		const float *later = row_next(&j->x, r + 2 < end ? r + 2 : r, x);
		float *y = row_to(&j->out, r, line);
		const float mean = j->mean ? row_sum(x, n, 0, 1) / (float)n : 0;
		const float rstd =
			(float)(1 / sqrt(row_sum(x, n, mean, 2) / (double)n + j->eps));
		if (j->stream)
			forward_row(j, y, x, later, mean, rstd, true);
		else
			forward_row(j, y, x, later, mean, rstd, false);
		row_put(&j->out, r, y);
		if (j->mean)
			j->mean[r] = mean;
		j->rstd[r] = rstd;
	}
	vf_fence();
}

// dx = rstd (u - mean u - h mean(u h)). Prefetches a later row of g.
static inline void backward_row(const struct job *j, float *dx, const float *x,
				const float *g, const float *later, const vf c[4], bool stream)
{
	const int64_t n = j->x.cols;
	for (int64_t i = 0; i < n; i += VF) {
		if (i % LINE == 0)
			__builtin_prefetch(later + i, 0, 2);
		vf h = (vf_get(x + i, n - i) - c[0]) * c[1];
		vf u = vf_get(g + i, n - i) * weight(j->w, i, n - i);
		vf_write(dx + i, c[1] * (u - c[2] - h * c[3]), n - i, stream);
	}
}

// With h = (x - mean) rstd and u = g w: dx = rstd (u - mean u - h mean(u h)), dw = sum g h, db =
// sum g; for RMS norm mean u is 0.
static void backward(void *arg, int64_t item)
{
	struct job *j = arg;
	const int64_t n = j->x.cols, end = end_of(j, item);
	float *line = lines_of(j, n);
	if (!line)
		return;
	float *dw = j->partial + item * 2 * n, *db = dw + n;
	memset(dw, 0, (size_t)n * 2 * sizeof *dw);
	for (int64_t r = item * j->each; r < end; r++) {
		// Prefetches the row after the next into L2, x in the first pass and g in the
		// second, so that memory is busy in both; in L1 it would evict this row, dw and db.
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
				       n - i); // 0 beyond the end, and so are u and g h
			vf h = (vf_get(x + i, n - i) - mean) * rstd;
			vf u = gv * weight(j->w, i, n - i);
			su += u;
			suh += u * h;
			// read both before either is written: they may be a multiple of a page
			// apart, which the processor mistakes for a store-to-load dependency
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
			backward_row(j, dx, x, g, later_g, constant, true);
		else
			backward_row(j, dx, x, g, later_g, constant, false);
		row_put(&j->out, r, dx);
	}
	vf_fence();
}

// Where to write sums of columns from `first` on: in place, or in `line`.
static float *columns_to(const struct rows *v, int64_t first, float *line)
{
	return v->base && !v->store ? (float *)v->base + first : line;
}

// Stores the sums in `line` if the output needs conversion.
static void columns_put(const struct rows *v, int64_t first, const float *line, int64_t n)
{
	if (v->store)
		v->store(v->base + first * v->size, line, 1, n);
}

static void sum_columns(void *arg, int64_t item)
{
	const struct job *j = arg;
	const int64_t n = j->x.cols, first = item * COLUMNS,
		      end = first + COLUMNS < n ? first + COLUMNS : n;
	float line[2][COLUMNS], *dws = columns_to(&j->dw, first, line[0]),
				*dbs = columns_to(&j->db, first, line[1]);
	for (int64_t i = first; i < end; i += VF) {
		vf dw = { 0 }, db = { 0 };
		for (int64_t p = 0; p < j->items; p++) {
			const float *from = j->partial + p * 2 * n + i;
			dw += vf_get(from, end - i);
			db += vf_get(from + n, end - i);
		}
		vf_put(dws + i - first, dw, end - i);
		vf_put(dbs + i - first, db, end - i);
	}
	columns_put(&j->dw, first, dws, end - first);
	columns_put(&j->db, first, dbs, end - first);
}

// ---- operands ----

// Operand numbers of the four ops; -1: the op has none.
struct places {
	int w, b, mean, rstd, g;
	int dw, db;
};
static const struct places *places_of(const struct yoke_op *op)
{
	static const struct places layer = {
		.w = 1, .b = 2, .mean = 1, .rstd = 2, .g = -1
	};
	static const struct places rms = {
		.w = 1, .b = -1, .mean = -1, .rstd = 1, .g = -1
	};
	static const struct places layer_backward = { 1, -1, 2, 3, 4, 1, 2 };
	static const struct places rms_backward = { 1, -1, -1, 2, 3, 1, -1 };
	switch (op->code) {
	case YOKE_OP_LAYER_NORM: return &layer;
	case YOKE_OP_RMS_NORM: return &rms;
	case YOKE_OP_LAYER_NORM_BACKWARD: return &layer_backward;
	default: return &rms_backward;
	}
}

static float *at(const struct yoke_view *views, int k)
{
	return k >= 0 ? yk_ptr(&views[k]) : NULL;
}

// Weights [C] as floats: in place, or converted to *space, which is advanced. NULL: absent.
static const float *weights_at(const struct yoke_view *views, int k, float **space)
{
	if (k < 0 || !present(&views[k]))
		return NULL;
	const struct rows v = rows_of(&views[k]);
	const float *w = row_get(&v, 0, *space);
	*space += v.load ? v.cols : 0;
	return w;
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

static bool statistic_at(const struct yoke_view *views, int k) // must be present
{
	return k < 0 || (is_f32(&views[k]) && yk_dense(&views[k]));
}

static uint64_t can_forward(const struct yoke_op *op)
{
	const struct places *p = places_of(op);
	return is_rows(&op->in[0]) && dense_at(op->in, p->w) && dense_at(op->in, p->b) &&
	       is_rows(&op->out[0]) && statistic_at(op->out, p->mean) &&
	       statistic_at(op->out, p->rstd);
}

static uint64_t can_backward(const struct yoke_op *op)
{
	const struct places *p = places_of(op);
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

static float *space_of(const struct yoke_op *op)
{
	return present(&op->workspace) ? yk_ptr(&op->workspace) : NULL;
}

static int run_forward(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct places *p = places_of(op);
	float *space = space_of(op);
	struct job j = {
		.x = rows_of(&op->in[0]),
		.out = rows_of(&op->out[0]),
		.mean = at(op->out, p->mean),
		.rstd = at(op->out, p->rstd),
		.eps = op->attr[0].f,
	};
	(void)impl, (void)prepared;
	j.w = weights_at(op->in, p->w, &space);
	j.b = weights_at(op->in, p->b, &space);
	j.stream = is_streamed(op, &op->out[0]);
	j.converted = j.x.load || j.out.load;
	j.each = rows_per_item(j.x.count, j.x.cols, 0);
	yk_team_run(items_of(j.x.count, j.each), forward, &j);
	return finished(&j);
}

static int run_backward(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct places *p = places_of(op);
	float *space = space_of(op);
	struct job j = {
		.x = rows_of(&op->in[0]),
		.g = rows_of(&op->in[p->g]),
		.mean = at(op->in, p->mean),
		.rstd = at(op->in, p->rstd),
		.dw = columns_at(op->out, p->dw),
		.db = columns_at(op->out, p->db),
	};
	(void)impl, (void)prepared;
	j.w = weights_at(op->in, p->w, &space);
	if (present(&op->out[0])) {
		j.out = rows_of(&op->out[0]);
		j.stream = is_streamed(op, &op->out[0]);
	}
	j.converted = j.x.load || j.g.load || j.out.load;
	j.each = rows_per_item(j.x.count, j.x.cols, MAX_ITEMS);
	j.items = items_of(j.x.count, j.each);
	if (j.items && j.x.cols) {
		j.partial = space;
		yk_team_run(j.items, backward, &j);
	}
	if (j.dw.base || j.db.base)
		yk_team_run(items_of(j.x.cols, COLUMNS), sum_columns, &j);
	return finished(&j);
}

// Bytes for converted weights and the gradient's partial sums.
static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const struct places *p = places_of(op);
	const int64_t cols = op->in[0].dims[op->in[0].rank - 1];
	int64_t rows = 0;
	(void)impl;
	if (present(&op->in[p->w]))
		rows += yk_is_half(op->in[p->w].dtype);
	if (p->b >= 0 && present(&op->in[p->b]))
		rows += yk_is_half(op->in[p->b].dtype);
	if (p->g >= 0) {
		const int64_t count = cols ? yk_elements(&op->in[0]) / cols : 0;
		rows += 2 * items_of(count, rows_per_item(count, cols, MAX_ITEMS));
	}
	return (uint64_t)(rows * cols) * sizeof(float);
}

#define NORM(direction) \
	{ \
		.can = can_##direction, \
		.workspace = workspace, \
		.run = run_##direction, \
		.impl = { "rows" }, \
	}
YK_KERNEL(layer_norm, LAYER_NORM) = NORM(forward);
YK_KERNEL(layer_norm_backward, LAYER_NORM_BACKWARD) = NORM(backward);
YK_KERNEL(rms_norm, RMS_NORM) = NORM(forward);
YK_KERNEL(rms_norm_backward, RMS_NORM_BACKWARD) = NORM(backward);
