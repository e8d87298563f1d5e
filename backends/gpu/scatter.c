// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD and SCATTER_ADD_ALONG: launches the kernels of cl/scatter.cl and cl/scatter_along.cl.
#include "config.h"

#include <string.h>

#include "axes.h"
#include "report.h"

#define LIST "scatter_list.cl"
#define ADD "scatter_add.cl"
#define ALONG "scatter_along.cl"
#define ITEMS 256   // items per group
#define GROUPS_OF_UNIT 8 // groups per unit that process long lists
#define COLUMNS 512 // columns that an item sums at a time on CPU-like devices

// Matches struct scatter of cl/scatter.cl.
struct scatter {
	struct yk_gpu_axes axes;
	int64_t N, R, ys, xs;
	uint64_t has_x;
};

// Matches struct lines of cl/scatter_along.cl.
struct lines {
	struct yk_gpu_axes axes;
	int64_t N, I, step[4];
	uint64_t has_x;
};

static bool is_along(const struct yoke_op *op)
{
	return op->code == YOKE_OP_SCATTER_ADD_ALONG;
}

// ---- supported ops ----

static bool same_dims(const int64_t *a, const int64_t *b, int n)
{
	return !memcmp(a, b, (size_t)n * sizeof *a);
}

static bool fits_rows(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];

	if (y->rank < 1 || v->rank != idx->rank + y->rank - 1 || idx->rank >= YOKE_MAX_RANK ||
	    (yk_gpu_present(x) && !yk_gpu_dense_from(x, 1)) || y->dims[0] > INT32_MAX ||
	    yk_gpu_elements(idx) > INT32_MAX)
		return false;
	return same_dims(v->dims, idx->dims, idx->rank) &&
	       same_dims(v->dims + idx->rank, y->dims + 1, y->rank - 1) &&
	       yk_gpu_dense_from(y, 1) && yk_gpu_dense_from(v, idx->rank);
}

static bool fits_along(const struct yoke_op *op)
{
	const struct yoke_view *idx = &op->in[1], *v = &op->in[2], *y = &op->out[0];
	const int64_t axis = op->nattr < 1 ? -1 : op->attr[0].i;

	if (axis < 0 || axis >= y->rank || idx->rank != y->rank || v->rank != y->rank)
		return false;
	for (int d = 0; d < y->rank; d++)
		if (v->dims[d] != idx->dims[d] || (d != axis && idx->dims[d] != y->dims[d]))
			return false;
	return true;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];

	if (op->nin != 3 || op->nout != 1 || idx->kind != YOKE_VIEW_BUFFER ||
	    (idx->dtype != yoke_i32 && idx->dtype != yoke_i64) || v->kind != YOKE_VIEW_BUFFER ||
	    y->kind != YOKE_VIEW_BUFFER || v->dtype != y->dtype || y->dtype == yoke_bool)
		return 0;
	if (yk_gpu_present(x) &&
	    (x->kind != YOKE_VIEW_BUFFER || x->dtype != y->dtype || x->rank != y->rank ||
	     !same_dims(x->dims, y->dims, y->rank)))
		return 0;
	if ((y->dtype == yoke_f64 && !yk_gpu_f64(d)) ||
	    d->info.max_args < sizeof(struct lines) + 14 * 8 ||
	    !yk_gpu_fits_group(d, ITEMS))
		return 0;
	return is_along(op) ? fits_along(op) : fits_rows(op);
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const char *file,
		     const char *name, struct yk_gpu_entry **to)
{
	const int t = op->out[0].dtype;
	struct yk_gpu_build b = { .file = file, .name = name };

	yk_gpu_define(&b, "ITEMS", d->cpu_like ? 1 : ITEMS);
	yk_gpu_flag(&b, "WIDE_IDS", strcmp(file, ADD) && op->in[1].dtype == yoke_i64);
	yk_gpu_flag(&b, "WIDE_INDEX", yk_gpu_elements(&op->in[1]) > INT32_MAX ||
					     yk_gpu_elements(&op->out[0]) > INT32_MAX);
	if (!strcmp(file, LIST)) // uses positions only, not values
		return yk_gpu_kernel_file(d, &b, to);
	yk_gpu_define(&b, "DTYPE", t);
	yk_gpu_define(&b, "COLUMNS", d->cpu_like ? COLUMNS : 1);
	yk_gpu_flag(&b, "USE_F64", t == yoke_f64);
	yk_gpu_flag(&b, "SUMS", t == yoke_f16 || t == yoke_bf16);
	return yk_gpu_kernel_file(d, &b, to);
}

static void reports(struct yk_gpu_record *r, const struct yoke_op *op, int64_t rows)
{
	yk_gpu_reports(r, YK_GPU_INDEX, is_along(op) ? "scatter_add_along" : "scatter_add",
		       rows - 1);
}

// ---- rows ----

static struct scatter scatter_of(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];
	struct scatter s = { .N = y->dims[0], .R = 1, .ys = y->strides[0] };

	yk_gpu_axes_of(&s.axes, idx->rank, idx->dims, 2,
		       (const int64_t *const[]){ idx->strides, v->strides });
	// treat all axes as rows
	s.axes.rows *= s.axes.cols;
	s.axes.cols = s.axes.dims[s.axes.rank++] = 1;
	for (int d = 1; d < y->rank; d++)
		s.R *= y->dims[d];
	s.has_x = yk_gpu_present(x);
	s.xs = s.has_x ? x->strides[0] : 0;
	return s;
}

// The kernels that build lists of positions per row, in order.
struct step {
	const char *name;
	// launch size: rows of y; positions; one group; a few groups that share the rows
	enum { ROWS, POSITIONS, ONE, DEALT } items;
};
static const struct step by_loop[] = { { "scatter_list", ONE }, { 0 } };
static const struct step by_groups[] = { { "scatter_clear", ROWS }, { "scatter_count", POSITIONS },
					 { "scatter_ends", ONE },   { "scatter_place", POSITIONS },
					 { "scatter_order", ROWS }, { "scatter_long", DEALT },
					 { 0 } };

static const struct step *steps_of(const struct yk_gpu_device *d)
{
	return d->cpu_like ? by_loop : by_groups;
}

static int64_t groups_of(const struct yk_gpu_device *d, const struct step *step,
			 const struct scatter *s, size_t items)
{
	switch (step->items) {
	case ONE: return 1;
	case DEALT: return yk_gpu_min(s->N, (int64_t)d->info.units * GROUPS_OF_UNIT);
	default: return yk_gpu_ceil_div(step->items == ROWS ? s->N : s->axes.rows, (int64_t)items);
	}
}

static int list(struct yk_gpu_record *r, const struct yoke_op *op, const struct scatter *s)
{
	const size_t items = r->device->cpu_like ? 1 : ITEMS;
	int err = 0;

	for (const struct step *step = steps_of(r->device); step->name && !err; step++) {
		struct yk_gpu_entry *kernel;
		if ((err = kernel_of(r->device, op, LIST, step->name, &kernel)))
			break;
		yk_gpu_begin(r, kernel);
		yk_gpu_arg_view(r, &op->workspace);
		yk_gpu_arg_view(r, &op->in[1]);
		yk_gpu_arg_struct(r, s, sizeof *s);
		yk_gpu_arg_slot(r);
		err = yk_gpu_launch_groups(r, groups_of(r->device, step, s, items), items,
					   step->name);
	}
	return err;
}

static int record_rows(struct yk_gpu_record *r, const struct yoke_op *op)
{
	struct scatter s = scatter_of(op);
	struct yk_gpu_entry *kernel;

	if (!s.N && !s.axes.rows)
		return 0;
	reports(r, op, s.N);
	// each below 2^31
	yk_gpu_workspace(r, (uint64_t)(s.N + s.axes.rows) * sizeof(uint32_t));
	int err = list(r, op, &s);
	if (err || !s.N || !s.R)
		return err;
	if ((err = kernel_of(r->device, op, ADD, "scatter_add", &kernel)))
		return err;
	yk_gpu_begin(r, kernel);
	struct yk_gpu_division cut = yk_gpu_division_of(
		r->device, kernel, (uint64_t)s.R, (uint64_t)s.N, 1 + (uint64_t)(s.axes.rows / s.N));
	yk_gpu_arg_view(r, &op->out[0]);
	yk_gpu_arg_view_or(r, &op->in[0], &op->out[0]);
	yk_gpu_arg_view(r, &op->in[2]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, &s, sizeof s);
	yk_gpu_arg_division(r, &cut);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch(r, 2, cut.items, cut.group, "scatter_add");
}

// ---- along an axis ----

// Copies dims or strides without axis `axis`.
static void leave_out(int64_t *to, const int64_t *from, int rank, int axis)
{
	for (int i = 0, n = 0; i < rank; i++)
		if (i != axis)
			to[n++] = from[i];
}

static struct lines lines_of(const struct yoke_op *op)
{
	const struct yoke_view *y = &op->out[0], *idx = &op->in[1];
	const struct yoke_view *all[4] = { y, &op->in[0], idx, &op->in[2] };
	const int axis = (int)op->attr[0].i;
	struct lines l = { .N = y->dims[axis], .I = idx->dims[axis] };
	int64_t dims[YOKE_MAX_RANK], strides[4][YOKE_MAX_RANK];

	l.has_x = yk_gpu_present(all[1]);
	if (!l.has_x)
		all[1] = y; // not read
	leave_out(dims, y->dims, y->rank, axis);
	for (int k = 0; k < 4; k++) {
		leave_out(strides[k], all[k]->strides, y->rank, axis);
		l.step[k] = all[k]->strides[axis];
	}
	yk_gpu_axes_of(&l.axes, y->rank - 1, dims, 4,
		       (const int64_t *const[]){ strides[0], strides[1], strides[2], strides[3] });
	return l;
}

static int check(struct yk_gpu_record *r, const struct yoke_op *op, int64_t N)
{
	const struct yoke_view *idx = &op->in[1];
	struct yk_gpu_entry *kernel;
	struct yk_gpu_axes a;
	int64_t at[YOKE_MAX_RANK];

	if (!yk_gpu_elements(idx))
		return 0;
	yk_gpu_positions(at, idx->rank, idx->dims);
	yk_gpu_axes_of(&a, idx->rank, idx->dims, 2, (const int64_t *const[]){ idx->strides, at });
	int err = kernel_of(r->device, op, ALONG, "scatter_check", &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	struct yk_gpu_division cut =
		yk_gpu_division_of(r->device, kernel, (uint64_t)a.cols, (uint64_t)a.rows, 1);
	yk_gpu_arg_view(r, idx);
	yk_gpu_arg_struct(r, &a, sizeof a);
	yk_gpu_arg_word(r, (uint64_t)N);
	yk_gpu_arg_division(r, &cut);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch(r, 2, cut.items, cut.group, "scatter_check");
}

static int record_along(struct yk_gpu_record *r, const struct yoke_op *op)
{
	const struct yoke_view *y = &op->out[0];
	struct lines l = lines_of(op);
	struct yk_gpu_entry *kernel;

	reports(r, op, l.N);
	if (y->dtype == yoke_f16 || y->dtype == yoke_bf16)
		yk_gpu_workspace(r, (uint64_t)yk_gpu_elements(y) * sizeof(float));
	int err = check(r, op, l.N);
	if (err || !yk_gpu_elements(y))
		return err;
	if ((err = kernel_of(r->device, op, ALONG, "scatter_along", &kernel)))
		return err;
	yk_gpu_begin(r, kernel);
	struct yk_gpu_division cut = yk_gpu_division_of(r->device, kernel, (uint64_t)l.axes.cols,
					      (uint64_t)l.axes.rows, (uint64_t)(l.N + l.I));
	yk_gpu_arg_view(r, y);
	yk_gpu_arg_view_or(r, &op->in[0], y);
	yk_gpu_arg_view(r, &op->in[1]);
	yk_gpu_arg_view(r, &op->in[2]);
	yk_gpu_arg_view_or(r, &op->workspace, y);
	yk_gpu_arg_struct(r, &l, sizeof l);
	yk_gpu_arg_division(r, &cut);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch(r, 2, cut.items, cut.group, "scatter_add_along");
}

// ---- both ----

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return is_along(op) ? record_along(r, op) : record_rows(r, op);
}

static const char *const names[] = { "lists" };
YK_GPU_OP(scatter, SCATTER_ADD,
	  SCATTER_ADD_ALONG) = { .names = names, .nimpl = 1, .can = can, .record = record };
