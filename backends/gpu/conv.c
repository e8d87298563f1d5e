// SPDX-License-Identifier: Apache-2.0
// CONV, CONV_X, CONV_W and WINDOW_ADD: cl/conv.cl and cl/window_add.cl; f32, f64, f16 and bf16, any
// layout. CONV_X takes one launch per remainder of the position modulo the stride, because the
// contributing taps are then evenly spaced.
#include "config.h"

#include <string.h>

#include "axes.h"
#include "tile.h"

enum { AXES = 3, PARTS = 64 }; // the first axes may be missing; max launches of an op

// Match struct places and struct conv_args of cl/conv.cl.
struct places {
	int64_t start, group, row, at[1 + AXES];
};

struct conv_args {
	int64_t rows, columns, depth;
	uint32_t tap[1 + AXES], pos[1 + AXES];
	struct places a, y;
	int64_t b_group, b_image, b_channel, b_axis[AXES];
	int64_t size[AXES], step[AXES], off[AXES], by[AXES];
};

// One spatial axis: see struct line of kern_conv.c.
struct line {
	int64_t taps, tap, tap_step, count, step, off, by, out, out_step;
};

// x, w and y of the op, whichever of them is the result.
struct operands {
	const struct yoke_view *x, *w, *y;
};

static struct operands operands_of(const struct yoke_op *op)
{
	switch (op->code) {
	case YOKE_OP_CONV: return (struct operands){ &op->in[0], &op->in[1], &op->out[0] };
	case YOKE_OP_CONV_X: return (struct operands){ &op->out[0], &op->in[1], &op->in[0] };
	default: return (struct operands){ &op->in[0], &op->out[0], &op->in[1] };
	}
}

// Size of one of the last three axes; the first ones may be missing.
static int64_t dim(const struct yoke_view *v, int axis)
{
	return axis + v->rank - AXES < 2 ? 1 : v->dims[axis + v->rank - AXES];
}

static int64_t stride_of(const struct yoke_view *v, int axis)
{
	return axis + v->rank - AXES < 2 ? 0 : v->strides[axis + v->rank - AXES];
}

struct axis {
	int64_t stride, dilation, lo;
};

static struct axis axis_of(const struct yoke_op *op, int axis)
{
	const int at = axis + op->in[0].rank - 1 - AXES;
	if (at < 1)
		return (struct axis){ 1, 1, 0 };
	const uint64_t p = (uint64_t)op->attr[at].i;
	return (struct axis){ p & 0xffff, p >> 16 & 0xffff, p >> 32 & 0xffff };
}

static int64_t parts_along(const struct yoke_op *op, int axis)
{
	const int64_t stride = axis_of(op, axis).stride, n = dim(operands_of(op).x, axis);
	return op->code != YOKE_OP_CONV_X ? 1 : stride < n ? stride : n;
}

static bool is_real(struct yk_gpu_device *d, int dtype)
{
	return dtype >= yoke_f32 && dtype <= yoke_bf16 && (dtype != yoke_f64 || yk_gpu_f64(d));
}

static uint64_t can_conv(struct yk_gpu_device *d, const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 1 || op->in[0].rank < 3 || op->in[0].rank > 2 + AXES ||
	    op->nattr < op->in[0].rank - 1)
		return 0;
	const struct operands o = operands_of(op);
	const struct yoke_view *all[] = { o.x, o.w, o.y };
	for (int i = 0; i < 3; i++)
		if (all[i]->kind != YOKE_VIEW_BUFFER || all[i]->rank != o.x->rank ||
		    all[i]->dtype != o.x->dtype)
			return 0;
	double taps = (double)o.w->dims[0] * (double)o.w->dims[1];
	double positions[] = { (double)o.x->dims[0], (double)o.y->dims[0] }, parts = 1;
	for (int i = 0; i < AXES; i++) {
		taps *= (double)dim(o.w, i);
		positions[0] *= (double)dim(o.x, i);
		positions[1] *= (double)dim(o.y, i);
		parts *= (double)parts_along(op, i);
	}
	return is_real(d, o.x->dtype) && d->info.max_args >= sizeof(struct conv_args) + 6 * 8 &&
	       taps < INT32_MAX && positions[0] < INT32_MAX && positions[1] < INT32_MAX &&
	       parts <= PARTS && yk_gpu_tiling_of(d, o.x->dtype, 0);
}

// Positions of x with remainder `rest` modulo the stride: the taps that reach them, and their
// positions in y.
static struct line remainder_of(const struct axis *a, int64_t taps, int64_t n, int64_t rest)
{
	struct line l = { .count = rest < n ? (n - 1 - rest) / a->stride + 1 : 0,
			  .step = 1,
			  .out = rest,
			  .out_step = a->stride };
	int64_t gcd = a->stride, other = a->dilation, k = 0;

	while (other) {
		const int64_t t = gcd % other;
		gcd = other;
		other = t;
	}
	l.tap_step = a->stride / gcd;
	while (k < taps && k < l.tap_step && (rest + a->lo - k * a->dilation) % a->stride)
		k++;
	if (k == taps || k == l.tap_step)
		return l;
	l.tap = k;
	l.taps = (taps - 1 - k) / l.tap_step + 1;
	l.off = (rest + a->lo - k * a->dilation) / a->stride;
	l.by = -l.tap_step * a->dilation / a->stride;
	return l;
}

static struct conv_args args_of(const struct yoke_op *op, const struct line *line)
{
	const struct operands o = operands_of(op);
	const bool along = op->code == YOKE_OP_CONV_W, x = op->code == YOKE_OP_CONV_X;
	const int64_t groups = op->attr[0].i, channels = o.w->dims[1],
		      outputs = o.w->dims[0] / groups;
	const struct yoke_view *b = x ? o.y : o.x, *r = &op->out[0], *a = along ? o.y : o.w;
	struct conv_args s = { .rows = x ? channels : outputs,
			       .b_image = b->strides[0],
			       .b_channel = b->strides[1] };

	s.tap[0] = (uint32_t)(x ? outputs : channels);
	s.pos[0] = (uint32_t)o.x->dims[0];
	s.b_group = s.tap[0] * b->strides[1];
	s.y.row = r->strides[along ? 0 : 1];
	s.y.at[0] = r->strides[along ? 1 : 0];
	s.a.row = a->strides[along || x ? 1 : 0];
	s.a.at[0] = a->strides[along || x ? 0 : 1];
	s.a.group = along ? outputs * a->strides[1] : outputs * a->strides[0];
	s.y.group = s.rows * s.y.row;
	for (int i = 0; i < AXES; i++) {
		s.tap[1 + i] = (uint32_t)line[i].taps;
		s.pos[1 + i] = (uint32_t)line[i].count;
		s.b_axis[i] = stride_of(b, i);
		s.size[i] = dim(b, i);
		s.step[i] = line[i].step;
		s.off[i] = line[i].off;
		s.by[i] = line[i].by;
		s.a.at[1 + i] = stride_of(a, i) * (along ? 1 : line[i].tap_step);
		s.a.start += along ? 0 : stride_of(a, i) * line[i].tap;
		s.y.at[1 + i] = stride_of(r, i) * (along ? 1 : line[i].out_step);
		s.y.start += along ? 0 : stride_of(r, i) * line[i].out;
	}
	int64_t taps = 1, positions = 1;
	for (int i = 0; i <= AXES; i++) {
		taps *= s.tap[i];
		positions *= s.pos[i];
	}
	s.columns = along ? taps : positions;
	s.depth = along ? positions : taps;
	return s;
}

static int record_conv(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct operands o = operands_of(op);
	const struct yk_gpu_tiling *t = yk_gpu_tiling_of(r->device, o.x->dtype, 0);
	const int64_t groups = op->attr[0].i;
	struct axis axis[AXES];
	int64_t along[AXES], parts = 1;
	for (int i = 0; i < AXES; i++) {
		axis[i] = axis_of(op, i);
		parts *= along[i] = parts_along(op, i);
	}
	struct yk_gpu_build b = { .file = "conv.cl", .name = "conv" };
	struct yk_gpu_entry *kernel;

	(void)impl;
	if (!yk_gpu_elements(&op->out[0]))
		return 0;
	yk_gpu_tiling_define(&b, t);
	yk_gpu_define(&b, "DTYPE", o.x->dtype);
	yk_gpu_define(&b, "AXES", o.x->rank == 2 + AXES ? AXES : 2);
	yk_gpu_flag(&b, "ALONG", op->code == YOKE_OP_CONV_W);
	yk_gpu_flag(&b, "USE_F64", o.x->dtype == yoke_f64);
	int err = yk_gpu_kernel_file(r->device, &b, &kernel);
	for (int64_t k = 0; k < parts && !err; k++) {
		struct line line[AXES];
		int64_t rest = k;
		for (int i = AXES - 1; i >= 0; rest /= along[i--])
			line[i] = op->code == YOKE_OP_CONV_X ?
					  remainder_of(&axis[i], dim(o.w, i), dim(o.x, i),
						       rest % along[i]) :
					  (struct line){ dim(o.w, i),
							 0,
							 1,
							 dim(o.y, i),
							 axis[i].stride,
							 -axis[i].lo,
							 axis[i].dilation,
							 0,
							 1 };
		const struct conv_args s = args_of(op, line);
		const size_t group[3] = { (size_t)t->items_n, (size_t)t->items_m, 1 };
		const size_t items[3] = {
			(size_t)yk_gpu_ceil_div(s.columns, t->items_n * t->n) * group[0],
			(size_t)yk_gpu_ceil_div(s.rows, t->items_m * t->m) * group[1],
			(size_t)groups
		};
		if (!items[0] || !items[1])
			continue;
		yk_gpu_begin(r, kernel);
		yk_gpu_arg_view(r, &op->out[0]);
		yk_gpu_arg_view(r, op->code == YOKE_OP_CONV_W ? o.y : o.w);
		yk_gpu_arg_view(r, op->code == YOKE_OP_CONV_X ? o.y : o.x);
		yk_gpu_arg_struct(r, &s, sizeof s);
		err = yk_gpu_launch(r, 3, items, group, "conv");
	}
	return err;
}

// ---- windows ----

struct window_add {
	struct yk_gpu_axes axes;
	int64_t size, stride, dilation, count, step, element;
};

static uint64_t can_window(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];

	if (op->nin != 1 || op->nout != 1 || op->nattr < 5 || x->kind != YOKE_VIEW_BUFFER ||
	    y->kind != YOKE_VIEW_BUFFER || x->dtype != y->dtype || !is_real(d, x->dtype) ||
	    x->rank != y->rank + 1 || op->attr[0].i < 0 || op->attr[0].i >= y->rank ||
	    d->info.max_args < sizeof(struct window_add) + 6 * 8)
		return 0;
	for (int k = 0; k < y->rank; k++)
		if (k != op->attr[0].i && x->dims[k] != y->dims[k])
			return 0;
	return 1;
}

static int record_window(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const int axis = (int)op->attr[0].i;
	struct window_add w = { .size = op->attr[1].i,
				.stride = op->attr[2].i,
				.dilation = op->attr[3].i,
				.count = x->dims[axis],
				.step = x->strides[axis],
				.element = x->strides[y->rank] };
	int64_t from[YOKE_MAX_RANK], at[YOKE_MAX_RANK] = { 0 };
	struct yk_gpu_build b = { .file = "window_add.cl", .name = "window_add" };
	struct yk_gpu_entry *kernel;

	(void)impl;
	memcpy(from, x->strides, sizeof from);
	from[axis] = 0;
	at[axis] = 1;
	yk_gpu_axes_of(&w.axes, y->rank, y->dims, 3,
		       (const int64_t *const[]){ y->strides, from, at });
	if (!w.axes.rows || !w.axes.cols)
		return 0;
	yk_gpu_define(&b, "DTYPE", y->dtype);
	yk_gpu_flag(&b, "USE_F64", y->dtype == yoke_f64);
	yk_gpu_flag(&b, "WIDE_INDEX", w.axes.rows > INT32_MAX);
	int err = yk_gpu_kernel_file(r->device, &b, &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	struct yk_gpu_division cut = yk_gpu_division_of(r->device, kernel, (uint64_t)w.axes.cols,
							(uint64_t)w.axes.rows, 4);
	yk_gpu_arg_view(r, y);
	yk_gpu_arg_view(r, x);
	yk_gpu_arg_struct(r, &w, sizeof w);
	yk_gpu_arg_division(r, &cut);
	return yk_gpu_launch(r, 2, cut.items, cut.group, "window_add");
}

static const char *const names[] = { "tiled" }, *const window_names[] = { "elements" };
YK_GPU_OP(conv, CONV, CONV_X,
	  CONV_W) = { .names = names, .nimpl = 1, .can = can_conv, .record = record_conv };
YK_GPU_OP(window_add, WINDOW_ADD) = { .names = window_names, .nimpl = 1, .can = can_window,
					     .record = record_window };
