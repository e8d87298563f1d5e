// SPDX-License-Identifier: Apache-2.0
// What the files of the native drivers share.  They are compiled once for each vendor: vendor.h, the plugin's own,
// names its libraries and calls, and maps the calls whose names or parameters differ.
#ifndef YK_NATIVE_H
#define YK_NATIVE_H

#include <stdatomic.h>

#include "../../backends/gpu/gpu.h"
#include "vendor.h"

// ---- library.c: what is opened at run time ----

// BLAS: products where the library of those is missing, AMD's alone.  RANGES: marks of the vendor's profiler.
// COLLECTIVES: NCCL or RCCL.
enum yk_native_part {
	YK_DRIVER, YK_COMPILER, YK_PRODUCTS, YK_TELEMETRY, YK_RANGES, YK_BLAS, YK_COLLECTIVES, YK_PARTS
};

// The vendor's functions; those of a part that is not open, and those that it may lack, are NULL.
struct yk_native_calls {
#define X(part, need, result, symbol, params) result(*symbol) params;
	V_CALLS(X)
#undef X
};
extern struct yk_native_calls yk_native;

// A call's name and its code, as yk_gpu_check takes them.
#define V(symbol, ...) #symbol, yk_native.symbol(__VA_ARGS__)
static inline int yk_native_code(const char *call, int code)
{
	(void)call;
	return code;
}
static inline void yk_native_split(const char **call, int *to, const char *name, int code)
{
	*call = name;
	*to = code;
}

// Opens a part, at the first call; false: *why says in a line, for good, what is missing and what to do.
bool yk_native_open(enum yk_native_part, const char **why);
// The name of the library that serves for a part, "libcuda.so.1", and the folder it is from, "": the system's.
const char *yk_native_library(enum yk_native_part);
// A line a part, in turn, for `yoke doctor`; NULL behind the last.
const char *yk_native_note(uint32_t index);
// Declares its settings.
void yk_native_library_start(void);

// ---- devices ----

// What a map behind a library's product does to it, as far as libraries know it: a row that is added to all first.
enum yk_native_then { YK_THEN_NOTHING = 0, YK_THEN_BIAS = 1, YK_THEN_RELU = 2, YK_THEN_GELU = 4, YK_THENS = 8 };

struct yk_native_wrap;
struct yk_native_device {
	struct yk_gpu_device gpu;
	v_device id;
	v_context context;
	bool open;
	v_stream helper; // for what is waited for at once
	int grid[3];     // most groups along each axis
	char arch[64];   // "sm_90", "gfx90a"
	int capability;  // 10 * major + minor, where the vendor counts so
	bool ptx;        // the driver compiles for a device that the compiler does not know
	pthread_mutex_t wrap_lock; // of wraps
	struct yk_native_wrap *wraps;
	uint64_t peers;  // bit i: device i's memory can be reached
	void *products;  // products.c's
	void *blas;      // of the library that stands in for it
	_Atomic uint32_t wrong[YK_THENS]; // by what is done behind: factors that the library does wrongly (products.h)
};

static inline struct yk_native_device *yk_native_of(const struct yk_gpu_device *d)
{
	return (struct yk_native_device *)(uintptr_t)d;
}

// Makes the device's context that of this thread.
static inline int yk_native_use(const struct yk_gpu_device *d)
{
	return yk_gpu_check(d, V_USE(yk_native_of(d)));
}

// ---- vendor.c: each vendor's own ----

// What the driver's and the compiler's versions are, for texts: "CUDA 13.0".
void yk_vendor_version(char *to, size_t cap);
void yk_vendor_compiler(char *to, size_t cap);
// What serves for a part before any library is looked for, a tool that was injected, in words; NULL: nothing.
const char *yk_vendor_injected(enum yk_native_part);
// Does a library that was opened serve with the others?  else why not.
bool yk_vendor_serves(enum yk_native_part, const char *name, char *why, size_t cap);
// Fills arch, capability, options and what follows from those: what matrix units take; false: why it cannot serve.
bool yk_vendor_describe(struct yk_native_device *, char *why, size_t cap);
// A code's symbolic name, of any of its libraries.
const char *yk_vendor_code_name(int code);
// The driver's own words for a code of its, or NULL.
const char *yk_vendor_code_text(int code);
// The sizes of a kernel's parameters, `most` at most, and how many there are; -1: nobody says.
int yk_vendor_params(v_function, const void *image, size_t bytes, const char *name, uint32_t most,
		     size_t *sizes);
// What the heuristic of the library of products is told besides: bytes that operands are aligned to.
int yk_vendor_restrict(const struct yk_gpu_device *, v_lt_preference, uint32_t a, uint32_t b, uint32_t y);
// Fills a sample whose size is set.
int yk_vendor_sample(const struct yk_native_device *, struct yoke_sample *);

// ---- error.c ----

// Codes of the compiler and of the libraries of products, set apart from the driver's.
enum { YK_COMPILER_CODE = 100000, YK_PRODUCTS_CODE = 200000, YK_BLAS_CODE = 300000, YK_COLLECTIVES_CODE = 400000 };
const char *yk_native_name(int code);
// Records a failure of one of these, a code of theirs; returns the error.
int yk_native_library_failed(const struct yk_gpu_device *, int error, const char *call, int part, int code);
const char *yk_native_help(int code);
bool yk_native_is_memory(int code);

// ---- device.c ----

int yk_native_probe(const char **why);
int yk_native_open_device(struct yk_gpu_device *);
void yk_native_refresh(struct yk_gpu_device *, struct yoke_device_info *);

// ---- memory.c ----

int yk_native_buffer_new(struct yk_gpu_device *, int kind, uint64_t bytes, const void *data, void **buffer,
			 void **host);
int yk_native_buffer_wrap(struct yk_gpu_device *, void *memory, uint64_t bytes, void **buffer);
void yk_native_buffer_free(struct yk_gpu_device *, void *buffer, void *host);
int yk_native_put(struct yk_gpu_queue *, void *buffer, uint64_t offset, const void *from, uint64_t bytes);
int yk_native_get(struct yk_gpu_queue *, void *buffer, uint64_t offset, void *to, uint64_t bytes);
int yk_native_copy(struct yk_gpu_queue *, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		   uint64_t bytes);
int yk_native_copy_between(struct yk_gpu_queue *, struct yk_gpu_device *to_device, void *to, uint64_t to_offset,
			   struct yk_gpu_device *from_device, void *from, uint64_t from_offset, uint64_t bytes);
int yk_native_fill(struct yk_gpu_queue *, void *buffer, uint64_t offset, uint64_t bytes, const void *pattern,
		   uint32_t pattern_bytes);

// ---- queue.c ----

int yk_native_queue_new(struct yk_gpu_device *, bool profiled, void **queue);
void yk_native_queue_free(void *queue);
v_stream yk_native_stream(const struct yk_gpu_queue *);
int yk_native_flush(void *queue);
int yk_native_finish(struct yk_gpu_queue *);
int yk_native_mark(struct yk_gpu_queue *, void **event);
void yk_native_event_free(void *event);
int yk_native_after(struct yk_gpu_queue *, struct yk_gpu_event *);
int yk_native_status(struct yk_gpu_event *);
int yk_native_wait(struct yk_gpu_event *);
int yk_native_elapsed(struct yk_gpu_event *from, struct yk_gpu_event *to, uint64_t *nanoseconds);
int yk_native_graph_begin(struct yk_gpu_queue *);
int yk_native_graph_end(struct yk_gpu_queue *, void **graph);
int yk_native_graph_run(struct yk_gpu_queue *, void *graph);
void yk_native_graph_free(void *graph);

// ---- program.c ----

int yk_native_build(struct yk_gpu_device *, const char *text, const char *options, const char *kernel,
		    void **program);
int yk_native_load(struct yk_gpu_device *, const void *binary, size_t bytes, const char *options, void **program);
void *yk_native_binary(struct yk_gpu_device *, void *program, size_t *bytes);
void yk_native_program_free(void *program);
int yk_native_kernel_new(struct yk_gpu_device *, void *program, const char *name, void **kernel);
void yk_native_kernel_free(void *kernel);
size_t yk_native_kernel_group(struct yk_gpu_device *, void *kernel);
uint32_t yk_native_kernel_params(void *kernel);
void yk_native_kernel_use(struct yk_gpu_device *, void *kernel, size_t group, struct yoke_occupancy *to);
int yk_native_arg(void *kernel, uint32_t index, size_t bytes, const void *value);
int yk_native_launch(struct yk_gpu_queue *, void *kernel, uint32_t dims, const size_t *items, const size_t *group);

// ---- products.c ----

struct yk_gpu_library;
extern const struct yk_gpu_library yk_native_products;

// ---- collectives.c ----

extern const struct yoke_collectives_ext yk_native_collectives;
const char *yk_native_collectives_name(int code); // of NCCL and RCCL
const char *yk_native_collectives_help(int code); // or NULL

// ---- ext.c ----

const void *yk_native_ext(const char *name);

#endif
