// SPDX-License-Identifier: Apache-2.0
// XXH64 through libxxhash: of one block, or incrementally.
#include "config.h"

#include <string.h>

#define XXH_STATIC_LINKING_ONLY // the size of a state
#include <xxhash.h>

#include "base/endian.h"
#include "base/hash.h"

uint64_t yk_hash(const void *data, size_t bytes, uint64_t seed)
{
	return XXH64(data, bytes, seed);
}

uint64_t yk_hash_numbers(const void *data, size_t width, size_t n, uint64_t seed)
{
	if (!YK_HOST_BIG)
		return yk_hash(data, width * n, seed);
	XXH64_state_t s;
	char block[4096];
	XXH64_reset(&s, seed);
	for (size_t at = 0, size; at < width * n; at += size) {
		// whole numbers: widths are powers of 2
		size = width * n - at < sizeof block ? width * n - at : sizeof block;
		memcpy(block, (const char *)data + at, size);
		yk_le(block, width, size / width);
		XXH64_update(&s, block, size);
	}
	return XXH64_digest(&s);
}

struct yk_hash_state *yk_hash_new(uint64_t seed)
{
	XXH64_state_t *s = XXH64_createState();
	if (s)
		XXH64_reset(s, seed);
	return (struct yk_hash_state *)s;
}

void yk_hash_add(struct yk_hash_state *s, const void *data, size_t bytes)
{
	if (bytes)
		XXH64_update((XXH64_state_t *)s, data, bytes);
}

uint64_t yk_hash_end(struct yk_hash_state *s)
{
	uint64_t h = XXH64_digest((XXH64_state_t *)s);
	XXH64_freeState((XXH64_state_t *)s);
	return h;
}
