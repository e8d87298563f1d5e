// SPDX-License-Identifier: Apache-2.0
// Dry devices: plan and account like a real device, but hold and compute nothing.
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "device/pool.h"

struct dry {
	struct yk_device device;
	struct yoke_backend table; // the real device's, except for memory and queues
};

static char nowhere; // the handle of all segments without memory, and of queues

// Staging memory is real: it is small, in host memory, and the host writes to it directly.
static int segment_new(uint32_t device, int kind, uint64_t bytes, void **to)
{
	(void)device;
	*to = kind == YOKE_SEGMENT_HOST ? malloc(bytes) : &nowhere;
	return *to ? 0 : YOKE_ENOMEM;
}

static void segment_free(uint32_t device, void *segment)
{
	(void)device;
	if (segment != &nowhere)
		free(segment);
}

static void *segment_host(void *segment)
{
	return segment == &nowhere ? NULL : segment;
}

static int queue_new(uint32_t device, int kind, void **to)
{
	(void)device, (void)kind;
	*to = &nowhere;
	return 0;
}

static void queue_free(void *queue)
{
	(void)queue;
}

static int queue_flush(void *queue)
{
	(void)queue;
	return 0;
}

static int put(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes)
{
	(void)queue, (void)segment, (void)offset, (void)from, (void)bytes;
	return 0;
}

static int get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	(void)queue, (void)segment, (void)offset;
	memset(to, 0, bytes);
	return 0;
}

static int copy(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		uint64_t bytes)
{
	(void)queue, (void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
	return 0;
}

static int fill(void *queue, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		uint32_t pattern_bytes)
{
	(void)queue, (void)segment, (void)offset, (void)bytes, (void)pattern, (void)pattern_bytes;
	return 0;
}

static int event_mark(void *queue, void **event)
{
	(void)queue;
	*event = NULL; // done
	return 0;
}

// The CPU backend wraps existing memory in place. Whether another backend can is known only by
// querying it.
static int wrap_nothing(uint32_t device, void *memory, uint64_t bytes, void **to)
{
	(void)device, (void)memory, (void)bytes;
	*to = &nowhere;
	return 0;
}

static int wrap_refused(uint32_t device, void *memory, uint64_t bytes, void **to)
{
	(void)device, (void)memory, (void)bytes, (void)to;
	return YOKE_EUNSUPPORTED;
}

static struct dry *make(struct yk_device *real)
{
	struct dry *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->table = *real->ops;
	d->table.segment_new = segment_new;
	d->table.segment_free = segment_free;
	d->table.segment_host = segment_host;
	d->table.segment_wrap = real == yk_device_cpu() ? wrap_nothing : wrap_refused;
	d->table.queue_new = queue_new;
	d->table.queue_free = queue_free;
	d->table.queue_flush = queue_flush;
	d->table.put = put;
	d->table.get = get;
	d->table.copy = copy;
	d->table.fill = fill;
	d->table.event_mark = event_mark;
	d->device = *real;
	d->device.ops = &d->table;
	d->device.real = real;
	d->device.dry = NULL;
	d->device.pool = yk_pool_new(&d->device, YOKE_SEGMENT_DEVICE);
	d->device.pinned = yk_pool_new(&d->device, YOKE_SEGMENT_HOST);
	if (d->device.pool && d->device.pinned)
		return d;
	yk_pool_delete(d->device.pool);
	yk_pool_delete(d->device.pinned);
	free(d);
	return NULL;
}

struct yk_device *yk_device_dry(struct yk_device *real)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	if (!real->dry) {
		struct dry *d = make(real);
		real->dry = d ? &d->device : NULL;
	}
	pthread_mutex_unlock(&lock);
	if (!real->dry)
		yk_fail(YOKE_ENOMEM, "no memory for a dry copy of %s", real->id);
	return real->dry;
}
