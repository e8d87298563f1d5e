// SPDX-License-Identifier: Apache-2.0
// Queues, in order, and events, which are markers in them.
// A command queue waits for another one's marker only after that one was flushed.
#include "config.h"

#include <stdlib.h>

#include "report.h"

int yk_cl_queue_new(uint32_t device, int kind, void **queue)
{
	struct yk_cl_device *d;
	struct yk_cl_queue *q;
	cl_int code;
	int err = yk_cl_forked();

	(void)kind;
	if (err)
		return err;
	if (!(d = yk_cl_device_at(device)))
		return YOKE_ENODEV;
	if ((err = yk_cl_device_open(d)))
		return err;
	if (!(q = calloc(1, sizeof *q)))
		return yk_cl_error(YOKE_ENOMEM, "no memory for a queue's record");
	if ((err = yk_cl_reports_new(d, &q->reports))) {
		free(q);
		return err;
	}
	q->device = d;
	q->profiled = yk_cl_profile();
	q->queue = clCreateCommandQueue(
		d->context, d->id, q->profiled ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
	if (code != CL_SUCCESS) {
		yk_cl_reports_unref(q->reports);
		free(q);
		return yk_cl_fail(d, "clCreateCommandQueue", code);
	}
	*queue = q;
	return 0;
}

void yk_cl_queue_free(void *queue)
{
	struct yk_cl_queue *q = queue;

	if (!q || yk_cl_forked())
		return;
	clFinish(q->queue);
	if (q->mark)
		clReleaseEvent(q->mark);
	clReleaseCommandQueue(q->queue);
	yk_cl_reports_unref(q->reports);
	free(q);
}

int yk_cl_queue_flush(void *queue)
{
	struct yk_cl_queue *q = queue;
	int err = yk_cl_forked();

	if (err)
		return err;
	cl_int code = clFlush(q->queue);
	return yk_cl_check(q->device, "clFlush", code);
}

// Where nothing was enqueued since, the mark that is there serves again, unless it failed: who asks
// then has heard that; or unless it tells a time.
static int mark(struct yk_cl_queue *q)
{
	cl_int status = -1;
	cl_event event;

	if (q->mark && !q->busy && !q->profiled &&
	    clGetEventInfo(q->mark, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
			   &status, NULL) == CL_SUCCESS && status >= 0)
		return 0;
	cl_int code = clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &event);
	if (code != CL_SUCCESS)
		return yk_cl_fail(q->device, "clEnqueueMarkerWithWaitList", code);
	if (q->mark)
		clReleaseEvent(q->mark);
	q->mark = event;
	q->busy = false;
	return 0;
}

int yk_cl_event_mark(void *queue, void **event)
{
	struct yk_cl_queue *q = queue;
	struct yk_cl_event *e;
	int err = yk_cl_forked();

	if (err)
		return err;
	if (!(e = calloc(1, sizeof *e)))
		return yk_cl_error(YOKE_ENOMEM, "no memory for an event's record");
	if ((err = yk_cl_reports_mark(q, &e->reports)) || (err = mark(q))) {
		free(e);
		return err;
	}
	e->event = q->mark;
	clRetainEvent(e->event);
	e->source = *q;
	clRetainCommandQueue(q->queue);
	yk_cl_reports_ref(q->reports);
	*event = e;
	return 0;
}

static int flush_source(struct yk_cl_event *e)
{
	if (__atomic_load_n(&e->flushed, __ATOMIC_RELAXED))
		return 0;
	cl_int code = clFlush(e->source.queue);
	if (code != CL_SUCCESS)
		return yk_cl_fail(e->source.device, "clFlush", code);
	__atomic_store_n(&e->flushed, true, __ATOMIC_RELAXED);
	return 0;
}

// Whether the commands ran, whatever they reported: 1, 0 not yet, negative.
static int status_of(struct yk_cl_event *e)
{
	cl_int status = CL_QUEUED;
	int err = flush_source(e);

	if (err)
		return err;
	cl_int code = clGetEventInfo(e->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
				     sizeof status, &status, NULL);
	if (code != CL_SUCCESS)
		return yk_cl_fail(e->source.device, "clGetEventInfo", code);
	if (status < 0)
		return yk_cl_fail(e->source.device, "a command", status);
	return status == CL_COMPLETE;
}

static int wait_for(struct yk_cl_event *e)
{
	int err = flush_source(e);

	if (err)
		return err;
	cl_int code = clWaitForEvents(1, &e->event);
	if (code == CL_SUCCESS)
		return 0;
	// The status says what failed; the wait only that something did.
	err = status_of(e);
	return err < 0 ? err : yk_cl_fail(e->source.device, "clWaitForEvents", code);
}

static void CL_CALLBACK open_gate(cl_event event, cl_int status, void *gate)
{
	(void)event;
	clSetUserEventStatus(gate, status < 0 ? status : CL_COMPLETE);
	clReleaseEvent(gate);
}

// Commands wait for events of their own context alone.  So an event of this one, the gate, is set when the
// other is over.
static int after_other(struct yk_cl_queue *q, struct yk_cl_event *e)
{
	const char *call = "clCreateUserEvent";
	cl_int code;
	cl_event gate = clCreateUserEvent(q->device->context, &code);

	if (code == CL_SUCCESS) {
		call = "clEnqueueBarrierWithWaitList";
		code = clEnqueueBarrierWithWaitList(q->queue, 1, &gate, NULL);
		if (code != CL_SUCCESS)
			clReleaseEvent(gate);
	}
	if (code != CL_SUCCESS)
		return yk_cl_fail(q->device, call, code);
	if (clSetEventCallback(e->event, CL_COMPLETE, open_gate, gate) == CL_SUCCESS)
		return 0;
	int err = wait_for(e);
	open_gate(e->event, err ? YOKE_EDEVICE : CL_COMPLETE, gate);
	return err;
}

int yk_cl_event_after(void *queue, void *event)
{
	struct yk_cl_queue *q = queue;
	struct yk_cl_event *e = event;
	int err = yk_cl_forked();

	if (err || !e || e->source.queue == q->queue)
		return err;
	if ((err = flush_source(e)))
		return err;
	q->busy = true;
	if (e->source.device != q->device)
		return after_other(q, e);
	cl_int code = clEnqueueBarrierWithWaitList(q->queue, 1, &e->event, NULL);
	return yk_cl_check(q->device, "clEnqueueBarrierWithWaitList", code);
}

int yk_cl_event_done(void *event)
{
	struct yk_cl_event *e = event;
	int err = yk_cl_forked();

	if (err)
		return err;
	if (!e)
		return 1;
	int state = status_of(e);
	if (state > 0 && (err = yk_cl_reports_check(e->source.reports, e->reports)))
		return err;
	return state;
}

int yk_cl_event_wait(void *event)
{
	struct yk_cl_event *e = event;
	int err = yk_cl_forked();

	if (err || !e)
		return err;
	err = wait_for(e);
	return err ? err : yk_cl_reports_check(e->source.reports, e->reports);
}

static int end_of(struct yk_cl_event *e, cl_ulong *ns)
{
	cl_int code = clGetEventProfilingInfo(e->event, CL_PROFILING_COMMAND_END,
					      sizeof *ns, ns, NULL);
	return yk_cl_check(e->source.device, "clGetEventProfilingInfo", code);
}

int yk_cl_event_elapsed(void *from, void *to, uint64_t *nanoseconds)
{
	struct yk_cl_event *f = from, *t = to;
	cl_ulong start, end;
	int err = yk_cl_forked();

	if (err)
		return err;
	if (!f || !t || !f->source.profiled || !t->source.profiled)
		return yk_cl_error(YOKE_EUNSUPPORTED,
				   "queues keep times only with opencl.profile=1");
	if ((err = wait_for(f)) || (err = wait_for(t)) ||
	    (err = end_of(f, &start)) || (err = end_of(t, &end)))
		return err;
	*nanoseconds = end > start ? end - start : 0;
	return 0;
}

void yk_cl_event_free(void *event)
{
	struct yk_cl_event *e = event;

	if (!e || yk_cl_forked())
		return;
	clReleaseEvent(e->event);
	clReleaseCommandQueue(e->source.queue);
	yk_cl_reports_unref(e->source.reports);
	free(e);
}
