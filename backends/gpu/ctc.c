// SPDX-License-Identifier: Apache-2.0
// CTC and CTC_BACKWARD: cl/ctc.cl.
#include "config.h"

#include "report.h"
#include "rows.h"

#define ITEMS 128 // of a group

// Matches struct ctc of cl/ctc.cl.
struct ctc {
	int64_t T, N, C, S, blank;
	int64_t xs[3], ts[2], steps, labels, loss, as[3], g, ds[3];
	int64_t given, scalar;
};

static bool is_backward(const struct yoke_op *op)
{
	return op->code == YOKE_OP_CTC_BACKWARD;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const bool back = is_backward(op);
	const int dtype = op->in[0].dtype;

	if (op->nin != (back ? 7 : 4) || op->nout != (back ? 1 : 2) || op->nattr != 1 ||
	    !yk_gpu_f32_or_f64(d, dtype))
		return 0;
	for (uint32_t i = 0; i < op->nin; i++) {
		const struct yoke_view *v = &op->in[i];
		if (v->dtype != (i >= 1 && i <= 3 ? yoke_i64 : dtype) ||
		    (v->kind != YOKE_VIEW_BUFFER && (i != 6 || v->kind != YOKE_VIEW_SCALAR)))
			return 0;
	}
	for (uint32_t i = 0; i < op->nout; i++)
		if (op->out[i].kind != YOKE_VIEW_BUFFER &&
		    (back || op->out[i].kind != YOKE_VIEW_NONE))
			return 0;
	return d->info.max_args >= sizeof(struct ctc) + 20 * 8 && yk_gpu_fits_group(d, ITEMS);
}

static void strides_of(int64_t *to, const struct yoke_view *v)
{
	for (int i = 0; i < v->rank && v->kind == YOKE_VIEW_BUFFER; i++)
		to[i] = v->strides[i];
}

static struct ctc ctc_of(const struct yoke_op *op)
{
	const bool back = is_backward(op);
	const struct yoke_view *in = op->in, *loss = back ? &in[4] : &op->out[0],
			       *alpha = back ? &in[5] : &op->out[1];
	struct ctc c = { .T = in[0].dims[0],
			 .N = in[0].dims[1],
			 .C = in[0].dims[2],
			 .S = in[1].dims[1],
			 .blank = op->attr[0].i };

	strides_of(c.xs, &in[0]);
	strides_of(c.ts, &in[1]);
	strides_of(&c.steps, &in[2]);
	strides_of(&c.labels, &in[3]);
	strides_of(&c.loss, loss);
	strides_of(c.as, alpha);
	c.given = (loss->kind == YOKE_VIEW_BUFFER) | (int64_t)(alpha->kind == YOKE_VIEW_BUFFER)
							     << 1;
	if (back) {
		strides_of(&c.g, &in[6]);
		strides_of(c.ds, &op->out[0]);
		c.scalar = in[6].kind == YOKE_VIEW_SCALAR;
	}
	return c;
}

static int kernel_of(struct yk_gpu_record *r, const struct yoke_op *op, const char *name,
		     struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "ctc.cl", .name = name };

	yk_gpu_define(&b, "DTYPE", op->in[0].dtype);
	yk_gpu_flag(&b, "USE_F64", op->in[0].dtype == yoke_f64);
	yk_gpu_define(&b, "ITEMS", r->device->cpu_like ? 1 : ITEMS);
	const int err = yk_gpu_kernel_file(r->device, &b, to);
	if (!err)
		yk_gpu_begin(r, *to);
	return err;
}

static int launch(struct yk_gpu_record *r, int64_t groups, const char *name)
{
	return yk_gpu_launch_groups(r, yk_gpu_max_groups(r->device, groups),
				    r->device->cpu_like ? 1 : ITEMS, name);
}

// A view of the workspace from a number of bytes on
static struct yoke_view space_from(const struct yoke_op *op, int64_t bytes)
{
	struct yoke_view v = op->workspace;

	v.offset += (uint64_t)bytes;
	return v;
}

static int record_forward(struct yk_gpu_record *r, const struct yoke_op *op, const struct ctc *c)
{
	struct yk_gpu_entry *kernel;

	yk_gpu_workspace(r, (uint64_t)(c->N * 2 * (2 * c->S + 1)) * yk_gpu_bytes(op->in[0].dtype));
	const int err = kernel_of(r, op, "ctc", &kernel);
	if (err)
		return err;
	for (int i = 0; i < 2; i++)
		yk_gpu_arg_view_or(r, &op->out[i], &op->in[0]);
	for (int i = 0; i < 4; i++)
		yk_gpu_arg_view(r, &op->in[i]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, c, sizeof *c);
	yk_gpu_arg_slot(r);
	return launch(r, c->N, "ctc");
}

static int record_backward(struct yk_gpu_record *r, const struct yoke_op *op, const struct ctc *c)
{
	const struct yoke_view *g = &op->in[6];
	const int64_t bytes = (int64_t)yk_gpu_bytes(op->in[0].dtype),
		      states = c->N * (2 * c->S + 1);
	const int64_t links = c->N * 2 * c->S * 8, shares = states * c->T * bytes;
	struct yk_gpu_entry *kernel;

	yk_gpu_workspace(r, (uint64_t)(links + shares + 2 * states * bytes));
	const struct yoke_view share = space_from(op, links), work = space_from(op, links + shares);
	int err = kernel_of(r, op, "ctc_states", &kernel);
	if (err)
		return err;
	for (int i = 0; i < 6; i++)
		yk_gpu_arg_view(r, &op->in[i]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_view(r, &share);
	yk_gpu_arg_view(r, &work);
	yk_gpu_arg_struct(r, c, sizeof *c);
	yk_gpu_arg_slot(r);
	err = launch(r, c->N, "ctc_states");
	if (!err)
		err = kernel_of(r, op, "ctc_gradient", &kernel);
	if (err)
		return err;
	yk_gpu_arg_view(r, &op->out[0]);
	for (int i = 1; i < 4; i++)
		yk_gpu_arg_view(r, &op->in[i]);
	yk_gpu_arg_segment(r, c->scalar ? &op->in[0] : g);
	yk_gpu_arg_offset(r, g);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_view(r, &share);
	yk_gpu_arg_struct(r, c, sizeof *c);
	return launch(r, c->N * c->T, "ctc_gradient");
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct ctc c = ctc_of(op);

	(void)impl;
	if (!c.N || (is_backward(op) && !c.T))
		return 0;
	yk_gpu_reports(r, YK_GPU_SEQUENCES, is_backward(op) ? "ctc_backward" : "ctc", c.N);
	return is_backward(op) ? record_backward(r, op, &c) : record_forward(r, op, &c);
}

static const char *const names[] = { "states" };
YK_GPU_OP(ctc, CTC, CTC_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
