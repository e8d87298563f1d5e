// SPDX-License-Identifier: Apache-2.0
// FFT: cl/fft.cl, for lengths that fit into local memory and have small prime factors. Others are
// decomposed into these.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axes.h"
#include "launch.h"

enum { COMPLEX, TO_HALF, TO_REAL };
enum {
	ITEMS = 128,    // of a group
	FACTORS = 12,   // max factors of a length
	MAX_PRIME = 127 // a pass takes time in proportion to its factor
};

// Matches struct fft of cl/fft.cl.
struct fft {
	struct yk_gpu_axes axes;
	int64_t ys, yp, xs, xp;
	int64_t n, kind, inverse, weight;
	uint64_t scale;
	int64_t lines, factors, factor[FACTORS];
};

// Elements of a group: the fewest of these that hold a line; 0: it does not fit.
static int64_t size_of(const struct yk_gpu_device *d, int dtype, int64_t n)
{
	static const int64_t sizes[] = { 1024, 1536, 2048, 3072, 4096 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i] >= n)
			return (uint64_t)sizes[i] * 4 * yk_gpu_bytes(dtype) <= d->local_bytes ?
				       sizes[i] :
				       0;
	return 0;
}

static bool factorize(struct fft *f)
{
	int64_t n = f->n;

	f->factors = 0;
	for (int64_t p = 4; n > 1;) {
		while (n % p == 0 && f->factors < FACTORS) {
			f->factor[f->factors++] = p;
			n /= p;
		}
		p = p == 4 ? 2 : p + 1 + (p > 2);
		if (p > MAX_PRIME || f->factors == FACTORS)
			break;
	}
	return n == 1;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];

	if (op->nin != 1 || op->nout != 1 || op->nattr != 5 || x->kind != YOKE_VIEW_BUFFER ||
	    y->kind != YOKE_VIEW_BUFFER || x->dtype != y->dtype ||
	    !yk_gpu_f32_or_f64(d, x->dtype) || op->attr[0].i < COMPLEX || op->attr[0].i > TO_REAL)
		return 0;
	struct fft f = { .n = op->attr[1].i };
	return f.n >= 1 && size_of(d, x->dtype, f.n) && factorize(&f) &&
	       d->info.max_args >= sizeof f + 5 * 8 && yk_gpu_fits_group(d, ITEMS);
}

// exp(-2 pi i k / n) for all k, as pairs of the dtype
static int table_of(struct yk_gpu_record *r, int64_t n, int dtype, void **to)
{
	const size_t bytes = 2 * yk_gpu_bytes(dtype);
	uint64_t *words = malloc((size_t)n * bytes);

	if (!words)
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a table of %lld elements",
				    (long long)n);
	for (int64_t k = 0; k < n; k++) {
		const double a = -2 * M_PI * (double)(2 * k > n ? k - n : k) / (double)n,
			     wide[] = { cos(a), sin(a) };
		const float narrow[] = { (float)wide[0], (float)wide[1] };
		memcpy((char *)words + (size_t)k * bytes,
		       dtype == yoke_f64 ? (const void *)wide : narrow, bytes);
	}
	const int err = yk_gpu_table(r, words, (size_t)n * bytes / sizeof *words, to);
	free(words);
	return err;
}

static struct fft fft_of(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	struct fft f = { .kind = op->attr[0].i,
			 .n = op->attr[1].i,
			 .inverse = op->attr[2].i,
			 .weight = op->attr[3].i };
	const int lead = x->rank - 1 - (f.kind != TO_HALF);
	const float scale = (float)op->attr[4].f;
	uint32_t low;

	yk_gpu_axes_of(&f.axes, lead, x->dims, 2,
		       (const int64_t *const[]){ y->strides, x->strides });
	// treat all axes as rows
	f.axes.rows *= f.axes.cols;
	f.axes.cols = f.axes.dims[f.axes.rank++] = 1;
	f.ys = y->strides[lead];
	f.xs = x->strides[lead];
	f.yp = f.kind == TO_REAL ? 0 : y->strides[lead + 1];
	f.xp = f.kind == TO_HALF ? 0 : x->strides[lead + 1];
	memcpy(&f.scale, &op->attr[4].f, sizeof f.scale);
	memcpy(&low, &scale, sizeof low);
	if (x->dtype == yoke_f32)
		f.scale = low;
	factorize(&f);
	return f;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const int dtype = op->in[0].dtype;
	const int64_t items = r->device->cpu_like ? 1 : ITEMS,
		      size = size_of(r->device, dtype, op->attr[1].i);
	struct fft f = fft_of(op);
	struct yk_gpu_entry *kernel;
	void *turn;

	(void)impl;
	if (!f.axes.rows)
		return 0;
	f.lines = size / f.n;
	struct yk_gpu_build b = { .file = "fft.cl", .name = "fft" };
	yk_gpu_define(&b, "DTYPE", dtype);
	yk_gpu_flag(&b, "USE_F64", dtype == yoke_f64);
	yk_gpu_flag(&b, "WIDE_INDEX", f.axes.rows > INT32_MAX);
	yk_gpu_define(&b, "ITEMS", items);
	yk_gpu_define(&b, "SIZE", size);
	int err = yk_gpu_kernel_file(r->device, &b, &kernel);
	if (!err)
		err = table_of(r, f.n, dtype, &turn);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, &op->out[0]);
	yk_gpu_arg_view(r, &op->in[0]);
	yk_gpu_arg_mem(r, turn);
	yk_gpu_arg_struct(r, &f, sizeof f);
	return yk_gpu_launch_groups(
		r, yk_gpu_max_groups(r->device, yk_gpu_ceil_div(f.axes.rows, f.lines)),
		(size_t)items, "fft");
}

static const char *const names[] = { "local" };
YK_GPU_OP(fft, FFT) = { .names = names, .nimpl = 1, .can = can, .record = record };
