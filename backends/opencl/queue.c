// SPDX-License-Identifier: Apache-2.0
// Command queues, and events, which are markers in them.
#include "config.h"

#include "opencl.h"

int yk_cl_queue_new(struct yk_gpu_device *device, bool profiled, void **queue)
{
	struct yk_cl_device *d = yk_cl_of(device);
	cl_int code;
	cl_command_queue q = clCreateCommandQueue(
		d->context, d->id, profiled ? CL_QUEUE_PROFILING_ENABLE : 0, &code);

	if (code != CL_SUCCESS)
		return yk_gpu_fail(device, "clCreateCommandQueue", code);
	*queue = q;
	return 0;
}

void yk_cl_queue_free(void *queue)
{
	clReleaseCommandQueue(queue);
}

int yk_cl_flush(void *queue)
{
	return clFlush(queue);
}

int yk_cl_finish(struct yk_gpu_queue *q)
{
	return yk_gpu_check(q->device, "clFinish", clFinish(q->queue));
}

int yk_cl_mark(struct yk_gpu_queue *q, void **event)
{
	cl_event e;
	cl_int code = clEnqueueMarkerWithWaitList(q->queue, 0, NULL, &e);

	if (code != CL_SUCCESS)
		return yk_gpu_fail(q->device, "clEnqueueMarkerWithWaitList", code);
	*event = e;
	return 0;
}

void yk_cl_event_free(void *event)
{
	clReleaseEvent(event);
}

// Does not report errors of the event's commands.
int yk_cl_status(struct yk_gpu_event *e)
{
	cl_int status = CL_QUEUED;
	cl_int code = clGetEventInfo(e->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
				     sizeof status, &status, NULL);

	if (code != CL_SUCCESS)
		return yk_gpu_fail(e->queue->device, "clGetEventInfo", code);
	if (status < 0)
		return yk_gpu_fail(e->queue->device, "a command", status);
	return status == CL_COMPLETE;
}

int yk_cl_wait(struct yk_gpu_event *e)
{
	cl_event event = e->event;
	cl_int code = clWaitForEvents(1, &event);

	if (code == CL_SUCCESS)
		return 0;
	// The status describes the failure; the wait only reports that there was one.
	int err = yk_cl_status(e);
	return err < 0 ? err : yk_gpu_fail(e->queue->device, "clWaitForEvents", code);
}

static void CL_CALLBACK open_gate(cl_event event, cl_int status, void *gate)
{
	(void)event;
	clSetUserEventStatus(gate, status < 0 ? status : CL_COMPLETE);
	clReleaseEvent(gate);
}

// Commands can only wait for events of their own context. So a user event of this context, the
// gate, is set when the other event completes.
static int after_other(struct yk_gpu_queue *q, struct yk_gpu_event *e)
{
	const char *call = "clCreateUserEvent";
	cl_int code;
	cl_event gate = clCreateUserEvent(yk_cl_of(q->device)->context, &code);

	if (code == CL_SUCCESS) {
		call = "clEnqueueBarrierWithWaitList";
		code = clEnqueueBarrierWithWaitList(q->queue, 1, &gate, NULL);
		if (code != CL_SUCCESS)
			clReleaseEvent(gate);
	}
	if (code != CL_SUCCESS)
		return yk_gpu_fail(q->device, call, code);
	if (clSetEventCallback(e->event, CL_COMPLETE, open_gate, gate) == CL_SUCCESS)
		return 0;
	int err = yk_cl_wait(e);
	open_gate(e->event, err ? YOKE_EDEVICE : CL_COMPLETE, gate);
	return err;
}

int yk_cl_after(struct yk_gpu_queue *q, struct yk_gpu_event *e)
{
	cl_event event = e->event;

	if (e->queue->device != q->device)
		return after_other(q, e);
	cl_int code = clEnqueueBarrierWithWaitList(q->queue, 1, &event, NULL);
	return yk_gpu_check(q->device, "clEnqueueBarrierWithWaitList", code);
}

static int end_of(struct yk_gpu_event *e, cl_ulong *ns)
{
	return yk_gpu_check(e->queue->device, "clGetEventProfilingInfo",
			    clGetEventProfilingInfo(e->event, CL_PROFILING_COMMAND_END,
						    sizeof *ns, ns, NULL));
}

int yk_cl_elapsed(struct yk_gpu_event *from, struct yk_gpu_event *to,
		  uint64_t *nanoseconds)
{
	cl_ulong start, end;
	int err = end_of(from, &start);

	if (err || (err = end_of(to, &end)))
		return err;
	*nanoseconds = end > start ? end - start : 0;
	return 0;
}
