// SPDX-License-Identifier: Apache-2.0
// Fake devices made of host memory and threads, used by the fake drivers. Status codes are
// CUDA's, which HIP shares.
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <pthread.h>

#include "exec.h"

#define EXPORT __attribute__((visibility("default")))

enum fake_code {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	PEER_UNSUPPORTED = 217,
	INVALID_HANDLE = 400,
	ILLEGAL_STATE = 401,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	OUT_OF_RESOURCES = 701,
	PEER_ALREADY = 704,
	PEER_NOT_ENABLED = 705,
	MISALIGNED = 716,
	LAUNCH_FAILED = 719,
	NOT_SUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_MERGE = 902,
	CAPTURE_UNMATCHED = 903,
	CAPTURE_UNJOINED = 904,
	CAPTURE_ISOLATION = 905,
	CAPTURE_IMPLICIT = 906,
	CAPTURED_EVENT = 907,
};

enum { MAX_DEVICES = 8 };

// ---- fault.c ----

// The code that this call must return according to YOKE_FAKE_FAIL, such as
// "cuMemAlloc_v2:3:CUDA_ERROR_OUT_OF_MEMORY", or 0.
int fake_fault(const char *call);
// The code of a symbolic name; each library knows its own.
int fake_code_of(const char *name);

// ---- memory.c ----

enum fake_kind { DEVICE_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY };

struct fake_block {
	uintptr_t at;
	size_t bytes;
	enum fake_kind kind;
	int device;
};

int fake_alloc(int device, enum fake_kind, size_t bytes, void **at);
int fake_register(int device, void *at, size_t bytes);
int fake_free(void *at, enum fake_kind);
// The block that contains all of these bytes.
bool fake_block_of(const void *at, size_t bytes, struct fake_block *to);
void fake_memory(int device, size_t *free_bytes, size_t *total);
void fake_peer_enable(int device, int peer);
bool fake_peer_enabled(int device, int peer);

// ---- stream.c, graph.c ----

struct fake_stream;
struct fake_event;
struct fake_graph;

// The code that a device returns from now on after its context was destroyed; 0: healthy.
int fake_lost(int device);
void fake_lose(int device, int code);
void fake_recover(int device); // replaces its context

struct fake_stream *fake_stream_new(int device);
void fake_stream_free(struct fake_stream *); // when it is empty
int fake_stream_device(const struct fake_stream *);
bool fake_is_stream(const void *);
bool fake_is_event(const void *);
int fake_stream_wait(struct fake_stream *);
// Waits for all work of a device, or of all devices, -1.
void fake_device_wait(int device);
// A device's stream 0.
struct fake_stream *fake_default_stream(int device);

int fake_push_launch(struct fake_stream *, const struct fake_launch *);
// keep: copies the present contents; lie: the copy corrupts bytes
int fake_push_copy(struct fake_stream *, void *to, const void *from, size_t bytes, bool keep,
		   bool lie);
int fake_push_fill(struct fake_stream *, void *to, size_t count, const void *pattern,
		   size_t pattern_bytes);
// Enqueues a function that runs after all earlier work; arg is freed after its last run.
int fake_push_call(struct fake_stream *, void (*call)(void *arg), void *arg);

struct fake_event *fake_event_new(bool timed);
void fake_event_free(struct fake_event *);
int fake_event_device(const struct fake_event *); // -1: not recorded
int fake_event_record(struct fake_event *, struct fake_stream *);
int fake_event_query(struct fake_event *);
int fake_event_wait(struct fake_event *);
int fake_event_elapsed(struct fake_event *from, struct fake_event *to, float *milliseconds);
int fake_stream_after(struct fake_stream *, struct fake_event *);

int fake_capture_begin(struct fake_stream *, int mode);
int fake_capture_end(struct fake_stream *, struct fake_graph **);
// May this thread now make a call that must not be captured?
int fake_capture_allows(void);
struct fake_graph *fake_graph_ref(struct fake_graph *);
void fake_graph_free(struct fake_graph *);
int fake_graph_launch(struct fake_graph *, struct fake_stream *);

#endif
