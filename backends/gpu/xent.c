// SPDX-License-Identifier: Apache-2.0
// CROSS_ENTROPY and CROSS_ENTROPY_BACKWARD: cl/xent.cl; logits in f32, f16 or bf16, the rest in
// f32.
#include "config.h"

#include <stddef.h>

#include "report.h"
#include "rows.h"


// Matches struct xent_args of cl/xent.cl.
struct xent_args {
	struct yk_gpu_rows x, out;
	int64_t count, each, ignore;
	int32_t cols, wide, stream;
	float smooth;
	struct yk_gpu_number g;
};

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *ids = &op->in[1], *out = &op->out[0];

	if (!yk_gpu_is_rows(x) || x->rank != 2 || !yk_gpu_dense(ids) ||
	    (ids->dtype != yoke_i32 && ids->dtype != yoke_i64) ||
	    d->info.max_args < sizeof(struct xent_args) + 5 * 16)
		return 0;
	if (op->code == YOKE_OP_CROSS_ENTROPY)
		return yk_gpu_dense_of(out, yoke_f32) && yk_gpu_dense_of(&op->out[1], yoke_f32);
	return yk_gpu_dense_of(&op->in[2], yoke_f32) && yk_gpu_is_value(&op->in[3]) &&
	       yk_gpu_is_rows(out) && out->dtype == x->dtype;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, int64_t cols,
		     const char *name, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "xent.cl", .name = name };

	const struct yoke_view *const rows[] = {
		&op->in[0], op->code == YOKE_OP_CROSS_ENTROPY ? NULL : &op->out[0], NULL
	};

	yk_gpu_row_defines(&b, d, yk_gpu_row_items(d, cols), yk_gpu_row_width(d, rows, cols),
			   &op->in[0]);
	return yk_gpu_kernel_file(d, &b, to);
}

static struct xent_args args_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0];
	struct xent_args a = {
		.x = yk_gpu_rows_of(x),
		.count = yk_gpu_count(x),
		.ignore = op->attr[0].i,
		.cols = (int32_t)yk_gpu_cols(x),
		.wide = op->in[1].dtype == yoke_i64,
		.smooth = (float)op->attr[1].f,
	};

	a.each = yk_gpu_row_each(d, a.count, a.cols);
	if (op->code == YOKE_OP_CROSS_ENTROPY_BACKWARD) {
		a.out = yk_gpu_rows_of(&op->out[0]);
		a.stream = yk_gpu_streams(d, op, &op->out[0]);
		a.g = yk_gpu_number_of(&op->in[3], 1);
	}
	return a;
}

// Launches `chunks` chunks with these views, then the struct, and the report slot if the kernel
// reports.
static int launch(struct yk_gpu_record *r, const struct yoke_op *op, const struct xent_args *a,
		  const char *name, int64_t chunks, const struct yoke_view *const *views,
		  bool reports)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, a->cols, name, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	for (; *views; views++)
		yk_gpu_arg_view(r, *views);
	yk_gpu_arg_struct(r, a, sizeof *a);
	if (op->code == YOKE_OP_CROSS_ENTROPY_BACKWARD)
		yk_gpu_arg_number(r, offsetof(struct xent_args, g), &op->in[3]);
	if (reports)
		yk_gpu_arg_slot(r);
	return yk_gpu_launch_chunks(r, chunks, yk_gpu_row_items(r->device, a->cols), name);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct xent_args a = args_of(r->device, op);
	const struct yoke_view *in = op->in, *out = op->out, *space = &op->workspace;
	const bool back = op->code == YOKE_OP_CROSS_ENTROPY_BACKWARD;
	const int64_t chunks = a.cols ? yk_gpu_ceil_div(a.count, a.each) : 0;
	int err;

	(void)impl;
	if (back && !chunks)
		return 0;
	yk_gpu_workspace(r, sizeof(float) * (back || !a.count ? 1 : (uint64_t)a.count));
	yk_gpu_reports(r, YK_GPU_INDEX, back ? "cross_entropy_backward" : "cross_entropy",
		       a.cols - 1);
	if (!back) {
		err = launch(r, op, &a, "xent_rows", chunks,
			     (const struct yoke_view *[]){ &out[1], space, &in[0], &in[1], NULL },
			     true);
		return err ? err :
			     launch(r, op, &a, "xent_mean", 1,
				    (const struct yoke_view *[]){ &out[0], space, &in[1], NULL },
				    false);
	}
	const struct yoke_view *g = in[3].kind == YOKE_VIEW_BUFFER ? &in[3] : &in[2];
	err = launch(r, op, &a, "xent_scale", 1,
		     (const struct yoke_view *[]){ space, g, &in[1], NULL }, false);
	return err ? err :
		     launch(r, op, &a, "xent_backward", chunks,
			    (const struct yoke_view *[]){ &out[0], space, &in[0], &in[1], &in[2],
							  NULL },
			    true);
}

static const char *const names[] = { "rows" };
YK_GPU_OP(xent, CROSS_ENTROPY,
	  CROSS_ENTROPY_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
