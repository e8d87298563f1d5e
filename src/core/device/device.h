// SPDX-License-Identifier: Apache-2.0
// Devices: the list, their ranking, the choice by YOKE_BACKEND and YOKE_DEVICE; queues and events.
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
	struct yk_pool *pool;   // of device memory
	struct yk_pool *pinned; // of host memory for staging
	struct yk_device *alias; // the better offer of the same hardware, in the present list; or NULL
	const struct yk_quirk *quirks; // the first that says what to avoid of it, or NULL
	struct yk_trust_table *trust;  // what its self-test found; NULL: it has none
	struct yk_tuning *tuning; // what `yoke tune` found of it; NULL: not looked for yet
	struct yk_telemetry *telemetry; // what was said of it; NULL: nothing yet
	struct yk_roof *roof; // what it reaches at most; NULL: not measured yet
	atomic_uint_fast64_t freed; // segments that it took back
	bool left; // it failed: yk_device_leave
	struct yk_device *dry;  // its dry one, once there was use for that ..
	struct yk_device *real; // .. of which it is this; NULL: of none
	_Atomic(struct yk_refusal *) refusals; // refuse.c
	struct yk_device *next;
};

// ---- device.c ----

// What the backends of a list (and others, asked before) have, in order of discovery.  Under a lock
// of the caller's.
struct yk_device *const *yk_devices_found(const char *list, size_t *n);

// Bit i: implementation i of the device can run this op, best first, and nothing is known against it.
uint64_t yk_device_can(const struct yk_device *, const struct yoke_op *);

// ---- refuse.c ----

// Implementation impl of an op, which the device said it can run, does not build: from now on
// yk_device_can says so for all ops of that form.
int yk_device_refuse(struct yk_device *, const struct yoke_op *, uint32_t impl);
// Takes those from a mask of implementations.
uint64_t yk_refused_mask(const struct yk_device *, const struct yoke_op *, uint64_t impls);
// A hash of all that is known against the device's implementations so far, these and what its self-test found wrong; 0:
// nothing.  Devices of one kind that have another one run some ops by other kernels.
uint64_t yk_device_left_out(const struct yk_device *);

// ---- choose.c ----

// All devices of the backends that `list` names (NULL: YOKE_BACKEND; "*": all), best first.  They are
// linked anew by each call: for one thread at a time, and only until its next call.
struct yk_device *yk_devices(const char *list);
// The id of the device at that place among them, or NULL; from any thread.
const char *yk_device_at(int i);
// The device to work on; list NULL: YOKE_BACKEND.  Among its devices the best, or the one that
// YOKE_DEVICE means: "opencl:0", "pci:0000:01:00.0", "uuid:..", or a pattern with '*' of its name.  NULL
// with ENODEV: the message names what was asked for, why it cannot be used, and what there is.
struct yk_device *yk_device_choose(const char *list);
// The first device for which `is` says so, of those that were looked for before; from any thread.
struct yk_device *yk_device_known(bool (*is)(const struct yk_device *, const void *), const void *arg);
// The device of a name as YOKE_DEVICE takes them.
struct yk_device *yk_device_named(const char *name);
// Why the backend of this name, looked for before, cannot be used; NULL: it can.
const char *yk_backend_trouble(const char *name);
// The device has failed: neither it nor another offer of the same hardware is chosen any more by this
// process.  EDEVICE, and nothing changes, when it was asked for by name, alone; the CPU backend's is never left.
int yk_device_leave(struct yk_device *);
// The same of one among several of a kind, whoever asked for that.
void yk_device_lose(struct yk_device *);
// Bytes of the device's memory that nobody uses now, this process included; 0: not known.
uint64_t yk_device_free(const struct yk_device *);
// The CPU backend's device, which serves what others do not take.
struct yk_device *yk_device_cpu(void);

// ---- dry.c ----

// The device without memory and work, made once: it plans as the device does, with its kernels, and its
// pools count as the device's would; segments hold nothing, queues do nothing, what is read is zeros.
// Launches are not to run steps on it.  NULL: no memory.
struct yk_device *yk_device_dry(struct yk_device *);
// What is known of a device's kernels is known of its dry one.
static inline struct yk_device *yk_device_real(struct yk_device *d)
{
	return d->real ? d->real : d;
}

// ---- queues and events ----
//
// A backend may report a failure long after the call that caused it, to whoever asks for an event
// next: the pool, or another thread.  Such a report is kept with the queue until its owner takes it.

struct yk_queue_failure {
	int code;       // 0: none
	uint64_t since; // events up to this serial ended well; nothing is known of what is behind
	char why[400];  // what the backend said
};

struct yk_queue {
	struct yk_device *device;
	void *handle;
	uint64_t marks;        // events so far
	atomic_int refs;       // the owner's and those of its events
	_Atomic uint64_t good; // all up to this event is known to have ended well
	atomic_bool failed;    // there is a failure to take
	atomic_bool lost;      // a wait took longer than device.timeout and nothing was heard since
	pthread_mutex_t lock;  // over the following
	struct yk_queue_failure failure;
	uint64_t taken; // what events up to this one say of a failure is known to the owner
};

struct yk_event { // counted, since pool blocks and runs share one
	atomic_int refs;
	const struct yoke_backend *ops;
	struct yk_queue *queue; // it was marked on; a reference
	void *handle;
	atomic_int state; // 1: done, 0: not known, negative: what it stands for failed
	uint64_t serial;  // of the queue's events: a later one stands for the earlier ones too
};

int yk_queue_new(struct yk_device *, int kind, struct yk_queue **);
// Waits for what is enqueued.  A queue that does not answer in time is left as it is, and leaks.
void yk_queue_free(struct yk_queue *);
int yk_queue_flush(struct yk_queue *);
// Waits for everything enqueued.
int yk_queue_wait(struct yk_queue *);
// The same without an error of this thread; what fails is kept with the queue.
int yk_queue_drain(struct yk_queue *);
static inline bool yk_queue_failed(struct yk_queue *q)
{
	return atomic_load_explicit(&q->failed, memory_order_acquire);
}
// For the owner: the first failure since the last call; returns its code, 0 when there is none.
int yk_queue_take(struct yk_queue *, struct yk_queue_failure *);

// As the backend's functions; where it has none, by the host, which waits then.
int yk_queue_fill(struct yk_queue *, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		  uint32_t pattern_bytes);
int yk_queue_copy(struct yk_queue *, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		  uint64_t bytes);

// The same from a segment of `source`'s device to one of q's, on q and behind what both have so far.  What is
// read stays as it is until an event marked on q behind it is done.  Where the backend has no way, and
// between backends, by the host, which waits.
int yk_copy_between(struct yk_queue *q, void *to, uint64_t to_offset, struct yk_queue *source, void *from,
		    uint64_t from_offset, uint64_t bytes);

// One reference.  Flushes the queue, so that any other queue and thread may wait for the event.
int yk_event_mark(struct yk_queue *, struct yk_event **);
int yk_event_try(struct yk_queue *, struct yk_event **); // without an error of this thread
struct yk_event *yk_event_ref(struct yk_event *);
void yk_event_unref(struct yk_event *);                   // NULL is fine
int yk_event_done(struct yk_event *); // 1, 0, or negative when what it stands for failed; NULL: 1
// At most device.timeout seconds.
int yk_event_wait(struct yk_event *);
int yk_event_sync(struct yk_event *); // without an error of this thread
// What is enqueued on q from now on runs behind e.  The host waits where q's backend cannot: its own devices
// may have no way, and those of another never have.
int yk_event_before(struct yk_event *e, struct yk_queue *q);

#endif
