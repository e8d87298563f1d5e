// SPDX-License-Identifier: Apache-2.0
// Segments in host memory, and the transfers put, get, copy and fill.
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "frame.h"

// Huge page size; segments of at least this size are mapped.
enum { LARGE = 2 << 20 };

// ---- segments ----

struct held {
	struct yk_segment segment; // first: the part that kernels see
	bool borrowed;             // the memory belongs to the application
};

int yk_cpu_segment_new(uint32_t device, int kind, uint64_t bytes, void **segment)
{
	struct held *h;
	struct yk_segment *s;
	uint64_t all;

	(void)kind; // all memory is host memory
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (device >= yk_cpu_devices())
		return yk_cpu_fail(YOKE_ENODEV, "cpu:%u: no such device", device);
	yk_team_use(device);
	h = malloc(sizeof *h);
	if (!h)
		return YOKE_ENOMEM;
	h->borrowed = false;
	s = &h->segment;
	if (bytes <= LARGE - YK_SEGMENT_ALIGN) { // rounded up it stays below LARGE, as free expects
		s->bytes = (bytes + !bytes + YK_SEGMENT_ALIGN - 1) / YK_SEGMENT_ALIGN *
			   YK_SEGMENT_ALIGN;
		s->base = aligned_alloc(YK_SEGMENT_ALIGN, s->bytes);
		if (!s->base)
			goto fail;
	} else {
		char *raw;
		size_t head;
		// reserve room to align to a huge page; the excess is unmapped
		if (__builtin_add_overflow(bytes, (uint64_t)2 * LARGE - 1, &all))
			goto fail;
		s->bytes = all - LARGE - all % LARGE;
		all = s->bytes + LARGE;
		raw = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (raw == MAP_FAILED)
			goto fail;
		head = (size_t)(-(uintptr_t)raw % LARGE);
		s->base = raw + head;
		if (head)
			munmap(raw, head);
		if (LARGE - head)
			munmap(s->base + s->bytes, LARGE - head);
#ifdef MADV_HUGEPAGE
		madvise(s->base, s->bytes, MADV_HUGEPAGE); // failure only costs speed
#endif
		// The pages stay untouched: the system allocates each on the NUMA node of the
		// thread that first writes it, which is the node whose threads compute that part.
	}
	*segment = h;
	return 0;
fail:
	free(h);
	return yk_cpu_fail(YOKE_ENOMEM, "the system could not allocate %llu bytes",
			   (unsigned long long)bytes);
}

int yk_cpu_segment_wrap(uint32_t device, void *memory, uint64_t bytes, void **segment)
{
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (device >= yk_cpu_devices() || (uintptr_t)memory % YK_SEGMENT_ALIGN)
		return YOKE_EUNSUPPORTED;
	struct held *h = malloc(sizeof *h);
	if (!h)
		return YOKE_ENOMEM;
	*h = (struct held){ .segment = { .base = memory, .bytes = bytes }, .borrowed = true };
	*segment = h;
	return 0;
}

void yk_cpu_segment_free(uint32_t device, void *segment)
{
	struct held *h = segment;

	(void)device;
	if (!h)
		return;
	if (h->segment.bytes < LARGE && !h->borrowed)
		free(h->segment.base);
	else if (!h->borrowed)
		munmap(h->segment.base, h->segment.bytes);
	free(h);
}

void *yk_cpu_segment_host(void *segment)
{
	return ((struct yk_segment *)segment)->base;
}

// ---- bytes ----

static bool fits(const struct yk_segment *s, uint64_t offset, uint64_t bytes)
{
	return offset <= s->bytes && bytes <= s->bytes - offset;
}

static int outside(const char *what, uint64_t offset, uint64_t bytes)
{
	return yk_cpu_fail(YOKE_ERANGE, "%s of %llu bytes at %llu exceeds the segment", what,
			   (unsigned long long)bytes, (unsigned long long)offset);
}

// Bytes per work item of copies and fills: one thread cannot use the full memory bandwidth.
enum { STRIP = 1 << 20 };

struct strip {
	char *to;
	const char *from; // NULL: fill
	uint64_t bytes, word;
};

static void strip(void *arg, int64_t item)
{
	const struct strip *s = arg;
	uint64_t at = (uint64_t)item * STRIP;
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

int yk_cpu_put(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes)
{
	struct yk_segment *s = segment;

	(void)queue;
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (!fits(s, offset, bytes))
		return outside("put", offset, bytes);
	// divided like the kernels that read it, so that pages are first touched on their nodes
	if (bytes >= LARGE && yk_team_nodes() > 1)
		strips(&(struct strip){ s->base + offset, from, bytes, 0 });
	else if (bytes)
		memcpy(s->base + offset, from, bytes);
	return 0;
}

int yk_cpu_get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	struct yk_segment *s = segment;

	(void)queue;
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (!fits(s, offset, bytes))
		return outside("get", offset, bytes);
	if (bytes)
		memcpy(to, s->base + offset, bytes);
	return 0;
}

int yk_cpu_copy(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		uint64_t bytes)
{
	struct yk_segment *t = to, *f = from;
	struct strip s;

	(void)queue;
	if (yk_cpu_forked())
		return YOKE_EFORK;
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

int yk_cpu_fill(void *queue, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		uint32_t pattern_bytes)
{
	struct yk_segment *t = segment;
	struct strip s;

	(void)queue;
	if (yk_cpu_forked())
		return YOKE_EFORK;
	if (!fits(t, offset, bytes))
		return outside("fill", offset, bytes);
	if ((pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 &&
	     pattern_bytes != 8) ||
	    bytes % pattern_bytes)
		return yk_cpu_fail(YOKE_EINVAL, "cannot fill %llu bytes with a pattern of %u",
				   (unsigned long long)bytes, pattern_bytes);
	s = (struct strip){ t->base + offset, NULL, bytes, 0 };
	for (uint32_t i = 0; i < 8; i += pattern_bytes)
		memcpy((char *)&s.word + i, pattern, pattern_bytes);
	strips(&s);
	return 0;
}
