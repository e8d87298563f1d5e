// SPDX-License-Identifier: Apache-2.0
// What the files of the OpenCL backend share.  Uses OpenCL 1.2 and no more, so that old
// drivers serve; one context a device.  Includes nothing of the project but
// yoke-plugin.h.
#ifndef YK_OPENCL_H
#define YK_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdbool.h>

#include "yoke-plugin.h"

#define KERNEL_BUCKETS 256

// What a kernel is built of: a file of cl/, its name there, and what the text is told.  The
// strings last, and are told apart by address.
#define YK_CL_DEFINES 12
struct yk_cl_build {
	const char *file, *name; // "softmax.cl"
	int n;
	const char *define[YK_CL_DEFINES]; // "TM", of -DTM=4
	int64_t value[YK_CL_DEFINES];
};

// A built kernel.
struct yk_cl_entry {
	uint64_t hash;
	struct yk_cl_entry *next;
	cl_kernel kernel; // of which each launch has its own, see launch.c
	size_t group; // most work items of a group
	struct yk_cl_build build;
	size_t map_bytes; // of the key of the map in its text, 0: none
	unsigned char map[];
};

struct yk_cl_device {
	cl_platform_id platform;
	cl_device_id id;
	struct yoke_device_info info;
	uint32_t index;
	size_t max_group, max_items[2], local_bytes;
	int vector; // floats of a native vector: 1, 2, 4, 8, 16
	bool loops; // a group runs as a loop over its items: one item each, wide vectors
	uint64_t stream_bytes; // outputs of as many and more are written past the caches
	char *identity;          // platform, device, driver, versions: in binaries' keys
	const char *options;     // of every build
	bool binaries;           // are compiled programs kept in the host's cache?
	pthread_mutex_t lock;    // guards all below; a cl_kernel's arguments too
	cl_context context;      // made on first use
	cl_command_queue helper; // maps host segments
	int f64, f16;            // of f64.c and f16.c
	struct yk_cl_entry *kernels[KERNEL_BUCKETS];
	struct yk_cl_program *programs; // of files; stay as long as the device
	struct yk_cl_text *texts;       // of applications, likewise
	uint32_t clblast;               // bit d: CLBlast has built what it needs for dtype d
	uint64_t released;              // buffers so far: another may have come by the same handle
};

struct yk_cl_segment {
	struct yk_cl_device *device;
	cl_mem mem;
	uint64_t bytes;
	void *host; // mapped for good, or NULL
};

struct yk_cl_queue {
	struct yk_cl_device *device;
	cl_command_queue queue;
	bool profiled;
	uint64_t launches; // so far
	cl_event mark;     // the last one, or NULL
	bool busy;         // something was enqueued behind it
	struct yk_cl_reports *reports;
};

struct yk_cl_event {
	struct yk_cl_queue source; // its command queue is retained
	cl_event event;
	bool flushed;
	uint64_t reports; // number of the source's, as far as they stand before it
};

// ---- backend.c ----

extern const struct yoke_host *yk_cl_host;
// EFORK in a forked child, where no driver works; else 0.
int yk_cl_forked(void);
// "opencl.profile" is on.
bool yk_cl_profile(void);

// ---- error.c ----

// "CL_OUT_OF_RESOURCES", or "unknown OpenCL error".
const char *yk_cl_name(cl_int code);
// Records "CALL: CODE on DEVICE" and returns ENOMEM or EDEVICE.  device may be NULL.
int yk_cl_fail(const struct yk_cl_device *, const char *call, cl_int code);
// The same, but 0 for CL_SUCCESS.
int yk_cl_check(const struct yk_cl_device *, const char *call, cl_int code);
// Records a formatted line; returns code.
int yk_cl_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void yk_cl_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// ---- device.c ----

int yk_cl_probe(uint32_t *ndevices);
// NULL, with an error recorded, for a number that probe did not give.
struct yk_cl_device *yk_cl_device_at(uint32_t index);
// Makes its context; cheap when there is one.
int yk_cl_device_open(struct yk_cl_device *);
int yk_cl_device_info_of(uint32_t device, struct yoke_device_info *);

// ---- f64.c ----

// Does it compute in f64?  Tested at the first question, which must come without the lock: in an
// op's can.
bool yk_cl_f64(struct yk_cl_device *);

// ---- f16.c ----

// Does it convert f16 by itself, to the bits that cl/half.cl gives?  Tested at the first question, with
// the lock held.
bool yk_cl_f16(struct yk_cl_device *);

// ---- try.c ----

// Runs a kernel that takes one buffer, `bytes` at `data`, in groups of one item, and brings the buffer
// back.  Called with the device open and its lock held.
int yk_cl_try(struct yk_cl_device *, const struct yk_cl_build *, size_t items, void *data,
	      size_t bytes);

// ---- identity.c ----

// Fills info.uuid and info.pci, unless one of n devices before it, of the same platform, has
// them already.
void yk_cl_identify(struct yk_cl_device *, struct yk_cl_device *const *before, uint32_t n);

// ---- lock.c ----

// Held while a program is compiled, where processes would disturb each other; -1: no need.
int yk_cl_build_lock(const struct yk_cl_device *);
void yk_cl_build_unlock(int lock);

// ---- memory.c ----

// Gives up a buffer that kernels may have for an argument.
void yk_cl_release(struct yk_cl_device *, cl_mem);
int yk_cl_segment_new(uint32_t device, int kind, uint64_t bytes, void **segment);
int yk_cl_segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment);
void yk_cl_segment_free(uint32_t device, void *segment);
void *yk_cl_segment_host(void *segment);
int yk_cl_put(void *queue, void *segment, uint64_t offset, const void *from,
	      uint64_t bytes);
int yk_cl_get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes);
int yk_cl_copy(void *queue, void *to, uint64_t to_offset, void *from,
	       uint64_t from_offset, uint64_t bytes);
int yk_cl_fill(void *queue, void *segment, uint64_t offset, uint64_t bytes,
	       const void *pattern, uint32_t pattern_bytes);

// ---- queue.c ----

int yk_cl_queue_new(uint32_t device, int kind, void **queue);
void yk_cl_queue_free(void *queue);
int yk_cl_queue_flush(void *queue);
int yk_cl_event_mark(void *queue, void **event);
int yk_cl_event_after(void *queue, void *event);
int yk_cl_event_done(void *event);
int yk_cl_event_wait(void *event);
int yk_cl_event_elapsed(void *from, void *to, uint64_t *nanoseconds);
void yk_cl_event_free(void *event);

// ---- program.c ----

// The program of a file, which stays as long as the device.
int yk_cl_program_file(struct yk_cl_device *, const struct yk_cl_build *, cl_program *to);
// The program of the op's map and of a file behind it; to be released.
int yk_cl_program_map(struct yk_cl_device *, const struct yk_cl_build *, const struct yoke_op *,
		      cl_program *to);

// The program of an application's text, of which `entry` is wanted; to be released.
int yk_cl_program_text(struct yk_cl_device *, const char *text, const char *entry, cl_program *to);

// ---- kernel.c ----

void yk_cl_define(struct yk_cl_build *, const char *name, int64_t value);
// The same with 1, if it is set.
void yk_cl_flag(struct yk_cl_build *, const char *name, bool set);
// The kernel of a program made of a file: built at first use, once for all its
// kernels.  Called with the device's lock held, like the next.
int yk_cl_kernel_file(struct yk_cl_device *, const struct yk_cl_build *, struct yk_cl_entry **to);
// The same of a program made of what the host writes for the op's map and of a file behind it; built for
// each form of map.
int yk_cl_kernel_map(struct yk_cl_device *, const struct yoke_op *, const struct yoke_map_call *,
		     const struct yk_cl_build *, struct yk_cl_entry **to);

// The same of an application's text.  EUNSUPPORTED, with the compiler's words, when it does not build.
int yk_cl_kernel_source(struct yk_cl_device *, const struct yoke_source *, struct yk_cl_entry **to);

// ---- the ops ----

static inline size_t yk_cl_bytes(int dtype)
{
	static const unsigned char bytes[] = { 0,
#define X(name, number, size) size,
					       YOKE_DTYPES(X)
#undef X
	};
	return bytes[dtype];
}

// The bits of infinity; 0 for a dtype without.
static inline int64_t yk_cl_infinity(int dtype)
{
	return dtype == yoke_f32  ? 0x7f800000 :
	       dtype == yoke_f64  ? 0x7ff0000000000000 :
	       dtype == yoke_f16  ? 0x7c00 :
	       dtype == yoke_bf16 ? 0x7f80 : 0;
}

// How an op runs: launch.h says what is recorded.
struct yk_cl_record;
struct yk_cl_op {
	const char *const *names; // of its implementations, best first
	uint32_t nimpl;
	uint64_t (*can)(struct yk_cl_device *, const struct yoke_op *); // a bit each
	// Builds the kernels of an implementation that can offered, and records their launches.
	// Called with the device open and its lock held.
	int (*record)(struct yk_cl_record *, const struct yoke_op *, uint32_t impl);
};
// How the kernel that the host writes for a map or a recurrence is called, and can the device run it?
int yk_cl_map_call(const struct yoke_op *, struct yoke_map_call *);
uint64_t yk_cl_map_can(struct yk_cl_device *, const struct yoke_op *);
extern const struct yk_cl_op yk_cl_map, yk_cl_reduce, yk_cl_contract;
extern const struct yk_cl_op yk_cl_softmax, yk_cl_norm, yk_cl_xent, yk_cl_rope, yk_cl_list;
extern const struct yk_cl_op yk_cl_attention, yk_cl_attention_back;
extern const struct yk_cl_op yk_cl_move, yk_cl_gather, yk_cl_scatter, yk_cl_scan, yk_cl_sort;
extern const struct yk_cl_op yk_cl_source, yk_cl_scan_map;

#endif
