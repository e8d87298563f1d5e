// SPDX-License-Identifier: Apache-2.0
// The calls of libcuda and, compiled with STANDIN_HIP, of libamdhip64: streams, events and graphs.
#include "config.h"

#include <stdlib.h>

#include "driver.h"

// For the stand-ins of products: what runs in a stream of this library, and whether its devices have these bytes.
EXPORT int standin_enqueue(void *stream, void (*call)(void *), void *arg);
EXPORT bool standin_within(const void *at, size_t bytes);

// ---- streams ----

int standin_stream_of(STREAM stream, struct standin_stream **to)
{
	if (!stream) {
		if (standin_current < 0)
			return INVALID_CONTEXT;
		standin_device_wait(standin_current);
		*to = standin_default_stream(standin_current);
		return *to ? OK : OUT_OF_MEMORY;
	}
	if (!standin_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	*to = TO_POINTER(stream);
	return OK;
}

RESULT TWIN(cuStreamCreate, hipStreamCreateWithFlags)(STREAM *stream, unsigned int flags)
{
	ENTER_CURRENT(cuStreamCreate, hipStreamCreateWithFlags);
	WANT(flags <= 1);
	struct standin_stream *s = standin_stream_new(standin_current);
	if (!s)
		return OUT_OF_MEMORY;
	*stream = TO_POINTER(s);
	return OK;
}

RESULT TWIN(cuStreamDestroy_v2, hipStreamDestroy)(STREAM stream)
{
	if (!standin_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	const int code = standin_fault(TWIN("cuStreamDestroy_v2", "hipStreamDestroy"));
	standin_stream_free(TO_POINTER(stream));
	return code;
}

RESULT TWIN(cuStreamSynchronize, hipStreamSynchronize)(STREAM stream)
{
	ENTER_STREAM(cuStreamSynchronize, hipStreamSynchronize, stream, s);
	return standin_stream_wait(s);
}

EXPORT int standin_enqueue(void *stream, void (*call)(void *), void *arg)
{
	struct standin_stream *s;
	const int code = standin_stream_of(stream, &s);

	if (code) {
		free(arg);
		return code;
	}
	return standin_push_call(s, call, arg);
}

EXPORT bool standin_within(const void *at, size_t bytes)
{
	struct standin_block b;

	return standin_block_of(at, bytes, &b);
}

// ---- events ----

RESULT TWIN(cuEventCreate, hipEventCreateWithFlags)(EVENT *event, unsigned int flags)
{
	ENTER_CURRENT(cuEventCreate, hipEventCreateWithFlags);
	struct standin_event *e = standin_event_new(!(flags & 2));
	if (!e)
		return OUT_OF_MEMORY;
	*event = TO_POINTER(e);
	return OK;
}

#define ENTER_EVENT(cuda, hip, event, to) \
	struct standin_event *to = TO_POINTER(event); \
	do { \
		if (!standin_is_event(to)) \
			return INVALID_HANDLE; \
		ENTER(cuda, hip, standin_event_device(to)); \
	} while (0)

RESULT TWIN(cuEventDestroy_v2, hipEventDestroy)(EVENT event)
{
	if (!standin_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	const int code = standin_fault(TWIN("cuEventDestroy_v2", "hipEventDestroy"));
	standin_event_free(TO_POINTER(event));
	return code;
}

RESULT TWIN(cuEventRecord, hipEventRecord)(EVENT event, STREAM stream)
{
	if (!standin_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	ENTER_STREAM(cuEventRecord, hipEventRecord, stream, s);
	return standin_event_record(TO_POINTER(event), s);
}

// An event that is over says whether its device is well.
static int said(int code, struct standin_event *e)
{
	const int device = standin_event_device(e);

	return code || device < 0 ? code : standin_lost(device);
}

RESULT TWIN(cuEventQuery, hipEventQuery)(EVENT event)
{
	ENTER_EVENT(cuEventQuery, hipEventQuery, event, e);
	const int code = standin_capture_allows();
	return code ? code : said(standin_event_query(e), e);
}

RESULT TWIN(cuEventSynchronize, hipEventSynchronize)(EVENT event)
{
	ENTER_EVENT(cuEventSynchronize, hipEventSynchronize, event, e);
	return said(standin_event_wait(e), e);
}

RESULT TWIN(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, EVENT from, EVENT to)
{
	ENTER_EVENT(cuEventElapsedTime, hipEventElapsedTime, from, a);
	if (!standin_is_event(TO_POINTER(to)))
		return INVALID_HANDLE;
	return standin_event_elapsed(a, TO_POINTER(to), milliseconds);
}

RESULT TWIN(cuStreamWaitEvent, hipStreamWaitEvent)(STREAM stream, EVENT event, unsigned int flags)
{
	if (!standin_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	ENTER_STREAM(cuStreamWaitEvent, hipStreamWaitEvent, stream, s);
	WANT(!flags);
	return standin_stream_after(s, TO_POINTER(event));
}

// ---- graphs: an instance is the graph itself, which nothing changes ----

RESULT TWIN(cuStreamBeginCapture_v2, hipStreamBeginCapture)(STREAM stream,
	TWIN(CUstreamCaptureMode, hipStreamCaptureMode) mode)
{
	if (!stream)
		return CAPTURE_IMPLICIT;
	ENTER_STREAM(cuStreamBeginCapture_v2, hipStreamBeginCapture, stream, s);
	WANT(mode >= 0 && mode <= 2);
	return standin_capture_begin(s, mode);
}

RESULT TWIN(cuStreamEndCapture, hipStreamEndCapture)(STREAM stream, GRAPH *graph)
{
	struct standin_graph *g;

	// a capture ends in any case
	if (!standin_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	int code = standin_capture_end(TO_POINTER(stream), &g);
	if (code)
		return code;
	if ((code = standin_enter(TWIN("cuStreamEndCapture", "hipStreamEndCapture"),
			  standin_stream_device(TO_POINTER(stream))))) {
		standin_graph_free(g);
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
	*exec = TO_POINTER(standin_graph_ref(TO_POINTER(graph)));
	return OK;
}

RESULT TWIN(cuGraphLaunch, hipGraphLaunch)(EXEC exec, STREAM stream)
{
	WANT(exec);
	ENTER_STREAM(cuGraphLaunch, hipGraphLaunch, stream, s);
	return standin_graph_launch(TO_POINTER(exec), s);
}

RESULT TWIN(cuGraphExecDestroy, hipGraphExecDestroy)(EXEC exec)
{
	WANT(exec);
	standin_graph_free(TO_POINTER(exec));
	return standin_fault(TWIN("cuGraphExecDestroy", "hipGraphExecDestroy"));
}

RESULT TWIN(cuGraphDestroy, hipGraphDestroy)(GRAPH graph)
{
	WANT(graph);
	standin_graph_free(TO_POINTER(graph));
	return standin_fault(TWIN("cuGraphDestroy", "hipGraphDestroy"));
}
