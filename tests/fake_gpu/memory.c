// SPDX-License-Identifier: Apache-2.0
// Device and pinned memory: ranges of reserved addresses with red zones between them, and a table
// of live allocations.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device.h"

#define RED_ZONE ((size_t)4096) // minimum gap between two blocks
#define ALIGN ((size_t)512)

// Addresses of one device; the last arena is pinned memory.
struct arena {
	char *base;
	size_t bytes, used;
	// where the search for the next block starts, so that freed blocks are not reused soon
	uintptr_t next;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct arena arenas[MAX_DEVICES + 1];
static struct fake_block *blocks; // by address
static size_t count, cap;
static unsigned peers[MAX_DEVICES]; // bits

static size_t limit(void)
{
	const char *set = fake_setting("MEMORY");

	return set ? (size_t)strtoull(set, NULL, 0) : (size_t)4 << 30;
}

// Bytes of each device that other processes use.
static size_t taken(void)
{
	const char *set = fake_setting("TAKEN");
	const size_t bytes = set ? (size_t)strtoull(set, NULL, 0) : 0;

	return bytes < limit() ? bytes : limit();
}

static int reserve(struct arena *a)
{
	if (a->base)
		return OK;
	a->bytes = 3 * limit() + ((size_t)1 << 30);
	a->base = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->base == MAP_FAILED) {
		a->base = NULL;
		return OUT_OF_MEMORY;
	}
	a->next = (uintptr_t)a->base;
	return OK;
}

// The first block that ends after an address.
static size_t find(uintptr_t at)
{
	size_t low = 0, high = count;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (blocks[middle].at + blocks[middle].bytes > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int insert(const struct fake_block *b)
{
	if (count == cap) {
		const size_t more = cap ? 2 * cap : 256;
		struct fake_block *all = realloc(blocks, more * sizeof *all);
		if (!all)
			return OUT_OF_MEMORY;
		blocks = all;
		cap = more;
	}
	const size_t i = find(b->at);
	memmove(blocks + i + 1, blocks + i, (count - i) * sizeof *blocks);
	blocks[i] = *b;
	count++;
	return OK;
}

// Free space of an arena with red zones around it, from `from` on; 0: none.
static uintptr_t room(const struct arena *a, uintptr_t from, size_t bytes)
{
	const uintptr_t end = (uintptr_t)a->base + a->bytes;

	for (size_t i = find(from);; i++) {
		const uintptr_t at = (from + RED_ZONE + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
		const uintptr_t stop = i < count && blocks[i].at < end ? blocks[i].at : end;
		if (at + bytes + RED_ZONE <= stop)
			return at;
		if (stop == end)
			return 0;
		from = blocks[i].at + blocks[i].bytes;
	}
}

int fake_alloc(int device, enum fake_kind kind, size_t bytes, void **to)
{
	struct arena *a = &arenas[kind == DEVICE_MEMORY ? device : MAX_DEVICES];
	const size_t max = kind == DEVICE_MEMORY ? limit() - taken() : limit();
	int code;

	if (!bytes)
		return INVALID_VALUE;
	pthread_rwlock_wrlock(&lock);
	if (!(code = reserve(a)) && (bytes > max || a->used > max - bytes))
		code = OUT_OF_MEMORY;
	uintptr_t at = code ? 0 : room(a, a->next, bytes);
	if (!code && !at && !(at = room(a, (uintptr_t)a->base, bytes)))
		code = OUT_OF_MEMORY;
	if (!code)
		code = insert(&(struct fake_block){ at, bytes, kind, device });
	if (!code) {
		a->used += bytes;
		a->next = at + bytes;
		*to = (void *)at;
	}
	pthread_rwlock_unlock(&lock);
	return code;
}

int fake_register(int device, void *at, size_t bytes)
{
	const uintptr_t a = (uintptr_t)at;
	int code = INVALID_VALUE;

	pthread_rwlock_wrlock(&lock);
	const size_t i = find(a);
	if (bytes && (i == count || blocks[i].at >= a + bytes))
		code = insert(&(struct fake_block){ a, bytes, REGISTERED_MEMORY, device });
	pthread_rwlock_unlock(&lock);
	return code;
}

int fake_free(void *at, enum fake_kind kind)
{
	pthread_rwlock_wrlock(&lock);
	const size_t i = find((uintptr_t)at);
	const bool there = i < count && blocks[i].at == (uintptr_t)at && blocks[i].kind == kind;
	if (there) {
		const struct fake_block b = blocks[i];
		memmove(blocks + i, blocks + i + 1, (--count - i) * sizeof *blocks);
		if (kind != REGISTERED_MEMORY) {
			const uintptr_t first = (b.at + 4095) & ~(uintptr_t)4095,
					last = (b.at + b.bytes) & ~(uintptr_t)4095;
			arenas[kind == DEVICE_MEMORY ? b.device : MAX_DEVICES].used -= b.bytes;
			if (last > first)
				madvise((void *)first, last - first, MADV_DONTNEED);
		}
	}
	pthread_rwlock_unlock(&lock);
	return there ? OK : INVALID_VALUE;
}

bool fake_block_of(const void *at, size_t bytes, struct fake_block *to)
{
	const uintptr_t a = (uintptr_t)at;

	pthread_rwlock_rdlock(&lock);
	const size_t i = find(a);
	const bool there =
		i < count && blocks[i].at <= a && bytes <= blocks[i].at + blocks[i].bytes - a;
	if (there)
		*to = blocks[i];
	pthread_rwlock_unlock(&lock);
	return there;
}

void fake_memory(int device, size_t *free_bytes, size_t *total)
{
	pthread_rwlock_rdlock(&lock);
	*total = limit();
	*free_bytes = limit() - taken() - arenas[device].used;
	pthread_rwlock_unlock(&lock);
}

void fake_peer_enable(int device, int peer)
{
	pthread_rwlock_wrlock(&lock);
	peers[device] |= 1u << peer;
	pthread_rwlock_unlock(&lock);
}

bool fake_peer_enabled(int device, int peer)
{
	pthread_rwlock_rdlock(&lock);
	const bool yes = device == peer || (peers[device] >> peer & 1);
	pthread_rwlock_unlock(&lock);
	return yes;
}

bool fake_live(int device, unsigned long address, struct fake_span *span, char *near,
	       size_t near_bytes)
{
	bool good = false;

	pthread_rwlock_rdlock(&lock);
	const size_t i = find(address);
	if (i < count && blocks[i].at <= address) {
		const struct fake_block *b = &blocks[i];
		good = b->kind != DEVICE_MEMORY || b->device == device ||
		       (peers[device] >> b->device & 1);
		if (good)
			*span = (struct fake_span){ b->at, b->bytes };
		else
			snprintf(near, near_bytes, "memory of device %d, which is no peer",
				 b->device);
	} else {
		const size_t before =
			i ? address - blocks[i - 1].at - blocks[i - 1].bytes : (size_t)-1;
		const size_t after = i < count ? blocks[i].at - address : (size_t)-1;
		if (before <= after && before < RED_ZONE)
			snprintf(near, near_bytes, "%zu bytes behind the end of %zu", before,
				 blocks[i - 1].bytes);
		else if (after < RED_ZONE)
			snprintf(near, near_bytes, "%zu bytes before the start of %zu", after,
				 blocks[i].bytes);
	}
	pthread_rwlock_unlock(&lock);
	return good;
}
