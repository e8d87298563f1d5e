// SPDX-License-Identifier: Apache-2.0
// SCAN_MAP (recurrences): generated functions inside the kernel of cl/scan_map.cl.
#include "config.h"

#include "axes.h"

enum { GROUP = 64 };

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct yk_gpu_build b = { .file = "scan_map.cl", .name = "scan_map" };
	struct yoke_map_call call;
	struct yk_gpu_entry *kernel;
	int err = yk_gpu_map_call(op, &call);

	(void)impl;
	if (err)
		return yk_gpu_error(err, "unsupported recurrence");
	if (!call.count[0] || !call.count[1])
		return 0;
	yk_gpu_flag(&b, "OWN_MATH", r->device->cpu_like);
	if ((err = yk_gpu_kernel_map(r->device, op, &call, &b, &kernel)))
		return err;
	const size_t group = (size_t)yk_gpu_min(GROUP, (int64_t)kernel->group);
	const size_t items[2] = { (call.count[1] + group - 1) / group * group, call.count[0] };
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_word(r, call.count[1]);
	yk_gpu_arg_word(r, call.count[0]);
	yk_gpu_arg_word(r, call.count[3]);
	yk_gpu_arg_word(r, op->attr[1].i != 0);
	yk_gpu_arg_map(r, op, &call);
	return yk_gpu_launch(r, 2, items, (const size_t[]){ group, 1 }, "a recurrence");
}

static const char *const names[] = { "generated" };
YK_GPU_OP(scan_map, SCAN_MAP) = {
	.names = names, .nimpl = 1, .can = yk_gpu_map_can, .record = record,
};
