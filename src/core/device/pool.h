// SPDX-License-Identifier: Apache-2.0
// The pool: cuts a device's raw segments into blocks and reuses them.
// A block belongs to the queue that freed it last; another queue may take it only behind an event.
#ifndef YK_POOL_H
#define YK_POOL_H

#include "device/device.h"

struct yk_history;
struct yk_who { // that a block is for, in the history; strings are copied, NULL is ""
	const char *op, *range, *site;
};
struct yk_pool_stats;

struct yk_block {
	void *segment;   // as the backend knows it
	uint64_t offset; // bytes
	uint64_t bytes;  // usable, at least what was asked for
	struct yk_pool *pool;
	void *host;      // address of its first byte in the host, or NULL
	const void *group;       // that it was requested for; set under the pool's lock
	struct yk_block **owner; // where its holder keeps it: then requests of the group may move it; NULL:
				 // they may not.  Only the group's thread reads or writes it.
};

// PyTorch's names, each as current, peak, and sums of what was ever allocated and freed.  active is what
// is allocated: a freed block can be had again at once.
struct yk_pool_stat {
	uint64_t current, peak, allocated, freed;
};
struct yk_pool_stats {
	struct yk_pool_stat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
	struct yk_pool_stat allocation, segment;
	uint64_t num_alloc_retries, num_ooms, hits, misses, largest_free;
	uint64_t num_compactions, moved_bytes;
};

// kind: enum yoke_segment_kind.  Thread safe.  Settings: pool (YOKE_POOL, bool: 0 gives every block a
// segment of its own and returns it at once), memory (YOKE_MEMORY, bytes a device may reserve, 0: all).
struct yk_pool *yk_pool_new(struct yk_device *, int kind);
void yk_pool_delete(struct yk_pool *); // all blocks must be free
// A block for use on q; q NULL: for the host at once, so only what no queue uses any more is reused.
// 0 bytes give a block of the least size.  ENOMEM after a trim and a retry;
// the message has bytes asked for, free, allocated, reserved, limit, largest free block.
int yk_pool_alloc(struct yk_pool *, uint64_t bytes, struct yk_queue *q, struct yk_block **);
// What compaction may move: blocks of the group that have an owner, all of whose queued use is on these
// two, and which nobody uses during the call.  The copies are on `queue`; *owner is set to the new block.
struct yk_movable {
	const void *group;
	struct yk_queue *queue, *up;
	const struct yk_who *who; // for the history; NULL: nobody is said
};
// The same; before it gives up it moves blocks (compact.c).
int yk_pool_alloc_among(struct yk_pool *, uint64_t bytes, struct yk_queue *q, struct yk_movable,
			struct yk_block **);
// The same of what is freed behind one launch: where the pool has room for it, a plan that repeats finds it in the
// same place, and the driver's record of its launches holds.
int yk_pool_alloc_brief(struct yk_pool *, uint64_t bytes, struct yk_queue *q, struct yk_movable,
			struct yk_block **);
// Free for others once everything enqueued on q so far is done: e is an event that stands for that (a
// reference is taken if needed), or NULL: one is marked here when needed.  block NULL is fine.
void yk_pool_free(struct yk_block *, struct yk_queue *q, struct yk_event *e);
// Gives free segments back to the device, once the device is done with them; returns bytes.
uint64_t yk_pool_trim(struct yk_pool *);
// Some drivers promise memory that its first use does not find.  Gives back what the device's pools
// hold in reserve; true: there was something, and another try may do.
bool yk_pool_make_room(struct yk_device *);
void yk_pool_stats(struct yk_pool *, struct yk_pool_stats *);
void yk_pool_reset_peaks(struct yk_pool *);
// Bytes it may come to hold: the device's memory, or the limit set.
uint64_t yk_pool_capacity(const struct yk_pool *);
// Of those, what it could hold now: what other programs use is not to be had.
uint64_t yk_pool_could(struct yk_pool *);
// From now on it reserves so many bytes at most; returns the limit there was.
uint64_t yk_pool_limit(struct yk_pool *, uint64_t bytes);
// What a request of this many bytes is charged in allocated_bytes: the planner predicts with it.
uint64_t yk_pool_round(struct yk_pool *, uint64_t bytes);

// ---- history; settings memory.history, memory.events, memory.snapshot ----

// Keeps one from now on, or no more.  ENOMEM.
int yk_pool_record(struct yk_pool *, bool on);
bool yk_pool_is_recorded(struct yk_pool *);
// Calls fn with the history under the pool's lock; NULL: none is kept.
void yk_pool_look(struct yk_pool *, void (*fn)(const struct yk_history *, const struct yk_pool_stats *, void *),
		  void *arg);
// Writes it as a file (include/yoke-observe.h); why: "request".  EINVAL: none is kept.
int yk_pool_snapshot(struct yk_pool *, const char *path, const char *why);

#endif
