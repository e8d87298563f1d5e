// SPDX-License-Identifier: Apache-2.0
// The driver table of a native plugin for the launch layer of backends/gpu.
#include "config.h"

#include "products.h"

static const struct yoke_setting profile = {
	sizeof profile, V_NAME ".profile", "bool", "0",
	"record execution times on " V_TITLE " queues",
};

static void start(void)
{
	yk_native_library_start();
	yk_native_products_always();
}

const struct yk_gpu_driver yk_gpu_driver = {
	.name = V_NAME,
	.title = V_TITLE,
	.version = V_TITLE " driver",
	.dialect = YOKE_DIALECT_CUDA,
	.profile = &profile,
	.library = { &yk_native_products, V_MORE_PRODUCTS },
	.start = start,
	.code_name = yk_native_name,
	.code_help = yk_native_help,
	.is_memory = yk_native_is_memory,
	.probe = yk_native_probe,
	.open = yk_native_open_device,
	.refresh = yk_native_refresh,
	.build = yk_native_build,
	.load = yk_native_load,
	.binary = yk_native_binary,
	.program_free = yk_native_program_free,
	.kernel_new = yk_native_kernel_new,
	.kernel_sized = yk_native_kernel_sized,
	.sized_call = V_SIZED_CALL,
	.kernel_free = yk_native_kernel_free,
	.kernel_group = yk_native_kernel_group,
	.kernel_params = yk_native_kernel_params,
	.kernel_use = yk_native_kernel_use,
	.arg = yk_native_arg,
	.launch = yk_native_launch,
	.arg_call = "an argument",
	.launch_call = V_LAUNCH_CALL,
	.buffer_new = yk_native_buffer_new,
	.buffer_wrap = yk_native_buffer_wrap,
	.buffer_free = yk_native_buffer_free,
	.put = yk_native_put,
	.get = yk_native_get,
	.copy = yk_native_copy,
	.copy_between = yk_native_copy_between,
	.fill = yk_native_fill,
	.queue_new = yk_native_queue_new,
	.queue_free = yk_native_queue_free,
	.flush = yk_native_flush,
	.flush_call = "a flush",
	.finish = yk_native_finish,
	.mark = yk_native_mark,
	.event_free = yk_native_event_free,
	.after = yk_native_after,
	.status = yk_native_status,
	.wait = yk_native_wait,
	.elapsed = yk_native_elapsed,
	.graph_begin = yk_native_graph_begin,
	.graph_end = yk_native_graph_end,
	.graph_run = yk_native_graph_run,
	.graph_free = yk_native_graph_free,
	.ext = yk_native_ext,
};
