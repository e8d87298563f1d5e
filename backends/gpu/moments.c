// SPDX-License-Identifier: Apache-2.0
// MOMENTS (means, covariances and extremes): cl/moments.cl; f32 and f64, any layout, on devices
// with f64.
#include "config.h"

#include "axes.h"

enum {
	CHUNKS = 256, PIECES = 64, // max row chunks, for sums and for products
	ROWS = 512,                // min rows per chunk
	SPACE = 1 << 23, // max doubles for the products of all chunks, if there is more than one
	CHANNELS = 1 << 13
};

// Matches struct moments of cl/moments.cl.
struct moments {
	int64_t rows, channels, rs, cs, ws, chunk, chunks, piece, pieces;
	int64_t mean, square_row, square_column, low, high, wanted;
};

// Tile of the products: items of a group along rows and columns, and elements per item.
struct tiling {
	int items_m, items_n, m, n;
};

static const struct tiling gpu[] = { { 16, 16, 2, 2 }, { 8, 8, 4, 4 }, { 1, 1, 4, 4 } };
static const struct tiling cpu[] = { { 1, 1, 4, 16 } };
enum { BK = 32 };

static const struct tiling *tiling_of(const struct yk_gpu_device *d)
{
	const struct tiling *t = d->cpu_like ? cpu : gpu;
	const int n = d->cpu_like ? sizeof cpu / sizeof *cpu : sizeof gpu / sizeof *gpu;

	for (int i = 0; i < n; i++, t++) {
		const size_t items_m = (size_t)t->items_m, items_n = (size_t)t->items_n;
		const int local = BK * (t->items_m * t->m + t->items_n * t->n);
		if (items_m * items_n <= d->max_group && items_n <= d->max_items[0] &&
		    items_m <= d->max_items[1] && (size_t)local * sizeof(double) <= d->local_bytes)
			return t;
	}
	return NULL;
}

static bool there(const struct yoke_view *v)
{
	return v->kind != YOKE_VIEW_NONE;
}

static struct moments moments_of(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = op->out;
	const bool diagonal = op->attr[0].i;
	struct moments s = { .rows = x->dims[0],
			     .channels = x->dims[1],
			     .rs = x->strides[0],
			     .cs = x->strides[1],
			     .ws = op->in[1].strides[0],
			     .mean = y[1].strides[0],
			     .low = y[3].strides[0],
			     .high = y[4].strides[0],
			     .square_row = diagonal ? 0 : y[2].strides[0],
			     .square_column = y[2].strides[!diagonal] };
	const int64_t max = diagonal ? PIECES : SPACE / (s.channels * s.channels);

	s.chunks = yk_gpu_min(CHUNKS, yk_gpu_ceil_div(s.rows, ROWS));
	s.pieces = yk_gpu_min(PIECES, yk_gpu_ceil_div(s.rows, ROWS));
	s.pieces = max < 1 && s.pieces ? 1 : yk_gpu_min(s.pieces, max);
	s.chunk = s.chunks ? yk_gpu_ceil_div(s.rows, s.chunks) : 0;
	s.piece = s.pieces ? yk_gpu_ceil_div(s.rows, s.pieces) : 0;
	for (int k = 0; k < 5; k++)
		s.wanted |= (int64_t)there(&y[k]) << k;
	return s;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 5 || op->nattr < 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *w = &op->in[1];
	if (x->kind != YOKE_VIEW_BUFFER || x->rank != 2 ||
	    (x->dtype != yoke_f32 && x->dtype != yoke_f64) ||
	    (there(w) && (w->kind != YOKE_VIEW_BUFFER || w->dtype != x->dtype)))
		return 0;
	return x->dims[0] < INT32_MAX && x->dims[1] >= 1 && x->dims[1] <= CHANNELS &&
	       d->info.max_args >= sizeof(struct moments) + 10 * 8 && yk_gpu_f64(d) && tiling_of(d);
}

static int launch_items(struct yk_gpu_record *r, const struct yk_gpu_entry *kernel, int64_t x,
			int64_t y, const char *name)
{
	const size_t group[2] = {
		r->device->cpu_like ? 1 : (size_t)yk_gpu_min(64, (int64_t)kernel->group), 1
	};
	const size_t items[2] = { (size_t)yk_gpu_ceil_div(x, (int64_t)group[0]) * group[0],
				  (size_t)y };

	return yk_gpu_launch(r, 2, items, group, name);
}

static int kernel_of(struct yk_gpu_record *r, const struct yoke_op *op, const struct tiling *t,
		     const char *name, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "moments.cl", .name = name };

	yk_gpu_define(&b, "WG_M", t->items_m);
	yk_gpu_define(&b, "WG_N", t->items_n);
	yk_gpu_define(&b, "TM", t->m);
	yk_gpu_define(&b, "TN", t->n);
	yk_gpu_define(&b, "BK", BK);
	yk_gpu_define(&b, "DTYPE", op->in[0].dtype);
	yk_gpu_flag(&b, "WEIGHED", there(&op->in[1]));
	yk_gpu_flag(&b, "DIAGONAL", op->attr[0].i != 0);
	yk_gpu_flag(&b, "USE_F64", true);
	yk_gpu_flag(&b, "WIDE_ACC", true);
	return yk_gpu_kernel_file(r->device, &b, to);
}

// Arguments common to the kernels that read x: workspace, x, weights.
static void reads(struct yk_gpu_record *r, const struct yk_gpu_entry *kernel,
		  const struct yoke_op *op, const struct moments *s)
{
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_view(r, &op->in[0]);
	yk_gpu_arg_view_or(r, &op->in[1], &op->in[0]);
	yk_gpu_arg_struct(r, s, sizeof *s);
}

static int sums(struct yk_gpu_record *r, const struct yoke_op *op, const struct tiling *t,
		const struct moments *s)
{
	static const int results[] = { 0, 1, 3, 4 };
	struct yk_gpu_entry *kernel;
	int err = s->chunks ? kernel_of(r, op, t, "moments_sums", &kernel) : 0;

	if (!err && s->chunks) {
		reads(r, kernel, op, s);
		err = launch_items(r, kernel, s->channels, s->chunks, "moments_sums");
	}
	if (!err)
		err = kernel_of(r, op, t, "moments_join", &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->workspace);
	for (int k = 0; k < 4; k++)
		yk_gpu_arg_view_or(r, &op->out[results[k]], &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
	return launch_items(r, kernel, s->channels, 1, "moments_join");
}

static int squares(struct yk_gpu_record *r, const struct yoke_op *op, const struct tiling *t,
		   const struct moments *s)
{
	const bool diagonal = op->attr[0].i;
	struct yk_gpu_entry *kernel;
	int err = s->pieces ? kernel_of(r, op, t, "moments_products", &kernel) : 0;

	if (!err && s->pieces) {
		const size_t group[3] = { (size_t)t->items_n, (size_t)t->items_m, 1 };
		const size_t items[3] = {
			(size_t)yk_gpu_ceil_div(s->channels, t->items_n * t->n) * group[0],
			(size_t)yk_gpu_ceil_div(s->channels, t->items_m * t->m) * group[1],
			(size_t)s->pieces
		};
		reads(r, kernel, op, s);
		err = diagonal ?
			      launch_items(r, kernel, s->channels, s->pieces, "moments_products") :
			      yk_gpu_launch(r, 3, items, group, "moments_products");
	}
	if (!err)
		err = kernel_of(r, op, t, "moments_square", &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->out[2]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, s, sizeof *s);
	return launch_items(r, kernel, s->channels, diagonal ? 1 : s->channels, "moments_square");
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct tiling *t = tiling_of(r->device);
	const struct moments s = moments_of(op);
	const int64_t square = op->attr[0].i ? s.channels : s.channels * s.channels;

	(void)impl;
	yk_gpu_workspace(r, (uint64_t)((4 * s.chunks + 1) * s.channels + s.pieces * square) *
				    sizeof(double));
	int err = sums(r, op, t, &s);
	return err || !there(&op->out[2]) ? err : squares(r, op, t, &s);
}

static const char *const names[] = { "tiled" };
YK_GPU_OP(moments, MOMENTS) = { .names = names, .nimpl = 1, .can = can, .record = record };
