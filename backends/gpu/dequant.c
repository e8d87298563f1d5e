// SPDX-License-Identifier: Apache-2.0
// DEQUANT and QGATHER: cl/dequant.cl; any layout of y and ids but a dense last axis of y.
#include "config.h"

#include "axes.h"
#include "quant.h"
#include "report.h"

// Matches struct dequant of cl/dequant.cl.
struct dequant {
	struct yk_gpu_axes axes;
	int64_t n, step, k;
};

enum {
	STEPS_OF_GROUP = 4, // each decodes two quads
	COST = 16           // of a step, relative to copying an element
};

static bool is_index(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && (v->dtype == yoke_i32 || v->dtype == yoke_i64);
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const bool gathers = op->code == YOKE_OP_QGATHER;
	const struct yoke_view *w = &op->in[0], *y = &op->out[0];
	const int last = y->rank - 1;

	if (op->nin != 1u + gathers || op->nout != 1 || !yk_gpu_is_quantized(op, w) ||
	    y->kind != YOKE_VIEW_BUFFER || !yk_gpu_float(y->dtype) || last < 0 ||
	    y->dims[last] != op->attr[1].i || (y->strides[last] != 1 && y->dims[last] > 1) ||
	    d->info.max_args < sizeof(struct dequant) + 10 * 8)
		return 0;
	if (!gathers)
		return last == 1 && y->dims[0] == w->dims[0];
	const struct yoke_view *ids = &op->in[1];
	bool same = is_index(ids) && ids->rank == last;
	for (int i = 0; same && i < last; i++)
		same = ids->dims[i] == y->dims[i];
	return same;
}

static struct dequant args_of(const struct yoke_op *op)
{
	const struct yoke_view *w = &op->in[0], *y = &op->out[0];
	struct dequant s = { .n = w->dims[0], .step = w->strides[0], .k = op->attr[1].i };
	struct yk_gpu_axes *a = &s.axes;
	int64_t at[YOKE_MAX_RANK];

	if (op->code == YOKE_OP_QGATHER) {
		yk_gpu_positions(at, y->rank - 1, y->dims);
		yk_gpu_axes_of(a, y->rank - 1, y->dims, 4,
			       (const int64_t *const[]){ y->strides, NULL, op->in[1].strides, at });
	} else {
		yk_gpu_axes_of(a, 1, y->dims, 4,
			       (const int64_t *const[]){ y->strides, w->strides, NULL, NULL });
	}
	a->rows *= a->cols;
	a->cols = a->dims[a->rank++] = yk_gpu_quant_groups(op) * STEPS_OF_GROUP;
	return s;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const bool gathers = op->code == YOKE_OP_QGATHER;
	const char *name = gathers ? "qgather" : "dequant";
	const struct yoke_view *w = &op->in[0], *y = &op->out[0];
	const struct dequant s = args_of(op);
	struct yk_gpu_build b = { .file = "dequant.cl", .name = "dequant" };
	struct yk_gpu_entry *kernel;

	(void)impl;
	if (!yk_gpu_elements(y))
		return 0;
	yk_gpu_quant_defines(
		&b, r->device, op, 1,
		yk_gpu_quant_width(r->device, (const struct yoke_view *const[]){ y, NULL }, s.k));
	if (gathers)
		yk_gpu_define(&b, "IDS", (int64_t)yk_gpu_bytes(op->in[1].dtype));
	const int err = yk_gpu_kernel_file(r->device, &b, &kernel);
	if (err)
		return err;
	if (gathers)
		yk_gpu_reports(r, YK_GPU_INDEX, name, s.n - 1);
	yk_gpu_begin(r, kernel);
	const struct yk_gpu_division cut = yk_gpu_division_of(
		r->device, kernel, (uint64_t)s.axes.cols, (uint64_t)s.axes.rows, COST);
	yk_gpu_arg_view(r, y);
	yk_gpu_arg_view(r, w);
	yk_gpu_arg_struct(r, &s, sizeof s);
	yk_gpu_arg_division(r, &cut);
	if (gathers) {
		yk_gpu_arg_view(r, &op->in[1]);
		yk_gpu_arg_slot(r);
	}
	return yk_gpu_launch(r, 2, cut.items, cut.group, name);
}

static const char *const names[] = { "rows" };
YK_GPU_OP(dequant, DEQUANT, QGATHER) = { .names = names, .nimpl = 1, .can = can, .record = record };
