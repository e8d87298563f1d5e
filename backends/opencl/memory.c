// SPDX-License-Identifier: Apache-2.0
// Buffers; host buffers stay mapped permanently.
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "opencl.h"

// CPU drivers allocate buffers with small pages, which halves the speed of elementwise kernels.
#define LARGE ((uint64_t)2 << 20)

// bytes: at most the max size of a buffer
static void *large_pages(uint64_t bytes)
{
	void *own = aligned_alloc(LARGE, (bytes + LARGE - 1) / LARGE * LARGE);
#ifdef MADV_HUGEPAGE
	if (own)
		madvise(own, bytes, MADV_HUGEPAGE);
#endif
	return own;
}

static void CL_CALLBACK free_own(cl_mem mem, void *own)
{
	(void)mem;
	free(own);
}

// Maps a buffer permanently.
static int map(struct yk_cl_device *d, cl_mem mem, uint64_t bytes, void **host)
{
	cl_int code;
	void *at = clEnqueueMapBuffer(d->helper, mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
				      0, (size_t)bytes, 0, NULL, NULL, &code);

	if (code != CL_SUCCESS)
		return yk_gpu_fail(&d->gpu, "clEnqueueMapBuffer", code);
	*host = at;
	return 0;
}

int yk_cl_buffer_new(struct yk_gpu_device *device, int kind, uint64_t bytes,
		     const void *data, void **buffer, void **host)
{
	struct yk_cl_device *d = yk_cl_of(device);
	cl_mem_flags flags = CL_MEM_READ_WRITE;
	void *own = NULL;
	cl_int code;
	int err;

	if (kind == YOKE_SEGMENT_HOST)
		flags |= CL_MEM_ALLOC_HOST_PTR;
	else if (data)
		flags |= CL_MEM_COPY_HOST_PTR;
	else if (device->info.kind == YOKE_DEVICE_CPU && bytes >= LARGE &&
		 bytes <= device->info.max_segment) // otherwise let the driver report the error
		own = large_pages(bytes);
	if (own)
		flags |= CL_MEM_USE_HOST_PTR;
	cl_mem mem = clCreateBuffer(d->context, flags, (size_t)bytes,
				    own ? own : (void *)(uintptr_t)data, &code);
	if (code != CL_SUCCESS) {
		free(own);
		return yk_gpu_fail(device, "clCreateBuffer", code);
	}
	if (own && clSetMemObjectDestructorCallback(mem, free_own, own) != CL_SUCCESS) {
		clReleaseMemObject(mem);
		free(own);
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a segment's record");
	}
	if (kind == YOKE_SEGMENT_HOST && (err = map(d, mem, bytes, host))) {
		clReleaseMemObject(mem);
		return err;
	}
	*buffer = mem;
	return 0;
}

int yk_cl_buffer_wrap(struct yk_gpu_device *device, void *memory, uint64_t bytes,
		      void **buffer)
{
	cl_int code;
	cl_mem mem = clCreateBuffer(yk_cl_of(device)->context,
				    CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, (size_t)bytes,
				    memory, &code);

	if (code != CL_SUCCESS)
		return yk_gpu_fail(device, "clCreateBuffer", code);
	*buffer = mem;
	return 0;
}

void yk_cl_buffer_free(struct yk_gpu_device *device, void *buffer, void *host)
{
	if (host) {
		clEnqueueUnmapMemObject(yk_cl_of(device)->helper, buffer, host, 0, NULL,
					NULL);
		clFinish(yk_cl_of(device)->helper);
	}
	clReleaseMemObject(buffer);
}

int yk_cl_put(struct yk_gpu_queue *q, void *buffer, uint64_t offset, const void *from,
	      uint64_t bytes)
{
	return yk_gpu_check(q->device, "clEnqueueWriteBuffer",
			    clEnqueueWriteBuffer(q->queue, buffer, CL_FALSE, offset,
						 bytes, from, 0, NULL, NULL));
}

int yk_cl_get(struct yk_gpu_queue *q, void *buffer, uint64_t offset, void *to,
	      uint64_t bytes)
{
	return yk_gpu_check(q->device, "clEnqueueReadBuffer",
			    clEnqueueReadBuffer(q->queue, buffer, CL_FALSE, offset, bytes,
						to, 0, NULL, NULL));
}

int yk_cl_copy(struct yk_gpu_queue *q, void *to, uint64_t to_offset, void *from,
	       uint64_t from_offset, uint64_t bytes)
{
	return yk_gpu_check(q->device, "clEnqueueCopyBuffer",
			    clEnqueueCopyBuffer(q->queue, from, to, from_offset,
						to_offset, bytes, 0, NULL, NULL));
}

int yk_cl_fill(struct yk_gpu_queue *q, void *buffer, uint64_t offset, uint64_t bytes,
	       const void *pattern, uint32_t pattern_bytes)
{
	return yk_gpu_check(q->device, "clEnqueueFillBuffer",
			    clEnqueueFillBuffer(q->queue, buffer, pattern, pattern_bytes,
						offset, bytes, 0, NULL, NULL));
}
