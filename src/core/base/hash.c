// SPDX-License-Identifier: Apache-2.0
// XXH64 through libxxhash: of one block, or incrementally.
#include "config.h"

#include <xxhash.h>

#include "base/hash.h"

uint64_t yk_hash(const void *data, size_t bytes, uint64_t seed)
{
	return XXH64(data, bytes, seed);
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
