// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the OpenCL driver. It uses OpenCL 1.2 only, so that old
// drivers work, and one context per device.
#ifndef YK_OPENCL_H
#define YK_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "../gpu/gpu.h"

struct yk_cl_device {
	struct yk_gpu_device gpu;
	cl_platform_id platform;
	cl_device_id id;
	cl_context context;      // created on first use
	cl_command_queue helper; // used to map host segments
	uint32_t clblast;        // bit d: CLBlast has compiled its kernels for dtype d
};

static inline struct yk_cl_device *yk_cl_of(struct yk_gpu_device *d)
{
	return (struct yk_cl_device *)d;
}

// ---- error.c ----

// "CL_OUT_OF_RESOURCES", or "unknown OpenCL error".
const char *yk_cl_name(int code);
bool yk_cl_is_memory(int code);

// ---- device.c ----

int yk_cl_probe(const char **why);
int yk_cl_open(struct yk_gpu_device *);

// ---- identity.c ----

// Fills info.uuid and info.pci, unless an earlier device of the same platform already has the same
// values.
void yk_cl_identify(struct yk_cl_device *);

// ---- lock.c ----

int yk_cl_build_lock(struct yk_gpu_device *);
void yk_cl_build_unlock(int lock);

// ---- memory.c ----

int yk_cl_buffer_new(struct yk_gpu_device *, int kind, uint64_t bytes, const void *data,
		     void **buffer, void **host);
int yk_cl_buffer_wrap(struct yk_gpu_device *, void *memory, uint64_t bytes,
		      void **buffer);
void yk_cl_buffer_free(struct yk_gpu_device *, void *buffer, void *host);
int yk_cl_put(struct yk_gpu_queue *, void *buffer, uint64_t offset, const void *from,
	      uint64_t bytes);
int yk_cl_get(struct yk_gpu_queue *, void *buffer, uint64_t offset, void *to,
	      uint64_t bytes);
int yk_cl_copy(struct yk_gpu_queue *, void *to, uint64_t to_offset, void *from,
	       uint64_t from_offset, uint64_t bytes);
int yk_cl_fill(struct yk_gpu_queue *, void *buffer, uint64_t offset, uint64_t bytes,
	       const void *pattern, uint32_t pattern_bytes);

// ---- queue.c ----

int yk_cl_queue_new(struct yk_gpu_device *, bool profiled, void **queue);
void yk_cl_queue_free(void *queue);
int yk_cl_flush(void *queue);
int yk_cl_finish(struct yk_gpu_queue *);
int yk_cl_mark(struct yk_gpu_queue *, void **event);
void yk_cl_event_free(void *event);
int yk_cl_after(struct yk_gpu_queue *, struct yk_gpu_event *);
int yk_cl_status(struct yk_gpu_event *);
int yk_cl_wait(struct yk_gpu_event *);
int yk_cl_elapsed(struct yk_gpu_event *from, struct yk_gpu_event *to,
		  uint64_t *nanoseconds);

// ---- program.c ----

int yk_cl_build(struct yk_gpu_device *, const char *text, const char *options,
		const char *kernel, void **program);
int yk_cl_load(struct yk_gpu_device *, const void *binary, size_t bytes,
	       const char *options, void **program);
void *yk_cl_binary(struct yk_gpu_device *, void *program, size_t *bytes);
void yk_cl_program_free(void *program);
int yk_cl_kernel_new(struct yk_gpu_device *, void *program, const char *name,
		     void **kernel);
void yk_cl_kernel_free(void *kernel);
size_t yk_cl_kernel_group(struct yk_gpu_device *, void *kernel);
uint32_t yk_cl_kernel_params(void *kernel);
void yk_cl_kernel_use(struct yk_gpu_device *, void *kernel, size_t group,
		      struct yoke_occupancy *to);
int yk_cl_arg(void *kernel, uint32_t index, size_t bytes, const void *value);
int yk_cl_launch(struct yk_gpu_queue *, void *kernel, uint32_t dims, const size_t *items,
		 const size_t *group);

// ---- contract_clblast.c ----

extern const struct yk_gpu_library yk_cl_clblast;
// Declares the setting that enables CLBlast.
void yk_cl_clblast_start(void);

#endif
