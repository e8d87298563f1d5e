// SPDX-License-Identifier: Apache-2.0
// Memory of a caller that encodes: scratch buffers, and a cache of words and their ids, which is
// direct-mapped, and emptied when its pools are full.
#ifndef YK_ENCODE_CACHE_H
#define YK_ENCODE_CACHE_H

#include "tokenizer/model.h"
#include "tokenizer/steps.h"

enum { YK_ENCODE_ENTRIES = 1 << 14, YK_ENCODE_POOL_BYTES = 1 << 20, YK_ENCODE_POOL_IDS = 1 << 18 };

struct yk_encode_entry {
	uint64_t hash;
	uint32_t at, first;
	uint16_t bytes, ids; // bytes 0: unused
};

struct yk_encode_cache {
	struct yk_scratch scratch;
	struct yk_string normal, swap;
	struct yk_pieces pieces, pieces_swap;
	struct yk_encode_entry *entry; // NULL: no memory for a cache
	char *bytes;
	int32_t *ids;
	uint32_t used, used_ids;
};

struct yk_encode_cache *yk_encode_cache_new(void); // NULL: no memory
void yk_encode_cache_free(struct yk_encode_cache *);  // NULL is allowed

#endif
