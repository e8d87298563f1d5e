// SPDX-License-Identifier: Apache-2.0
// Devices: their list and ranking, the choice by YOKE_BACKEND and YOKE_DEVICE; queues and events.
#ifndef YK_DEVICE_H
#define YK_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/plugin.h"

struct yk_pool;
struct yk_quirk;
struct yk_roof;
struct yk_telemetry;
struct yk_trust_table;
struct yk_tuning;

struct yk_device {
	struct yk_backend *backend;
	const struct yoke_backend *ops; // &backend->table
	uint32_t index;                 // in its backend
	char id[48];                    // "opencl:0"
	struct yoke_device_info info;
	struct yk_pool *pool;   // device memory
	struct yk_pool *pinned; // pinned host memory for staging
	struct yk_device *alias; // a better-ranked device of the list, same hardware; or NULL
	const struct yk_quirk *quirks; // the first quirk that applies to it, or NULL
	struct yk_trust_table *trust;  // results of its self-test; NULL: not tested
	struct yk_tuning *tuning; // results of `yoke tune`; NULL: not read yet
	struct yk_telemetry *telemetry; // its telemetry source; NULL: not looked up yet
	struct yk_roof *roof; // its measured peak rates; NULL: not measured yet
	atomic_uint_fast64_t freed; // segments returned to it
	bool left; // it failed, see yk_device_leave
	struct yk_device *dry;  // its dry copy, once made
	struct yk_device *real; // the device of which this is the dry copy, or NULL
	_Atomic(struct yk_refusal *) refusals; // refuse.c
	struct yk_device *next;
};

// ---- device.c ----

// Bytes of the device's memory that are free now, not used by this or another process; 0: unknown.
uint64_t yk_device_free(const struct yk_device *);

// ---- discover.c ----

// The devices of the backends in a list, and of any backend queried before, in order of discovery.
// The caller must hold its own lock.
struct yk_device *const *yk_devices_found(const char *list, size_t *n);

// ---- refuse.c ----

// Bit i: implementation i of the device can run this op, best first, and no fault of it is known.
uint64_t yk_device_can(const struct yk_device *, const struct yoke_op *);
// Records that implementation impl of an op, which the device reported as supported, does not
// build: yk_device_can omits it from now on for all ops of the same form.
int yk_device_refuse(struct yk_device *, const struct yoke_op *, uint32_t impl);
// Removes refused implementations from a mask.
uint64_t yk_refused_mask(const struct yk_device *, const struct yoke_op *, uint64_t impls);
// A hash of all known faults of the device's implementations, refusals and failed self-tests; 0:
// none.  Devices of one model with different hashes run some ops by different kernels.
uint64_t yk_device_left_out(const struct yk_device *);

// ---- choose.c ----

// All devices of the backends in `list` (NULL: YOKE_BACKEND; "*": all), best first.  Each call
// relinks them, so only one thread at a time may use the list, until its next call.
struct yk_device *yk_devices(const char *list);
// The id of the device at index i of that list, or NULL; thread safe.
const char *yk_device_at(int i);
// The device to use; list NULL: YOKE_BACKEND.  The best of the list, or the one that YOKE_DEVICE
// names: "opencl:0", "pci:0000:01:00.0", "uuid:..", or a pattern with '*' for its name.  NULL with
// ENODEV: the message has the request, the reason why it cannot be met, and the devices that exist.
struct yk_device *yk_device_choose(const char *list);
// The first device found so far for which `is` returns true; thread safe.
struct yk_device *yk_device_known(bool (*is)(const struct yk_device *, const void *),
				  const void *arg);
// The device with this name, in the syntax of YOKE_DEVICE, or the best of a backend: "cuda".
struct yk_device *yk_device_named(const char *name);
// Why the backend of this name, probed before, cannot be used; NULL: it can.
const char *yk_backend_trouble(const char *name);
// Marks the device as failed: this process no longer chooses it, nor another backend's device for
// the same hardware. EDEVICE, without effect, if the user requested only this device or backend, or
// if it is the CPU backend's device.
int yk_device_leave(struct yk_device *);
// The same without these checks, for one of several devices in use.
void yk_device_lose(struct yk_device *);
// The CPU backend's device, which runs ops that other devices do not support.
struct yk_device *yk_device_cpu(void);

// ---- dry.c ----

// The dry copy of a device, made once.  It plans like the device, with the same kernels, and its
// pools account like the device's, but segments hold no memory, queues do nothing, and reads return
// zeros.  It must not be used to run steps.  NULL: no memory.
struct yk_device *yk_device_dry(struct yk_device *);
// The device to query for knowledge about kernels: the real one of a dry device.
static inline struct yk_device *yk_device_real(struct yk_device *d)
{
	return d->real ? d->real : d;
}

// ---- queues and events ----
//
// A backend may report a failure long after the call that caused it, in whichever call queries an
// event next: from the pool, or on another thread.  The queue stores the report until its owner
// takes it.

struct yk_queue_failure {
	int code;       // 0: none
	uint64_t since; // events up to this serial succeeded; later ones are unknown
	char why[400];  // the backend's message
};

struct yk_queue {
	struct yk_device *device;
	void *handle;
	uint64_t marks;        // events marked so far
	atomic_int refs;       // one for the owner and one per event
	_Atomic uint64_t good; // events up to this serial are known to have succeeded
	atomic_bool failed;    // a failure waits to be taken
	atomic_bool lost;      // a wait exceeded device.timeout and no event has completed since
	pthread_mutex_t lock;  // protects the following
	struct yk_queue_failure failure;
	uint64_t taken; // failures of events up to this serial were already reported to the owner
};

struct yk_event { // reference counted: pool blocks and runs share events
	atomic_int refs;
	const struct yoke_backend *ops;
	struct yk_queue *queue; // the queue it was marked on; holds a reference
	void *handle;
	atomic_int state; // 1: done, 0: not known, negative: the work before it failed
	uint64_t serial;  // position among the queue's events: a later event implies earlier ones
};

int yk_queue_new(struct yk_device *, int kind, struct yk_queue **);
// Waits for enqueued work first.  A queue that does not answer in time is leaked.
void yk_queue_free(struct yk_queue *);
int yk_queue_flush(struct yk_queue *);
// Waits for everything enqueued.
int yk_queue_wait(struct yk_queue *);
// The same without setting this thread's error; a failure is stored with the queue.
int yk_queue_drain(struct yk_queue *);
static inline bool yk_queue_failed(struct yk_queue *q)
{
	return atomic_load_explicit(&q->failed, memory_order_acquire);
}
// For the queue's owner: the first failure since the last call; returns its code, or 0.
int yk_queue_take(struct yk_queue *, struct yk_queue_failure *);

// Like the backend's functions.  If the backend lacks one, the host does the work and waits.
int yk_queue_fill(struct yk_queue *, void *segment, uint64_t offset, uint64_t bytes,
		  const void *pattern, uint32_t pattern_bytes);
int yk_queue_copy(struct yk_queue *, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		  uint64_t bytes);

// The same from a segment of `source`'s device to one of q's, enqueued on q after all work of both
// queues so far.  The source range must not change until an event marked on q afterwards is done.
// If the backend lacks the function, or the queues belong to different backends, the host copies
// and waits.
int yk_copy_between(struct yk_queue *q, void *to, uint64_t to_offset, struct yk_queue *source,
		    void *from, uint64_t from_offset, uint64_t bytes);

// Returns one reference.  Flushes the queue, so that any other queue and thread may wait for the
// event.
int yk_event_mark(struct yk_queue *, struct yk_event **);
int yk_event_try(struct yk_queue *, struct yk_event **); // does not set this thread's error
struct yk_event *yk_event_ref(struct yk_event *);
void yk_event_unref(struct yk_event *);                   // NULL is fine
int yk_event_done(struct yk_event *); // 1, 0, or negative if the work before it failed; NULL: 1
// Waits for at most device.timeout seconds.
int yk_event_wait(struct yk_event *);
int yk_event_sync(struct yk_event *); // does not set this thread's error
// Makes later work on q wait for e.  The host waits if q's backend cannot: it may not support
// waiting between its own devices, and never does for another backend's events.
int yk_event_before(struct yk_event *e, struct yk_queue *q);

#endif
