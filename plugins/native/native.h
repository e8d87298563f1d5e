// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the native (CUDA and ROCm) drivers. These files are compiled
// once per vendor: the plugin's vendor.h names its libraries and calls and maps those whose names
// or parameters differ.
#ifndef YK_NATIVE_H
#define YK_NATIVE_H

#include <stdatomic.h>

#include "../../backends/gpu/gpu.h"
#include "vendor.h"

// ---- library.c: libraries opened at run time ----

// BLAS: rocBLAS, used where hipBLASLt is missing (AMD only). RANGES: profiler ranges (NVTX).
// COLLECTIVES: NCCL or RCCL.
enum yk_native_lib {
	YK_DRIVER,
	YK_COMPILER,
	YK_PRODUCTS,
	YK_TELEMETRY,
	YK_RANGES,
	YK_BLAS,
	YK_COLLECTIVES,
	YK_PARTS
};

// The vendor's functions. Pointers are NULL for libraries that are not open and for optional
// functions that are missing.
struct yk_native_calls {
#define X(part, need, result, symbol, params) result(*symbol) params;
	V_CALLS(X)
#undef X
};
extern struct yk_native_calls yk_native;

// Expands to a call's name and its result code, the arguments of yk_gpu_check.
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

// Opens a library on first use. On false *why is a permanent one-line string: what is missing and
// what to do.
bool yk_native_open(enum yk_native_lib, const char **why);
// The file name of the loaded library ("libcuda.so.1") and its directory; "" means the system's
// search path.
const char *yk_native_library(enum yk_native_lib);
// The version number in a library's name: 13 for "libnvrtc.so.13"; 0: none.
int yk_native_major(const char *name);
// Lines for `yoke doctor`, one per library; NULL after the last.
const char *yk_native_note(uint32_t index);
// Declares the settings of library.c.
void yk_native_library_start(void);

// ---- devices ----

// Epilogues of a library's product, as a bit mask; the bias is added before the activation.
enum yk_native_then {
	YK_THEN_NOTHING = 0,
	YK_THEN_BIAS = 1,
	YK_THEN_RELU = 2,
	YK_THEN_GELU = 4,
	YK_THENS = 8
};

struct yk_native_wrap;
struct yk_native_device {
	struct yk_gpu_device gpu;
	v_device id;
	v_context context;
	bool open;
	v_stream helper; // stream for transfers that are waited for at once
	int grid[3];     // max groups along each axis
	char arch[64];   // "sm_90", "gfx90a"
	int capability;  // 10 * major + minor; CUDA only
	// the device is newer than the runtime compiler: it emits PTX, which the driver compiles
	bool ptx;
	char notice[300]; // warning about how kernels are compiled for the device, or ""
	pthread_mutex_t wrap_lock; // guards wraps
	struct yk_native_wrap *wraps;
	uint64_t peers;  // bit i: the memory of device i is accessible
	void *products;  // state of products.c
	void *blas;      // state of the fallback BLAS library
	// by epilogue: mask of factor dtypes that the library computes wrongly (products.h)
	_Atomic uint32_t wrong[YK_THENS];
};

static inline struct yk_native_device *yk_native_of(const struct yk_gpu_device *d)
{
	return (struct yk_native_device *)(uintptr_t)d;
}

// Makes the device's context current on this thread.
static inline int yk_native_use(const struct yk_gpu_device *d)
{
	return yk_gpu_check(d, V_USE(yk_native_of(d)));
}

// ---- vendor.c: implemented by each vendor's plugin ----

// Version of the driver and of the compiler, for messages: "CUDA 13.0".
void yk_vendor_version(char *to, size_t cap);
void yk_vendor_compiler(char *to, size_t cap);
// Describes an injected tool that replaces a library before any is searched for; NULL: none.
const char *yk_vendor_injected(enum yk_native_lib);
// True if an opened library is compatible with the others; otherwise fills `why`.
bool yk_vendor_is_compatible(enum yk_native_lib, const char *name, char *why, size_t cap);
// Fills arch, capability, options and the dtypes of matrix units. False: `why` explains why the
// device cannot be used.
bool yk_vendor_describe(struct yk_native_device *, char *why, size_t cap);
// The symbolic name of a code of any of the vendor's libraries.
const char *yk_vendor_code_name(int code);
// The driver's description of one of its codes, or NULL.
const char *yk_vendor_code_text(int code);
// Writes up to `max` parameter sizes of a kernel and returns the number of parameters; -1:
// unknown.
int yk_vendor_params(v_function, const void *image, size_t bytes, const char *name, uint32_t max,
		     size_t *sizes);
// Passes further limits to the product library's heuristic: the alignment of the operands, in
// bytes.
int yk_vendor_restrict(const struct yk_gpu_device *, v_lt_preference, uint32_t a, uint32_t b,
		       uint32_t y);
// Fills a sample whose size member is set.
int yk_vendor_sample(const struct yk_native_device *, struct yoke_sample *);

// ---- error.c ----

// Offsets that keep the codes of the compiler and of the product and collective libraries distinct
// from the driver's.
enum {
	YK_COMPILER_CODE = 100000,
	YK_PRODUCTS_CODE = 200000,
	YK_BLAS_CODE = 300000,
	YK_COLLECTIVES_CODE = 400000
};
const char *yk_native_name(int code);
// Records the failure of a call of library `part` and returns `error`.
int yk_native_library_failed(const struct yk_gpu_device *, int error, const char *call, int part,
			     int code);
const char *yk_native_help(int code);
bool yk_native_is_memory(int code);

// ---- device.c ----

int yk_native_probe(const char **why);
int yk_native_open_device(struct yk_gpu_device *);
void yk_native_refresh(struct yk_gpu_device *, struct yoke_device_info *);

// ---- memory.c ----

int yk_native_buffer_new(struct yk_gpu_device *, int kind, uint64_t bytes, const void *data,
			 void **buffer, void **host);
int yk_native_buffer_wrap(struct yk_gpu_device *, void *memory, uint64_t bytes, void **buffer);
void yk_native_buffer_free(struct yk_gpu_device *, void *buffer, void *host);
int yk_native_put(struct yk_gpu_queue *, void *buffer, uint64_t offset, const void *from,
		  uint64_t bytes);
int yk_native_get(struct yk_gpu_queue *, void *buffer, uint64_t offset, void *to, uint64_t bytes);
int yk_native_copy(struct yk_gpu_queue *, void *to, uint64_t to_offset, void *from,
		   uint64_t from_offset, uint64_t bytes);
int yk_native_copy_between(struct yk_gpu_queue *, struct yk_gpu_device *to_device, void *to,
			   uint64_t to_offset, struct yk_gpu_device *from_device, void *from,
			   uint64_t from_offset, uint64_t bytes);
int yk_native_fill(struct yk_gpu_queue *, void *buffer, uint64_t offset, uint64_t bytes,
		   const void *pattern, uint32_t pattern_bytes);

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

int yk_native_build(struct yk_gpu_device *, const char *text, const char *options,
		    const char *kernel, void **program);
int yk_native_load(struct yk_gpu_device *, const void *binary, size_t bytes, const char *options,
		   void **program);
void *yk_native_binary(struct yk_gpu_device *, void *program, size_t *bytes);
void yk_native_program_free(void *program);
int yk_native_kernel_new(struct yk_gpu_device *, void *program, const char *name, void **kernel);
int yk_native_kernel_sized(struct yk_gpu_device *, void *kernel, size_t bytes);
void yk_native_kernel_free(void *kernel);
size_t yk_native_kernel_group(struct yk_gpu_device *, void *kernel);
uint32_t yk_native_kernel_params(void *kernel);
void yk_native_kernel_use(struct yk_gpu_device *, void *kernel, size_t group,
			  struct yoke_occupancy *to);
int yk_native_arg(void *kernel, uint32_t index, size_t bytes, const void *value);
int yk_native_launch(struct yk_gpu_queue *, void *kernel, uint32_t dims, const size_t *items,
		     const size_t *group);

// ---- products.c ----

struct yk_gpu_library;
extern const struct yk_gpu_library yk_native_products;

// ---- collectives.c ----

extern const struct yoke_collectives_ext yk_native_collectives;
const char *yk_native_collectives_name(int code); // names of NCCL and RCCL codes
const char *yk_native_collectives_help(int code); // advice for a code, or NULL

// ---- ext.c ----

const void *yk_native_ext(const char *name);

#endif
