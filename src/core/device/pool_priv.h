// SPDX-License-Identifier: Apache-2.0
// Shared by the pool's files.  All functions are called with the pool's lock held.
#ifndef YK_POOL_PRIV_H
#define YK_POOL_PRIV_H

#include <pthread.h>

#include "device/chunk.h"
#include "device/pool.h"
#include "device/pool_history.h"

// The classes of requests and their trees of free chunks: small segments; medium segments, and the
// remainders of large ones; large chunks of large segments; small segments for blocks that live for
// one launch.  If the first three were mixed, each training step would split memory that the next
// step needs contiguous.  Short-lived blocks are kept apart because their address would otherwise
// change from launch to launch.
#define YK_POOL_TREES 4 // by class

struct yk_pool {
	struct yk_device *device;
	int kind;
	bool off;
	uint64_t granule; // sizes and offsets are multiples of it
	uint64_t limit;   // on reserved bytes
	pthread_mutex_t lock; // protects the following
	struct yk_chunk *tree[YK_POOL_TREES];
	struct yk_pool_segment *segments;
	struct yk_chunk *spare; // unused nodes, linked by next
	struct yk_queue *toucher;
	uint64_t serial;
	uint32_t random;
	struct yk_pool_stats stats;
	struct yk_history *history; // NULL: not recorded
};

// Records an event of a chunk, if the pool keeps a history.
static inline void yk_pool_note(struct yk_pool *p, int kind, const struct yk_chunk *c,
				const struct yk_who *who)
{
	if (p->history)
		yk_history_note(p->history,
				(struct yk_moment){ .kind = (uint8_t)kind,
						    .segment = c->segment->serial,
						    .offset = c->block.offset,
						    .bytes = c->block.bytes },
				who);
}

// ---- pool_record.c ----

// By settings: starts a history if requested; after a failed allocation writes it to the requested
// file.
void yk_pool_record_begin(struct yk_pool *);
void yk_pool_failed(struct yk_pool *);

// Adds a free chunk to its tree, or removes it; the chunk stays free.
void yk_pool_show(struct yk_pool *, struct yk_chunk *);
void yk_pool_hide(struct yk_pool *, struct yk_chunk *);
// Frees a chunk that is in no tree and merges it with free neighbours; returns the merged chunk.
struct yk_chunk *yk_pool_free_chunk(struct yk_pool *, struct yk_chunk *);
// Splits a chunk that is in no tree; the remainder becomes free, with the same stamps.
void yk_pool_split(struct yk_pool *, struct yk_chunk *, uint64_t bytes);
// A free chunk of at least so many bytes, removed from its tree.  brief: for one launch.  `all`:
// fall back to other classes.
struct yk_chunk *yk_pool_lookup(struct yk_pool *, uint64_t bytes, const struct yk_queue *,
				bool brief, bool all);
// Makes the queue wait for other queues' work on a chunk that was taken.
int yk_pool_claim(struct yk_chunk *, struct yk_queue *);
void yk_pool_count_alloc(struct yk_pool *, struct yk_chunk *);
void yk_pool_count_free(struct yk_pool *, struct yk_chunk *);
// Returns free segments to the device; returns bytes.
uint64_t yk_pool_trim_locked(struct yk_pool *);

// Moves blocks to make room for a request of so many bytes that could not be met; true if it
// succeeded.
bool yk_pool_compact(struct yk_pool *, uint64_t bytes, const struct yk_movable *);

#endif
