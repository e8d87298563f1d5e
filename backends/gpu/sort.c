// SPDX-License-Identifier: Apache-2.0
// SORT: radix sort on CPU-like devices, bitonic sort on GPUs; launches the kernels of cl/sort.cl.
#include "config.h"

#include <string.h>

#include "axes.h"

#define ITEMS 256                    // items per group on GPUs
#define BLOCK (2 * ITEMS) // elements that a group sorts in local memory: one row, or several
#define TOGETHER ((int64_t)1 << 26)  // max elements sorted at the same time on GPUs
#define ROWS 64                      // rows at a time on CPU-like devices
#define LIMIT ((int64_t)1 << 30)      // max elements per row

// Matches struct sort of cl/sort.cl.
struct sort {
	struct yk_gpu_axes axes;
	int64_t n, k, padded, step[3], first, count;
	uint64_t has[2], descending;
};

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0];
	const int last = x->rank - 1;

	if (op->nin != 1 || op->nout != 2 || op->nattr < 2 || x->kind != YOKE_VIEW_BUFFER ||
	    last < 0 || x->dims[last] > LIMIT || op->attr[0].i < 0 ||
	    op->attr[0].i > x->dims[last] || d->info.max_args < sizeof(struct sort) + 10 * 8 ||
	    (!d->cpu_like && (!yk_gpu_fits_group(d, ITEMS) ||
			   d->local_bytes < BLOCK * 12)))
		return 0;
	for (int i = 0; i < 2; i++) {
		const struct yoke_view *y = &op->out[i];
		if (y->kind == YOKE_VIEW_NONE)
			continue;
		if (y->kind != YOKE_VIEW_BUFFER || y->rank != x->rank ||
		    y->dtype != (i ? yoke_i64 : x->dtype) ||
		    memcmp(x->dims, y->dims, (size_t)last * sizeof *x->dims) ||
		    y->dims[last] != op->attr[0].i)
			return 0;
	}
	return 1;
}

static struct sort sort_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0];
	const struct yoke_view *all[3] = { &op->out[0], &op->out[1], x };
	const int last = x->rank - 1;
	struct sort s = { .n = x->dims[last], .k = op->attr[0].i, .padded = 1 };

	yk_gpu_axes_of(&s.axes, last, x->dims, 3,
		       (const int64_t *const[]){ all[0]->strides, all[1]->strides, x->strides });
	// treat all axes as rows
	s.axes.rows *= s.axes.cols;
	s.axes.cols = s.axes.dims[s.axes.rank++] = 1;
	for (int i = 0; i < 3; i++)
		s.step[i] = all[i]->strides[last];
	s.has[0] = yk_gpu_present(all[0]);
	s.has[1] = yk_gpu_present(all[1]);
	s.descending = op->attr[1].i != 0;
	while (s.padded < s.n)
		s.padded *= 2;
	s.count = yk_gpu_min(s.axes.rows, d->cpu_like ? ROWS : 1 + TOGETHER / s.padded);
	return s;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const struct sort *s,
		     const char *name, struct yk_gpu_entry **to)
{
	const int t = op->in[0].dtype;
	struct yk_gpu_build b = { .file = "sort.cl", .name = name };

	yk_gpu_define(&b, "UNIT", (int64_t)yk_gpu_bytes(t));
	yk_gpu_define(&b, "ITEMS", d->cpu_like ? 1 : ITEMS);
	if (yk_gpu_infinity(t))
		yk_gpu_define(&b, "INFINITE", yk_gpu_infinity(t));
	yk_gpu_flag(&b, "SIGNED", t == yoke_i8 || t == yoke_i32 || t == yoke_i64);
	yk_gpu_flag(&b, "WIDE_INDEX", s->axes.rows > INT32_MAX);
	return yk_gpu_kernel_file(d, &b, to);
}

static uint64_t bytes_of(const struct yk_gpu_device *d, const struct yoke_op *op,
			 const struct sort *s)
{
	const uint64_t key = yk_gpu_bytes(op->in[0].dtype) == 8 ? 8 : 4;

	if (!d->cpu_like && s->padded <= BLOCK)
		return 0;
	// at most ROWS * 2^31, or slightly more than 2^31, elements
	return (uint64_t)s->count * (uint64_t)(d->cpu_like ? 2 * s->n : s->padded) * (key + 4);
}

// Arguments of the kernels that write results.
static void out_args(struct yk_gpu_record *r, const struct yoke_op *op, const struct sort *s)
{
	yk_gpu_arg_view_or(r, &op->out[0], &op->in[0]);
	yk_gpu_arg_view_or(r, &op->out[1], &op->in[0]);
	yk_gpu_arg_view(r, &op->in[0]);
	if (r->workspace)
		yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
}

// Rows of at most BLOCK elements.
static int record_short(struct yk_gpu_record *r, const struct yoke_op *op, const struct sort *s)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, s, "sort_short", &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	out_args(r, op, s);
	return yk_gpu_launch_groups(r, yk_gpu_ceil_div(s->axes.rows, BLOCK / s->padded), ITEMS,
				    "sort");
}

// Launches items x rows; a group belongs to one row.
static int launch_rows(struct yk_gpu_record *r, int64_t items, int64_t rows, const char *name)
{
	const size_t all[2] = { (size_t)yk_gpu_ceil_div(items, ITEMS) * ITEMS, (size_t)rows };

	return yk_gpu_launch(r, 2, all, (const size_t[]){ ITEMS, 1 }, name);
}

// One step of the sorting network, or several in local memory, for the pairs of all rows.
static int network(struct yk_gpu_record *r, const struct yoke_op *op, const struct sort *s,
		   const char *name, int64_t a, int64_t b)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, s, name, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
	yk_gpu_arg_word(r, (uint64_t)a);
	yk_gpu_arg_word(r, (uint64_t)b);
	return yk_gpu_launch_groups(r, s->count * s->padded / BLOCK, ITEMS, name);
}

static int record_part(struct yk_gpu_record *r, const struct yoke_op *op, const struct sort *s)
{
	struct yk_gpu_entry *keys, *take;
	int err = kernel_of(r->device, op, s, "sort_keys", &keys);

	if (!err)
		err = kernel_of(r->device, op, s, "sort_take", &take);
	if (err)
		return err;
	yk_gpu_begin(r, keys);
	yk_gpu_arg_view(r, &op->in[0]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
	err = launch_rows(r, s->padded, s->count, "sort_keys");
	if (!err)
		err = network(r, op, s, "sort_local", 2, BLOCK);
	for (int64_t size = 2 * BLOCK; size <= s->padded && !err; size *= 2) {
		for (int64_t stride = size / 2; stride > ITEMS && !err; stride /= 2)
			err = network(r, op, s, "sort_step", size, stride);
		if (!err)
			err = network(r, op, s, "sort_local", size, size);
	}
	if (err)
		return err;
	yk_gpu_begin(r, take);
	out_args(r, op, s);
	return launch_rows(r, s->k, s->count, "sort_take");
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct sort s = sort_of(r->device, op);
	struct yk_gpu_entry *kernel;
	int err = 0;

	(void)impl;
	if (!s.axes.rows || !s.k)
		return 0;
	yk_gpu_workspace(r, bytes_of(r->device, op, &s));
	if (r->device->cpu_like) {
		if ((err = kernel_of(r->device, op, &s, "sort_rows", &kernel)))
			return err;
		yk_gpu_begin(r, kernel);
		out_args(r, op, &s);
		return yk_gpu_launch_groups(r, s.count, 1, "sort");
	}
	if (s.padded <= BLOCK)
		return record_short(r, op, &s);
	for (const int64_t max = s.count; s.first < s.axes.rows && !err; s.first += max) {
		s.count = yk_gpu_min(max, s.axes.rows - s.first);
		err = record_part(r, op, &s);
	}
	return err;
}

static const char *const names[] = { "rows" };
YK_GPU_OP(sort, SORT) = { .names = names, .nimpl = 1, .can = can, .record = record };
