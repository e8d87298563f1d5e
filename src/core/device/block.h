// SPDX-License-Identifier: Apache-2.0
// Blocks of a memory pool, as their holders see them.
#ifndef YK_BLOCK_H
#define YK_BLOCK_H

#include <stdint.h>

struct yk_pool;

struct yk_who { // the requester of a block, for the history; strings are copied, NULL counts as ""
	const char *op, *range, *site;
};

struct yk_block {
	void *segment;   // the backend's handle
	uint64_t offset; // bytes
	uint64_t bytes;  // usable, at least the requested size
	struct yk_pool *pool;
	void *host;      // host address of its first byte, or NULL
	const void *group;       // the group that requested it; set with the pool's lock held
	struct yk_block **owner; // the holder's pointer to it: requests of the group may then
				 // move the block; NULL: they may not.  Only the group's
				 // thread reads or writes it.
};

#endif
