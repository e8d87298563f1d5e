// SPDX-License-Identifier: Apache-2.0
// CONTRACT in f32 without a map behind it: cl/contract.cl with a tiling for the kind of
// device.
#include "config.h"

#include "opencl.h"

#define BATCH 6

// Items along N and M, elements of y of a group along N and M, bytes of local memory.
struct tiling {
	size_t items[2], block[2], local;
	const char *defines;
};

static const struct tiling gpu = {
	{ 16, 16 }, { 64, 64 }, 16 * (64 + 64) * 4,
	"-DWG_M=16 -DWG_N=16 -DTM=4 -DTN=4 -DBK=16"
};
// One item a group, since drivers for CPUs run a group as a loop over its items; sizes
// from trials on PoCL: 12 accumulators of 16 lanes, blocks that stay in the second-level
// cache.
static const struct tiling cpu = {
	{ 1, 1 }, { 128, 96 }, 64 * (128 + 96) * 4,
	"-DWG_M=1 -DWG_N=1 -DVEC_WIDTH=16 -DTM=12 -DTN=1 -DSM=8 -DSN=8 -DBK=64"
};
// For devices of small groups or little local memory.
static const struct tiling least = {
	{ 1, 1 }, { 4, 4 }, 16 * (4 + 4) * 4, "-DWG_M=1 -DWG_N=1 -DTM=4 -DTN=4 -DBK=16"
};

// Both matrices and the product with their leading axes merged where all three allow it.
struct shape {
	int64_t m, n, k, batch, dims[BATCH];
	int64_t y[BATCH], a[BATCH], b[BATCH]; // strides of leading axes
	const struct yoke_view *views[3];     // y, a, b
};

static const struct tiling *tiling_of(const struct yk_cl_device *d)
{
	const struct tiling *t = d->info.kind == YOKE_DEVICE_CPU ? &cpu : &gpu;
	bool fits = t->items[0] * t->items[1] <= d->max_group &&
		    t->items[0] <= d->max_items[0] && t->items[1] <= d->max_items[1] &&
		    t->local <= d->local_bytes;
	return fits ? t : &least;
}

static bool views_fit(const struct yoke_op *op)
{
	if (op->code != YOKE_OP_CONTRACT || op->map || op->nout != 1 || op->nin != 2)
		return false;
	const struct yoke_view *v[] = { &op->out[0], &op->in[0], &op->in[1] };
	for (int i = 0; i < 3; i++)
		if (v[i]->kind != YOKE_VIEW_BUFFER || v[i]->dtype != yoke_f32 ||
		    v[i]->rank < 2 || v[i]->rank > YOKE_MAX_RANK ||
		    v[i]->rank != v[0]->rank)
			return false;
	for (int i = 0; i < v[0]->rank; i++)
		if (v[0]->dims[i] < 0)
			return false;
	for (int i = 0; i < v[0]->rank - 2; i++)
		if (v[1]->dims[i] != v[0]->dims[i] || v[2]->dims[i] != v[0]->dims[i])
			return false;
	int r = v[0]->rank - 2;
	return v[1]->dims[r] == v[0]->dims[r] && v[2]->dims[r + 1] == v[0]->dims[r + 1] &&
	       v[1]->dims[r + 1] == v[2]->dims[r] && v[2]->dims[r] >= 0;
}

// Leading axes, from the last one on, into s->dims[BATCH - 1], ..; the rest have 1
// element.
static bool shape_of(const struct yoke_op *op, struct shape *s)
{
	if (!views_fit(op))
		return false;
	const struct yoke_view *y = &op->out[0], *a = &op->in[0], *b = &op->in[1];
	int r = y->rank - 2, to = BATCH;

	*s = (struct shape){ .m = y->dims[r],
			     .n = y->dims[r + 1],
			     .k = a->dims[r + 1],
			     .batch = 1,
			     .views = { y, a, b } };
	for (int i = 0; i < BATCH; i++)
		s->dims[i] = 1;
	for (int i = r - 1; i >= 0; i--) {
		int64_t n = y->dims[i];
		if (__builtin_mul_overflow(s->batch, n, &s->batch))
			return false;
		if (n == 1)
			continue;
		if (to < BATCH && y->strides[i] == s->y[to] * s->dims[to] &&
		    a->strides[i] == s->a[to] * s->dims[to] &&
		    b->strides[i] == s->b[to] * s->dims[to]) {
			s->dims[to] *= n;
			continue;
		}
		to--;
		s->dims[to] = n;
		s->y[to] = y->strides[i];
		s->a[to] = a->strides[i];
		s->b[to] = b->strides[i];
	}
	return true;
}

static uint64_t can(struct yk_cl_device *d, const struct yoke_op *op)
{
	const struct tiling *t = tiling_of(d);
	struct shape s;

	return shape_of(op, &s) && t->local <= d->local_bytes &&
	       d->info.max_args >= 8 * 38;
}

static int kernel_of(struct yk_cl_device *d, struct yk_cl_entry **to)
{
	return yk_cl_kernel_file(d, "contract.cl", tiling_of(d)->defines, "contract", to);
}

static int prepare(struct yk_cl_device *d, const struct yoke_op *op, uint32_t impl,
		   uint64_t *bytes)
{
	struct yk_cl_entry *kernel;

	(void)op;
	(void)impl;
	(void)bytes;
	return kernel_of(d, &kernel);
}

static size_t groups(size_t elements, size_t block)
{
	return (elements + block - 1) / block;
}

static int launch(struct yk_cl_queue *q, const struct shape *s,
		  struct yk_cl_entry *kernel)
{
	const struct tiling *t = tiling_of(q->device);
	struct yk_cl_args args = { kernel->kernel, 0, CL_SUCCESS };
	const int64_t sizes[] = { s->m, s->n, s->k };
	const int64_t extent[] = { s->n, s->m };
	size_t items[3] = { 0, 0, (size_t)s->batch },
	       group[3] = { t->items[0], t->items[1], 1 };
	int r = s->views[0]->rank - 2;

	for (int i = 0; i < 3; i++)
		yk_cl_arg_view(&args, s->views[i]);
	yk_cl_arg_words(&args, sizes, 3);
	for (int i = 0; i < 3; i++)
		yk_cl_arg_words(&args, s->views[i]->strides + r, 2);
	yk_cl_arg_words(&args, s->dims + 1, BATCH - 1);
	yk_cl_arg_words(&args, s->y, BATCH);
	yk_cl_arg_words(&args, s->a, BATCH);
	yk_cl_arg_words(&args, s->b, BATCH);
	for (int i = 0; i < 2; i++)
		items[i] = groups((size_t)extent[i], t->block[i]) * t->items[i];
	return yk_cl_launch(q, &args, 3, items, group, "contract");
}

static int run(struct yk_cl_queue *q, const struct yoke_op *op, uint32_t impl)
{
	struct shape s;
	struct yk_cl_entry *kernel;
	int err;

	(void)impl;
	if (!shape_of(op, &s))
		return yk_cl_error(YOKE_EUNSUPPORTED,
				   "a contraction that this backend does not take");
	if (!s.m || !s.n || !s.batch)
		return 0;
	err = kernel_of(q->device, &kernel);
	return err ? err : launch(q, &s, kernel);
}

static const char *const names[] = { "tiled" };
const struct yk_cl_op yk_cl_contract = { names, 1, can, prepare, run };
