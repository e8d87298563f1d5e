// SPDX-License-Identifier: Apache-2.0
// Chunks of a pool's segments, and the trees that find a free one by size.
#ifndef YK_CHUNK_H
#define YK_CHUNK_H

#include "device/pool.h"

// The events of work that may still use a free chunk, one a queue: a queue's latest stands for all.
#define YK_STAMPS 4

struct yk_pool_segment {
	void *handle;
	char *host;
	uint64_t bytes, live; // live: bytes in blocks that are handed out
	uint64_t serial;      // order of creation
	int class;
	struct yk_chunk *first; // by address
	struct yk_pool_segment *prev, *next;
};

// A piece of a segment; the pieces of a segment have no gaps.
struct yk_chunk {
	struct yk_block block; // what the user holds; first, so that one can be cast to the other
	struct yk_pool_segment *segment;
	struct yk_chunk *prev, *next;  // neighbours by address
	struct yk_chunk *left, *right; // in a tree, while free
	uint32_t priority;
	bool free;
	uint8_t nstamps;
	struct yk_event *stamp[YK_STAMPS];
};

// Treaps (Seidel and Aragon 1996) ordered by size, then by age of the segment and offset, so that
// the choice among equals does not depend on addresses.
void yk_chunk_insert(struct yk_chunk **root, struct yk_chunk *);
void yk_chunk_remove(struct yk_chunk **root, struct yk_chunk *);
// The least of at least this many bytes; NULL: none.
struct yk_chunk *yk_chunk_fit(struct yk_chunk *root, uint64_t bytes);
// The next one in order.
struct yk_chunk *yk_chunk_after(struct yk_chunk *root, const struct yk_chunk *);
struct yk_chunk *yk_chunk_largest(struct yk_chunk *root);

// ---- stamps ----

// Drops stamps whose work is done; true: none is left.
bool yk_chunk_settle(struct yk_chunk *);
// Could the queue use the chunk without waiting for another?
bool yk_chunk_ready(struct yk_chunk *, const struct yk_queue *);
// Waits for all of them; what failed is done as well.  False: the device did not answer in time.
bool yk_chunk_wait(struct yk_chunk *);
// Can the stamps of both be those of one chunk?  Settles both before it says no.
bool yk_chunk_stamps_fit(struct yk_chunk *, struct yk_chunk *);
// Adds a stamp and takes its reference over; there is room.
void yk_chunk_stamp(struct yk_chunk *, struct yk_event *);

#endif
