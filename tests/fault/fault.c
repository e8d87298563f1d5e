// SPDX-License-Identifier: Apache-2.0
// A backend over host memory that misbehaves on demand, and whose kernels are empty.
//
// fault.null=1   every op is accepted and run does nothing: what is left is the core's own cost
// fault.segment=n, fault.run=n, fault.event=n, fault.put=n, fault.get=n
//                the n-th call of that kind fails, once; counted from 1 over all threads
// fault.sticky=1 and so do all that follow
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "yoke-plugin.h"

// X(name): calls that can be made to fail
#define FAULTS(X) X(segment) X(run) X(event) X(put) X(get)

enum fault {
#define X(name) FAULT_##name,
	FAULTS(X)
#undef X
	FAULT_COUNT
};

static const char *const fault_name[] = {
#define X(name) #name,
	FAULTS(X)
#undef X
};

static const struct yoke_host *host;
static long nth[FAULT_COUNT]; // 0: never
static atomic_long calls[FAULT_COUNT];
static int null, sticky;

// 0, or the error of a call that has to fail.
static int fault(enum fault what)
{
	char text[64];

	long n = 1 + atomic_fetch_add(&calls[what], 1);
	if (!nth[what] || !(n == nth[what] || (sticky && n > nth[what])))
		return 0;
	snprintf(text, sizeof text, "fault.%s: call %ld", fault_name[what], n);
	int code = what == FAULT_segment ? YOKE_ENOMEM : YOKE_EDEVICE;
	host->error(code, text);
	return code;
}

static int probe(uint32_t *n)
{
	*n = 1;
	return 0;
}

static int device_info(uint32_t device, struct yoke_device_info *i)
{
	if (device)
		return YOKE_ENODEV;
	i->kind = YOKE_DEVICE_OTHER;
	i->memory = (uint64_t)8 << 30;
	i->max_segment = (uint64_t)4 << 30;
	i->align = 64;
	strcpy(i->name, "host memory with faults");
	return 0;
}

static int segment_new(uint32_t device, int kind, uint64_t bytes, void **segment)
{
	(void)device, (void)kind;
	int code = fault(FAULT_segment);
	if (code)
		return code;
	return posix_memalign(segment, 64, bytes) ? YOKE_ENOMEM : 0;
}

static void segment_free(uint32_t device, void *segment)
{
	(void)device;
	free(segment);
}

static void *segment_host(void *segment)
{
	return segment;
}

static int queue_new(uint32_t device, int kind, void **queue)
{
	(void)device, (void)kind;
	*queue = malloc(1);
	return *queue ? 0 : YOKE_ENOMEM;
}

static void queue_free(void *queue)
{
	free(queue);
}

static int queue_flush(void *queue)
{
	(void)queue;
	return 0;
}

static int put(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes)
{
	(void)queue;
	int code = fault(FAULT_put);
	if (!code)
		memcpy((char *)segment + offset, from, bytes);
	return code;
}

static int get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	(void)queue;
	int code = fault(FAULT_get);
	if (!code)
		memcpy(to, (char *)segment + offset, bytes);
	return code;
}

static int copy(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		uint64_t bytes)
{
	(void)queue;
	memmove((char *)to + to_offset, (char *)from + from_offset, bytes);
	return 0;
}

static int fill(void *queue, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		uint32_t pattern_bytes)
{
	(void)queue;
	for (uint64_t i = 0; i < bytes; i += pattern_bytes)
		memcpy((char *)segment + offset + i, pattern, pattern_bytes);
	return 0;
}

static int event_mark(void *queue, void **event)
{
	(void)queue;
	*event = NULL;
	return fault(FAULT_event);
}

static int event_after(void *queue, void *event)
{
	(void)queue, (void)event;
	return 0;
}

static int event_done(void *event)
{
	(void)event;
	return 1;
}

static int event_wait(void *event)
{
	(void)event;
	return 0;
}

static void event_free(void *event)
{
	(void)event;
}

static uint64_t can(uint32_t device, const struct yoke_op *op)
{
	(void)device, (void)op;
	return (uint64_t)null;
}

static int workspace(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t *bytes)
{
	(void)device, (void)op, (void)impl;
	*bytes = 0;
	return 0;
}

static int run(void *queue, const struct yoke_op *op, uint32_t impl)
{
	(void)queue, (void)op, (void)impl;
	return fault(FAULT_run);
}

static const struct yoke_backend backend = {
	.size = sizeof backend, .abi = YOKE_ABI, .name = "fault", .version = "1",
	.probe = probe, .device_info = device_info,
	.segment_new = segment_new, .segment_free = segment_free, .segment_host = segment_host,
	.queue_new = queue_new, .queue_free = queue_free, .queue_flush = queue_flush,
	.put = put, .get = get, .copy = copy, .fill = fill,
	.event_mark = event_mark, .event_after = event_after, .event_done = event_done,
	.event_wait = event_wait, .event_free = event_free,
	.can = can, .workspace = workspace, .run = run,
};

static long setting(const char *name, const char *type, const char *help)
{
	const struct yoke_setting s = { sizeof s, name, type, "0", help };
	const char *text = host->setting(&s);
	return text ? strtol(text, NULL, 10) : 0;
}

__attribute__((visibility("default")))
int yoke_plugin_init(uint32_t core_abi, const struct yoke_host *lent, const struct yoke_backend **to)
{
	*to = &backend;
	if (core_abi >> 16 != YOKE_ABI_MAJOR)
		return YOKE_EABI;
	host = lent;
#define X(what) \
	nth[FAULT_##what] = setting("fault." #what, "int", "the n-th call of it fails; 0: none");
	FAULTS(X)
#undef X
	null = setting("fault.null", "bool", "accept every op, run nothing") != 0;
	sticky = setting("fault.sticky", "bool", "all calls behind the n-th fail too") != 0;
	return 0;
}
