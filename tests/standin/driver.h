// SPDX-License-Identifier: Apache-2.0
// What the files of the calls of libcuda and libamdhip64 share: driver.c (errors, devices), driver_memory.c,
// driver_stream.c and driver_module.c, each compiled for both vendors, over stream.c, graph.c and memory.c.
#ifndef STANDIN_DRIVER_H
#define STANDIN_DRIVER_H

#include "vendor.h"

#define STANDIN_OF_DRIVER ~, STANDIN_YES
STANDIN_CALLS(STANDIN_DECLARE)

#define RESULT TWIN(CUresult, hipError_t)
#define ADDRESS TWIN(CUdeviceptr, hipDeviceptr_t)
#define STREAM TWIN(CUstream, hipStream_t)
#define EVENT TWIN(CUevent, hipEvent_t)
#define MODULE TWIN(CUmodule, hipModule_t)
#define FUNCTION TWIN(CUfunction, hipFunction_t)
#define GRAPH TWIN(CUgraph, hipGraph_t)
#define EXEC TWIN(CUgraphExec, hipGraphExec_t)

extern _Thread_local int standin_current; // the thread's device; -1: none
bool standin_is_device(int device);
unsigned standin_grid(int axis); // groups along it, at most
// Is YOKE_STANDIN_PEER this?
bool standin_peer_is(const char *what);
unsigned standin_warp(void);
// What a call of this name gives instead; device -1: it is none's.
int standin_enter(const char *call, int device);
// A handle's; stream 0 waits for all others, as the legacy one does.
int standin_stream_of(STREAM, struct standin_stream **to);
// tape.c: notes a launch, if it is asked to.
void standin_tape_note(FUNCTION, const struct standin_kernel *, struct standin_dim blocks, struct standin_dim threads,
		       STREAM, void **params);
#ifndef STANDIN_HIP
int standin_device_of(CUcontext); // -1: it is no context
#endif

#define ENTER(cuda, hip, device) \
	do { \
		const int entered = standin_enter(TWIN(#cuda, #hip), device); \
		if (entered) \
			return entered; \
	} while (0)
// Of a call that wants a context.
#define ENTER_CURRENT(cuda, hip) \
	do { \
		if (standin_current < 0) \
			return INVALID_CONTEXT; \
		ENTER(cuda, hip, standin_current); \
	} while (0)
#define WANT(what) \
	do { \
		if (!(what)) \
			return INVALID_VALUE; \
	} while (0)
#define ENTER_STREAM(cuda, hip, stream, to) \
	struct standin_stream *to; \
	do { \
		const int found = standin_stream_of(stream, &to); \
		if (found) \
			return found; \
		ENTER(cuda, hip, standin_stream_device(to)); \
	} while (0)

#endif
