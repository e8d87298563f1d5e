// SPDX-License-Identifier: Apache-2.0
// One kernel once, for a test of the device itself: on a queue and in a buffer of its own, waited for.
#include "config.h"

#include "gpu.h"

static int run_kernel(struct yk_cl_queue *q, struct yk_cl_segment *s, const struct yk_cl_build *b,
		      size_t items, void *data)
{
	struct yk_cl_device *d = q->device;
	struct yk_cl_entry *kernel;
	const size_t one = 1;
	int err = yk_cl_kernel_file(d, b, &kernel);

	if (err)
		return err;
	cl_int code = clSetKernelArg(kernel->kernel, 0, sizeof s->mem, &s->mem);
	if (code != CL_SUCCESS)
		return yk_cl_fail(d, "clSetKernelArg", code);
	code = clEnqueueNDRangeKernel(q->queue, kernel->kernel, 1, NULL, &items, &one, 0,
				      NULL, NULL);
	if (code != CL_SUCCESS)
		return yk_cl_fail(d, "clEnqueueNDRangeKernel", code);
	code = clEnqueueReadBuffer(q->queue, s->mem, CL_TRUE, 0, s->bytes, data, 0,
					  NULL, NULL);
	return yk_cl_check(d, "clEnqueueReadBuffer", code);
}

int yk_cl_try(struct yk_cl_device *d, const struct yk_cl_build *b, size_t items, void *data,
	      size_t bytes)
{
	struct yk_cl_queue q = { .device = d };
	struct yk_cl_segment s = { .device = d, .bytes = bytes };
	cl_int code;

	q.queue = clCreateCommandQueue(d->context, d->id, 0, &code);
	if (code != CL_SUCCESS)
		return yk_cl_fail(d, "clCreateCommandQueue", code);
	s.mem = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, data,
			       &code);
	int err = yk_cl_check(d, "clCreateBuffer", code);
	if (!err) {
		err = run_kernel(&q, &s, b, items, data);
		clFinish(q.queue);
		yk_cl_release(d, s.mem);
	}
	clReleaseCommandQueue(q.queue);
	return err;
}
