// SPDX-License-Identifier: Apache-2.0
// Segments and transfers. Device segments have no host address; host segments have a fixed one.
// Transfers are asynchronous, except those into and within host segments.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "gpu.h"

void yk_gpu_buffer_free(struct yk_gpu_device *d, void *buffer, void *host)
{
	__atomic_add_fetch(&d->released, 1, __ATOMIC_RELEASE);
	yk_gpu_driver.buffer_free(d, buffer, host);
}

// Creates a segment with the driver; wrap: memory to wrap, or NULL.
static int make(struct yk_gpu_device *d, int kind, void *wrap, uint64_t bytes, void **segment)
{
	int err = yk_gpu_device_open(d);

	if (err)
		return err;
	struct yk_gpu_segment *s = calloc(1, sizeof *s);
	if (!s)
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a segment's record");
	s->device = d;
	s->bytes = bytes;
	err = wrap ? yk_gpu_driver.buffer_wrap(d, wrap, bytes, &s->buffer) :
		     yk_gpu_driver.buffer_new(d, kind, bytes, NULL, &s->buffer, &s->host);
	if (err)
		free(s);
	else
		*segment = s;
	return err;
}

int yk_gpu_segment_new(uint32_t device, int kind, uint64_t bytes, void **segment)
{
	struct yk_gpu_device *d;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!(d = yk_gpu_device_at(device)))
		return YOKE_ENODEV;
	if (!bytes || bytes > SIZE_MAX)
		return yk_gpu_error(YOKE_EINVAL, "cannot allocate a segment of %llu bytes",
				    (unsigned long long)bytes);
	return make(d, kind, NULL, bytes, segment);
}

// The driver uses the memory itself if it shares the host's memory. Other drivers would copy it,
// which the core does better.
int yk_gpu_segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment)
{
	struct yk_gpu_device *d;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!(d = yk_gpu_device_at(device)))
		return YOKE_ENODEV;
	if (!memory || !bytes || bytes > d->info.max_segment ||
	    !(d->info.flags & YOKE_DEVICE_UNIFIED) || (uintptr_t)memory % d->info.align)
		return YOKE_EUNSUPPORTED;
	return make(d, YOKE_SEGMENT_DEVICE, memory, bytes, segment);
}

void yk_gpu_segment_free(uint32_t device, void *segment)
{
	struct yk_gpu_segment *s = segment;

	(void)device;
	if (!s || yk_gpu_forked())
		return;
	yk_gpu_buffer_free(s->device, s->buffer, s->host);
	free(s);
}

void *yk_gpu_segment_host(void *segment)
{
	return ((struct yk_gpu_segment *)segment)->host;
}

int yk_gpu_check_range(struct yk_gpu_queue *q, const struct yk_gpu_segment *s, uint64_t offset,
		       uint64_t bytes)
{
	int err = yk_gpu_forked();
	uint64_t end;

	if (err)
		return err;
	q->busy = true;
	if (__builtin_add_overflow(offset, bytes, &end) || end > s->bytes)
		return yk_gpu_error(YOKE_ERANGE,
				    "offset %llu + %llu bytes exceeds the segment of %llu bytes",
				    (unsigned long long)offset, (unsigned long long)bytes,
				    (unsigned long long)s->bytes);
	return 0;
}

// Also checks that the segment belongs to the queue's device, if a graph may record the operation.
static int check_range(struct yk_gpu_queue *q, const struct yk_gpu_segment *s, uint64_t offset,
		       uint64_t bytes)
{
	int err = yk_gpu_check_range(q, s, offset, bytes);

	if (err)
		return err;
	if (q->graph && s->host)
		return yk_gpu_error(YOKE_EUNSUPPORTED, "graphs cannot use host segments");
	if (q->device != s->device)
		return yk_gpu_error(
			YOKE_EUNSUPPORTED, "a queue of %s:%u cannot access a segment of %s:%u",
			yk_gpu_driver.name, q->device->index, yk_gpu_driver.name, s->device->index);
	return 0;
}

int yk_gpu_put(void *queue, void *segment, uint64_t offset, const void *from,
	       uint64_t bytes)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_segment *s = segment;
	int err = check_range(q, s, offset, bytes);

	if (err || !bytes)
		return err;
	// enqueued work may access the host memory: finish it first
	if (s->host) {
		if (!(err = yk_gpu_driver.finish(q)))
			memmove((char *)s->host + offset, from, bytes);
		return err;
	}
	return yk_gpu_driver.put(q, s->buffer, offset, from, bytes);
}

int yk_gpu_get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_segment *s = segment;
	int err = check_range(q, s, offset, bytes);

	if (err || !bytes)
		return err;
	if (s->host) {
		if (!(err = yk_gpu_driver.finish(q)))
			memmove(to, (char *)s->host + offset, bytes);
		return err;
	}
	return yk_gpu_driver.get(q, s->buffer, offset, to, bytes);
}

int yk_gpu_copy(void *queue, void *to, uint64_t to_offset, void *from,
		uint64_t from_offset, uint64_t bytes)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_segment *t = to, *f = from;
	int err = check_range(q, t, to_offset, bytes);

	if (!err)
		err = check_range(q, f, from_offset, bytes);
	if (err || !bytes)
		return err;
	if (f->host)
		return yk_gpu_put(q, t, to_offset, (char *)f->host + from_offset, bytes);
	if (t->host)
		return yk_gpu_get(q, f, from_offset, (char *)t->host + to_offset, bytes);
	return yk_gpu_driver.copy(q, t->buffer, to_offset, f->buffer, from_offset, bytes);
}

int yk_gpu_fill(void *queue, void *segment, uint64_t offset, uint64_t bytes,
		const void *pattern, uint32_t pattern_bytes)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_segment *s = segment;
	int err = check_range(q, s, offset, bytes);

	if (err || !bytes)
		return err;
	if ((pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
	     pattern_bytes != 8) ||
	    offset % pattern_bytes || bytes % pattern_bytes)
		return yk_gpu_error(YOKE_EINVAL,
				    "a pattern of %u bytes cannot fill %llu bytes at offset %llu",
				    pattern_bytes, (unsigned long long)bytes,
				    (unsigned long long)offset);
	if (s->host) {
		if ((err = yk_gpu_driver.finish(q)))
			return err;
		for (uint64_t i = 0; i < bytes; i += pattern_bytes)
			memcpy((char *)s->host + offset + i, pattern, pattern_bytes);
		return 0;
	}
	return yk_gpu_driver.fill(q, s->buffer, offset, bytes, pattern, pattern_bytes);
}
