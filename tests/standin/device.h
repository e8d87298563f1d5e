// SPDX-License-Identifier: Apache-2.0
// Devices made of host memory and threads, behind the calls of a vendor's driver.  Codes are CUDA's, which HIP's equal.
#ifndef STANDIN_DEVICE_H
#define STANDIN_DEVICE_H

#include <pthread.h>

#include "exec.h"

#define EXPORT __attribute__((visibility("default")))

enum standin_code {
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

// "cuMemAlloc_v2:3:CUDA_ERROR_OUT_OF_MEMORY" of YOKE_STANDIN_FAIL: the code that this call gives, or 0.
int standin_fault(const char *call);
// Of a symbolic name; the library knows its own.
int standin_code_of(const char *name);

// ---- memory.c ----

enum standin_kind { DEVICE_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY };

struct standin_block {
	uintptr_t at;
	size_t bytes;
	enum standin_kind kind;
	int device;
};

int standin_alloc(int device, enum standin_kind, size_t bytes, void **at);
int standin_register(int device, void *at, size_t bytes);
int standin_free(void *at, enum standin_kind);
// The block that all of these bytes are in.
bool standin_block_of(const void *at, size_t bytes, struct standin_block *to);
void standin_memory(int device, size_t *free_bytes, size_t *total);
void standin_peer_enable(int device, int peer);
bool standin_peer_enabled(int device, int peer);

// ---- stream.c, graph.c ----

struct standin_stream;
struct standin_event;
struct standin_graph;

// The code that a device gives from now on, once something destroyed its context; 0: it is well.
int standin_lost(int device);
void standin_lose(int device, int code);
void standin_recover(int device); // its context is a new one

struct standin_stream *standin_stream_new(int device);
void standin_stream_free(struct standin_stream *); // when it is empty
int standin_stream_device(const struct standin_stream *);
bool standin_is_stream(const void *);
bool standin_is_event(const void *);
int standin_stream_wait(struct standin_stream *);
// All of a device, or of all, -1.
void standin_device_wait(int device);
// A device's stream 0.
struct standin_stream *standin_default_stream(int device);

int standin_push_launch(struct standin_stream *, const struct standin_launch *);
// keep: of what is there now; lie: what arrives is wrong
int standin_push_copy(struct standin_stream *, void *to, const void *from, size_t bytes, bool keep, bool lie);
int standin_push_fill(struct standin_stream *, void *to, size_t count, const void *pattern, size_t pattern_bytes);
// A function that runs when all before it is over; arg is freed behind the last of its runs.
int standin_push_call(struct standin_stream *, void (*call)(void *arg), void *arg);

struct standin_event *standin_event_new(bool timed);
void standin_event_free(struct standin_event *);
int standin_event_device(const struct standin_event *); // -1: not recorded
int standin_event_record(struct standin_event *, struct standin_stream *);
int standin_event_query(struct standin_event *);
int standin_event_wait(struct standin_event *);
int standin_event_elapsed(struct standin_event *from, struct standin_event *to, float *milliseconds);
int standin_stream_after(struct standin_stream *, struct standin_event *);

int standin_capture_begin(struct standin_stream *, int mode);
int standin_capture_end(struct standin_stream *, struct standin_graph **);
// May this thread make a call now that must not be captured?
int standin_capture_allows(void);
struct standin_graph *standin_graph_ref(struct standin_graph *);
void standin_graph_free(struct standin_graph *);
int standin_graph_launch(struct standin_graph *, struct standin_stream *);

#endif
