// SPDX-License-Identifier: Apache-2.0
// SOURCE: runs kernels whose text the application supplies.
#include "config.h"

#include "rows.h"

static bool good_sizes(const struct yk_gpu_device *d, const struct yoke_source *s)
{
	const bool free = !s->local[0] && !s->local[1] && !s->local[2];
	uint64_t group = 1;

	for (int i = 0; i < 3; i++) {
		if (!s->global[i] || s->global[i] > SIZE_MAX ||
		    (!free &&
		     (!s->local[i] || s->local[i] > d->max_group || s->global[i] % s->local[i])))
			return false;
		group *= free ? 1 : s->local[i];
	}
	return group <= d->max_group;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_source *s = op->source;

	if (!s || s->size < sizeof *s || (int)s->dialect != yk_gpu_driver.dialect || !s->text ||
	    !s->entry || op->nattr > YOKE_MAX_ATTRS || !good_sizes(d, s) ||
	    (uint64_t)(op->nout + op->nin) * 16 + op->nattr * 8u > d->info.max_args)
		return 0;
	for (uint32_t i = 0; i < op->nout; i++)
		if (!yk_gpu_dense(&op->out[i]))
			return 0;
	for (uint32_t i = 0; i < op->nin; i++)
		if (yk_gpu_present(&op->in[i]) && !yk_gpu_dense(&op->in[i]))
			return 0;
	return 1;
}

// Checks that the kernel accepts these arguments. Uses the prototype kernel, whose arguments no
// launch uses.
static int check_args(const struct yk_gpu_entry *e, const struct yoke_op *op, size_t group)
{
	const uint32_t views = 2 * (op->nout + op->nin), want = views + op->nattr;
	void *const none = NULL;
	const uint64_t word = 0;
	const uint32_t n = yk_gpu_driver.kernel_params(e->kernel);

	if (n != UINT32_MAX && n != want)
		return yk_gpu_error(YOKE_EUNSUPPORTED,
				    "kernel %s has %u parameters, but the op passes %u: a "
				    "segment and an offset per operand and a word per attribute",
				    e->build.name, n, want);
	for (uint32_t i = 0; i < want; i++) {
		const bool segment = i < views && i % 2 == 0;
		if (segment ? yk_gpu_driver.arg(e->kernel, i, sizeof none, &none) :
			      yk_gpu_driver.arg(e->kernel, i, sizeof word, &word))
			return yk_gpu_error(YOKE_EUNSUPPORTED,
					    "parameter %u of kernel %s is not %s", i, e->build.name,
					    segment ? "a pointer to global memory" : "of 8 bytes");
	}
	if (group > e->group)
		return yk_gpu_error(YOKE_EUNSUPPORTED,
				    "kernel %s runs in groups of at most %zu items, not "
				    "of %zu",
				    e->build.name, e->group, group);
	return 0;
}

static void arg(struct yk_gpu_record *r, const struct yoke_view *v)
{
	if (yk_gpu_present(v)) {
		yk_gpu_arg_view(r, v);
	} else {
		yk_gpu_arg_mem(r, NULL);
		yk_gpu_arg_word(r, 0);
	}
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_source *s = op->source;
	size_t items[3], group[3];
	struct yk_gpu_entry *e;
	int err = yk_gpu_kernel_source(r->device, s, &e);

	(void)impl;
	for (int i = 0; i < 3; i++) {
		items[i] = (size_t)s->global[i];
		group[i] = (size_t)s->local[i];
	}
	if (err || (err = check_args(e, op, group[0] * group[1] * group[2])))
		return err;
	yk_gpu_begin(r, e);
	for (uint32_t i = 0; i < op->nout; i++)
		arg(r, &op->out[i]);
	for (uint32_t i = 0; i < op->nin; i++)
		arg(r, &op->in[i]);
	for (int i = 0; i < op->nattr; i++)
		yk_gpu_arg_word(r, (uint64_t)op->attr[i].i);
	return yk_gpu_launch(r, 3, items, group, e->build.name);
}

static const char *const names[] = { "source" };
YK_GPU_OP(source, SOURCE) = { .names = names, .nimpl = 1, .can = can, .record = record };
