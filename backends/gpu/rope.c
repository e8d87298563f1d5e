// SPDX-License-Identifier: Apache-2.0
// ROPE (rotary position embedding): cl/rope.cl, f32, f16 and bf16; tables have the same dtype or
// f32.
#include "config.h"

#include "rows.h"


// Matches struct rope_args of cl/rope.cl.
struct rope_args {
	struct yk_gpu_rows x, y, cosine, sine;
	int64_t count, each, positions, heads;
	int32_t pairs, pad;
};

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const int beside = op->in[1].dtype;

	for (int i = 0; i < 3; i++)
		if (!yk_gpu_is_rows(&op->in[i]) || op->in[i].rank != (i ? 2 : 4) ||
		    op->in[i].dtype != (i ? beside : op->out[0].dtype))
			return 0;
	return yk_gpu_serves_beside(beside, op->out[0].dtype) &&
	       yk_gpu_is_rows(&op->out[0]) && op->out[0].rank == 4 &&
	       d->info.max_args >= sizeof(struct rope_args) + 4 * 16;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op,
		     struct yk_gpu_entry **to, size_t *items)
{
	struct yk_gpu_build b = { .file = "rope.cl", .name = "rope" };

	const struct yoke_view *const rows[] = { &op->out[0], &op->in[0], &op->in[1], &op->in[2],
						 NULL };
	const int64_t pairs = yk_gpu_cols(&op->out[0]) / 2;

	*items = yk_gpu_row_items(d, pairs);
	yk_gpu_row_defines(&b, d, *items, yk_gpu_row_width(d, rows, pairs), &op->in[0]);
	yk_gpu_beside_define(&b, op->in[1].dtype);
	return yk_gpu_kernel_file(d, &b, to);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *x = &op->in[0];
	struct rope_args a = {
		.x = yk_gpu_rows_of(x),
		.y = yk_gpu_rows_of(&op->out[0]),
		.cosine = yk_gpu_rows_of(&op->in[1]),
		.sine = yk_gpu_rows_of(&op->in[2]),
		.count = yk_gpu_count(x),
		.positions = x->dims[1],
		.heads = x->dims[2],
		.pairs = (int32_t)(x->dims[3] / 2),
	};
	struct yk_gpu_entry *kernel;
	size_t items;
	int err;

	(void)impl;
	if (!a.count || !a.pairs)
		return 0;
	if ((err = kernel_of(r->device, op, &kernel, &items)))
		return err;
	a.each = yk_gpu_row_each(r->device, a.count, 2 * a.pairs);
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->out[0]);
	for (int i = 0; i < 3; i++)
		yk_gpu_arg_view(r, &op->in[i]);
	yk_gpu_arg_struct(r, &a, sizeof a);
	return yk_gpu_launch_chunks(r, yk_gpu_ceil_div(a.count, a.each), items, "rope");
}

static const char *const names[] = { "rows" };
YK_GPU_OP(rope, ROPE) = { .names = names, .nimpl = 1, .can = can, .record = record };
