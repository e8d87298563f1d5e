// SPDX-License-Identifier: Apache-2.0
// Fake libcuda and, compiled with FAKE_HIP, libamdhip64: streams, events and graphs.
#include "config.h"

#include <stdlib.h>

#include "driver.h"

// For the fake product libraries: enqueues work in a stream of this library, and checks whether its
// devices have these bytes.
EXPORT int fake_enqueue(void *stream, void (*call)(void *), void *arg);
EXPORT bool fake_within(const void *at, size_t bytes);

// ---- streams ----

int fake_stream_of(STREAM stream, struct fake_stream **to)
{
	if (!stream) {
		if (fake_current < 0)
			return INVALID_CONTEXT;
		fake_device_wait(fake_current);
		*to = fake_default_stream(fake_current);
		return *to ? OK : OUT_OF_MEMORY;
	}
	if (!fake_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	*to = TO_POINTER(stream);
	return OK;
}

RESULT TWIN(cuStreamCreate, hipStreamCreateWithFlags)(STREAM *stream, unsigned int flags)
{
	ENTER_CURRENT(cuStreamCreate, hipStreamCreateWithFlags);
	WANT(flags <= 1);
	struct fake_stream *s = fake_stream_new(fake_current);
	if (!s)
		return OUT_OF_MEMORY;
	*stream = TO_POINTER(s);
	return OK;
}

RESULT TWIN(cuStreamDestroy_v2, hipStreamDestroy)(STREAM stream)
{
	if (!fake_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	const int code = fake_fault(TWIN("cuStreamDestroy_v2", "hipStreamDestroy"));
	fake_stream_free(TO_POINTER(stream));
	return code;
}

RESULT TWIN(cuStreamSynchronize, hipStreamSynchronize)(STREAM stream)
{
	ENTER_STREAM(cuStreamSynchronize, hipStreamSynchronize, stream, s);
	return fake_stream_wait(s);
}

EXPORT int fake_enqueue(void *stream, void (*call)(void *), void *arg)
{
	struct fake_stream *s;
	const int code = fake_stream_of(stream, &s);

	if (code) {
		free(arg);
		return code;
	}
	return fake_push_call(s, call, arg);
}

EXPORT bool fake_within(const void *at, size_t bytes)
{
	struct fake_block b;

	return fake_block_of(at, bytes, &b);
}

// ---- events ----

RESULT TWIN(cuEventCreate, hipEventCreateWithFlags)(EVENT *event, unsigned int flags)
{
	ENTER_CURRENT(cuEventCreate, hipEventCreateWithFlags);
	struct fake_event *e = fake_event_new(!(flags & 2));
	if (!e)
		return OUT_OF_MEMORY;
	*event = TO_POINTER(e);
	return OK;
}

#define ENTER_EVENT(cuda, hip, event, to) \
	struct fake_event *to = TO_POINTER(event); \
	do { \
		if (!fake_is_event(to)) \
			return INVALID_HANDLE; \
		ENTER(cuda, hip, fake_event_device(to)); \
	} while (0)

RESULT TWIN(cuEventDestroy_v2, hipEventDestroy)(EVENT event)
{
	if (!fake_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	const int code = fake_fault(TWIN("cuEventDestroy_v2", "hipEventDestroy"));
	fake_event_free(TO_POINTER(event));
	return code;
}

RESULT TWIN(cuEventRecord, hipEventRecord)(EVENT event, STREAM stream)
{
	if (!fake_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	ENTER_STREAM(cuEventRecord, hipEventRecord, stream, s);
	return fake_event_record(TO_POINTER(event), s);
}

// A completed event reports whether its device is healthy.
static int said(int code, struct fake_event *e)
{
	const int device = fake_event_device(e);

	return code || device < 0 ? code : fake_lost(device);
}

RESULT TWIN(cuEventQuery, hipEventQuery)(EVENT event)
{
	ENTER_EVENT(cuEventQuery, hipEventQuery, event, e);
	const int code = fake_capture_allows();
	return code ? code : said(fake_event_query(e), e);
}

RESULT TWIN(cuEventSynchronize, hipEventSynchronize)(EVENT event)
{
	ENTER_EVENT(cuEventSynchronize, hipEventSynchronize, event, e);
	return said(fake_event_wait(e), e);
}

RESULT TWIN(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, EVENT from, EVENT to)
{
	ENTER_EVENT(cuEventElapsedTime, hipEventElapsedTime, from, a);
	if (!fake_is_event(TO_POINTER(to)))
		return INVALID_HANDLE;
	return fake_event_elapsed(a, TO_POINTER(to), milliseconds);
}

RESULT TWIN(cuStreamWaitEvent, hipStreamWaitEvent)(STREAM stream, EVENT event, unsigned int flags)
{
	if (!fake_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	ENTER_STREAM(cuStreamWaitEvent, hipStreamWaitEvent, stream, s);
	WANT(!flags);
	return fake_stream_after(s, TO_POINTER(event));
}

// ---- graphs: an instance is the graph itself, which nothing changes ----

RESULT TWIN(cuStreamBeginCapture_v2, hipStreamBeginCapture)(STREAM stream,
	TWIN(CUstreamCaptureMode, hipStreamCaptureMode) mode)
{
	if (!stream)
		return CAPTURE_IMPLICIT;
	ENTER_STREAM(cuStreamBeginCapture_v2, hipStreamBeginCapture, stream, s);
	WANT(mode >= 0 && mode <= 2);
	return fake_capture_begin(s, mode);
}

RESULT TWIN(cuStreamEndCapture, hipStreamEndCapture)(STREAM stream, GRAPH *graph)
{
	struct fake_graph *g;

	// a capture always ends
	if (!fake_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	int code = fake_capture_end(TO_POINTER(stream), &g);
	if (code)
		return code;
	if ((code = fake_enter(TWIN("cuStreamEndCapture", "hipStreamEndCapture"),
			  fake_stream_device(TO_POINTER(stream))))) {
		fake_graph_free(g);
		return code;
	}
	*graph = TO_POINTER(g);
	return OK;
}

RESULT TWIN(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(EXEC *exec, GRAPH graph,
	unsigned long long flags)
{
	ENTER_CURRENT(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags);
	(void)flags;
	WANT(graph);
	*exec = TO_POINTER(fake_graph_ref(TO_POINTER(graph)));
	return OK;
}

RESULT TWIN(cuGraphLaunch, hipGraphLaunch)(EXEC exec, STREAM stream)
{
	WANT(exec);
	ENTER_STREAM(cuGraphLaunch, hipGraphLaunch, stream, s);
	return fake_graph_launch(TO_POINTER(exec), s);
}

RESULT TWIN(cuGraphExecDestroy, hipGraphExecDestroy)(EXEC exec)
{
	WANT(exec);
	fake_graph_free(TO_POINTER(exec));
	return fake_fault(TWIN("cuGraphExecDestroy", "hipGraphExecDestroy"));
}

RESULT TWIN(cuGraphDestroy, hipGraphDestroy)(GRAPH graph)
{
	WANT(graph);
	fake_graph_free(TO_POINTER(graph));
	return fake_fault(TWIN("cuGraphDestroy", "hipGraphDestroy"));
}
