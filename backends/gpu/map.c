// SPDX-License-Identifier: Apache-2.0
// MAP: functions written by the host's generator inside the kernel of cl/map.cl; dims,
// strides and constants are arguments.
#include "config.h"

#include "axes.h"
#include "rows.h"

int yk_gpu_map_call(const struct yoke_op *op, struct yoke_map_call *call)
{
	call->size = sizeof *call;
	return yk_gpu_host->map_call(op, call);
}

uint64_t yk_gpu_map_can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	struct yoke_map_call call;

	if (yk_gpu_map_call(op, &call) < 0)
		return 0;
	if (call.dtypes & 1u << yoke_f64 && !yk_gpu_f64(d))
		return 0;
	return 8 * (call.narg + 4) <= d->info.max_args;
}

// Is every output huge, and does every row of it begin on a line?
static bool streams(const struct yk_gpu_device *d, const struct yoke_op *op,
		    const struct yoke_map_call *call)
{
	const uint64_t rows = call->count[0], cols = call->count[1];

	if (!d->loops || !rows)
		return false;
	for (uint32_t k = 0; k < op->nout; k++) {
		const size_t size = yk_gpu_bytes(op->out[k].dtype);
		if (cols < d->stream_bytes / size / rows || op->out[k].align < 64 ||
		    !yk_gpu_dense(&op->out[k]) || (rows > 1 && cols * size % 64))
			return false;
	}
	return true;
}

// A few lines of each output at a time.
static int block_of(const struct yoke_op *op)
{
	size_t least = 4;

	for (uint32_t k = 0; k < op->nout; k++)
		if (yk_gpu_bytes(op->out[k].dtype) < least)
			least = yk_gpu_bytes(op->out[k].dtype);
	return 256 / (int)least;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op,
		     const struct yoke_map_call *call, bool stream, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "map.cl", .name = "map" };

	if (d->loops) {
		yk_gpu_define(&b, "MAP_BLOCK", block_of(op));
		yk_gpu_flag(&b, "OWN_MATH", true);
		yk_gpu_flag(&b, "MAP_STREAM", stream);
	}
	return yk_gpu_kernel_map(d, op, call, &b, to);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct yoke_map_call call;
	struct yk_gpu_device *d = r->device;
	struct yk_gpu_entry *kernel;
	int err = yk_gpu_map_call(op, &call);

	(void)impl;
	if (err)
		return yk_gpu_error(err, "a map that this backend does not take");
	if (!call.count[0])
		return 0;
	if ((err = kernel_of(d, op, &call, streams(d, op, &call), &kernel)))
		return err;
	struct yk_gpu_cut c = yk_gpu_cut_of(d, kernel, call.count[1], call.count[0], 1);
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_word(r, call.count[1]);
	yk_gpu_arg_word(r, call.count[0]);
	yk_gpu_arg_cut(r, &c);
	yk_gpu_arg_map(r, &call);
	return yk_gpu_launch(r, 2, c.items, c.group, "a map");
}

static const char *const names[] = { "generated" };
const struct yk_gpu_op yk_gpu_map = { .names = names, .nimpl = 1, .can = yk_gpu_map_can, .record = record };
