// SPDX-License-Identifier: Apache-2.0
// Copies for `yoke bench`, by direct calls of the backend: the time excludes yoke's allocator and
// queues.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/context.h"
#include "tool/bench.h"

struct copy {
	struct yk_device *device;
	struct yk_queue *queue;
	void *segment[2]; // on the device
	void *pinned;     // pinned segment on the host
	char *host;
	uint64_t bytes;
};

static int make_host(struct copy *x, bool pinned)
{
	const struct yoke_backend *ops = x->device->ops;
	if (pinned) {
		if (ops->segment_new(x->device->index, YOKE_SEGMENT_HOST, x->bytes, &x->pinned) < 0)
			return yk_fail(YOKE_ENOMEM,
				       "cannot allocate pinned memory for a copy on %s",
				       x->device->id);
		x->host = ops->segment_host(x->pinned);
	} else {
		x->host = malloc(x->bytes);
	}
	if (!x->host)
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	for (uint64_t i = 0; i < x->bytes; i += 512) // touch each page
		x->host[i] = (char)i;
	return 0;
}

int yk_bench_copy_make(struct yk_bench_case *c)
{
	const unsigned char zero = 0;
	struct copy *x = calloc(1, sizeof *x);
	const bool on = c->size[0] == YK_COPY_ON;
	c->state = x;
	if (!x)
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	x->device = yk_current()->device;
	x->bytes = (uint64_t)c->size[2];
	c->bytes = (double)x->bytes * (on ? 2 : 1); // a copy on the device reads and writes
	int e = yk_queue_new(x->device,
			     on                       ? YOKE_QUEUE_COMPUTE :
			     c->size[0] == YK_COPY_UP ? YOKE_QUEUE_UP :
							YOKE_QUEUE_DOWN,
			     &x->queue);
	for (int i = 0; i < (on ? 2 : 1) && e == 0; i++) {
		e = x->device->ops->segment_new(x->device->index, YOKE_SEGMENT_DEVICE, x->bytes,
						&x->segment[i]);
		if (e == 0)
			e = x->device->ops->fill(x->queue->handle, x->segment[i], 0, x->bytes,
						 &zero, 1);
		if (e < 0)
			yk_fail(e, "out of memory on %s for a copy", x->device->id);
	}
	if (e == 0)
		e = yk_queue_wait(x->queue);
	return e < 0 || on ? e : make_host(x, c->size[1]);
}

int yk_bench_copy_run(struct yk_bench_case *c)
{
	struct copy *x = c->state;
	const struct yoke_backend *ops = x->device->ops;
	int e = c->size[0] == YK_COPY_UP ?
			ops->put(x->queue->handle, x->segment[0], 0, x->host, x->bytes) :
		c->size[0] == YK_COPY_DOWN ?
			ops->get(x->queue->handle, x->segment[0], 0, x->host, x->bytes) :
			ops->copy(x->queue->handle, x->segment[1], 0, x->segment[0], 0, x->bytes);
	if (e < 0)
		return yk_fail(e, "a copy on %s failed", x->device->id);
	return yk_queue_wait(x->queue);
}

void yk_bench_copy_drop(struct yk_bench_case *c)
{
	struct copy *x = c->state;
	if (!x)
		return;
	for (int i = 0; i < 2; i++)
		if (x->segment[i])
			x->device->ops->segment_free(x->device->index, x->segment[i]);
	if (x->pinned)
		x->device->ops->segment_free(x->device->index, x->pinned);
	else
		free(x->host);
	yk_queue_free(x->queue);
	free(x);
	c->state = NULL;
}
