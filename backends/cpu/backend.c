// SPDX-License-Identifier: Apache-2.0
// The CPU backend's table: one device, memory of the host, queues done when a call returns.
// It is linked into the library, and serves what other backends do not take.
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

// A vector or cache line; and a large page, from which size on segments are mapped.
enum { ALIGN = 64, LARGE = 2 << 20 };

// Queues hold nothing; the ABI wants a handle.
struct queue {
	uint32_t device;
};

// Everything marked is done; what remains to tell is when.
struct event {
	struct timespec at;
};

static const struct yoke_host *host;
static const struct yk_isa *isa; // set by probe
static atomic_bool forked;

static const struct yoke_setting isa_setting = {
	sizeof isa_setting, "cpu.isa", "string", "",
	"instruction set of the CPU backend: base, avx2, avx512, avx512_bf16, amx; "
	"empty: the best",
};

static const struct yoke_setting stream_setting = {
	sizeof stream_setting, "cpu.stream", "int 0..9223372036854775807", "104857600",
	"results of this many bytes and more are written past the caches",
};

int64_t yk_stream_bytes = 104857600;

int yk_cpu_fail(int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (host && host->error)
		host->error(code, text);
	return code;
}

void yk_cpu_warn(const char *text)
{
	if (host && host->log)
		host->log(YOKE_LOG_WARN, "cpu", text);
}

const char *yk_cpu_setting(const struct yoke_setting *s)
{
	const char *value = host && host->setting ? host->setting(s) : NULL;

	return value ? value : s->def;
}

static int in_child(void)
{
	return yk_cpu_fail(YOKE_EFORK,
			   "the CPU backend was started before this process was forked "
			   "off and has no threads here; fork first, or exec");
}

// ---- the device ----

static int probe(uint32_t *ndevices)
{
	if (forked)
		return in_child();
	isa = yk_isa_choose(yk_cpu_setting(&isa_setting));
	yk_stream_bytes = strtoll(yk_cpu_setting(&stream_setting), NULL, 10);
	if (!isa)
		return YOKE_EUNSUPPORTED;
	if (yk_gemm_check() < 0)
		return yk_gemm_check();
	*ndevices = 1;
	return 0;
}

// The value of the first line "key : value" of a file in /proc.
static bool proc(const char *file, const char *key, char *to, size_t cap)
{
	char line[512];
	bool found = false;
	FILE *f = fopen(file, "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');
		if (!value || strncmp(line, key, strlen(key)))
			continue;
		value += strspn(value, ": \t");
		value[strcspn(value, "\n")] = 0;
		snprintf(to, cap, "%s", value);
		found = true;
	}
	fclose(f);
	return found;
}

static uint64_t memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	uint64_t group = yk_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup");

	return group && (!all || group < all) ? group : all;
}

// What programs could have without others being driven out: it may be more than the control group allows.
static uint64_t free_memory(void)
{
	static const char *const keys[] = { "MemAvailable", "SwapFree" };
	uint64_t sum = 0;
	char text[64];

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (proc("/proc/meminfo", keys[i], text, sizeof text))
			sum += strtoull(text, NULL, 10) * 1024; // "123 kB"
	return sum;
}

static int device_info(uint32_t device, struct yoke_device_info *info)
{
	struct yoke_device_info full = {
		.size = sizeof full,
		.kind = YOKE_DEVICE_CPU,
		.flags = YOKE_DEVICE_F64 | YOKE_DEVICE_F16 | YOKE_DEVICE_UNIFIED,
		.align = ALIGN,
	};
	struct utsname system;

	if (forked)
		return in_child();
	if (device || !isa)
		return yk_cpu_fail(YOKE_ENODEV, "cpu:%u: no such device", device);
	full.units = (uint32_t)yk_team_size();
	full.memory = full.max_segment = memory();
	full.memory_free = free_memory();
	if (full.memory_free > full.memory)
		full.memory_free = full.memory;
	if (!proc("/proc/cpuinfo", "model name", full.name, sizeof full.name))
		snprintf(full.name, sizeof full.name, "%.100s processor",
			 uname(&system) == 0 ? system.machine : "unknown");
	proc("/proc/cpuinfo", "vendor_id", full.vendor, sizeof full.vendor);
	snprintf(full.driver, sizeof full.driver, "%s, threads bound by %s", isa->name,
		 yk_team_bound());
	if (full.size > info->size)
		full.size = info->size;
	memcpy(info, &full, full.size);
	return 0;
}

// ---- segments ----

struct held {
	struct yk_segment segment; // first: what kernels see
	bool lent;                 // the memory is the application's
};

static void touch(void *arg, int64_t piece)
{
	struct yk_segment *s = arg;
	volatile char *p = s->base + piece * LARGE;

	for (int i = 0; i < LARGE; i += 4096)
		p[i] = 0;
}

static int segment_new(uint32_t device, int kind, uint64_t bytes, void **segment)
{
	struct held *h;
	struct yk_segment *s;
	uint64_t all;

	(void)kind; // all memory is the host's
	if (forked)
		return in_child();
	if (device)
		return yk_cpu_fail(YOKE_ENODEV, "cpu:%u: no such device", device);
	h = malloc(sizeof *h);
	if (!h)
		return YOKE_ENOMEM;
	h->lent = false;
	s = &h->segment;
	if (bytes <= LARGE - ALIGN) { // rounded up it stays below LARGE, as free expects
		s->bytes = bytes ? (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1) : ALIGN;
		s->base = aligned_alloc(ALIGN, s->bytes);
		if (!s->base)
			goto fail;
	} else {
		char *raw;
		size_t head;
		// room to move up to a large page's start; what is over is given back
		if (__builtin_add_overflow(bytes, (uint64_t)2 * LARGE - 1, &all))
			goto fail;
		s->bytes = all - LARGE - all % LARGE;
		all = s->bytes + LARGE;
		raw = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		if (raw == MAP_FAILED)
			goto fail;
		head = (size_t)(-(uintptr_t)raw % LARGE);
		s->base = raw + head;
		if (head)
			munmap(raw, head);
		if (LARGE - head)
			munmap(s->base + s->bytes, LARGE - head);
#ifdef MADV_HUGEPAGE
		madvise(s->base, s->bytes, MADV_HUGEPAGE); // without it slower, not wrong
#endif
		// A page lies with the thread that touches it first: let the team spread them.
		if (yk_team_nodes() > 1)
			yk_team_run((int64_t)(s->bytes / LARGE), touch, s);
	}
	*segment = h;
	return 0;
fail:
	free(h);
	return yk_cpu_fail(YOKE_ENOMEM, "the system gives no %llu bytes",
			   (unsigned long long)bytes);
}

static int segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment)
{
	if (forked)
		return in_child();
	if (device || (uintptr_t)memory % ALIGN)
		return YOKE_EUNSUPPORTED;
	struct held *h = malloc(sizeof *h);
	if (!h)
		return YOKE_ENOMEM;
	*h = (struct held){ .segment = { .base = memory, .bytes = bytes }, .lent = true };
	*segment = h;
	return 0;
}

static void segment_free(uint32_t device, void *segment)
{
	struct held *h = segment;

	(void)device;
	if (!h)
		return;
	if (h->segment.bytes < LARGE && !h->lent)
		free(h->segment.base);
	else if (!h->lent)
		munmap(h->segment.base, h->segment.bytes);
	free(h);
}

static void *segment_host(void *segment)
{
	return ((struct yk_segment *)segment)->base;
}

// ---- queues ----

static int queue_new(uint32_t device, int kind, void **queue)
{
	struct queue *q;

	(void)kind;
	if (forked)
		return in_child();
	if (device)
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
	return forked ? in_child() : 0;
}

static bool fits(const struct yk_segment *s, uint64_t offset, uint64_t bytes)
{
	return offset <= s->bytes && bytes <= s->bytes - offset;
}

static int outside(const char *what, uint64_t offset, uint64_t bytes)
{
	return yk_cpu_fail(YOKE_ERANGE, "%s of %llu bytes at %llu leaves the segment",
			   what, (unsigned long long)bytes, (unsigned long long)offset);
}

static int put(void *queue, void *segment, uint64_t offset, const void *from,
	       uint64_t bytes)
{
	struct yk_segment *s = segment;

	(void)queue;
	if (forked)
		return in_child();
	if (!fits(s, offset, bytes))
		return outside("put", offset, bytes);
	if (bytes)
		memcpy(s->base + offset, from, bytes);
	return 0;
}

static int get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	struct yk_segment *s = segment;

	(void)queue;
	if (forked)
		return in_child();
	if (!fits(s, offset, bytes))
		return outside("get", offset, bytes);
	if (bytes)
		memcpy(to, s->base + offset, bytes);
	return 0;
}

// Pieces of copies and fills: one thread does not use all of the memory's bandwidth.
enum { STRIP = 1 << 20 };

struct strip {
	char *to;
	const char *from; // NULL: fill
	uint64_t bytes, word;
};

static void strip(void *arg, int64_t piece)
{
	const struct strip *s = arg;
	uint64_t at = (uint64_t)piece * STRIP;
	uint64_t n = s->bytes - at < STRIP ? s->bytes - at : STRIP, i;

	if (s->from) {
		memcpy(s->to + at, s->from + at, n);
		return;
	}
	for (i = 0; i + 8 <= n; i += 8)
		memcpy(s->to + at + i, &s->word, 8);
	memcpy(s->to + at + i, &s->word, n - i); // the pattern's size divides n
}

static void strips(struct strip *s)
{
	yk_team_run((int64_t)(s->bytes / STRIP + (s->bytes % STRIP != 0)), strip, s);
}

static int copy(void *queue, void *to, uint64_t to_offset, void *from,
		uint64_t from_offset, uint64_t bytes)
{
	struct yk_segment *t = to, *f = from;
	struct strip s;

	(void)queue;
	if (forked)
		return in_child();
	if (!fits(t, to_offset, bytes))
		return outside("copy", to_offset, bytes);
	if (!fits(f, from_offset, bytes))
		return outside("copy", from_offset, bytes);
	s = (struct strip){ t->base + to_offset, f->base + from_offset, bytes, 0 };
	if (s.to < s.from + bytes && s.from < s.to + bytes)
		memmove(s.to, s.from, bytes);
	else
		strips(&s);
	return 0;
}

static int fill(void *queue, void *segment, uint64_t offset, uint64_t bytes,
		const void *pattern, uint32_t pattern_bytes)
{
	struct yk_segment *t = segment;
	struct strip s;

	(void)queue;
	if (forked)
		return in_child();
	if (!fits(t, offset, bytes))
		return outside("fill", offset, bytes);
	if ((pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
	     pattern_bytes != 8) ||
	    bytes % pattern_bytes)
		return yk_cpu_fail(YOKE_EINVAL, "fill of %llu bytes by a pattern of %u",
				   (unsigned long long)bytes, pattern_bytes);
	s = (struct strip){ t->base + offset, NULL, bytes, 0 };
	for (uint32_t i = 0; i < 8; i += pattern_bytes)
		memcpy((char *)&s.word + i, pattern, pattern_bytes);
	strips(&s);
	return 0;
}

// ---- events ----

static int event_mark(void *queue, void **event)
{
	struct event *e;

	(void)queue;
	if (forked)
		return in_child();
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
	return forked ? in_child() : 0;
}

static int event_done(void *event)
{
	(void)event;
	return forked ? in_child() : 1;
}

static int event_wait(void *event)
{
	(void)event;
	return forked ? in_child() : 0;
}

static int event_elapsed(void *from, void *to, uint64_t *nanoseconds)
{
	const struct event *a = from, *b = to;

	if (forked)
		return in_child();
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

	return k && !device && !forked ? k->can(op) : 0;
}

static int workspace(uint32_t device, const struct yoke_op *op, uint32_t impl,
		     uint64_t *bytes)
{
	const struct yk_kernel *k = kernel(op);

	if (forked)
		return in_child();
	if (!k || device)
		return YOKE_EUNSUPPORTED;
	*bytes = k->workspace ? k->workspace(op, impl) : 0;
	return 0;
}

static int run(void *queue, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_kernel *k = kernel(op);

	(void)queue;
	if (forked)
		return in_child();
	return k ? k->run(op, impl) : YOKE_EUNSUPPORTED;
}

static const char *impl_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_kernel *k = kernel(op);

	(void)device;
	return k && impl < sizeof k->impl / sizeof *k->impl ? k->impl[impl] : NULL;
}

// ---- entry point ----

static const struct yoke_backend table = {
	.size = sizeof table,
	.abi = YOKE_ABI,
	.name = "cpu",
	.version = PACKAGE_VERSION,
	.probe = probe,
	.device_info = device_info,
	.segment_new = segment_new,
	.segment_free = segment_free,
	.segment_host = segment_host,
	.segment_wrap = segment_wrap,
	.queue_new = queue_new,
	.queue_free = queue_free,
	.queue_flush = queue_flush,
	.put = put,
	.get = get,
	.copy = copy,
	.fill = fill,
	.event_mark = event_mark,
	.event_after = event_after,
	.event_done = event_done,
	.event_wait = event_wait,
	.event_elapsed = event_elapsed,
	.event_free = event_free,
	.can = can,
	.workspace = workspace,
	.run = run,
	.impl_name = impl_name,
};

static void after_fork(void)
{
	forked = true;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

int yoke_cpu_init(uint32_t core_abi, const struct yoke_host *lent,
		  const struct yoke_backend **backend);

int yoke_cpu_init(uint32_t core_abi, const struct yoke_host *lent,
		  const struct yoke_backend **backend)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (core_abi >> 16 != YOKE_ABI_MAJOR)
		return YOKE_EABI;
	host = lent;
	pthread_once(&once, watch_forks);
	yk_cpu_setting(&isa_setting);
	yk_cpu_setting(&stream_setting);
	yk_cores_declare();
	yk_gemm_declare();
	*backend = &table;
	return 0;
}
