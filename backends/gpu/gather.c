// SPDX-License-Identifier: Apache-2.0
// GATHER, GATHER_ALONG and CHECK: cl/gather.cl, any dtype and layout.
#include "config.h"

#include <string.h>

#include "axes.h"
#include "report.h"


// Matches struct gather of cl/gather.cl.
struct gather {
	struct yk_gpu_axes axes;
	int64_t size, step;
};

enum mode { OF_ROW, OF_ELEMENT, NONE };

static bool is_index(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && (v->dtype == yoke_i32 || v->dtype == yoke_i64);
}

// ---- supported ops ----

static bool fits_gather(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *y = &op->out[0];
	const int64_t axis = op->attr[0].i;

	if (axis < 0 || axis >= x->rank || y->rank != x->rank - 1 + idx->rank)
		return false;
	for (int d = 0; d < y->rank; d++) {
		int64_t want = d < axis		    ? x->dims[d] :
			       d < axis + idx->rank ? idx->dims[d - axis] :
						      x->dims[d - idx->rank + 1];
		if (y->dims[d] != want)
			return false;
	}
	return true;
}

static bool fits_along(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *y = &op->out[0];
	const int64_t axis = op->attr[0].i;

	if (axis < 0 || axis >= x->rank || idx->rank != x->rank || y->rank != x->rank)
		return false;
	for (int d = 0; d < x->rank; d++)
		if (idx->dims[d] != y->dims[d] || (d != axis && x->dims[d] != y->dims[d]))
			return false;
	return true;
}

static bool fits_check(const struct yoke_view *x, const struct yoke_view *y)
{
	if (x->dtype < yoke_f32 || x->dtype > yoke_bf16 || x->rank != y->rank)
		return false;
	return !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const bool check = op->code == YOKE_OP_CHECK;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];

	if (op->nin != (check ? 1 : 2) || op->nout != 1 || op->nattr < !check ||
	    x->kind != YOKE_VIEW_BUFFER || y->kind != YOKE_VIEW_BUFFER || x->dtype != y->dtype ||
	    d->info.max_args < sizeof(struct gather) + 10 * 8)
		return 0;
	if (check)
		return fits_check(x, y);
	return is_index(&op->in[1]) &&
	       (op->code == YOKE_OP_GATHER ? fits_gather(op) : fits_along(op));
}

// ---- iteration space ----

static void walk_gather(const struct yoke_op *op, struct gather *g)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *y = &op->out[0];
	const int axis = (int)op->attr[0].i, after = axis + idx->rank;
	int64_t from[YOKE_MAX_RANK] = { 0 }, ids[YOKE_MAX_RANK] = { 0 };
	int64_t at[YOKE_MAX_RANK] = { 0 };

	for (int d = 0; d < y->rank; d++)
		if (d < axis || d >= after)
			from[d] = x->strides[d < axis ? d : d - idx->rank + 1];
	memcpy(ids + axis, idx->strides, idx->rank * sizeof *ids);
	yk_gpu_positions(at + axis, idx->rank, idx->dims);
	yk_gpu_axes_of(&g->axes, y->rank, y->dims, 4,
		       (const int64_t *const[]){ y->strides, from, ids, at });
}

static void walk_along(const struct yoke_op *op, struct gather *g)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	int64_t from[YOKE_MAX_RANK], at[YOKE_MAX_RANK];

	memcpy(from, x->strides, sizeof from);
	from[op->attr[0].i] = 0;
	yk_gpu_positions(at, y->rank, y->dims);
	yk_gpu_axes_of(&g->axes, y->rank, y->dims, 4,
		       (const int64_t *const[]){ y->strides, from, op->in[1].strides, at });
}

static void walk_check(const struct yoke_op *op, struct gather *g)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	int64_t at[YOKE_MAX_RANK];

	yk_gpu_positions(at, y->rank, y->dims);
	yk_gpu_axes_of(&g->axes, y->rank, y->dims, 4,
		       (const int64_t *const[]){ y->strides, x->strides, NULL, at });
}

static enum mode walk(const struct yoke_op *op, struct gather *g)
{
	g->size = g->step = 0;
	if (op->code == YOKE_OP_CHECK) {
		walk_check(op, g);
		return NONE;
	}
	g->size = op->in[0].dims[op->attr[0].i];
	g->step = op->in[0].strides[op->attr[0].i];
	if (op->code == YOKE_OP_GATHER)
		walk_gather(op, g);
	else
		walk_along(op, g);
	return g->axes.cols > 1 && g->axes.strides[3][g->axes.rank - 1] ? OF_ELEMENT : OF_ROW;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const struct gather *g,
		     enum mode mode, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "gather.cl", .name = "gather" };

	yk_gpu_define(&b, "UNIT", (int64_t)yk_gpu_bytes(op->out[0].dtype));
	yk_gpu_define(&b, "MODE", mode);
	if (mode == NONE)
		yk_gpu_define(&b, "FINITE", yk_gpu_infinity(op->out[0].dtype));
	yk_gpu_flag(&b, "WIDE_IDS", mode != NONE && op->in[1].dtype == yoke_i64);
	yk_gpu_flag(&b, "WIDE_INDEX", g->axes.rows > INT32_MAX);
	return yk_gpu_kernel_file(d, &b, to);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct yk_gpu_entry *kernel;
	struct gather g;
	enum mode mode = walk(op, &g);
	const bool check = op->code == YOKE_OP_CHECK;
	const bool rows = check && op->nattr && op->attr[0].i; // of RESOLVENT
	const char *name = op->code == YOKE_OP_GATHER ? "gather" : "gather_along";

	(void)impl;
	if (check)
		name = rows ? "resolvent" : "check_finite";
	if (!g.axes.rows || !g.axes.cols)
		return 0;
	int err = kernel_of(r->device, op, &g, mode, &kernel);
	if (err)
		return err;
	yk_gpu_reports(r, rows ? YK_GPU_CHAIN : check ? YK_GPU_FINITE : YK_GPU_INDEX, name,
		       check ? g.axes.rows * g.axes.cols : g.size - 1);
	yk_gpu_begin(r, kernel);
	struct yk_gpu_division cut = yk_gpu_division_of(r->device, kernel, (uint64_t)g.axes.cols,
					      (uint64_t)g.axes.rows, 1);
	yk_gpu_arg_view(r, &op->out[0]);
	yk_gpu_arg_view(r, &op->in[0]);
	yk_gpu_arg_view(r, &op->in[mode != NONE]);
	yk_gpu_arg_struct(r, &g, sizeof g);
	yk_gpu_arg_division(r, &cut);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch(r, 2, cut.items, cut.group, name);
}

static const char *const names[] = { "rows" };
YK_GPU_OP(gather, GATHER, CHECK,
	  GATHER_ALONG) = { .names = names, .nimpl = 1, .can = can, .record = record };
