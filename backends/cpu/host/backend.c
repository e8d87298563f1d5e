// SPDX-License-Identifier: Apache-2.0
// The CPU backend's table: one device, or several that share the cores; host memory; queues that
// finish each call before it returns. It is linked into the library and runs all ops that other
// backends do not support.
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../quant/activations.h"
#include "frame.h"

// Queues have no state, but the ABI requires a handle.
struct queue {
	uint32_t device;
};

// Marked work is already done; an event only stores the time.
struct event {
	struct timespec at;
};

static const struct yk_isa *isa; // set by probe, like
static uint32_t devices = 1;     // the number of devices

static const struct yoke_setting devices_setting = {
	sizeof devices_setting, "cpu.devices", "int 1..64", "1",
	"number of devices cpu:0, cpu:1, ... that share the processor's cores",
};

// ---- the device ----

uint32_t yk_cpu_devices(void)
{
	return devices;
}

static int probe(uint32_t *ndevices)
{
	if (yk_cpu_forked())
		return YOKE_EFORK;
	const char *wanted = yk_cpu_settings_read();
	isa = wanted ? yk_isa_choose(wanted) : NULL;
	if (!isa)
		return YOKE_EUNSUPPORTED;
	if (yk_gemm_check() < 0)
		return yk_gemm_check();
	if (yk_lapack_check() < 0)
		return yk_lapack_check();
	devices = (uint32_t)atoi(yk_cpu_setting(&devices_setting));
	yk_team_divide((int)devices);
	*ndevices = devices;
	return 0;
}

static uint64_t memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	uint64_t group = yk_cgroup_memory(YK_CGROUPS, YK_CGROUP_MOUNT);

	return group && (!all || group < all) ? group : all;
}

static int device_info(uint32_t device, struct yoke_device_info *info)
{
	struct yoke_device_info full = {
		.size = sizeof full,
		.kind = YOKE_DEVICE_CPU,
		.flags = YOKE_DEVICE_F64 | YOKE_DEVICE_F16 | YOKE_DEVICE_UNIFIED,
		.align = YK_SEGMENT_ALIGN,
	};
	struct utsname system;

	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (device >= devices || !isa)
		return yk_cpu_fail(YOKE_ENODEV, "cpu:%u: no such device", device);
	full.units = (uint32_t)yk_team_size_of(device);
	full.memory = full.max_segment = memory();
	full.memory_free = yk_memory_available();
	if (full.memory_free > full.memory)
		full.memory_free = full.memory;
	if (!yk_processor_fact("model name", full.name, sizeof full.name))
		snprintf(full.name, sizeof full.name, "%.100s processor",
			 uname(&system) == 0 ? system.machine : "unknown");
	yk_processor_fact("vendor_id", full.vendor, sizeof full.vendor);
	full.products = isa->products;
	// full.multiple stays 0: kernels pack both factors into zero-padded panels
	snprintf(full.driver, sizeof full.driver, "%s, threads bound by %s%s", isa->name,
		 yk_team_bound(), yk_int8_activations ? ", int8 activations" : "");
	if (full.size > info->size)
		full.size = info->size;
	memcpy(info, &full, full.size);
	return 0;
}

// ---- queues ----

static int queue_new(uint32_t device, int kind, void **queue)
{
	struct queue *q;

	(void)kind;
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (device >= devices)
		return yk_cpu_fail(YOKE_ENODEV, "cpu:%u: no such device", device);
	q = malloc(sizeof *q);
	if (!q)
		return YOKE_ENOMEM;
	q->device = device;
	*queue = q;
	return 0;
}

static void queue_free(void *queue)
{
	free(queue);
}

static int queue_flush(void *queue)
{
	(void)queue;
	return yk_cpu_forked();
}

// ---- events ----

static int event_mark(void *queue, void **event)
{
	struct event *e;

	(void)queue;
	if (yk_cpu_forked())
		return YOKE_EFORK;
	e = malloc(sizeof *e);
	if (!e)
		return YOKE_ENOMEM;
	clock_gettime(CLOCK_MONOTONIC, &e->at);
	*event = e;
	return 0;
}

static int event_after(void *queue, void *event)
{
	(void)queue, (void)event;
	return yk_cpu_forked();
}

static int event_done(void *event)
{
	(void)event;
	return yk_cpu_forked() ? YOKE_EFORK : 1;
}

static int event_wait(void *event)
{
	(void)event;
	return yk_cpu_forked();
}

static int event_elapsed(void *from, void *to, uint64_t *nanoseconds)
{
	const struct event *a = from, *b = to;

	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (!a || !b)
		return YOKE_EINVAL;
	*nanoseconds = (uint64_t)((b->at.tv_sec - a->at.tv_sec) * INT64_C(1000000000) +
				  (b->at.tv_nsec - a->at.tv_nsec));
	return 0;
}

static void event_free(void *event)
{
	free(event);
}

// ---- ops ----

static const struct yk_kernel *kernel(const struct yoke_op *op)
{
	return isa && op->code < YOKE_OP_LIMIT ? isa->op[op->code] : NULL;
}

static uint64_t can(uint32_t device, const struct yoke_op *op)
{
	const struct yk_kernel *k = kernel(op);

	return k && device < devices && !yk_cpu_forked() ? k->can(op) : 0;
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan,
		   void **handle, uint64_t *workspace)
{
	const struct yk_kernel *k = kernel(op);
	struct yk_prepared *p;

	(void)plan;
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (!k || device >= devices || !(k->can(op) >> impl & 1))
		return YOKE_EUNSUPPORTED;
	int err = yk_kernel_prepare(k, op, impl, &p);
	if (err)
		return err;
	*handle = p;
	*workspace = k->workspace ? k->workspace(op, impl) : 0;
	return 0;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	const struct queue *q = queue;

	if (yk_cpu_forked())
		return YOKE_EFORK;
	yk_team_use(q->device);
	return yk_kernel_run(handle, op);
}

static void release(void *handle)
{
	yk_kernel_release(handle);
}

static const char *impl_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_kernel *k = kernel(op);

	(void)device;
	return k && impl < sizeof k->impl / sizeof *k->impl ? k->impl[impl] : NULL;
}

// ---- notes ----

static char *drawing; // lines that end with a NUL each, and one more NUL

static void draw(void)
{
	drawing = yk_cores_draw(yk_team_cores());
	for (char *c = drawing; c && *c; c++)
		if (*c == '\n')
			*c = '\0';
}

static const char *line_of_drawing(uint32_t index)
{
	static pthread_once_t drawn = PTHREAD_ONCE_INIT;

	pthread_once(&drawn, draw);
	const char *line = drawing;
	for (; line && *line && index; index--)
		line += strlen(line) + 1;
	return line && *line ? line : NULL;
}

static const void *ext(const char *name)
{
	static const struct yoke_notes processors = { sizeof processors, line_of_drawing };

	return strcmp(name, "processors") ? NULL : &processors;
}

// ---- entry point ----

static const struct yoke_backend table = {
	.size = sizeof table,
	.abi = YOKE_ABI,
	.name = "cpu",
	.version = PACKAGE_VERSION,
	.probe = probe,
	.device_info = device_info,
	.segment_new = yk_cpu_segment_new,
	.segment_free = yk_cpu_segment_free,
	.segment_host = yk_cpu_segment_host,
	.segment_wrap = yk_cpu_segment_wrap,
	.queue_new = queue_new,
	.queue_free = queue_free,
	.queue_flush = queue_flush,
	.put = yk_cpu_put,
	.get = yk_cpu_get,
	.copy = yk_cpu_copy,
	.fill = yk_cpu_fill,
	.event_mark = event_mark,
	.event_after = event_after,
	.event_done = event_done,
	.event_wait = event_wait,
	.event_elapsed = event_elapsed,
	.event_free = event_free,
	.can = can,
	.prepare = prepare,
	.run = run,
	.release = release,
	.impl_name = impl_name,
	.ext = ext,
};

int yoke_cpu_init(uint32_t core_abi, const struct yoke_host *core_host,
		  const struct yoke_backend **backend);

int yoke_cpu_init(uint32_t core_abi, const struct yoke_host *core_host,
		  const struct yoke_backend **backend)
{
	if (core_abi >> 16 != YOKE_ABI_MAJOR)
		return YOKE_EABI;
	yk_cpu_lend(core_host);
	yk_cpu_settings_declare();
	yk_cores_declare();
	yk_cpu_setting(&devices_setting);
	yk_gemm_declare();
	yk_lapack_declare();
	*backend = &table;
	return 0;
}
