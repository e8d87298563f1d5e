// SPDX-License-Identifier: Apache-2.0
// LAYER_NORM, RMS_NORM and their gradients: cl/norm.cl, f32, f16 and bf16; statistics are f32,
// weights f32 or the dtype of the rows.
#include "config.h"

#include "rows.h"

// Number of groups of the gradient: bounds the workspace and the final sums.
#define MAX_CPU_LIKE 64
#define LIMIT 1024

// Max vectors of a row that an item keeps in registers.
#define MAX_KEEP 4

// Must match cl/norm.cl.
enum { SUM_LANES = 8 }; // vectors of columns of a group of norm_sums
enum { HAS_W = 1, HAS_B = 2, HAS_MEAN = 4, HAS_DX = 8, HAS_DW = 16, HAS_DB = 32 };
struct norm_args {
	struct yk_gpu_rows x, g, out;
	int64_t count, each, groups;
	int32_t cols, has, stream;
	float eps;
};

// The operands of all four ops; absent ones are of kind NONE.
struct parts {
	const struct yoke_view *x, *w, *b, *mean, *rstd, *g, *out, *dw, *db;
	bool back;
};

static struct parts parts_of(const struct yoke_op *op)
{
	static const struct yoke_view none = { .kind = YOKE_VIEW_NONE };
	const struct yoke_view *in = op->in, *out = op->out;
	struct parts p = {
		&in[0],
		&in[1],
		&none,
		&none,
		&none,
		&none,
		&out[0],
		&none,
		&none,
		op->code == YOKE_OP_LAYER_NORM_BACKWARD || op->code == YOKE_OP_RMS_NORM_BACKWARD
	};

	switch (op->code) {
	case YOKE_OP_LAYER_NORM:
		p.b = &in[2], p.mean = &out[1], p.rstd = &out[2];
		break;
	case YOKE_OP_RMS_NORM:
		p.rstd = &out[1];
		break;
	case YOKE_OP_LAYER_NORM_BACKWARD:
		p.mean = &in[2], p.rstd = &in[3], p.g = &in[4], p.dw = &out[1], p.db = &out[2];
		break;
	default:
		p.rstd = &in[2], p.g = &in[3], p.dw = &out[1];
	}
	return p;
}

static bool of_columns(const struct yoke_view *v, int dtype) // also true if absent
{
	return !yk_gpu_present(v) || yk_gpu_dense_of(v, dtype);
}

// The dtype of weights and their gradients: as given, otherwise that of x.
static int beside_of(const struct parts *p)
{
	const struct yoke_view *v[] = { p->w, p->b, p->dw, p->db };

	for (int i = 0; i < 4; i++)
		if (yk_gpu_present(v[i]))
			return v[i]->dtype;
	return p->x->dtype;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct parts p = parts_of(op);
	const int t = p.x->dtype, w = beside_of(&p);

	return yk_gpu_is_rows(p.x) && yk_gpu_serves_beside(w, t) && of_columns(p.w, w) &&
	       of_columns(p.b, w) &&
	       of_columns(p.mean, yoke_f32) && yk_gpu_dense_of(p.rstd, yoke_f32) &&
	       (!p.back || (yk_gpu_is_rows(p.g) && p.g->dtype == t)) &&
	       ((p.back && !yk_gpu_present(p.out)) ||
		(yk_gpu_is_rows(p.out) && p.out->dtype == t)) &&
	       of_columns(p.dw, w) && of_columns(p.db, w) &&
	       d->info.max_args >= sizeof(struct norm_args) + 7 * 16;
}

static struct norm_args args_of(const struct yk_gpu_device *d, const struct yoke_op *op,
				const struct parts *p)
{
	struct norm_args a = {
		.x = yk_gpu_rows_of(p->x),
		.count = yk_gpu_count(p->x),
		.cols = (int32_t)yk_gpu_cols(p->x),
		.has = (yk_gpu_present(p->w) ? HAS_W : 0) | (yk_gpu_present(p->b) ? HAS_B : 0) |
		       (yk_gpu_present(p->mean) ? HAS_MEAN : 0) |
		       (yk_gpu_present(p->out) ? HAS_DX : 0) |
		       (yk_gpu_present(p->dw) ? HAS_DW : 0) | (yk_gpu_present(p->db) ? HAS_DB : 0),
		.eps = (float)op->attr[0].f,
	};
	const int64_t max = d->cpu_like ? MAX_CPU_LIKE : LIMIT;

	if (p->back)
		a.g = yk_gpu_rows_of(p->g);
	if (yk_gpu_present(p->out)) {
		a.out = yk_gpu_rows_of(p->out);
		a.stream = yk_gpu_streams(d, op, p->out);
	}
	a.each = yk_gpu_row_each(d, a.count, a.cols);
	a.groups = a.cols ? yk_gpu_ceil_div(a.count, a.each) : 0;
	if (p->back && a.groups > max)
		a.groups = max;
	return a;
}

static int width_of(const struct yk_gpu_device *d, const struct parts *p)
{
	const struct yoke_view *const rows[] = {
		p->x, p->w, p->b, p->g, p->out, p->dw, p->db, NULL
	};

	return yk_gpu_row_width(d, rows, yk_gpu_cols(p->x));
}

static int kernel_of(struct yk_gpu_device *d, const struct parts *p, size_t items,
		     const char *name, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "norm.cl", .name = name };

	const int width = width_of(d, p);
	const int64_t keep = yk_gpu_ceil_div(yk_gpu_cols(p->x), (int64_t)items * width);

	yk_gpu_row_defines(&b, d, items, width, p->x);
	if (!d->cpu_like && keep <= MAX_KEEP)
		yk_gpu_define(&b, "KEEP", keep);
	yk_gpu_beside_define(&b, beside_of(p));
	return yk_gpu_kernel_file(d, &b, to);
}

static int record_forward(struct yk_gpu_record *r, const struct parts *p, const struct norm_args *a)
{
	const size_t items = yk_gpu_row_items(r->device, a->cols);
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, p, items, "norm_rows", &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, p->out);
	yk_gpu_arg_view_or(r, p->mean, p->rstd);
	yk_gpu_arg_view(r, p->rstd);
	yk_gpu_arg_view(r, p->x);
	yk_gpu_arg_view_or(r, p->w, p->x);
	yk_gpu_arg_view_or(r, p->b, p->x);
	yk_gpu_arg_struct(r, a, sizeof *a);
	return yk_gpu_launch_chunks(r, a->groups, items, "norm_rows");
}

static int record_sums(struct yk_gpu_record *r, const struct yoke_op *op, const struct parts *p,
		    const struct norm_args *a)
{
	const size_t items = yk_gpu_row_items(r->device, a->cols);
	const int64_t width = yk_gpu_min((int64_t)items, SUM_LANES) * width_of(r->device, p);
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, p, items, "norm_sums", &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view_or(r, p->dw, p->x);
	yk_gpu_arg_view_or(r, p->db, p->x);
	yk_gpu_arg_view_or(r, &op->workspace, p->x);
	yk_gpu_arg_struct(r, a, sizeof *a);
	return yk_gpu_launch_groups(r, yk_gpu_ceil_div(a->cols, width), items, "norm_sums");
}

static int record_backward(struct yk_gpu_record *r, const struct yoke_op *op, const struct parts *p,
			const struct norm_args *a)
{
	const size_t items = yk_gpu_row_items(r->device, a->cols);
	const bool sums = a->has & (HAS_DW | HAS_DB);
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, p, items, "norm_backward", &kernel);

	if (err)
		return err;
	if (sums)
		yk_gpu_workspace(r, (uint64_t)a->groups * 2 * (uint64_t)a->cols * sizeof(float));
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view_or(r, p->out, p->x);
	yk_gpu_arg_view_or(r, &op->workspace, p->x);
	yk_gpu_arg_view(r, p->x);
	yk_gpu_arg_view_or(r, p->w, p->x);
	yk_gpu_arg_view_or(r, p->mean, p->rstd);
	yk_gpu_arg_view(r, p->rstd);
	yk_gpu_arg_view(r, p->g);
	yk_gpu_arg_struct(r, a, sizeof *a);
	err = yk_gpu_launch_groups(r, a->groups, items, "norm_backward");
	return err || !sums ? err : record_sums(r, op, p, a);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct parts p = parts_of(op);
	const struct norm_args a = args_of(r->device, op, &p);

	(void)impl;
	return p.back ? record_backward(r, op, &p, &a) : record_forward(r, &p, &a);
}

static const char *const names[] = { "rows" };
YK_GPU_OP(norm, LAYER_NORM, LAYER_NORM_BACKWARD, RMS_NORM,
	  RMS_NORM_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
