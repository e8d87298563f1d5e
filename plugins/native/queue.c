// SPDX-License-Identifier: Apache-2.0
// Queues are non-blocking streams; events; graphs, which are captured from a stream.
#include "config.h"

#include <stdlib.h>

#include "native.h"

// Queues, events and graphs keep a pointer to their device, whose context is needed to free them.
struct owned {
	struct yk_native_device *device;
	union {
		v_stream stream;
		v_event event;
		v_exec exec;
	};
};

static struct owned *owned_new(struct yk_gpu_device *d)
{
	struct owned *o = calloc(1, sizeof *o);

	if (o)
		o->device = yk_native_of(d);
	else
		yk_gpu_error(YOKE_ENOMEM, "no memory for the record of a queue, event or graph");
	return o;
}

// ---- queues ----

int yk_native_queue_new(struct yk_gpu_device *d, bool profiled, void **queue)
{
	int err = yk_native_use(d);
	struct owned *o = err ? NULL : owned_new(d);

	(void)profiled; // events always record times
	if (!o)
		return err ? err : YOKE_ENOMEM;
	if ((err = yk_gpu_check(d, V_STREAM_NEW(&o->stream)))) {
		free(o);
		return err;
	}
	*queue = o;
	return 0;
}

void yk_native_queue_free(void *queue)
{
	struct owned *o = queue;

	if (!yk_native_code(V_USE(o->device)))
		yk_native_code(V_STREAM_FREE(o->stream));
	free(o);
}

v_stream yk_native_stream(const struct yk_gpu_queue *q)
{
	return ((const struct owned *)q->queue)->stream;
}

// Streams submit work immediately.
int yk_native_flush(void *queue)
{
	(void)queue;
	return 0;
}

int yk_native_finish(struct yk_gpu_queue *q)
{
	int err = yk_native_use(q->device);

	return err ? err : yk_gpu_check(q->device, V_STREAM_WAIT(yk_native_stream(q)));
}

// ---- events ----

int yk_native_mark(struct yk_gpu_queue *q, void **event)
{
	int err = yk_native_use(q->device);
	struct owned *o = err ? NULL : owned_new(q->device);

	if (!o)
		return err ? err : YOKE_ENOMEM;
	if ((err = yk_gpu_check(q->device, V_EVENT_NEW(&o->event, q->profiled)))) {
		free(o);
		return err;
	}
	if ((err = yk_gpu_check(q->device, V_EVENT_MARK(o->event, yk_native_stream(q))))) {
		yk_native_event_free(o);
		return err;
	}
	*event = o;
	return 0;
}

void yk_native_event_free(void *event)
{
	struct owned *o = event;

	if (!yk_native_code(V_USE(o->device)))
		yk_native_code(V_EVENT_FREE(o->event));
	free(o);
}

static v_event of(const struct yk_gpu_event *e)
{
	return ((const struct owned *)e->event)->event;
}

int yk_native_after(struct yk_gpu_queue *q, struct yk_gpu_event *e)
{
	int err = yk_native_use(q->device);

	return err ? err : yk_gpu_check(q->device, V_STREAM_AFTER(yk_native_stream(q), of(e)));
}

int yk_native_status(struct yk_gpu_event *e)
{
	int err = yk_native_use(e->queue->device);
	const int code = err ? 0 : yk_native_code(V_EVENT_ASK(of(e)));

	if (err || code == V_NOT_READY)
		return err;
	return code ? yk_gpu_fail(e->queue->device, V_EVENT_ASK_CALL, code) : 1;
}

int yk_native_wait(struct yk_gpu_event *e)
{
	int err = yk_native_use(e->queue->device);

	return err ? err : yk_gpu_check(e->queue->device, V_EVENT_WAIT(of(e)));
}

int yk_native_elapsed(struct yk_gpu_event *from, struct yk_gpu_event *to, uint64_t *nanoseconds)
{
	float ms = 0;
	int err = yk_native_use(to->queue->device);

	if (err || (err = yk_gpu_check(to->queue->device, V_EVENT_TIME(&ms, of(from), of(to)))))
		return err;
	*nanoseconds = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
	return 0;
}

// ---- graphs ----

// Relaxed capture mode: kernels may be compiled and tables allocated while recording.
int yk_native_graph_begin(struct yk_gpu_queue *q)
{
	int err;

	if (!V_HAS_GRAPHS)
		return YOKE_EUNSUPPORTED;
	err = yk_native_use(q->device);
	return err ? err : yk_gpu_check(q->device, V_CAPTURE(yk_native_stream(q)));
}

int yk_native_graph_end(struct yk_gpu_queue *q, void **graph)
{
	struct owned *o = owned_new(q->device); // the capture must be ended in any case
	v_graph captured = NULL;
	int err = yk_native_use(q->device);

	err = err ? err : yk_gpu_check(q->device, V_CAPTURE_END(yk_native_stream(q), &captured));
	if (!err && !o)
		err = YOKE_ENOMEM;
	if (!err)
		err = yk_gpu_check(q->device, V_INSTANTIATE(&o->exec, captured));
	if (captured)
		yk_native_code(V_GRAPH_FREE(captured));
	if (err)
		free(o);
	else
		*graph = o;
	return err;
}

int yk_native_graph_run(struct yk_gpu_queue *q, void *graph)
{
	int err = yk_native_use(q->device);

	return err ? err :
		     yk_gpu_check(q->device, V_GRAPH_LAUNCH(((struct owned *)graph)->exec,
							    yk_native_stream(q)));
}

void yk_native_graph_free(void *graph)
{
	struct owned *o = graph;

	if (!yk_native_code(V_USE(o->device)))
		yk_native_code(V_EXEC_FREE(o->exec));
	free(o);
}
