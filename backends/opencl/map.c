// SPDX-License-Identifier: Apache-2.0
// MAP: kernels written by the host's generator, one for each form of program; dims,
// strides and constants are arguments.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "opencl.h"

// Items of a group, where the device allows as many.  A CPU driver runs a group as one
// loop: long ones.
#define GROUP_GPU 256
#define GROUP_CPU 1024

static int call_of(const struct yoke_op *op, struct yoke_map_call *call)
{
	call->size = sizeof *call;
	return yk_cl_host->map_call ? yk_cl_host->map_call(op, call) : YOKE_EUNSUPPORTED;
}

static uint64_t can(struct yk_cl_device *d, const struct yoke_op *op)
{
	struct yoke_map_call call;

	if (call_of(op, &call) < 0)
		return 0;
	if (call.dtypes & 1u << yoke_f64 && !(d->info.flags & YOKE_DEVICE_F64))
		return 0;
	return 8 * call.narg <= d->info.max_args;
}

// Finds or builds.
static int kernel_of(struct yk_cl_device *d, const struct yoke_op *op,
		     const struct yoke_map_call *call, struct yk_cl_entry **to)
{
	char name[32];

	if ((*to = yk_cl_kernel_find(d, call->key, call->key_bytes)))
		return 0;
	snprintf(name, sizeof name, "map_%016llx",
		 (unsigned long long)yk_cl_hash(call->key, call->key_bytes));
	int64_t bytes = yk_cl_host->map_source(YOKE_DIALECT_OPENCL, op, name, NULL, 0);
	if (bytes < 0)
		return yk_cl_error((int)bytes, "the generator refused %s", name);
	char *text = malloc((size_t)bytes + 1);
	if (!text)
		return yk_cl_error(YOKE_ENOMEM, "no memory for a kernel's text");
	yk_cl_host->map_source(YOKE_DIALECT_OPENCL, op, name, text, (size_t)bytes + 1);
	int err = yk_cl_kernel_build(d, call->key, call->key_bytes, text, d->options,
				     name, to);
	free(text);
	return err;
}

static int prepare(struct yk_cl_device *d, const struct yoke_op *op, uint32_t impl,
		   uint64_t *bytes)
{
	struct yoke_map_call call;
	struct yk_cl_entry *kernel;
	int err = call_of(op, &call);

	(void)impl;
	(void)bytes;
	if (err)
		return yk_cl_error(err, "a map that this backend does not take");
	return kernel_of(d, op, &call, &kernel);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

// A group takes as much of a row as it can, then further rows.
static void cut(const struct yk_cl_device *d, const struct yk_cl_entry *kernel,
		const struct yoke_map_call *call, size_t items[2], size_t group[2])
{
	size_t room = least(kernel->group,
			    d->info.kind == YOKE_DEVICE_CPU ? GROUP_CPU : GROUP_GPU);
	const uint64_t want[2] = { call->cols, call->rows };

	for (int i = 0; i < 2; i++) {
		size_t most = least(room, d->max_items[i]);
		group[i] = 1;
		while (group[i] * 2 <= most && group[i] < want[i])
			group[i] *= 2;
		room /= group[i];
		items[i] = (want[i] + group[i] - 1) / group[i] * group[i];
	}
}

static void *segment_of(const struct yoke_op *op, uint32_t operand)
{
	return operand < op->nout ? op->out[operand].segment :
				    op->in[operand - op->nout].segment;
}

static int run(struct yk_cl_queue *q, const struct yoke_op *op, uint32_t impl)
{
	struct yoke_map_call call;
	struct yk_cl_device *d = q->device;
	struct yk_cl_entry *kernel;
	size_t items[2], group[2];
	int err = call_of(op, &call);

	(void)impl;
	if (err)
		return yk_cl_error(err, "a map that this backend does not take");
	if (!call.cols || !call.rows)
		return 0;
	if ((err = kernel_of(d, op, &call, &kernel)))
		return err;
	struct yk_cl_args args = { kernel->kernel, 0, CL_SUCCESS };
	for (uint32_t i = 0; i < call.narg; i++) {
		int32_t k = call.arg[i].operand;
		if (k < 0)
			yk_cl_arg_word(&args, call.arg[i].word);
		else
			yk_cl_arg_segment(&args, segment_of(op, (uint32_t)k));
	}
	cut(d, kernel, &call, items, group);
	return yk_cl_launch(q, &args, call.rows > 1 ? 2 : 1, items, group, "a map");
}

static const char *const names[] = { "generated" };
const struct yk_cl_op yk_cl_map = { names, 1, can, prepare, run };
