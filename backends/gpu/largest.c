// SPDX-License-Identifier: Apache-2.0
// LARGEST (top-k selection) on GPUs: launches the kernels of cl/largest.cl.
#include "config.h"

#include "axes.h"

#define ITEMS 256  // items per group on GPUs
#define BINS 2048
#define PIECES 512 // max chunks on GPUs
#define MIN_SIZE 8192 // min elements per chunk
#define CPU_LIKE 64   // max chunks on CPU-like devices
#define ROUNDS 3

// Matches struct largest of cl/largest.cl.
struct largest {
	int64_t n, each, pieces, k;
	uint64_t has_e, has[3];
};

static bool is_vector(const struct yoke_view *v, int dtype, int64_t n)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype && v->rank <= 1 &&
	       yk_gpu_elements(v) == n && (v->rank == 0 || n < 2 || v->strides[0] == 1);
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 3 || op->nattr < 1 || op->in[0].kind != YOKE_VIEW_BUFFER)
		return 0;
	const int64_t n = yk_gpu_elements(&op->in[0]), k = op->attr[0].i;
	if (n > INT32_MAX || k < 0 || k > n || !is_vector(&op->in[0], yoke_f32, n) ||
	    (yk_gpu_present(&op->in[1]) && !is_vector(&op->in[1], yoke_f32, n)) ||
	    d->info.max_args < sizeof(struct largest) + 12 * 8 ||
	    (!d->cpu_like && (!yk_gpu_fits_group(d, ITEMS) || d->local_bytes < BINS * 4)))
		return 0;
	for (int i = 0; i < 3; i++)
		if (yk_gpu_present(&op->out[i]) &&
		    !is_vector(&op->out[i], i == 1 ? yoke_i32 : yoke_f32, i == 2 ? n : k))
			return 0;
	return 1;
}

static int kernel_of(struct yk_gpu_device *d, const char *name, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "largest.cl", .name = name };

	yk_gpu_define(&b, "ITEMS", d->cpu_like ? 1 : ITEMS);
	return yk_gpu_kernel_file(d, &b, to);
}

static int begin(struct yk_gpu_record *r, const char *name)
{
	struct yk_gpu_entry *kernel;
	const int err = kernel_of(r->device, name, &kernel);

	if (!err)
		yk_gpu_begin(r, kernel);
	return err;
}

static void in_args(struct yk_gpu_record *r, const struct yoke_op *op, const struct largest *s)
{
	yk_gpu_arg_view(r, &op->in[0]);
	yk_gpu_arg_view_or(r, &op->in[1], &op->in[0]);
	yk_gpu_arg_view_or(r, &op->out[2], &op->in[0]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
}

// Launches a kernel that uses only the workspace; round < 0: it has no round argument.
static int on_counts(struct yk_gpu_record *r, const struct yoke_op *op, const struct largest *s,
		     const char *name, int round, int64_t groups, size_t items)
{
	const int err = begin(r, name);

	if (err)
		return err;
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
	if (round >= 0)
		yk_gpu_arg_word(r, (uint64_t)round);
	return yk_gpu_launch_groups(r, groups, items, name);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const size_t items = r->device->cpu_like ? 1 : ITEMS;
	const int64_t n = yk_gpu_elements(&op->in[0]),
		      max = r->device->cpu_like ? CPU_LIKE : PIECES;
	struct largest s = { .n = n,
			     .pieces = yk_gpu_min(max, yk_gpu_ceil_div(n, MIN_SIZE)),
			     .k = op->attr[0].i,
			     .has_e = yk_gpu_present(&op->in[1]) };
	int err = 0;

	(void)impl;
	if (!n)
		return 0;
	s.each = yk_gpu_ceil_div(n, s.pieces);
	for (int i = 0; i < 3; i++)
		s.has[i] = yk_gpu_present(&op->out[i]);
	yk_gpu_workspace(r, (uint64_t)(4 + BINS + s.pieces * (4 + BINS)) * sizeof(uint32_t));
	for (int round = 0; round < ROUNDS && !err; round++) {
		if ((err = begin(r, "largest_count")))
			return err;
		in_args(r, op, &s);
		yk_gpu_arg_word(r, (uint64_t)round);
		err = yk_gpu_launch_groups(r, s.pieces, items, "largest_count");
		if (!err)
			err = on_counts(r, op, &s, "largest_sum", -1, BINS / (int64_t)items, items);
		if (!err)
			err = on_counts(r, op, &s, "largest_find", round, 1, items);
		if (!err)
			err = on_counts(r, op, &s, "largest_above", round, s.pieces, items);
	}
	if (!err)
		err = on_counts(r, op, &s, "largest_begin", -1, 1, 1);
	if (err || (err = begin(r, "largest_take")))
		return err;
	yk_gpu_arg_view_or(r, &op->out[0], &op->in[0]);
	yk_gpu_arg_view_or(r, &op->out[1], &op->in[0]);
	in_args(r, op, &s);
	return yk_gpu_launch_groups(r, s.pieces, items, "largest_take");
}

static const char *const names[] = { "radix" };
YK_GPU_OP(largest, LARGEST) = { .names = names, .nimpl = 1, .can = can, .record = record };
