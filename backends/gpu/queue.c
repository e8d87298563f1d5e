// SPDX-License-Identifier: Apache-2.0
// In-order queues, and events, which complete when everything enqueued before them has completed.
// An event keeps its queue alive; another queue waits for it only after its queue was flushed.
#include "config.h"

#include <stdlib.h>

#include "report.h"

int yk_gpu_queue_new(uint32_t device, int kind, void **queue)
{
	struct yk_gpu_device *d;
	struct yk_gpu_queue *q;
	int err = yk_gpu_forked();

	(void)kind;
	if (err)
		return err;
	if (!(d = yk_gpu_device_at(device)))
		return YOKE_ENODEV;
	if ((err = yk_gpu_device_open(d)))
		return err;
	if (!(q = calloc(1, sizeof *q)))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a queue's record");
	if ((err = yk_gpu_reports_new(d, &q->reports)))
		goto fail;
	q->device = d;
	q->refs = 1;
	q->profiled = yk_gpu_profile();
	if ((err = yk_gpu_driver.queue_new(d, q->profiled, &q->queue)))
		goto fail_reports;
	*queue = q;
	return 0;
fail_reports:
	yk_gpu_reports_free(q->reports);
fail:
	free(q);
	return err;
}

static void unref_queue(struct yk_gpu_queue *q)
{
	if (__atomic_sub_fetch(&q->refs, 1, __ATOMIC_ACQ_REL))
		return;
	yk_gpu_driver.queue_free(q->queue);
	yk_gpu_reports_free(q->reports);
	free(q);
}

static void unref_event(struct yk_gpu_event *e)
{
	if (__atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL))
		return;
	yk_gpu_driver.event_free(e->event);
	unref_queue(e->queue);
	free(e);
}

void yk_gpu_queue_free(void *queue)
{
	struct yk_gpu_queue *q = queue;

	if (!q || yk_gpu_forked())
		return;
	yk_gpu_driver.finish(q);
	if (q->mark)
		unref_event(q->mark);
	unref_queue(q);
}

static int flush(struct yk_gpu_queue *q)
{
	return yk_gpu_check(q->device, yk_gpu_driver.flush_call,
			    yk_gpu_driver.flush(q->queue));
}

int yk_gpu_queue_flush(void *queue)
{
	int err = yk_gpu_forked();

	return err ? err : flush(queue);
}

// If nothing was enqueued since the last event, it is returned again; unless it failed, since that
// error has been reported, or it records a time.
static bool is_reusable(const struct yk_gpu_queue *q)
{
	return q->mark && !q->busy && !q->profiled &&
	       !__atomic_load_n(&q->mark->failed, __ATOMIC_ACQUIRE);
}

static int mark(struct yk_gpu_queue *q, uint64_t reports)
{
	struct yk_gpu_event *e = calloc(1, sizeof *e);

	if (!e)
		return yk_gpu_error(YOKE_ENOMEM, "no memory for an event's record");
	int err = yk_gpu_driver.mark(q, &e->event);
	if (err) {
		free(e);
		return err;
	}
	e->queue = q;
	e->refs = 1;
	e->reports = reports;
	__atomic_add_fetch(&q->refs, 1, __ATOMIC_RELAXED);
	if (q->mark)
		unref_event(q->mark);
	q->mark = e;
	q->busy = false;
	return 0;
}

int yk_gpu_event_mark(void *queue, void **event)
{
	struct yk_gpu_queue *q = queue;
	uint64_t reports;
	int err = yk_gpu_forked();

	if (!err)
		err = yk_gpu_reports_mark(q, &reports);
	if (!err && !is_reusable(q))
		err = mark(q, reports);
	if (err)
		return err;
	__atomic_add_fetch(&q->mark->refs, 1, __ATOMIC_RELAXED);
	*event = q->mark;
	return 0;
}

static int flush_source(struct yk_gpu_event *e)
{
	if (__atomic_load_n(&e->flushed, __ATOMIC_RELAXED))
		return 0;
	int err = flush(e->queue);
	if (!err)
		__atomic_store_n(&e->flushed, true, __ATOMIC_RELAXED);
	return err;
}

// Records that a failure is being returned to a caller.
static int note_failure(struct yk_gpu_event *e, int err)
{
	if (err < 0)
		__atomic_store_n(&e->failed, true, __ATOMIC_RELEASE);
	return err;
}

static int wait_for(struct yk_gpu_event *e)
{
	int err = flush_source(e);

	return note_failure(e, err ? err : yk_gpu_driver.wait(e));
}

int yk_gpu_event_after(void *queue, void *event)
{
	struct yk_gpu_queue *q = queue;
	struct yk_gpu_event *e = event;
	int err = yk_gpu_forked();

	if (err || !e || e->queue == q)
		return err;
	if ((err = flush_source(e)))
		return err;
	q->busy = true;
	return yk_gpu_driver.after(q, e);
}

int yk_gpu_event_done(void *event)
{
	struct yk_gpu_event *e = event;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!e)
		return 1;
	err = flush_source(e);
	int state = note_failure(e, err ? err : yk_gpu_driver.status(e));
	if (state > 0 && (err = yk_gpu_reports_check(e->queue->reports, e->reports)))
		return err;
	return state;
}

int yk_gpu_event_wait(void *event)
{
	struct yk_gpu_event *e = event;
	int err = yk_gpu_forked();

	if (err || !e)
		return err;
	err = wait_for(e);
	return err ? err : yk_gpu_reports_check(e->queue->reports, e->reports);
}

int yk_gpu_event_elapsed(void *from, void *to, uint64_t *nanoseconds)
{
	struct yk_gpu_event *f = from, *t = to;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!f || !t || !f->queue->profiled || !t->queue->profiled)
		return yk_gpu_error(YOKE_EUNSUPPORTED,
				    "execution times are recorded only with %s=1",
				    yk_gpu_driver.profile->name);
	if ((err = wait_for(f)) || (err = wait_for(t)))
		return err;
	return yk_gpu_driver.elapsed(f, t, nanoseconds);
}

void yk_gpu_event_free(void *event)
{
	if (event && !yk_gpu_forked())
		unref_event(event);
}
