// SPDX-License-Identifier: Apache-2.0
// Runs one kernel once, to test a device: on a private queue and buffer, synchronously.
#include "config.h"

#include "gpu.h"

static int run_kernel(struct yk_gpu_queue *q, void *buffer, const struct yk_gpu_build *b,
		      size_t items, size_t group, void *data, size_t bytes)
{
	struct yk_gpu_device *d = q->device;
	struct yk_gpu_entry *kernel;
	int err = yk_gpu_kernel_file(d, b, &kernel);

	if (err)
		return err;
	int code = yk_gpu_driver.arg(kernel->kernel, 0, sizeof buffer, &buffer);
	if (code)
		return yk_gpu_fail(d, yk_gpu_driver.arg_call, code);
	code = yk_gpu_driver.launch(q, kernel->kernel, 1, &items, &group);
	if (code)
		return yk_gpu_fail(d, yk_gpu_driver.launch_call, code);
	return yk_gpu_driver.get(q, buffer, 0, data, bytes);
}

static int try_kernel(struct yk_gpu_device *d, const struct yk_gpu_build *b, size_t items,
		      size_t group, void *data, size_t bytes)
{
	struct yk_gpu_queue q = { .device = d };
	void *buffer, *host = NULL;
	int err = yk_gpu_driver.queue_new(d, false, &q.queue);

	if (err)
		return err;
	err = yk_gpu_driver.buffer_new(d, YOKE_SEGMENT_DEVICE, bytes, data, &buffer,
				       &host);
	if (!err) {
		err = run_kernel(&q, buffer, b, items, group, data, bytes);
		const int over = yk_gpu_driver.finish(&q);
		err = err ? err : over;
		yk_gpu_buffer_free(d, buffer, host);
	}
	yk_gpu_driver.queue_free(q.queue);
	return err;
}

// A failure here is a test result, not an error: the calling op has alternatives and records its
// own error.
int yk_gpu_try(struct yk_gpu_device *d, const struct yk_gpu_build *b, size_t items,
	       size_t group, void *data, size_t bytes)
{
	const bool before = yk_gpu_trying(true); // nested trials are possible
	const int err = try_kernel(d, b, items, group, data, bytes);

	yk_gpu_trying(before);
	return err;
}
