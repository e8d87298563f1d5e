// SPDX-License-Identifier: Apache-2.0
// Chunks of a pool's segments, and the trees that find a free chunk by size.
#ifndef YK_CHUNK_H
#define YK_CHUNK_H

#include "device/block.h"
#include "device/device.h"

// Events ("stamps") of work that may still use a free chunk: only the latest of each queue is kept.
#define YK_STAMPS 4

struct yk_pool_segment {
	void *handle;
	char *host;
	uint64_t bytes, live; // live: bytes in allocated blocks
	uint64_t serial;      // order of creation
	int class;
	struct yk_chunk *first; // by address
	struct yk_pool_segment *prev, *next;
};

// An interval of a segment; the chunks of a segment cover it without gaps.
struct yk_chunk {
	struct yk_block block; // the part that the user holds; first member, for casts
	struct yk_pool_segment *segment;
	struct yk_chunk *prev, *next;  // neighbours by address
	struct yk_chunk *left, *right; // in a tree, while free
	uint32_t priority;
	bool free;
	uint8_t nstamps;
	struct yk_event *stamp[YK_STAMPS];
};

// Treaps (Seidel and Aragon 1996) ordered by size, then by age of the segment, then by offset, so
// that the choice among chunks of equal size does not depend on addresses.
void yk_chunk_insert(struct yk_chunk **root, struct yk_chunk *);
void yk_chunk_remove(struct yk_chunk **root, struct yk_chunk *);
// The smallest chunk of at least this many bytes, or NULL.
struct yk_chunk *yk_chunk_fit(struct yk_chunk *root, uint64_t bytes);
// The next chunk in order.
struct yk_chunk *yk_chunk_after(struct yk_chunk *root, const struct yk_chunk *);
struct yk_chunk *yk_chunk_largest(struct yk_chunk *root);

// ---- stamps ----

// Drops the stamps of finished work; true if none is left.
bool yk_chunk_settle(struct yk_chunk *);
// Could the queue use the chunk without waiting for another?
bool yk_chunk_ready(struct yk_chunk *, const struct yk_queue *);
// Waits for all stamps; failed work counts as finished.  False: the device did not answer in time.
bool yk_chunk_wait(struct yk_chunk *);
// Do the stamps of both fit into one chunk?  Settles both before it returns false.
bool yk_chunk_stamps_fit(struct yk_chunk *, struct yk_chunk *);
// Adds a stamp and takes over its reference; there must be room.
void yk_chunk_stamp(struct yk_chunk *, struct yk_event *);

#endif
