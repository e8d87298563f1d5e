// SPDX-License-Identifier: Apache-2.0
// The launch layer shared by all GPU backends: turns ops into kernel launches through the driver
// table of driver.h. The functions that a plugin's driver may call come first. Includes nothing of
// the project but yoke-plugin.h, and nothing from a vendor.
#ifndef YK_GPU_H
#define YK_GPU_H

#include <pthread.h>

#include "driver.h"

#define YK_GPU_KERNEL_BUCKETS 256

// Identity of a kernel build: a file of cl/, the kernel's name in it, and the macros it is
// compiled with. The strings must live forever; they are compared by address.
#define YK_GPU_DEFINES 14
struct yk_gpu_build {
	const char *file, *name; // "softmax.cl"
	int n;
	const char *define[YK_GPU_DEFINES]; // "TM" becomes -DTM=4
	int64_t value[YK_GPU_DEFINES];
	// bytes of the kernel's LOCAL_SIZED array, which launches assign; 0: it has none
	size_t sized;
	bool wgmma;   // the file uses wgmma.cl
};

// A compiled kernel.
struct yk_gpu_entry {
	uint64_t hash;
	struct yk_gpu_entry *next;
	// `kernel` serves single tests; each recorded launch creates its own, see launch.c
	void *program, *kernel;
	size_t group; // max work-items per group
	struct yk_gpu_build build;
	size_t map_bytes; // bytes of the key of the map compiled into the program; 0: no map
	unsigned char map[];
};

// Base of a driver's device struct. The driver fills all members down to `lock` before it adds the
// device.
struct yk_gpu_device {
	// info.multiple holds for a vendor library's products; the layer's own kernels pad their
	// tiles
	struct yoke_device_info info;
	size_t max_group, max_items[2], local_bytes;
	// max bytes of a LOCAL_SIZED array, if kernels copy to local memory asynchronously;
	// otherwise 0
	size_t sized_bytes;
	int64_t max_groups; // max groups along the first axis, whatever their size; 0: unlimited
	int vector; // floats per native vector: 1, 2, 4, 8, 16
	int warp;   // warp (subgroup) size: 32 or 64; 0: the device has no warp shuffles
	// columns of the attention gradient (by matrix units) that a group's registers hold; 0: 128
	int head_columns;
	// matrix units accept f32 rounded to tf32 (10 mantissa bits); info.products lists the other
	// dtypes; see yk_gpu_units
	bool tf32;
	// CPU-like device: a group runs as a loop over its items, so kernels use one item and wide
	// vectors
	bool cpu_like;
	bool binaries;         // compiled programs are kept in the host's cache
	// on CPU-like devices: outputs of at least this many bytes are written with non-temporal
	// stores
	uint64_t stream_bytes;
	// everything that compiled binaries depend on: platform, device, driver, versions
	const char *identity;
	const char *options;   // compiler options of every build
	// the same for files that use wgmma.cl; NULL: device or compiler lacks its instructions
	const char *wgmma_options;
	uint32_t index;
	pthread_mutex_t lock; // guards all members below, and kernel arguments
	int f64, f16;         // cached results of the tests in f64.c and f16.c
	int units[yoke_u8 + 1]; // cached results of the tests in units.c, by dtype
	struct yk_gpu_entry *kernels[YK_GPU_KERNEL_BUCKETS];
	// kernel texts of applications; kept as long as the device, like kernels
	struct yk_gpu_text *texts;
	uint64_t released; // buffers freed so far; a later buffer may reuse the same pointer
	struct yk_gpu_between *between; // which methods of copying from other devices work
};

struct yk_gpu_segment {
	struct yk_gpu_device *device;
	void *buffer;
	uint64_t bytes;
	void *host; // host address, or NULL if not mapped
};

struct yk_gpu_queue {
	struct yk_gpu_device *device;
	void *queue;       // the driver's queue
	unsigned refs;     // held by the creator and by events, which may outlive it
	bool profiled;
	uint64_t launches; // launches so far
	struct yk_gpu_event *mark; // last event marked, or NULL
	bool busy;                 // work was enqueued after `mark`
	struct yk_gpu_reports *reports;
	struct yk_gpu_graph *graph; // graph being recorded, or NULL
};

struct yk_gpu_event {
	struct yk_gpu_queue *queue;
	void *event; // the driver's event
	unsigned refs;
	bool flushed, failed; // failed: its error has been returned to a caller
	uint64_t reports;     // number of the queue's reports that were made before this event
};

// ---- for drivers: error.c, device.c ----

extern const struct yoke_host *yk_gpu_host;
// Records "CALL: CODE on DEVICE" and returns ENOMEM or EDEVICE.  device may be NULL.
int yk_gpu_fail(const struct yk_gpu_device *, const char *call, int code);
// The same, but returns 0 if code is 0.
int yk_gpu_check(const struct yk_gpu_device *, const char *call, int code);
// Reports a compile error: the full compiler output goes to the log, its beginning to the error.
// Returns EUNSUPPORTED.
int yk_gpu_build_failed(const struct yk_gpu_device *, const char *call, int code,
			const char *kernel, const char *options, const char *message);
// Records a formatted error message; returns code.
int yk_gpu_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// While set, failures on this thread are expected results of a trial: they go to the log and are
// not recorded as errors. Returns the previous value.
bool yk_gpu_trying(bool now);
void yk_gpu_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Why probe skipped devices; it is the error message if no device was found.
extern char yk_gpu_reason[900];
// Appends a formatted line to yk_gpu_reason and logs it.
void yk_gpu_leave_out(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Assigns the device the next index, from 0; called only by probe.
int yk_gpu_device_add(struct yk_gpu_device *);
// Returns NULL and records an error if the index is unknown.
struct yk_gpu_device *yk_gpu_device_at(uint32_t index);
int yk_gpu_device_open(struct yk_gpu_device *);

// ---- backend.c, device.c ----

// Returns EFORK in a forked child, where no driver works; otherwise 0.
int yk_gpu_forked(void);
// True if the driver's setting `profile` is on.
bool yk_gpu_profile(void);
int yk_gpu_probe(uint32_t *ndevices);
int yk_gpu_device_info(uint32_t device, struct yoke_device_info *info);

// ---- f64.c ----

// True if the device computes in f64. Tests it on first use; the caller must not hold the device's
// lock (call it from an op's can).
bool yk_gpu_f64(struct yk_gpu_device *);
// f32, or f64 if the device computes in it; with the same condition
static inline bool yk_gpu_f32_or_f64(struct yk_gpu_device *d, int dtype)
{
	return dtype == yoke_f32 || (dtype == yoke_f64 && yk_gpu_f64(d));
}
// Can a group have this many items? CPU-like devices run kernels that are compiled for one.
static inline bool yk_gpu_fits_group(const struct yk_gpu_device *d, size_t items)
{
	return d->cpu_like || (d->max_group >= items && d->max_items[0] >= items);
}

// ---- f16.c ----

// True if the device's native f16 conversions give the same bits as cl/half.cl. Tests it on first
// use, with the device's lock held.
bool yk_gpu_f16(struct yk_gpu_device *);

// ---- units.c ----

// True if matrix units multiply factors of this dtype: f16, bf16, i8, u8, or f32 rounded to tf32 if
// the setting allows it. Tests it on first use; the caller must not hold the device's lock (call it
// from an op's can).
bool yk_gpu_units(const struct yk_gpu_device *, int dtype);

// ---- try.c ----

// Runs a kernel whose only argument is a buffer, in groups of `group` items: uploads `bytes` bytes
// from `data` and downloads them afterwards. The device must be open and locked.
int yk_gpu_try(struct yk_gpu_device *, const struct yk_gpu_build *, size_t items, size_t group,
	       void *data, size_t bytes);

// ---- memory.c ----

// Checks before an enqueue that the range lies in the segment.
int yk_gpu_check_range(struct yk_gpu_queue *, const struct yk_gpu_segment *, uint64_t offset,
		       uint64_t bytes);

// Frees a buffer that may still be an argument of kernels.
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

int yk_gpu_copy_between(void *queue, uint32_t to_device, void *to, uint64_t to_offset,
			uint32_t from_device, void *from, uint64_t from_offset, uint64_t bytes);

// ---- graph.c ----

int yk_gpu_graph_begin(void *queue);
int yk_gpu_graph_end(void *queue, void **graph);
int yk_gpu_graph_run(void *queue, void *graph);
void yk_gpu_graph_free(void *graph);
// Passes ownership of buffers to the graph that the queue is recording. False: out of memory.
bool yk_gpu_graph_adopt(struct yk_gpu_queue *, void *const *tables, size_t n);

// ---- program.c ----

// Compiles a file of cl/, preceded by the code generated for the op's map, if it has one.
int yk_gpu_program_file(struct yk_gpu_device *, const struct yk_gpu_build *,
			const struct yoke_op *map, void **to);
// Compiles a kernel text of an application; `entry` is the kernel that will be used.
int yk_gpu_program_text(struct yk_gpu_device *, const char *text, const char *entry, void **to);

// ---- kernel.c ----

void yk_gpu_define(struct yk_gpu_build *, const char *name, int64_t value);
// Defines the macro as 1 if `set`.
void yk_gpu_flag(struct yk_gpu_build *, const char *name, bool set);
// Defines WARP if the device has warp shuffles.
void yk_gpu_define_warp(struct yk_gpu_build *, const struct yk_gpu_device *);
// Returns a kernel of a file of cl/. The program is compiled on first use, once for all of its
// kernels. The caller holds the device's lock; also in the next two functions.
int yk_gpu_kernel_file(struct yk_gpu_device *, const struct yk_gpu_build *,
		       struct yk_gpu_entry **to);
// Creates a kernel of a built program, with the local memory that launches assign.
int yk_gpu_kernel_new(struct yk_gpu_device *, void *program, const struct yk_gpu_build *,
		      void **kernel);
// The same for a file that is compiled after the code generated for the op's map: one program per
// form of map.
int yk_gpu_kernel_map(struct yk_gpu_device *, const struct yoke_op *, const struct yoke_map_call *,
		      const struct yk_gpu_build *, struct yk_gpu_entry **to);

// The same for an application's kernel text. Returns EUNSUPPORTED with the compiler's message if it
// does not compile.
int yk_gpu_kernel_source(struct yk_gpu_device *, const struct yoke_source *,
			 struct yk_gpu_entry **to);

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

// The bit pattern of infinity; 0 for dtypes without infinities.
static inline int64_t yk_gpu_infinity(int dtype)
{
	return dtype == yoke_f32  ? 0x7f800000 :
	       dtype == yoke_f64  ? 0x7ff0000000000000 :
	       dtype == yoke_f16  ? 0x7c00 :
	       dtype == yoke_bf16 ? 0x7f80 : 0;
}

// The implementations of an op on GPUs; launch.h describes what they record.
struct yk_gpu_record;
struct yk_gpu_op {
	const char *const *names; // names of the implementations, best first; or use name_of
	uint32_t nimpl;
	// mask of the implementations that accept the op
	uint64_t (*can)(struct yk_gpu_device *, const struct yoke_op *);
	// Builds the kernels of an implementation that `can` offered and records their launches.
	// The device is open and its lock held.
	int (*record)(struct yk_gpu_record *, const struct yoke_op *, uint32_t impl);
	const char *(*name_of)(uint32_t impl); // used if names is NULL
};
// Fills the call of the kernel that the host generates for a map or a recurrence; fails if the
// device cannot run it.
int yk_gpu_map_call(const struct yoke_op *, struct yoke_map_call *);
// True if the dialect has map_quad and the program is limited by memory traffic rather than by
// registers and function calls.
bool yk_gpu_fours(const struct yk_gpu_device *, const struct yoke_map *);
uint64_t yk_gpu_map_can(struct yk_gpu_device *, const struct yoke_op *);
// Defines the implementation of the ops whose codes follow: YK_GPU_OP(conv, CONV, CONV_X) = { .. };
// build-aux/op_list collects these lines into backends/gpu/op_list.inc, as X(CODE, name).
#define YK_GPU_OP(name, ...) const struct yk_gpu_op yk_gpu_##name

#endif
