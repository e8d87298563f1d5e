// SPDX-License-Identifier: Apache-2.0
// SCAN (cumulative sums, products, extremes): cl/scan.cl. Floating-point sums use f64 where the
// device has it.
#include "config.h"

#include <string.h>

#include "axes.h"

#define TILE 64               // adjacent lines processed together on CPU-like devices
#define PIECE ((int64_t)1 << 16) // elements per segment on CPU-like devices
#define FEW 32                // max lines for which CPU-like devices use segments
#define FEW_ITEMS 4096        // lines that keep a GPU busy
#define GROUP 64

// Matches struct scan of cl/scan.cl.
struct scan {
	struct yk_gpu_axes axes;
	int64_t n, ys, xs, segment, segments, tile, tiles;
};

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];

	if (op->nin != 1 || op->nout != 1 || op->nattr < 3 || x->kind != YOKE_VIEW_BUFFER ||
	    y->kind != YOKE_VIEW_BUFFER || x->dtype != y->dtype || x->dtype == yoke_bool ||
	    x->rank != y->rank || memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) ||
	    op->attr[0].i < 0 || op->attr[0].i >= x->rank ||
	    (op->attr[1].i != YOKE_REDUCE_SUM && op->attr[1].i != YOKE_REDUCE_PROD))
		return 0;
	return (!yk_gpu_real(x->dtype) || yk_gpu_f64(d) || x->dtype != yoke_f64) &&
	       d->info.max_args >= sizeof(struct scan) + 8 * 8;
}

static bool is_prod(const struct yoke_op *op)
{
	return op->attr[1].i == YOKE_REDUCE_PROD;
}

// Divides lines into segments. Products are divided only for very long lines, because a segment's
// product may overflow.
static void cut(const struct yk_gpu_device *d, const struct yoke_op *op, struct scan *s)
{
	const int64_t lines = s->axes.rows * s->axes.cols;

	s->segment = s->n;
	if (d->cpu_like || is_prod(op)) {
		if (s->n >= 2 * PIECE && lines <= FEW)
			s->segment = PIECE;
	} else if (s->n >= 512 && lines < FEW_ITEMS) {
		for (s->segment = 256; s->segment * s->segment < s->n;)
			s->segment *= 2;
	}
	s->segments = s->n ? yk_gpu_ceil_div(s->n, s->segment) : 0;
	// across the lines only if they are adjacent in memory
	s->tile = d->cpu_like && s->axes.strides[1][s->axes.rank - 1] == 1 ?
			  yk_gpu_min(s->axes.cols, TILE) : 1;
	s->tiles = s->tile ? yk_gpu_ceil_div(s->axes.cols, s->tile) : 0;
}

static struct scan scan_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const int axis = (int)op->attr[0].i;
	struct scan s = { .n = x->dims[axis], .ys = y->strides[axis], .xs = x->strides[axis] };
	int64_t dims[YOKE_MAX_RANK], to[YOKE_MAX_RANK], from[YOKE_MAX_RANK];
	int rank = 0;

	for (int i = 0; i < x->rank; i++)
		if (i != axis) {
			dims[rank] = x->dims[i];
			to[rank] = y->strides[i];
			from[rank++] = x->strides[i];
		}
	if (op->attr[2].i)
		s.ys = -s.ys, s.xs = -s.xs;
	yk_gpu_axes_of(&s.axes, rank, dims, 2, (const int64_t *const[]){ to, from });
	cut(d, op, &s);
	return s;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const struct scan *s,
		     struct yk_gpu_entry **to)
{
	const int t = op->out[0].dtype;
	const bool wide = yk_gpu_real(t) && yk_gpu_f64(d);
	struct yk_gpu_build b = { .file = "scan.cl", .name = "scan" };

	yk_gpu_define(&b, "DTYPE", t);
	yk_gpu_define(&b, "TILE", d->cpu_like ? TILE : 1);
	yk_gpu_flag(&b, "PROD", is_prod(op));
	yk_gpu_flag(&b, "USE_F64", wide);
	yk_gpu_flag(&b, "WIDE_ACC", wide);
	yk_gpu_flag(&b, "WIDE_INDEX", s->axes.rows > INT32_MAX);
	return yk_gpu_kernel_file(d, &b, to);
}

// View of the first elements of the scan along the axis.
static struct yoke_view begin(const struct yoke_op *op, const struct yoke_view *v)
{
	const int axis = (int)op->attr[0].i;
	struct yoke_view at = *v;

	if (op->attr[2].i)
		at.offset += (uint64_t)((v->dims[axis] - 1) * v->strides[axis]) *
			     yk_gpu_bytes(v->dtype);
	return at;
}

static int pass(struct yk_gpu_record *r, const struct yoke_op *op, const struct scan *s,
		const struct yk_gpu_entry *kernel, bool write)
{
	yk_gpu_begin(r, kernel);
	const struct yoke_view x = begin(op, &op->in[0]), y = begin(op, &op->out[0]);
	const int64_t group = r->device->cpu_like ? 1 : yk_gpu_min(GROUP, (int64_t)kernel->group);

	yk_gpu_arg_view(r, &y);
	yk_gpu_arg_view(r, &x);
	yk_gpu_arg_view_or(r, &op->workspace, &y);
	yk_gpu_arg_struct(r, s, sizeof *s);
	yk_gpu_arg_word(r, write);
	return yk_gpu_launch_groups(r,
				    yk_gpu_ceil_div(s->tiles * s->segments * s->axes.rows, group),
				    (size_t)group, "scan");
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct scan s = scan_of(r->device, op);
	struct yk_gpu_entry *kernel;

	(void)impl;
	if (!s.n || !s.axes.rows || !s.axes.cols)
		return 0;
	if (s.segments > 1) // fewer than the elements of x
		yk_gpu_workspace(r, (uint64_t)(s.segments * s.axes.rows * s.axes.cols) * 8);
	int err = kernel_of(r->device, op, &s, &kernel);
	if (!err && s.segments > 1)
		err = pass(r, op, &s, kernel, false);
	return err ? err : pass(r, op, &s, kernel, true);
}

static const char *const names[] = { "lines" };
YK_GPU_OP(scan, SCAN) = { .names = names, .nimpl = 1, .can = can, .record = record };
