// SPDX-License-Identifier: Apache-2.0
// MAP (fused elementwise ops): generated functions inside the kernel of cl/map.cl; dims, strides
// and constants are arguments.
#include "config.h"

#include "axes.h"
#include "rows.h"

// max instructions of a program for which an item computes four elements at a time
enum { FOURS = 32 };

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

// True if every output is large and each of its rows starts on a cache line.
static bool streams(const struct yk_gpu_device *d, const struct yoke_op *op,
		    const struct yoke_map_call *call)
{
	const uint64_t rows = call->count[0], cols = call->count[1];

	if (!d->cpu_like || !rows)
		return false;
	for (uint32_t k = 0; k < op->nout; k++) {
		const size_t size = yk_gpu_bytes(op->out[k].dtype);
		if (cols < d->stream_bytes / size / rows || op->out[k].align < 64 ||
		    !yk_gpu_dense(&op->out[k]) || (rows > 1 && cols * size % 64))
			return false;
	}
	return true;
}

// Elements per item: a few cache lines of each output.
static int block_of(const struct yoke_op *op)
{
	size_t min = 4;

	for (uint32_t k = 0; k < op->nout; k++)
		if (yk_gpu_bytes(op->out[k].dtype) < min)
			min = yk_gpu_bytes(op->out[k].dtype);
	return 256 / (int)min;
}

bool yk_gpu_fours(const struct yk_gpu_device *d, const struct yoke_map *m)
{
	bool heavy = m->ninsn > FOURS;

	for (unsigned k = 0; k < m->ninsn; k++) {
		const int op = m->insn[k].op, dtype = m->insn[k].dtype;
		heavy |= dtype == yoke_f64 || op == YOKE_MAP_POW || op == YOKE_MAP_MOD ||
			 op == YOKE_MAP_NORMAL || op == YOKE_MAP_SIN || op == YOKE_MAP_COS ||
			 (op == YOKE_MAP_DIV && !yk_gpu_real(dtype));
	}
	return !heavy && !d->cpu_like && yk_gpu_driver.dialect == YOKE_DIALECT_CUDA;
}

// Returns 4 if rows can be accessed four elements at a time, which all operands' layouts must
// allow; otherwise 1.
static int64_t fours(const struct yk_gpu_device *d, const struct yoke_op *op,
		     const struct yoke_map_call *call)
{
	if (call->count[1] % 4 || !yk_gpu_fours(d, op->map))
		return 1;
	for (uint32_t k = 0; k < op->nout + op->nin; k++) {
		const struct yoke_view *v = k < op->nout ? &op->out[k] : &op->in[k - op->nout];
		const size_t size = yk_gpu_bytes(v->dtype);
		if (v->kind == YOKE_VIEW_BUFFER && (size == 2 || size == 4) &&
		    yk_gpu_elements(v) > 1 && !yk_gpu_aligned(v, 4 * size))
			return 1;
	}
	return 4;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op,
		     const struct yoke_map_call *call, int64_t four, int64_t each,
		     struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "map.cl", .name = "map" };

	if (d->cpu_like) {
		yk_gpu_define(&b, "MAP_BLOCK", block_of(op));
		yk_gpu_flag(&b, "OWN_MATH", true);
		yk_gpu_flag(&b, "MAP_STREAM", streams(d, op, call));
	} else {
		yk_gpu_define(&b, "MAP_EACH", each);
		yk_gpu_flag(&b, "MAP_QUAD", four > 1);
	}
	return yk_gpu_kernel_map(d, op, call, &b, to);
}

int yk_gpu_map_record(struct yk_gpu_record *r, const struct yoke_op *op)
{
	struct yoke_map_call call;
	struct yk_gpu_device *d = r->device;
	struct yk_gpu_entry *kernel;
	int err = yk_gpu_map_call(op, &call);

	if (err)
		return yk_gpu_error(err, "unsupported map");
	if (!call.count[0])
		return 0;
	const int64_t four = fours(d, op, &call);
	struct yk_gpu_division c = { .block = { 1, 1 } };
	// The max group size depends on the kernel, and the kernel on the block size, which only
	// grows: iterate until it is stable.
	for (size_t block = 0; block < c.block[0];) {
		block = c.block[0];
		if ((err = kernel_of(d, op, &call, four, four * (int64_t)block, &kernel)))
			return err;
		c = yk_gpu_division_of(d, kernel, call.count[1] / (uint64_t)four, call.count[0], 1);
		block = d->cpu_like ? c.block[0] : block;
	}
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_word(r, call.count[1]);
	yk_gpu_arg_word(r, call.count[0]);
	yk_gpu_arg_division(r, &c);
	yk_gpu_arg_map(r, op, &call);
	return yk_gpu_launch(r, 2, c.items, c.group, "a map");
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return yk_gpu_map_record(r, op);
}

static const char *const names[] = { "generated" };
YK_GPU_OP(map, MAP) = { .names = names, .nimpl = 1, .can = yk_gpu_map_can, .record = record };
