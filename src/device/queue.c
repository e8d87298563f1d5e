// SPDX-License-Identifier: Apache-2.0
// Queues and events: handles of a backend with a device, or a count of references, around them.
// Every event's queue is flushed when it is marked: whoever waits later, on whatever thread, need not
// touch that queue, which may belong to another thread or be gone.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "device/device.h"

int yk_queue_new(struct yk_device *d, int kind, struct yk_queue **to)
{
	struct yk_queue *q = malloc(sizeof *q);
	if (!q)
		return yk_fail(YOKE_ENOMEM, "no host memory for a queue");
	q->device = d;
	q->handle = NULL;
	q->marks = 0;
	int code = d->ops->queue_new(d->index, kind, &q->handle);
	if (code < 0) {
		free(q);
		return yk_fail(code, "%s: no queue of kind %d: %s", d->id, kind, yk_error_text(code));
	}
	*to = q;
	return 0;
}

void yk_queue_free(struct yk_queue *q)
{
	if (!q)
		return;
	yk_queue_wait(q); // what failed was said by whoever waited for it
	q->device->ops->queue_free(q->handle);
	free(q);
}

int yk_queue_flush(struct yk_queue *q)
{
	int code = q->device->ops->queue_flush(q->handle);
	return code < 0 ? yk_fail(code, "%s: flush: %s", q->device->id, yk_error_text(code)) : 0;
}

int yk_queue_wait(struct yk_queue *q)
{
	struct yk_event *e;

	int code = yk_event_mark(q, &e);
	if (code < 0)
		return code;
	code = yk_event_wait(e);
	yk_event_unref(e);
	return code;
}

int yk_event_mark(struct yk_queue *q, struct yk_event **to)
{
	const struct yoke_backend *ops = q->device->ops;
	struct yk_event *e = malloc(sizeof *e);
	if (!e)
		return yk_fail(YOKE_ENOMEM, "no host memory for an event");
	e->ops = ops;
	e->queue = q;
	e->handle = NULL;
	e->serial = ++q->marks;
	atomic_init(&e->refs, 1);
	int code = ops->event_mark(q->handle, &e->handle);
	if (code < 0) {
		free(e);
		return yk_fail(code, "%s: event: %s", q->device->id, yk_error_text(code));
	}
	if (e->handle && (code = yk_queue_flush(q)) < 0) {
		yk_event_unref(e);
		return code;
	}
	*to = e;
	return 0;
}

struct yk_event *yk_event_ref(struct yk_event *e)
{
	if (e)
		atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
	return e;
}

void yk_event_unref(struct yk_event *e)
{
	if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) > 1)
		return;
	if (e->handle)
		e->ops->event_free(e->handle);
	free(e);
}

int yk_event_done(struct yk_event *e)
{
	return e && e->handle ? e->ops->event_done(e->handle) : 1;
}

int yk_event_wait(struct yk_event *e)
{
	return e && e->handle ? e->ops->event_wait(e->handle) : 0;
}

int yk_event_before(struct yk_event *e, struct yk_queue *q)
{
	if (!e || !e->handle || e->queue == q)
		return 0;
	int code = q->device->ops->event_after(q->handle, e->handle);
	return code < 0 ? yk_fail(code, "%s: wait for an event: %s", q->device->id,
				  yk_error_text(code)) : 0;
}
