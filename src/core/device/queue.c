// SPDX-License-Identifier: Apache-2.0
// Queues and events: a backend's handles with their device or a reference count.  Marking an event
// flushes its queue, so a later wait, on any thread, need not touch that queue, which may belong to
// another thread or be freed.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/device.h"

YK_PARAM(timeout_setting, "device.timeout", YK_INT, "0",
	 "seconds to wait for a device before it counts as failed; 0: for ever",
	 .max = 1000000);

// ---- failures ----

// Stores the first failure; `why` NULL: use the error that the backend set for this thread, if
// there was none before.
static void note(struct yk_queue *q, int code, uint64_t serial, bool had, const char *why)
{
	char detail[sizeof q->failure.why];

	if (why)
		snprintf(detail, sizeof detail, "%s", why);
	else
		yk_backend_detail(had, code, detail, sizeof detail);
	pthread_mutex_lock(&q->lock);
	if (!q->failure.code && serial > q->taken) {
		uint64_t good = atomic_load(&q->good);
		good = good < serial ? good : serial - 1;
		q->failure.code = code;
		q->failure.since = good > q->taken ? good : q->taken;
		snprintf(q->failure.why, sizeof q->failure.why, "%s", detail);
		atomic_store_explicit(&q->failed, true, memory_order_release);
	}
	pthread_mutex_unlock(&q->lock);
}

int yk_queue_take(struct yk_queue *q, struct yk_queue_failure *to)
{
	pthread_mutex_lock(&q->lock);
	*to = q->failure;
	q->failure.code = 0;
	q->taken = q->marks;
	atomic_store_explicit(&q->failed, false, memory_order_release);
	pthread_mutex_unlock(&q->lock);
	return to->code;
}

// Turns the failure stored with the queue into an error of this thread.
static int complain(struct yk_queue *q, int code, const char *what)
{
	char why[sizeof q->failure.why];

	pthread_mutex_lock(&q->lock);
	snprintf(why, sizeof why, "%s",
		 q->failure.code ? q->failure.why : yk_error_text(code));
	pthread_mutex_unlock(&q->lock);
	return yk_fail(code, "%s: %s: %s", q->device->id, what, why);
}

// ---- queues ----

static void unref(struct yk_queue *q)
{
	if (atomic_fetch_sub_explicit(&q->refs, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_destroy(&q->lock);
	free(q);
}

int yk_queue_new(struct yk_device *d, int kind, struct yk_queue **to)
{
	char detail[400];
	struct yk_queue *q = calloc(1, sizeof *q);
	if (!q || pthread_mutex_init(&q->lock, NULL)) {
		free(q);
		return yk_fail(YOKE_ENOMEM, "no host memory for a queue");
	}
	q->device = d;
	atomic_init(&q->refs, 1);
	bool had = yoke_error_code() != 0;
	int code = d->ops->queue_new(d->index, kind, &q->handle);
	if (code < 0) {
		unref(q);
		yk_backend_detail(had, code, detail, sizeof detail);
		return yk_fail(code, "%s: no queue of kind %d: %s", d->id, kind, detail);
	}
	*to = q;
	return 0;
}

void yk_queue_free(struct yk_queue *q)
{
	if (!q)
		return;
	if (!atomic_load(&q->lost))
		yk_queue_drain(q); // failures were already reported by yk_queue_take
	if (atomic_load(&q->lost)) // its driver may still be working on it
		yk_warn("device", "%s does not respond: one of its queues is not released",
			q->device->id);
	else
		q->device->ops->queue_free(q->handle);
	unref(q);
}

int yk_queue_flush(struct yk_queue *q)
{
	char detail[400];
	bool had = yoke_error_code() != 0;
	int code = q->device->ops->queue_flush(q->handle);
	if (code >= 0)
		return 0;
	yk_backend_detail(had, code, detail, sizeof detail);
	return yk_fail(code, "%s: flush: %s", q->device->id, detail);
}

int yk_queue_drain(struct yk_queue *q)
{
	struct yk_event *e;

	int code = yk_event_try(q, &e);
	if (code < 0)
		return code;
	code = yk_event_sync(e);
	yk_event_unref(e);
	return code;
}

int yk_queue_wait(struct yk_queue *q)
{
	int code = yk_queue_drain(q);
	return code < 0 ? complain(q, code, "wait") : 0;
}

// ---- fallbacks for functions that a backend may lack ----

enum { HOST_CHUNK = 8 << 20 }; // bytes of host memory used per step of a fallback

// Does the code mean that the backend lacks the function?  If so, its message is cleared.
static bool is_lacking(int code, bool had)
{
	char why[8];
	if (code == YOKE_EUNSUPPORTED)
		yk_backend_detail(had, code, why, sizeof why);
	return code == YOKE_EUNSUPPORTED;
}

int yk_queue_fill(struct yk_queue *q, void *segment, uint64_t offset, uint64_t bytes,
		  const void *pattern, uint32_t pattern_bytes)
{
	const struct yoke_backend *ops = q->device->ops;
	bool had = yoke_error_code() != 0;
	int code = ops->fill(q->handle, segment, offset, bytes, pattern, pattern_bytes);
	if (!is_lacking(code, had))
		return code;
	uint64_t chunk = bytes < HOST_CHUNK ? bytes : HOST_CHUNK;
	char *from = malloc(chunk);
	if (!from)
		return yk_fail(YOKE_ENOMEM, "no host memory for a fill");
	for (uint64_t i = 0; i < chunk; i += pattern_bytes)
		memcpy(from + i, pattern, pattern_bytes);
	code = 0;
	for (uint64_t at = 0; at < bytes && code >= 0; at += chunk) {
		uint64_t n = bytes - at < chunk ? bytes - at : chunk;
		code = ops->put(q->handle, segment, offset + at, from, n);
	}
	int waited = yk_queue_drain(q);
	free(from);
	return code < 0 ? code : waited;
}

// Copies after all work of `source` and q so far; waits for both.
static int copy_by_host(struct yk_queue *q, void *to, uint64_t to_offset, struct yk_queue *source,
			void *from, uint64_t from_offset, uint64_t bytes)
{
	const uint64_t chunk = bytes < HOST_CHUNK ? bytes : HOST_CHUNK;
	char *host = malloc(chunk);
	if (!host)
		return yk_fail(YOKE_ENOMEM, "no host memory for a copy");
	int code = 0;
	for (uint64_t at = 0; at < bytes && code >= 0; at += chunk) {
		uint64_t n = bytes - at < chunk ? bytes - at : chunk;
		code = source->device->ops->get(source->handle, from, from_offset + at, host, n);
		code = code < 0 ? code : yk_queue_drain(source);
		code = code < 0 ? code :
				  q->device->ops->put(q->handle, to, to_offset + at, host, n);
		code = code < 0 ? code : yk_queue_drain(q);
	}
	yk_queue_drain(source); // even after a failed copy nothing accesses that memory any more
	if (q != source)
		yk_queue_drain(q);
	free(host);
	return code;
}

int yk_queue_copy(struct yk_queue *q, void *to, uint64_t to_offset, void *from,
		  uint64_t from_offset, uint64_t bytes)
{
	bool had = yoke_error_code() != 0;
	int code = q->device->ops->copy(q->handle, to, to_offset, from, from_offset, bytes);
	return is_lacking(code, had) ? copy_by_host(q, to, to_offset, q, from, from_offset, bytes) :
				       code;
}

int yk_copy_between(struct yk_queue *q, void *to, uint64_t to_offset, struct yk_queue *source,
		    void *from, uint64_t from_offset, uint64_t bytes)
{
	const struct yoke_backend *ops = q->device->ops;
	struct yk_event *e;

	if (source->device->ops != ops)
		return copy_by_host(q, to, to_offset, source, from, from_offset, bytes);
	int code = yk_event_mark(source, &e);
	if (code < 0)
		return code;
	code = yk_event_before(e, q);
	yk_event_unref(e);
	if (code < 0)
		return code;
	if (q->device == source->device)
		return yk_queue_copy(q, to, to_offset, from, from_offset, bytes);
	bool had = yoke_error_code() != 0;
	code = ops->copy_between(q->handle, q->device->index, to, to_offset, source->device->index,
				 from, from_offset, bytes);
	return is_lacking(code, had) ?
		       copy_by_host(q, to, to_offset, source, from, from_offset, bytes) :
		       code;
}

// ---- events ----

// Records the end of an event: code 1, or negative.
static int over(struct yk_event *e, int code, bool had)
{
	struct yk_queue *q = e->queue;

	if (code < 0) {
		note(q, code, e->serial, had, NULL);
	} else {
		uint64_t good = atomic_load(&q->good);
		while (good < e->serial &&
		       !atomic_compare_exchange_weak(&q->good, &good, e->serial))
			;
		atomic_store(&q->lost, false);
	}
	atomic_store(&e->state, code);
	return code;
}

int yk_event_try(struct yk_queue *q, struct yk_event **to)
{
	const struct yoke_backend *ops = q->device->ops;
	bool had = yoke_error_code() != 0;
	uint64_t serial = ++q->marks;
	struct yk_event *e = calloc(1, sizeof *e);
	if (!e) {
		note(q, YOKE_ENOMEM, serial, had, "no host memory for an event");
		return YOKE_ENOMEM;
	}
	int code = ops->event_mark(q->handle, &e->handle);
	if (code >= 0 && e->handle && (code = ops->queue_flush(q->handle)) < 0)
		ops->event_free(e->handle);
	if (code < 0) {
		note(q, code, serial, had, NULL);
		free(e);
		return code;
	}
	e->ops = ops;
	e->queue = q;
	e->serial = serial;
	atomic_init(&e->refs, 1);
	atomic_fetch_add_explicit(&q->refs, 1, memory_order_relaxed);
	if (!e->handle)
		over(e, 1, had);
	*to = e;
	return 0;
}

int yk_event_mark(struct yk_queue *q, struct yk_event **to)
{
	int code = yk_event_try(q, to);
	return code < 0 ? complain(q, code, "event") : 0;
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
	unref(e->queue);
	free(e);
}

int yk_event_done(struct yk_event *e)
{
	int state = e ? atomic_load(&e->state) : 1;
	if (state)
		return state;
	bool had = yoke_error_code() != 0;
	int code = e->ops->event_done(e->handle);
	return code ? over(e, code < 0 ? code : 1, had) : 0;
}

// Polls with growing intervals, because a backend's own wait has no time limit.
static int wait_limited(struct yk_event *e, int64_t seconds)
{
	struct yk_queue *q = e->queue;
	struct timespec start, now, nap = { 0, 2000 };
	char why[120];
	int code;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (now = start; !(code = yk_event_done(e));
	     clock_gettime(CLOCK_MONOTONIC, &now)) {
		// a queue that once failed to respond is not waited for again
		if (now.tv_sec - start.tv_sec > seconds || atomic_load(&q->lost))
			break;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 1000000)
			nap.tv_nsec += nap.tv_nsec / 4;
	}
	if (code)
		return code < 0 ? code : 0;
	atomic_store(&q->lost, true);
	snprintf(why, sizeof why, "no answer within %lld s (YOKE_DEVICE_TIMEOUT)",
		 (long long)seconds);
	note(q, YOKE_EDEVICE, e->serial, false, why);
	return YOKE_EDEVICE;
}

int yk_event_sync(struct yk_event *e)
{
	int state = e ? atomic_load(&e->state) : 1;
	if (state)
		return state < 0 ? state : 0;
	int64_t limit = yk_param_int(&timeout_setting);
	if (limit > 0)
		return wait_limited(e, limit);
	bool had = yoke_error_code() != 0;
	int code = e->ops->event_wait(e->handle);
	over(e, code < 0 ? code : 1, had);
	return code < 0 ? code : 0;
}

int yk_event_wait(struct yk_event *e)
{
	int code = yk_event_sync(e);
	return code < 0 ? complain(e->queue, code, "wait") : 0;
}

int yk_event_before(struct yk_event *e, struct yk_queue *q)
{
	char detail[400];

	if (!e || e->queue == q || atomic_load(&e->state))
		return 0;
	bool had = yoke_error_code() != 0;
	int code = e->ops == q->device->ops ? e->ops->event_after(q->handle, e->handle) :
					      YOKE_EUNSUPPORTED;
	if (code >= 0)
		return 0;
	if (code == YOKE_EUNSUPPORTED) { // the host waits; the queue stores a failure
		code = yk_event_sync(e);
		return code < 0 && !yk_event_done(e) ? complain(e->queue, code, "wait") : 0;
	}
	yk_backend_detail(had, code, detail, sizeof detail);
	return yk_fail(code, "%s: wait for an event: %s", q->device->id, detail);
}
