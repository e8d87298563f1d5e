// SPDX-License-Identifier: Apache-2.0
// The calls of a vendor's driver that the launch layer is made over.  A plugin defines this table once, under
// its name, and is linked with backends/gpu.
#ifndef YK_GPU_DRIVER_H
#define YK_GPU_DRIVER_H

#include <stdbool.h>

#include "yoke-plugin.h"

#define YK_GPU_LIBRARIES 2

struct yk_gpu_device;
struct yk_gpu_queue;
struct yk_gpu_event;
struct yk_gpu_library;

// Programs, kernels, buffers, queues and events are pointers of the driver's own, never NULL.  Functions
// return 0 or a negative YOKE_E*, which they have said by yk_gpu_fail or yk_gpu_error, unless another result
// is named here; what they are to set stays as it was on failure.  Those called for each launch (arg,
// launch, flush) return 0 or the driver's own code: the layer writes the line, which has the kernel's name.
// Nothing is called in a forked child.
struct yk_gpu_driver {
	const char *name, *title, *version; // "opencl", "OpenCL", "OpenCL 1.2"
	int dialect;                        // of the texts that it builds
	const struct yoke_setting
		*profile; // "opencl.profile", a bool: do queues keep times?
	const struct yk_gpu_library *
		library[YK_GPU_LIBRARIES]; // that do products, best first; see contract.h
	// Declares settings, as the plugin is loaded; may be absent.
	void (*start)(void);

	// The name of a code, "CL_OUT_OF_RESOURCES"; does it mean that memory is short?
	const char *(*code_name)(int code);
	bool (*is_memory)(int code);
	// What a code means and what to do, or NULL; may be absent.
	const char *(*code_help)(int code);

	// Finds the devices and adds those that can serve, by yk_gpu_device_add; *why says, for good, what was left
	// out.  Called once.
	int (*probe)(const char **why);
	// What the rest needs of a device: its context.  Called with the device's lock held, and again after
	// it has succeeded.
	int (*open)(struct yk_gpu_device *);
	// Fills what changes of a device's info: memory_free; may be absent.
	void (*refresh)(struct yk_gpu_device *, struct yoke_device_info *);
	// The backend's ext; may be absent.
	const void *(*ext)(const char *name);

	// ---- programs and kernels; with the device open and its lock held ----

	// Compiles a text.  `options` are words like -DTM=4 behind the device's own; kernel: which is wanted of
	// it, for errors.  EUNSUPPORTED, by yk_gpu_build_failed: it does not compile.
	int (*build)(struct yk_gpu_device *, const char *text, const char *options,
		     const char *kernel, void **program);
	// Takes what `binary` gave for the same text, options, and identity of the device; any error is a miss,
	// and is not said.
	int (*load)(struct yk_gpu_device *, const void *binary, size_t bytes,
		    const char *options, void **program);
	// What to keep of a program, for who frees it; NULL: nothing.
	void *(*binary)(struct yk_gpu_device *, void *program, size_t *bytes);
	void (*program_free)(void *program);
	// Held while a program is compiled, where processes would disturb each other, -1: no need; may be
	// absent, both.
	int (*build_lock)(struct yk_gpu_device *);
	void (*build_unlock)(int lock);
	// A kernel with arguments of its own.  EUNSUPPORTED: the program has none of that name.
	int (*kernel_new)(struct yk_gpu_device *, void *program, const char *name,
			  void **kernel);
	void (*kernel_free)(void *kernel);
	// Most work items of a group; 0: it does not say.
	size_t (*kernel_group)(struct yk_gpu_device *, void *kernel);
	// What groups of so many items (0: as it likes) take: registers, local_bytes, warp, share, as far as it is
	// known; may be absent.
	void (*kernel_use)(struct yk_gpu_device *, void *kernel, size_t group, struct yoke_occupancy *to);
	// How many parameters it has; UINT32_MAX: it does not say.
	uint32_t (*kernel_params)(void *kernel);
	// An argument: bytes by value, of which of a buffer its pointer.  They are copied, and stay until others
	// are set.  Returns the driver's code; one that does not fit the parameter is an error, if it can tell.
	int (*arg)(void *kernel, uint32_t index, size_t bytes, const void *value);
	// Enqueues, with the arguments as they are now.  group NULL: as it likes.  Returns the driver's code.
	int (*launch)(struct yk_gpu_queue *, void *kernel, uint32_t dims,
		      const size_t *items, const size_t *group);
	const char *arg_call,
		*launch_call; // what errors of these two are said to be of: "clSetKernelArg"

	// ---- memory; with the device open ----

	// A buffer of YOKE_SEGMENT_DEVICE or _HOST; *host is set to its address, if it is to have one.  data:
	// what is in it from the beginning, or NULL.
	int (*buffer_new)(struct yk_gpu_device *, int kind, uint64_t bytes,
			  const void *data, void **buffer, void **host);
	// One of memory that stays the caller's, of a device that shares the host's, aligned as its info says.
	int (*buffer_wrap)(struct yk_gpu_device *, void *memory, uint64_t bytes,
			   void **buffer);
	// What is enqueued may still use it.
	void (*buffer_free)(struct yk_gpu_device *, void *buffer, void *host);
	// Enqueue; ranges are checked, bytes > 0, buffers have no address in the host.
	int (*put)(struct yk_gpu_queue *, void *buffer, uint64_t offset, const void *from,
		   uint64_t bytes);
	int (*get)(struct yk_gpu_queue *, void *buffer, uint64_t offset, void *to,
		   uint64_t bytes);
	int (*copy)(struct yk_gpu_queue *, void *to, uint64_t to_offset, void *from,
		    uint64_t from_offset, uint64_t bytes);
	int (*fill)(struct yk_gpu_queue *, void *buffer, uint64_t offset, uint64_t bytes,
		    const void *pattern, uint32_t pattern_bytes);
	// The same as copy between buffers of two devices, the queue one's of them; may be absent.
	// EUNSUPPORTED: these two cannot.
	int (*copy_between)(struct yk_gpu_queue *, struct yk_gpu_device *to_device, void *to, uint64_t to_offset,
			    struct yk_gpu_device *from_device, void *from, uint64_t from_offset, uint64_t bytes);

	// ---- queues, in order, and events ----

	int (*queue_new)(struct yk_gpu_device *, bool profiled, void **queue);
	void (*queue_free)(void *queue); // nothing is in it
	// Starts what is enqueued.  Returns the driver's code.
	int (*flush)(void *queue);
	const char *flush_call;
	int (*finish)(struct yk_gpu_queue *); // waits for all of it
	// An event behind all that is enqueued; with a time, where the queue is profiled.
	int (*mark)(struct yk_gpu_queue *, void **event);
	void (*event_free)(void *event);
	// Of an event whose queue is flushed.  Has the queue wait for one of another queue, perhaps of another
	// device:
	int (*after)(struct yk_gpu_queue *, struct yk_gpu_event *);
	// Whether all before it ran: 1, 0 not yet, or an error if it failed.
	int (*status)(struct yk_gpu_event *);
	int (*wait)(struct yk_gpu_event *);
	int (*elapsed)(struct yk_gpu_event *from, struct yk_gpu_event *to,
		       uint64_t *nanoseconds); // both are over

	// ---- graphs; all four, or none ----

	// From now on launch, copy and fill on the queue are recorded and not done, until graph_end, which always
	// ends that.  EUNSUPPORTED: the driver cannot.
	int (*graph_begin)(struct yk_gpu_queue *);
	int (*graph_end)(struct yk_gpu_queue *, void **graph);
	// Enqueues all of it, with the arguments that were recorded.
	int (*graph_run)(struct yk_gpu_queue *, void *graph);
	void (*graph_free)(void *graph); // none of its runs is under way
};

extern const struct yk_gpu_driver yk_gpu_driver;

#endif
