// SPDX-License-Identifier: Apache-2.0
// The OpenCL plugin: its driver table for the launch layer of backends/gpu.
#include "config.h"

#include "../gpu/contract.h"
#include "opencl.h"

static const struct yoke_setting profile = {
	sizeof profile, "opencl.profile", "bool", "0",
	"record execution times on OpenCL queues",
};

const struct yk_gpu_driver yk_gpu_driver = {
	.name = "opencl",
	.title = "OpenCL",
	.version = "OpenCL 1.2",
	.dialect = YOKE_DIALECT_OPENCL,
	.profile = &profile,
	.library = { &yk_cl_clblast },
	.start = yk_cl_clblast_start,
	.code_name = yk_cl_name,
	.is_memory = yk_cl_is_memory,
	.probe = yk_cl_probe,
	.open = yk_cl_open,
	.build = yk_cl_build,
	.load = yk_cl_load,
	.binary = yk_cl_binary,
	.program_free = yk_cl_program_free,
	.build_lock = yk_cl_build_lock,
	.build_unlock = yk_cl_build_unlock,
	.kernel_new = yk_cl_kernel_new,
	.kernel_free = yk_cl_kernel_free,
	.kernel_group = yk_cl_kernel_group,
	.kernel_params = yk_cl_kernel_params,
	.kernel_use = yk_cl_kernel_use,
	.arg = yk_cl_arg,
	.launch = yk_cl_launch,
	.arg_call = "clSetKernelArg",
	.launch_call = "clEnqueueNDRangeKernel",
	.buffer_new = yk_cl_buffer_new,
	.buffer_wrap = yk_cl_buffer_wrap,
	.buffer_free = yk_cl_buffer_free,
	.put = yk_cl_put,
	.get = yk_cl_get,
	.copy = yk_cl_copy,
	.fill = yk_cl_fill,
	.queue_new = yk_cl_queue_new,
	.queue_free = yk_cl_queue_free,
	.flush = yk_cl_flush,
	.flush_call = "clFlush",
	.finish = yk_cl_finish,
	.mark = yk_cl_mark,
	.event_free = yk_cl_event_free,
	.after = yk_cl_after,
	.status = yk_cl_status,
	.wait = yk_cl_wait,
	.elapsed = yk_cl_elapsed,
};
