// SPDX-License-Identifier: Apache-2.0
// Segments are buffers without an address; those of host memory are buffers that stay
// mapped.  Transfers are enqueued and do not wait, but for those into and inside host
// segments.
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>

#include "gpu.h"

// Drivers of processors leave buffers on small pages, which halves the speed of maps.
#define LARGE ((uint64_t)2 << 20)

// bytes: at most what a buffer may have
static void *large_pages(uint64_t bytes)
{
	void *own = aligned_alloc(LARGE, (bytes + LARGE - 1) / LARGE * LARGE);
#ifdef MADV_HUGEPAGE
	if (own)
		madvise(own, bytes, MADV_HUGEPAGE);
#endif
	return own;
}

void yk_cl_release(struct yk_cl_device *d, cl_mem mem)
{
	__atomic_add_fetch(&d->released, 1, __ATOMIC_RELEASE);
	clReleaseMemObject(mem);
}

static void CL_CALLBACK free_own(cl_mem mem, void *own)
{
	(void)mem;
	free(own);
}

int yk_cl_segment_new(uint32_t device, int kind, uint64_t bytes, void **segment)
{
	struct yk_cl_device *d;
	struct yk_cl_segment *s;
	cl_int code;
	void *own = NULL;
	int err = yk_cl_forked();

	if (err)
		return err;
	if (!(d = yk_cl_device_at(device)))
		return YOKE_ENODEV;
	if (!bytes || bytes > SIZE_MAX)
		return yk_cl_error(YOKE_EINVAL, "a segment of %llu bytes",
				   (unsigned long long)bytes);
	if ((err = yk_cl_device_open(d)))
		return err;
	if (!(s = calloc(1, sizeof *s)))
		return yk_cl_error(YOKE_ENOMEM, "no memory for a segment's record");
	s->device = d;
	s->bytes = bytes;
	cl_mem_flags flags = CL_MEM_READ_WRITE;
	if (kind == YOKE_SEGMENT_HOST)
		flags |= CL_MEM_ALLOC_HOST_PTR;
	else if (d->info.kind == YOKE_DEVICE_CPU && bytes >= LARGE &&
		 bytes <= d->info.max_segment) // else the driver says what it is
		own = large_pages(bytes);
	if (own)
		flags |= CL_MEM_USE_HOST_PTR;
	s->mem = clCreateBuffer(d->context, flags, (size_t)bytes, own, &code);
	if (code != CL_SUCCESS) {
		err = yk_cl_fail(d, "clCreateBuffer", code);
		goto fail;
	}
	if (own && clSetMemObjectDestructorCallback(s->mem, free_own, own) != CL_SUCCESS) {
		clReleaseMemObject(s->mem);
		err = yk_cl_error(YOKE_ENOMEM, "no memory for a segment's record");
		goto fail;
	}
	own = NULL; // the buffer's
	if (kind == YOKE_SEGMENT_HOST) {
		s->host = clEnqueueMapBuffer(d->helper, s->mem, CL_TRUE,
					     CL_MAP_READ | CL_MAP_WRITE, 0, (size_t)bytes,
					     0, NULL, NULL, &code);
		if (code != CL_SUCCESS) {
			err = yk_cl_fail(d, "clEnqueueMapBuffer", code);
			goto fail_mem;
		}
	}
	*segment = s;
	return 0;
fail_mem:
	clReleaseMemObject(s->mem);
fail:
	free(own);
	free(s);
	return err;
}

// The driver uses the memory itself where it shares the host's; others would copy it, which the core
// does better.
int yk_cl_segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment)
{
	struct yk_cl_device *d;
	struct yk_cl_segment *s;
	cl_int code;
	int err = yk_cl_forked();

	if (err)
		return err;
	if (!(d = yk_cl_device_at(device)))
		return YOKE_ENODEV;
	if (!bytes || bytes > d->info.max_segment || !(d->info.flags & YOKE_DEVICE_UNIFIED) ||
	    (uintptr_t)memory % d->info.align)
		return YOKE_EUNSUPPORTED;
	if ((err = yk_cl_device_open(d)))
		return err;
	if (!(s = calloc(1, sizeof *s)))
		return yk_cl_error(YOKE_ENOMEM, "no memory for a segment's record");
	s->device = d;
	s->bytes = bytes;
	s->mem = clCreateBuffer(d->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, (size_t)bytes,
				memory, &code);
	if (code != CL_SUCCESS) {
		free(s);
		return yk_cl_fail(d, "clCreateBuffer", code);
	}
	*segment = s;
	return 0;
}

void yk_cl_segment_free(uint32_t device, void *segment)
{
	struct yk_cl_segment *s = segment;

	(void)device;
	if (!s || yk_cl_forked())
		return;
	if (s->host) {
		clEnqueueUnmapMemObject(s->device->helper, s->mem, s->host, 0, NULL,
					NULL);
		clFinish(s->device->helper);
	}
	yk_cl_release(s->device, s->mem);
	free(s);
}

void *yk_cl_segment_host(void *segment)
{
	return ((struct yk_cl_segment *)segment)->host;
}

// Ahead of all that is enqueued here.
static int check_range(struct yk_cl_queue *q, const struct yk_cl_segment *s,
		       uint64_t offset, uint64_t bytes)
{
	int err = yk_cl_forked();
	uint64_t end;

	if (err)
		return err;
	q->busy = true;
	if (__builtin_add_overflow(offset, bytes, &end) || end > s->bytes)
		return yk_cl_error(YOKE_ERANGE,
				   "bytes %llu to +%llu of a segment of %llu",
				   (unsigned long long)offset, (unsigned long long)bytes,
				   (unsigned long long)s->bytes);
	if (q->device != s->device)
		return yk_cl_error(YOKE_EUNSUPPORTED,
				   "a queue of opencl:%u on a segment of opencl:%u",
				   q->device->index, s->device->index);
	return 0;
}

// What was enqueued may use the host's side of a mapped buffer: it ends first.
static int finish(struct yk_cl_queue *q)
{
	cl_int code = clFinish(q->queue);
	return yk_cl_check(q->device, "clFinish", code);
}

int yk_cl_put(void *queue, void *segment, uint64_t offset, const void *from,
	      uint64_t bytes)
{
	struct yk_cl_queue *q = queue;
	struct yk_cl_segment *s = segment;
	int err = check_range(q, s, offset, bytes);

	if (err || !bytes)
		return err;
	if (s->host) {
		if (!(err = finish(q)))
			memmove((char *)s->host + offset, from, bytes);
		return err;
	}
	cl_int code = clEnqueueWriteBuffer(q->queue, s->mem, CL_FALSE, offset, bytes,
					   from, 0, NULL, NULL);
	return yk_cl_check(q->device, "clEnqueueWriteBuffer", code);
}

int yk_cl_get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	struct yk_cl_queue *q = queue;
	struct yk_cl_segment *s = segment;
	int err = check_range(q, s, offset, bytes);

	if (err || !bytes)
		return err;
	if (s->host) {
		if (!(err = finish(q)))
			memmove(to, (char *)s->host + offset, bytes);
		return err;
	}
	cl_int code = clEnqueueReadBuffer(q->queue, s->mem, CL_FALSE, offset, bytes, to,
					  0, NULL, NULL);
	return yk_cl_check(q->device, "clEnqueueReadBuffer", code);
}

int yk_cl_copy(void *queue, void *to, uint64_t to_offset, void *from,
	       uint64_t from_offset, uint64_t bytes)
{
	struct yk_cl_queue *q = queue;
	struct yk_cl_segment *t = to, *f = from;
	int err = check_range(q, t, to_offset, bytes);

	if (!err)
		err = check_range(q, f, from_offset, bytes);
	if (err || !bytes)
		return err;
	if (f->host)
		return yk_cl_put(q, t, to_offset, (char *)f->host + from_offset, bytes);
	if (t->host)
		return yk_cl_get(q, f, from_offset, (char *)t->host + to_offset, bytes);
	cl_int code = clEnqueueCopyBuffer(q->queue, f->mem, t->mem, from_offset,
					  to_offset, bytes, 0, NULL, NULL);
	return yk_cl_check(q->device, "clEnqueueCopyBuffer", code);
}

int yk_cl_fill(void *queue, void *segment, uint64_t offset, uint64_t bytes,
	       const void *pattern, uint32_t pattern_bytes)
{
	struct yk_cl_queue *q = queue;
	struct yk_cl_segment *s = segment;
	int err = check_range(q, s, offset, bytes);

	if (err || !bytes)
		return err;
	if ((pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
	     pattern_bytes != 8) ||
	    offset % pattern_bytes || bytes % pattern_bytes)
		return yk_cl_error(YOKE_EINVAL,
				   "a pattern of %u bytes does not fill %llu at %llu",
				   pattern_bytes, (unsigned long long)bytes,
				   (unsigned long long)offset);
	if (s->host) {
		if ((err = finish(q)))
			return err;
		for (uint64_t i = 0; i < bytes; i += pattern_bytes)
			memcpy((char *)s->host + offset + i, pattern, pattern_bytes);
		return 0;
	}
	cl_int code = clEnqueueFillBuffer(q->queue, s->mem, pattern, pattern_bytes,
					  offset, bytes, 0, NULL, NULL);
	return yk_cl_check(q->device, "clEnqueueFillBuffer", code);
}
