// SPDX-License-Identifier: Apache-2.0
// What the files of the pool share.  All of it is called with the pool's lock held.
#ifndef YK_POOL_PRIV_H
#define YK_POOL_PRIV_H

#include <pthread.h>

#include "device/chunk.h"
#include "device/pool_history.h"

// Where a free chunk is found, and politely asked for by requests of that class: in small segments; in
// medium ones, or what is left over in large ones; in large ones, if it is large itself.  Were they
// mixed, each step of a training run would break up what the next needs whole.  The last are small segments of
// what one launch needs: beside blocks that stay, or take turns, it would lie elsewhere each time.
#define YK_POOL_TREES 4 // by class

struct yk_pool {
	struct yk_device *device;
	int kind;
	bool off;
	uint64_t granule; // sizes and offsets are multiples
	uint64_t limit;   // of reserved bytes
	pthread_mutex_t lock; // over all that follows
	struct yk_chunk *tree[YK_POOL_TREES];
	struct yk_pool_segment *segments;
	struct yk_chunk *spare; // unused nodes, by next
	struct yk_queue *toucher;
	uint64_t serial;
	uint32_t random;
	struct yk_pool_stats stats;
	struct yk_history *history; // NULL: none is kept
};

// Notes what happens to a chunk in the history, if one is kept.
static inline void yk_pool_note(struct yk_pool *p, int kind, const struct yk_chunk *c, const struct yk_who *who)
{
	if (p->history)
		yk_history_note(p->history, (struct yk_moment){ .kind = (uint8_t)kind, .segment = c->segment->serial,
								.offset = c->block.offset, .bytes = c->block.bytes },
				who);
}

// ---- pool_record.c ----

// Of the settings: keeps a history if they ask for it; writes it where they say, once an allocation has failed.
void yk_pool_record_wanted(struct yk_pool *);
void yk_pool_failed(struct yk_pool *);

// A free chunk into and out of its tree; it stays free.
void yk_pool_show(struct yk_pool *, struct yk_chunk *);
void yk_pool_hide(struct yk_pool *, struct yk_chunk *);
// Puts a chunk that is in no tree among the free ones, joined with its neighbours; returns the whole.
struct yk_chunk *yk_pool_give(struct yk_pool *, struct yk_chunk *);
// Cuts a chunk that is in no tree to size; its rest becomes free, with the same stamps.
void yk_pool_cut(struct yk_pool *, struct yk_chunk *, uint64_t bytes);
// A free chunk of at least so many bytes, taken out of its tree.  brief: for one launch.  `all`: from anywhere rather
// than none.
struct yk_chunk *yk_pool_lookup(struct yk_pool *, uint64_t bytes, const struct yk_queue *, bool brief, bool all);
// Makes the queue wait for the other queues' work on a chunk that is ours now.
int yk_pool_claim(struct yk_chunk *, struct yk_queue *);
void yk_pool_count_alloc(struct yk_pool *, struct yk_chunk *);
void yk_pool_count_free(struct yk_pool *, struct yk_chunk *);
// Gives free segments back; returns bytes.
uint64_t yk_pool_trim_locked(struct yk_pool *);

// Moves blocks so that a request of so many bytes that found nothing may find something: true when it
// made room.
bool yk_pool_compact(struct yk_pool *, uint64_t bytes, const struct yk_movable *);

#endif
