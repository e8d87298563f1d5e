// SPDX-License-Identifier: Apache-2.0
// SCATTER_SET: cl/scatter_set.cl, any dtype; rows are copied in units of up to 8 bytes.
#include "config.h"

#include <string.h>

#include "axes.h"
#include "report.h"

#define ITEMS 128 // items per group

// Matches struct scatter_set of cl/scatter_set.cl.
struct scatter_set {
	struct yk_gpu_axes axes;
	int64_t N, R, ys, n;
};

static bool same_dims(const int64_t *a, const int64_t *b, int n)
{
	return !memcmp(a, b, (size_t)n * sizeof *a);
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];

	if (op->nin != 3 || op->nout != 1 || x->kind != YOKE_VIEW_BUFFER ||
	    idx->kind != YOKE_VIEW_BUFFER || v->kind != YOKE_VIEW_BUFFER ||
	    y->kind != YOKE_VIEW_BUFFER || x->dtype != y->dtype || v->dtype != y->dtype ||
	    (idx->dtype != yoke_i32 && idx->dtype != yoke_i64))
		return 0;
	return y->rank >= 1 && x->rank == y->rank && same_dims(x->dims, y->dims, y->rank) &&
	       idx->rank < YOKE_MAX_RANK && v->rank == idx->rank + y->rank - 1 &&
	       same_dims(v->dims, idx->dims, idx->rank) &&
	       same_dims(v->dims + idx->rank, y->dims + 1, y->rank - 1) &&
	       yk_gpu_dense_from(y, 1) && yk_gpu_dense_from(v, idx->rank) &&
	       yk_gpu_elements(idx) <= INT32_MAX &&
	       d->info.max_args >= sizeof(struct scatter_set) + 5 * 16 &&
	       yk_gpu_fits_group(d, ITEMS);
}

// Bytes that divide a view's alignment and the distances between its rows, the first `outer` axes.
static size_t unit_of(const struct yoke_view *v, int outer, size_t unit)
{
	const size_t bytes = yk_gpu_bytes(v->dtype);

	while (unit > bytes && v->align % unit)
		unit /= 2;
	for (int i = 0; i < outer; i++)
		while (unit > bytes && (size_t)v->strides[i] * bytes % unit)
			unit /= 2;
	return unit;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];
	const int64_t bytes = (int64_t)yk_gpu_bytes(y->dtype);
	struct scatter_set s = { .N = y->dims[0], .R = 1, .n = yk_gpu_elements(idx) };
	struct yk_gpu_entry *kernel;
	int64_t steps[YOKE_MAX_RANK];
	int err = op->alias_mask & 1 ? 0 : yk_gpu_move_record(r, op, x, y);

	(void)impl;
	if (err || !s.n)
		return err;
	for (int d = 1; d < y->rank; d++)
		s.R *= y->dims[d];
	size_t unit = unit_of(v, idx->rank, unit_of(y, 1, 8));
	while (unit > (size_t)bytes && (size_t)(s.R * bytes) % unit)
		unit /= 2;
	const int64_t each = (int64_t)unit / bytes; // elements of a unit
	for (int i = 0; i < idx->rank; i++)
		steps[i] = v->strides[i] / each;
	s.R /= each;
	s.ys = y->strides[0] / each;
	yk_gpu_axes_of(&s.axes, idx->rank, idx->dims, 2,
		       (const int64_t *const[]){ idx->strides, steps });
	// treat all axes as rows
	s.axes.rows *= s.axes.cols;
	s.axes.cols = s.axes.dims[s.axes.rank++] = 1;

	struct yk_gpu_build b = { .file = "scatter_set.cl", .name = "scatter_set" };
	yk_gpu_define(&b, "ITEMS", r->device->cpu_like ? 1 : ITEMS);
	yk_gpu_define(&b, "UNIT", (int64_t)unit);
	yk_gpu_flag(&b, "WIDE_IDS", idx->dtype == yoke_i64);
	yk_gpu_reports(r, YK_GPU_INDEX, "scatter_set", s.N - 1);
	if ((err = yk_gpu_kernel_file(r->device, &b, &kernel)))
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, y);
	yk_gpu_arg_view(r, idx);
	yk_gpu_arg_view(r, v);
	yk_gpu_arg_struct(r, &s, sizeof s);
	yk_gpu_arg_slot(r);
	return yk_gpu_launch_groups(r, yk_gpu_max_groups(r->device, s.n),
				    r->device->cpu_like ? 1 : ITEMS, "scatter_set");
}

static const char *const names[] = { "rows" };
YK_GPU_OP(scatter_set, SCATTER_SET) = { .names = names, .nimpl = 1, .can = can, .record = record };
