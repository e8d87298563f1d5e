// SPDX-License-Identifier: Apache-2.0
// The interface between the launch layer and a vendor's driver. Each GPU plugin defines one table,
// yk_gpu_driver, and is linked with backends/gpu.
#ifndef YK_GPU_DRIVER_H
#define YK_GPU_DRIVER_H

#include <stdbool.h>

#include "yoke-plugin.h"

#define YK_GPU_LIBRARIES 2

struct yk_gpu_device;
struct yk_gpu_queue;
struct yk_gpu_event;
struct yk_gpu_library;

// Programs, kernels, buffers, queues and events are opaque pointers of the driver, never NULL.
// Unless stated otherwise, functions return 0 or a negative YOKE_E* that they have recorded with
// yk_gpu_fail or yk_gpu_error; outputs are untouched on failure. Functions called per launch (arg,
// launch, flush) return 0 or the driver's own code: the layer records the message, because it knows
// the kernel's name. Nothing is called in a forked child.
struct yk_gpu_driver {
	const char *name, *title, *version; // "opencl", "OpenCL", "OpenCL 1.2"
	int dialect;                        // kernel dialect that it compiles
	const struct yoke_setting
		*profile; // the bool setting "opencl.profile": record times on queues
	const struct yk_gpu_library *
		// vendor libraries for products, best first; see contract.h
		library[YK_GPU_LIBRARIES];
	// Declares settings when the plugin is loaded; optional.
	void (*start)(void);

	// code_name names a code ("CL_OUT_OF_RESOURCES"); is_memory is true if it means out of
	// memory.
	const char *(*code_name)(int code);
	bool (*is_memory)(int code);
	// Returns what a code means and what to do, or NULL; optional.
	const char *(*code_help)(int code);

	// Finds the devices and adds the usable ones with yk_gpu_device_add. *why is set to a
	// permanent string that explains what was skipped. Called once.
	int (*probe)(const char **why);
	// Creates the context that all other calls need. Called with the device's lock held, and
	// again after it has succeeded.
	int (*open)(struct yk_gpu_device *);
	// Updates the parts of the info that vary, such as memory_free; optional.
	void (*refresh)(struct yk_gpu_device *, struct yoke_device_info *);
	// The backend's ext; optional.
	const void *(*ext)(const char *name);

	// ---- programs and kernels; with the device open and its lock held ----

	// Compiles a text. `options` holds words like -DTM=4, which follow the device's own
	// options; `kernel` names the kernel that will be used, for error messages. Returns
	// EUNSUPPORTED, through yk_gpu_build_failed, if the text does not compile.
	int (*build)(struct yk_gpu_device *, const char *text, const char *options,
		     const char *kernel, void **program);
	// Loads what `binary` returned for the same text, options and device identity. Any error is
	// a cache miss and is not recorded.
	int (*load)(struct yk_gpu_device *, const void *binary, size_t bytes,
		    const char *options, void **program);
	// Returns the program's binary for the cache; the caller frees it. NULL: none.
	void *(*binary)(struct yk_gpu_device *, void *program, size_t *bytes);
	void (*program_free)(void *program);
	// Held during compilation if concurrent processes would disturb each other. -1: not needed.
	// Both calls are optional.
	int (*build_lock)(struct yk_gpu_device *);
	void (*build_unlock)(int lock);
	// Creates a kernel with its own arguments. Returns EUNSUPPORTED if the program has no
	// kernel of that name.
	int (*kernel_new)(struct yk_gpu_device *, void *program, const char *name,
			  void **kernel);
	void (*kernel_free)(void *kernel);
	// Assigns bytes to the kernel's LOCAL_SIZED array in each launch; optional without
	// sized_bytes. Returns the driver's code.
	int (*kernel_sized)(struct yk_gpu_device *, void *kernel, size_t bytes);
	// Max work-items per group; 0: unknown.
	size_t (*kernel_group)(struct yk_gpu_device *, void *kernel);
	// Reports the resources used with groups of `group` items (0: driver's choice): registers,
	// local_bytes, warp, share, as far as known; optional.
	void (*kernel_use)(struct yk_gpu_device *, void *kernel, size_t group,
			   struct yoke_occupancy *to);
	// Number of parameters; UINT32_MAX: unknown.
	uint32_t (*kernel_params)(void *kernel);
	// Sets an argument by value; for a buffer the value is its pointer. The bytes are copied
	// and stay set until replaced. Returns the driver's code; a size that does not match the
	// parameter is an error if the driver can detect it.
	int (*arg)(void *kernel, uint32_t index, size_t bytes, const void *value);
	// Enqueues with the current arguments. group NULL: driver's choice. Returns the driver's
	// code.
	int (*launch)(struct yk_gpu_queue *, void *kernel, uint32_t dims,
		      const size_t *items, const size_t *group);
	const char *arg_call,
		*launch_call, *sized_call; // call names in error messages: "clSetKernelArg"

	// ---- memory; with the device open ----

	// Allocates a buffer of kind YOKE_SEGMENT_DEVICE or _HOST. *host is set to its host
	// address, if it has one. data: initial content, or NULL.
	int (*buffer_new)(struct yk_gpu_device *, int kind, uint64_t bytes,
			  const void *data, void **buffer, void **host);
	// Wraps memory that the caller keeps owning, on a device that shares the host's memory;
	// aligned as the info requires.
	int (*buffer_wrap)(struct yk_gpu_device *, void *memory, uint64_t bytes,
			   void **buffer);
	// Enqueued work may still use the buffer.
	void (*buffer_free)(struct yk_gpu_device *, void *buffer, void *host);
	// These enqueue. Ranges have been checked, bytes > 0, and the buffers have no host address.
	int (*put)(struct yk_gpu_queue *, void *buffer, uint64_t offset, const void *from,
		   uint64_t bytes);
	int (*get)(struct yk_gpu_queue *, void *buffer, uint64_t offset, void *to,
		   uint64_t bytes);
	int (*copy)(struct yk_gpu_queue *, void *to, uint64_t to_offset, void *from,
		    uint64_t from_offset, uint64_t bytes);
	int (*fill)(struct yk_gpu_queue *, void *buffer, uint64_t offset, uint64_t bytes,
		    const void *pattern, uint32_t pattern_bytes);
	// Like copy, between buffers of two devices; the queue belongs to one of them. Optional.
	// Returns EUNSUPPORTED if the two devices cannot copy directly.
	int (*copy_between)(struct yk_gpu_queue *, struct yk_gpu_device *to_device, void *to,
			    uint64_t to_offset, struct yk_gpu_device *from_device, void *from,
			    uint64_t from_offset, uint64_t bytes);

	// ---- queues, in order, and events ----

	int (*queue_new)(struct yk_gpu_device *, bool profiled, void **queue);
	void (*queue_free)(void *queue); // the queue is empty
	// Submits the enqueued work. Returns the driver's code.
	int (*flush)(void *queue);
	const char *flush_call;
	int (*finish)(struct yk_gpu_queue *); // waits until the queue is empty
	// Creates an event after everything enqueued so far; it carries a time if the queue is
	// profiled.
	int (*mark)(struct yk_gpu_queue *, void **event);
	void (*event_free)(void *event);
	// Makes the queue wait for an event of another queue, possibly of another device. That
	// queue has been flushed.
	int (*after)(struct yk_gpu_queue *, struct yk_gpu_event *);
	// Returns 1 if all work before the event is done, 0 if not yet, or an error if it failed.
	int (*status)(struct yk_gpu_event *);
	int (*wait)(struct yk_gpu_event *);
	int (*elapsed)(struct yk_gpu_event *from, struct yk_gpu_event *to,
		       uint64_t *nanoseconds); // both events have completed

	// ---- graphs; all four, or none ----

	// From graph_begin to graph_end, launch, copy and fill on the queue are recorded instead of
	// run. graph_end always ends the recording. Returns EUNSUPPORTED if the driver has no
	// graphs.
	int (*graph_begin)(struct yk_gpu_queue *);
	int (*graph_end)(struct yk_gpu_queue *, void **graph);
	// Enqueues the whole graph with the recorded arguments.
	int (*graph_run)(struct yk_gpu_queue *, void *graph);
	void (*graph_free)(void *graph); // no run of it is in progress
};

extern const struct yk_gpu_driver yk_gpu_driver;

#endif
