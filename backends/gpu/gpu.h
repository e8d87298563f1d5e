// SPDX-License-Identifier: Apache-2.0
// The launch layer of backends for GPUs: all that is derived of ops, over the table of calls of driver.h.  What
// a plugin's driver uses of it comes first.  Includes nothing of the project but yoke-plugin.h, and nothing of a
// vendor.
#ifndef YK_GPU_H
#define YK_GPU_H

#include <pthread.h>

#include "driver.h"

#define YK_GPU_KERNEL_BUCKETS 256

// What a kernel is built of: a file of cl/, its name there, and what the text is told.  The
// strings last, and are told apart by address.
#define YK_GPU_DEFINES 14
struct yk_gpu_build {
	const char *file, *name; // "softmax.cl"
	int n;
	const char *define[YK_GPU_DEFINES]; // "TM", of -DTM=4
	int64_t value[YK_GPU_DEFINES];
};

// A built kernel.
struct yk_gpu_entry {
	uint64_t hash;
	struct yk_gpu_entry *next;
	void *program, *kernel; // each launch has a kernel of its own, see launch.c
	size_t group; // most work items of a group
	struct yk_gpu_build build;
	size_t map_bytes; // of the key of the map in its text, 0: none
	unsigned char map[];
};

// What a driver's own struct of a device begins with.  It fills all down to `lock` before it adds the device.
struct yk_gpu_device {
	struct yoke_device_info info; // multiple: of a library's products; the layer's own fill up their tiles
	size_t max_group, max_items[2], local_bytes;
	int64_t max_groups; // along the first axis, of any size; 0: as many as there may be
	int vector; // floats of a native vector: 1, 2, 4, 8, 16
	int warp;   // items that run in step and read each other's registers: 32, 64; 0: no such
	int head_columns; // of the gradient of attention by matrix units, that a group's registers hold; 0: 128
	bool tf32;  // matrix units take f32 rounded to 10 bits of mantissa; of other dtypes: info.products; see yk_gpu_units
	bool loops; // a group runs as a loop over its items: one item each, wide vectors
	bool binaries;         // are compiled programs kept in the host's cache?
	uint64_t stream_bytes; // where it loops, outputs of as many and more are written past the caches
	const char *identity;  // of all that binaries depend on: platform, device, driver, versions
	const char *options;   // of every build
	uint32_t index;
	pthread_mutex_t lock; // guards all below; a kernel's arguments too
	int f64, f16;         // of f64.c and f16.c
	int units[yoke_u8 + 1]; // of units.c, by dtype
	struct yk_gpu_entry *kernels[YK_GPU_KERNEL_BUCKETS];
	struct yk_gpu_text *texts; // of applications; stay, as kernels do
	uint64_t released;         // buffers so far: another may have come by the same pointer
	struct yk_gpu_between *between; // how copies from other devices went
};

struct yk_gpu_segment {
	struct yk_gpu_device *device;
	void *buffer;
	uint64_t bytes;
	void *host; // its address, or NULL
};

struct yk_gpu_queue {
	struct yk_gpu_device *device;
	void *queue;       // the driver's
	unsigned refs;     // who made it, and events, which may outlive it
	bool profiled;
	uint64_t launches; // so far
	struct yk_gpu_event *mark; // the last one, or NULL
	bool busy;                 // something was enqueued behind it
	struct yk_gpu_reports *reports;
	struct yk_gpu_graph *graph; // that is being recorded, or NULL
};

struct yk_gpu_event {
	struct yk_gpu_queue *queue;
	void *event; // the driver's
	unsigned refs;
	bool flushed, failed; // failed: somebody has heard it
	uint64_t reports;     // number of the queue's, as far as they stand before it
};

// ---- for drivers: error.c, device.c ----

extern const struct yoke_host *yk_gpu_host;
// Records "CALL: CODE on DEVICE" and returns ENOMEM or EDEVICE.  device may be NULL.
int yk_gpu_fail(const struct yk_gpu_device *, const char *call, int code);
// The same, but 0 for 0.
int yk_gpu_check(const struct yk_gpu_device *, const char *call, int code);
// The compiler's complaint: whole in the log, its beginning in the error, EUNSUPPORTED.
int yk_gpu_build_failed(const struct yk_gpu_device *, const char *call, int code, const char *kernel,
			const char *options, const char *complaint);
// Records a formatted line; returns code.
int yk_gpu_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Are failures of this thread from here on an answer, lines in the log, and not errors of its caller's?  Returns what
// was so before.
bool yk_gpu_trying(bool now);
void yk_gpu_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// What probe left out, and why: without any device it is the reason.
extern char yk_gpu_reason[900];
// Adds to that a formatted line, and says it in the log.
void yk_gpu_leave_out(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Gives a device its index, from 0 on; only in probe.
int yk_gpu_device_add(struct yk_gpu_device *);
// NULL, with an error recorded, for an index that probe did not give.
struct yk_gpu_device *yk_gpu_device_at(uint32_t index);
int yk_gpu_device_open(struct yk_gpu_device *);

// ---- backend.c, device.c ----

// EFORK in a forked child, where no driver works; else 0.
int yk_gpu_forked(void);
// The driver's setting `profile` is on.
bool yk_gpu_profile(void);
int yk_gpu_probe(uint32_t *ndevices);
int yk_gpu_device_info(uint32_t device, struct yoke_device_info *info);

// ---- f64.c ----

// Does it compute in f64?  Tested at the first question, which must come without the lock: in an
// op's can.
bool yk_gpu_f64(struct yk_gpu_device *);

// ---- f16.c ----

// Does it convert f16 by itself, to the bits that cl/half.cl gives?  Tested at the first question, with
// the lock held.
bool yk_gpu_f16(struct yk_gpu_device *);

// ---- units.c ----

// Do matrix units multiply factors of this dtype: f16, bf16, i8, u8, or f32, rounded to tf32, where that is wanted?  Tested at
// the first question, which must come without the lock: in an op's can.
bool yk_gpu_units(const struct yk_gpu_device *, int dtype);

// ---- try.c ----

// Runs a kernel that takes one buffer, `bytes` at `data`, in groups of `group` items, and brings the buffer
// back.  Called with the device open and its lock held.
int yk_gpu_try(struct yk_gpu_device *, const struct yk_gpu_build *, size_t items, size_t group, void *data,
	       size_t bytes);

// ---- memory.c ----

// Ahead of all that is enqueued: is the range in the segment?
int yk_gpu_check_range(struct yk_gpu_queue *, const struct yk_gpu_segment *, uint64_t offset, uint64_t bytes);

// Gives up a buffer that kernels may have for an argument.
void yk_gpu_buffer_free(struct yk_gpu_device *, void *buffer, void *host);
int yk_gpu_segment_new(uint32_t device, int kind, uint64_t bytes, void **segment);
int yk_gpu_segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment);
void yk_gpu_segment_free(uint32_t device, void *segment);
void *yk_gpu_segment_host(void *segment);
int yk_gpu_put(void *queue, void *segment, uint64_t offset, const void *from,
	       uint64_t bytes);
int yk_gpu_get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes);
int yk_gpu_copy(void *queue, void *to, uint64_t to_offset, void *from,
		uint64_t from_offset, uint64_t bytes);
int yk_gpu_fill(void *queue, void *segment, uint64_t offset, uint64_t bytes,
		const void *pattern, uint32_t pattern_bytes);

// ---- queue.c ----

int yk_gpu_queue_new(uint32_t device, int kind, void **queue);
void yk_gpu_queue_free(void *queue);
int yk_gpu_queue_flush(void *queue);
int yk_gpu_event_mark(void *queue, void **event);
int yk_gpu_event_after(void *queue, void *event);
int yk_gpu_event_done(void *event);
int yk_gpu_event_wait(void *event);
int yk_gpu_event_elapsed(void *from, void *to, uint64_t *nanoseconds);
void yk_gpu_event_free(void *event);

// ---- between.c ----

int yk_gpu_copy_between(void *queue, uint32_t to_device, void *to, uint64_t to_offset, uint32_t from_device,
			void *from, uint64_t from_offset, uint64_t bytes);

// ---- graph.c ----

int yk_gpu_graph_begin(void *queue);
int yk_gpu_graph_end(void *queue, void **graph);
int yk_gpu_graph_run(void *queue, void *graph);
void yk_gpu_graph_free(void *graph);
// Gives buffers to the graph that the queue records, which frees them.  False: no memory.
bool yk_gpu_graph_keep(struct yk_gpu_queue *, void *const *tables, size_t n);

// ---- program.c ----

// A program of a file, behind the op's map if there is one.
int yk_gpu_program_file(struct yk_gpu_device *, const struct yk_gpu_build *, const struct yoke_op *map,
			void **to);
// One of an application's text, of which `entry` is wanted.
int yk_gpu_program_text(struct yk_gpu_device *, const char *text, const char *entry, void **to);

// ---- kernel.c ----

void yk_gpu_define(struct yk_gpu_build *, const char *name, int64_t value);
// The same with 1, if it is set.
void yk_gpu_flag(struct yk_gpu_build *, const char *name, bool set);
// WARP, where items read each other's registers.
void yk_gpu_define_warp(struct yk_gpu_build *, const struct yk_gpu_device *);
// The kernel of a program made of a file: built at first use, once for all its
// kernels.  Called with the device's lock held, like the next.
int yk_gpu_kernel_file(struct yk_gpu_device *, const struct yk_gpu_build *, struct yk_gpu_entry **to);
// The same of a program made of what the host writes for the op's map and of a file behind it; built for
// each form of map.
int yk_gpu_kernel_map(struct yk_gpu_device *, const struct yoke_op *, const struct yoke_map_call *,
		      const struct yk_gpu_build *, struct yk_gpu_entry **to);

// The same of an application's text.  EUNSUPPORTED, with the compiler's words, when it does not build.
int yk_gpu_kernel_source(struct yk_gpu_device *, const struct yoke_source *, struct yk_gpu_entry **to);

// ---- the ops ----

static inline size_t yk_gpu_bytes(int dtype)
{
	static const unsigned char bytes[] = { 0,
#define X(name, number, size) size,
					       YOKE_DTYPES(X)
#undef X
	};
	return bytes[dtype];
}

// The bits of infinity; 0 for a dtype without.
static inline int64_t yk_gpu_infinity(int dtype)
{
	return dtype == yoke_f32  ? 0x7f800000 :
	       dtype == yoke_f64  ? 0x7ff0000000000000 :
	       dtype == yoke_f16  ? 0x7c00 :
	       dtype == yoke_bf16 ? 0x7f80 : 0;
}

// How an op runs: launch.h says what is recorded.
struct yk_gpu_record;
struct yk_gpu_op {
	const char *const *names; // of its implementations, best first; or see name_of
	uint32_t nimpl;
	uint64_t (*can)(struct yk_gpu_device *, const struct yoke_op *); // a bit each
	// Builds the kernels of an implementation that can offered, and records their launches.
	// Called with the device open and its lock held.
	int (*record)(struct yk_gpu_record *, const struct yoke_op *, uint32_t impl);
	const char *(*name_of)(uint32_t impl); // in place of names
};
// How the kernel that the host writes for a map or a recurrence is called, and can the device run it?
int yk_gpu_map_call(const struct yoke_op *, struct yoke_map_call *);
// Has the dialect map_quad, and is the program one whose bounds are loads and stores, not registers and calls?
bool yk_gpu_fours(const struct yk_gpu_device *, const struct yoke_map *);
uint64_t yk_gpu_map_can(struct yk_gpu_device *, const struct yoke_op *);
extern const struct yk_gpu_op yk_gpu_map, yk_gpu_reduce, yk_gpu_contract;
extern const struct yk_gpu_op yk_gpu_softmax, yk_gpu_norm, yk_gpu_xent, yk_gpu_rope, yk_gpu_list;
extern const struct yk_gpu_op yk_gpu_attention, yk_gpu_attention_backward;
extern const struct yk_gpu_op yk_gpu_move, yk_gpu_gather, yk_gpu_scatter, yk_gpu_scan, yk_gpu_sort;
extern const struct yk_gpu_op yk_gpu_source, yk_gpu_scan_map, yk_gpu_conv, yk_gpu_window_add,
	yk_gpu_resolvent, yk_gpu_grouped, yk_gpu_moments, yk_gpu_largest;

#endif
