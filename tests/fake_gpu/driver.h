// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the fake libcuda and libamdhip64: driver.c (errors, devices),
// driver_memory.c, driver_stream.c and driver_module.c, each compiled for both vendors, on top of
// stream.c, graph.c and memory.c.
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include "vendor.h"

#define FAKE_OF_DRIVER ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

#define RESULT TWIN(CUresult, hipError_t)
#define ADDRESS TWIN(CUdeviceptr, hipDeviceptr_t)
#define STREAM TWIN(CUstream, hipStream_t)
#define EVENT TWIN(CUevent, hipEvent_t)
#define MODULE TWIN(CUmodule, hipModule_t)
#define FUNCTION TWIN(CUfunction, hipFunction_t)
#define GRAPH TWIN(CUgraph, hipGraph_t)
#define EXEC TWIN(CUgraphExec, hipGraphExec_t)

extern _Thread_local int fake_current; // the thread's device; -1: none
bool fake_is_device(int device);
unsigned fake_grid(int axis); // maximum number of groups along the axis
// Does YOKE_FAKE_PEER have this value?
bool fake_peer_is(const char *what);
unsigned fake_warp(void);
int fake_sized(void); // max bytes of shared memory that a launch may assign
// The code that a call of this name must return instead; device -1: no device.
int fake_enter(const char *call, int device);
// The stream of a handle; stream 0 waits for all others, as the legacy stream does.
int fake_stream_of(STREAM, struct fake_stream **to);
// tape.c: records a launch if recording is on.
void fake_tape_note(FUNCTION, const struct fake_kernel *, struct fake_dim blocks,
		    struct fake_dim threads, STREAM, void **params);
#ifndef FAKE_HIP
int fake_device_of(CUcontext); // -1: not a context
#endif

#define ENTER(cuda, hip, device) \
	do { \
		const int entered = fake_enter(TWIN(#cuda, #hip), device); \
		if (entered) \
			return entered; \
	} while (0)
// Begins a call that needs a context.
#define ENTER_CURRENT(cuda, hip) \
	do { \
		if (fake_current < 0) \
			return INVALID_CONTEXT; \
		ENTER(cuda, hip, fake_current); \
	} while (0)
#define WANT(what) \
	do { \
		if (!(what)) \
			return INVALID_VALUE; \
	} while (0)
#define ENTER_STREAM(cuda, hip, stream, to) \
	struct fake_stream *to; \
	do { \
		const int found = fake_stream_of(stream, &to); \
		if (found) \
			return found; \
		ENTER(cuda, hip, fake_stream_device(to)); \
	} while (0)

#endif
