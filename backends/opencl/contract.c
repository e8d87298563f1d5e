// SPDX-License-Identifier: Apache-2.0
// CONTRACT in f32 without a map behind it: cl/contract.cl with a tiling for the kind of
// device.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool can(struct yk_cl_device *d, const struct yoke_op *op)
{
	const struct tiling *t = tiling_of(d);
	struct shape s;

	return shape_of(op, &s) && t->local <= d->local_bytes &&
	       d->info.max_args >= 8 * 38;
}

static int kernel_of(struct yk_cl_device *d, struct yk_cl_entry **to)
{
	static const char key[] = "contract";
	char options[256];
	const char *prologue, *body;

	if ((*to = yk_cl_kernel_find(d, key, sizeof key)))
		return 0;
	prologue = yk_cl_host->kernel_text("prologue_opencl.h");
	body = yk_cl_host->kernel_text("contract.cl");
	if (!prologue || !body)
		return yk_cl_error(YOKE_ENOENT, "the text of contract.cl is missing");
	size_t cap = strlen(prologue) + strlen(body) + 1;
	char *text = malloc(cap);
	if (!text)
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's text");
	snprintf(text, cap, "%s%s", prologue, body);
	snprintf(options, sizeof options, "%s %s", d->options, tiling_of(d)->defines);
	int err = yk_cl_kernel_build(d, key, sizeof key, text, options, "contract", to);
	free(text);
	return err;
}

static int build(struct yk_cl_device *d, const struct yoke_op *op)
{
	struct yk_cl_entry *kernel;
	int err = yk_cl_device_open(d);

	(void)op;
	if (err)
		return err;
	pthread_mutex_lock(&d->lock);
	err = kernel_of(d, &kernel);
	pthread_mutex_unlock(&d->lock);
	return err;
}

static size_t groups(size_t elements, size_t block)
{
	return (elements + block - 1) / block;
}

static void add_words(struct yk_cl_args *args, const int64_t *words, int n)
{
	for (int i = 0; i < n; i++)
		yk_cl_arg_word(args, (uint64_t)words[i]);
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

	for (int i = 0; i < 3; i++) {
		yk_cl_arg_segment(&args, s->views[i]->segment);
		yk_cl_arg_word(&args, s->views[i]->offset);
	}
	add_words(&args, sizes, 3);
	for (int i = 0; i < 3; i++)
		add_words(&args, s->views[i]->strides + r, 2);
	add_words(&args, s->dims + 1, BATCH - 1);
	add_words(&args, s->y, BATCH);
	add_words(&args, s->a, BATCH);
	add_words(&args, s->b, BATCH);
	for (int i = 0; i < 2; i++)
		items[i] = groups((size_t)extent[i], t->block[i]) * t->items[i];
	return yk_cl_launch(q, &args, 3, items, group, "contract");
}

static int run(struct yk_cl_queue *q, const struct yoke_op *op)
{
	struct shape s;
	struct yk_cl_entry *kernel;
	int err;

	if (!shape_of(op, &s))
		return yk_cl_error(YOKE_EUNSUPPORTED,
				   "a contraction that this backend does not take");
	if (!s.m || !s.n || !s.batch)
		return 0;
	pthread_mutex_lock(&q->device->lock);
	err = kernel_of(q->device, &kernel);
	if (!err)
		err = launch(q, &s, kernel);
	pthread_mutex_unlock(&q->device->lock);
	return err;
}

const struct yk_cl_op yk_cl_contract = { can, build, run, "tiled" };
