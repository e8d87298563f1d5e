// SPDX-License-Identifier: Apache-2.0
// Arenas: many small allocations that are freed together.  Also growable arrays.
#ifndef YK_ARENA_H
#define YK_ARENA_H

#include <stddef.h>

struct yk_arena {
	struct yk_arena_chunk *chunk; // newest first
	size_t used;                  // bytes used in the newest chunk
};

// Zeroed bytes aligned to 16, or NULL.  An arena of all zeros is empty.
void *yk_arena_alloc(struct yk_arena *, size_t bytes);
char *yk_arena_strdup(struct yk_arena *, const char *);
// Frees all chunks but one and invalidates all allocations.
void yk_arena_reset(struct yk_arena *);
void yk_arena_fini(struct yk_arena *);

// Makes room for n elements of `size` bytes in *array (capacity *cap elements, doubled as needed).
// 0 or YOKE_ENOMEM; the array is unchanged on failure.
int yk_grow_more(void *array, size_t *cap, size_t n, size_t size);
static inline int yk_grow(void *array, size_t *cap, size_t n, size_t size)
{
	return n <= *cap ? 0 : yk_grow_more(array, cap, n, size);
}

#endif
