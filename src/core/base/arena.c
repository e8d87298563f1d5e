// SPDX-License-Identifier: Apache-2.0
// Arenas: a list of chunks, each twice as large as the one before; growable arrays.
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

#define ALIGN ((size_t)16)
#define FIRST_CHUNK ((size_t)4096)
#define LARGEST_CHUNK ((size_t)1 << 20) // unless one allocation needs more

struct yk_arena_chunk {
	struct yk_arena_chunk *next; // older
	size_t bytes;                // not counting the header
	_Alignas(16) char data[];
};

static int add_chunk(struct yk_arena *a, size_t min)
{
	size_t bytes = a->chunk ? a->chunk->bytes * 2 : FIRST_CHUNK, all;
	if (bytes > LARGEST_CHUNK)
		bytes = LARGEST_CHUNK;
	if (bytes < min)
		bytes = min;
	struct yk_arena_chunk *c = NULL;
	if (!__builtin_add_overflow(bytes, sizeof *c, &all))
		c = aligned_alloc(ALIGN, all); // malloc aligns to 8 on some processors of 32 bits
	if (!c)
		return yk_fail(YOKE_ENOMEM, "no memory for a chunk of %zu bytes", bytes);
	c->next = a->chunk;
	c->bytes = bytes;
	a->chunk = c;
	a->used = 0;
	return 0;
}

void *yk_arena_alloc(struct yk_arena *a, size_t bytes)
{
	if (bytes > SIZE_MAX - ALIGN) {
		yk_fail(YOKE_ENOMEM, "no memory for a block of %zu bytes", bytes);
		return NULL;
	}
	bytes += !bytes; // allocations of 0 bytes are distinct
	bytes = (bytes + ALIGN - 1) & ~(ALIGN - 1);
	if (!a->chunk || a->chunk->bytes - a->used < bytes)
		if (add_chunk(a, bytes) < 0)
			return NULL;
	void *p = a->chunk->data + a->used;
	a->used += bytes;
	return memset(p, 0, bytes);
}

char *yk_arena_strdup(struct yk_arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = yk_arena_alloc(a, n);
	return p ? memcpy(p, s, n) : NULL;
}

static void free_chunks(struct yk_arena_chunk *c)
{
	while (c) {
		struct yk_arena_chunk *older = c->next;
		free(c);
		c = older;
	}
}

// Keeps the newest chunk, the largest except for chunks made for one big allocation.
void yk_arena_reset(struct yk_arena *a)
{
	if (a->chunk) {
		free_chunks(a->chunk->next);
		a->chunk->next = NULL;
	}
	a->used = 0;
}

void yk_arena_fini(struct yk_arena *a)
{
	free_chunks(a->chunk);
	*a = (struct yk_arena){ 0 };
}

int yk_grow_more(void *array, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap > SIZE_MAX / 2 ? n : *cap * 2, bytes;
	if (more < n)
		more = n;
	if (more < 8)
		more = 8;
	void *p = NULL;
	if (!__builtin_mul_overflow(more, size, &bytes)) {
		memcpy(&p, array, sizeof p);
		p = realloc(p, bytes);
	}
	if (!p)
		return yk_fail(YOKE_ENOMEM, "no memory for %zu elements of %zu bytes", n,
			       size);
	memcpy(array, &p, sizeof p);
	*cap = more;
	return 0;
}
