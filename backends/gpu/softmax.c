// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and SOFTMAX_BACKWARD: launches the kernels of cl/softmax.cl; f32, f16 and bf16.
#include "config.h"

#include "rows.h"

// Floats of a row kept in local memory; two rows on CPU-like devices.
#define KEEP_CPU_LIKE 16384
#define KEEP_CPU_LIKE_MIN 2048
#define KEEP 4096
#define KEEP_MIN 256
#define MAX_HELD 8  // vectors that an item holds in registers
#define GOOD_HELD 4 // loads of an item that hide the latency of memory

// Matches struct softmax_args of cl/softmax.cl.
struct softmax_args {
	struct yk_gpu_rows a, b, out;
	int64_t count, each;
	int32_t cols, logarithm, stream, pad;
};

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	bool back = op->code == YOKE_OP_SOFTMAX_BACKWARD;

	return yk_gpu_is_rows(x) && yk_gpu_is_rows(y) && x->dtype == y->dtype &&
	       (!back || (yk_gpu_is_rows(&op->in[1]) && op->in[1].dtype == x->dtype)) &&
	       d->info.max_args >= sizeof(struct softmax_args) + 48 &&
	       d->local_bytes >= 2 * KEEP * sizeof(float);
}

// Less local memory allows more concurrent groups: use what the row needs, in steps of a factor of
// four.
static int keep_of(const struct yk_gpu_device *d, int64_t cols)
{
	int keep = KEEP_MIN;

	if (d->cpu_like)
		return d->local_bytes >= 3 * KEEP_CPU_LIKE * sizeof(float) ? KEEP_CPU_LIKE :
									     KEEP_CPU_LIKE_MIN;
	while (keep < cols && cols <= KEEP)
		keep *= 4;
	return keep;
}

static int width_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *const rows[] = { &op->out[0], &op->in[0],
						 op->code == YOKE_OP_SOFTMAX ? NULL : &op->in[1],
						 NULL };

	return yk_gpu_row_width(d, rows, yk_gpu_cols(&op->out[0]));
}

// Returns how many vectors an item holds, and sets *items; 0: the row is too long, or not computed
// on a GPU.
static int held_of(const struct yk_gpu_device *d, const struct yoke_op *op, int width,
		   size_t *items)
{
	const int64_t vectors = yk_gpu_ceil_div(yk_gpu_cols(&op->out[0]), width);

	*items = yk_gpu_row_items(d, yk_gpu_cols(&op->out[0]));
	if (d->cpu_like || op->code != YOKE_OP_SOFTMAX ||
	    yk_gpu_ceil_div(vectors, (int64_t)*items) > MAX_HELD)
		return 0;
	while (*items > 32 && yk_gpu_ceil_div(vectors, (int64_t)*items / 2) <= GOOD_HELD)
		*items /= 2;
	return (int)yk_gpu_ceil_div(vectors, (int64_t)*items);
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, size_t *items,
		     struct yk_gpu_entry **to)
{
	const int width = width_of(d, op), held = held_of(d, op, width, items);
	struct yk_gpu_build b = { .file = "softmax.cl",
				  .name = op->code == YOKE_OP_SOFTMAX ? "softmax" :
					  op->attr[0].i               ? "log_softmax_backward" :
									"softmax_backward" };

	yk_gpu_row_defines(&b, d, *items, width, &op->in[0]);
	if (held)
		yk_gpu_define(&b, "HELD", held);
	else
		yk_gpu_define(&b, "KEEP", keep_of(d, yk_gpu_cols(&op->out[0])));
	return yk_gpu_kernel_file(d, &b, to);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const bool back = op->code == YOKE_OP_SOFTMAX_BACKWARD;
	const int64_t cols = yk_gpu_cols(&op->out[0]), count = yk_gpu_count(&op->out[0]);
	struct softmax_args a = {
		.a = yk_gpu_rows_of(&op->in[0]),
		.b = yk_gpu_rows_of(&op->in[back]),
		.out = yk_gpu_rows_of(&op->out[0]),
		.count = count,
		.each = yk_gpu_row_each(r->device, count, cols),
		.cols = (int32_t)cols,
		.logarithm = op->attr[0].i != 0,
		.stream = yk_gpu_streams(r->device, op, &op->out[0]),
	};
	struct yk_gpu_entry *kernel;
	size_t items;
	int err;

	(void)impl;
	if (!cols || !count)
		return 0;
	if ((err = kernel_of(r->device, op, &items, &kernel)))
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->out[0]);
	yk_gpu_arg_view(r, &op->in[0]);
	if (back)
		yk_gpu_arg_view(r, &op->in[1]);
	yk_gpu_arg_struct(r, &a, sizeof a);
	return yk_gpu_launch_chunks(r, yk_gpu_ceil_div(count, a.each), items, "softmax");
}

static const char *const names[] = { "rows" };
YK_GPU_OP(softmax, SOFTMAX,
	  SOFTMAX_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
