// SPDX-License-Identifier: Apache-2.0
// Memory pool: carves a device's raw segments into blocks and reuses them.  A freed block belongs
// to the queue that used it last; another queue may take it only after an event.
#ifndef YK_POOL_H
#define YK_POOL_H

#include "device/block.h"
#include "device/device.h"

struct yk_history;
struct yk_pool_stats;

// Named as in PyTorch: current, peak, and the totals ever allocated and freed.  Active memory
// equals allocated memory, because a freed block can be reused at once.
struct yk_pool_stat {
	uint64_t current, peak, allocated, freed;
};
struct yk_pool_stats {
	struct yk_pool_stat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
	struct yk_pool_stat allocation, segment;
	uint64_t num_alloc_retries, num_ooms, hits, misses, largest_free;
	uint64_t num_compactions, moved_bytes;
};

// kind: enum yoke_segment_kind.  Thread safe.  Settings: pool (YOKE_POOL, bool: 0 gives every block
// its own segment, released when the block is freed), memory (YOKE_MEMORY, limit of bytes reserved
// per device, 0: all).
struct yk_pool *yk_pool_new(struct yk_device *, int kind);
void yk_pool_delete(struct yk_pool *); // all blocks must be free
// A block for use on q; q NULL: for immediate use by the host, so only memory that no queue still
// uses is taken.  A request of 0 bytes gets a block of the minimum size.  ENOMEM is returned after
// a trim and a retry; the message has bytes requested, free, allocated, reserved, the limit and the
// largest free block.
int yk_pool_alloc(struct yk_pool *, uint64_t bytes, struct yk_queue *q, struct yk_block **);
// What compaction may move: blocks of the group that have an owner, whose queued work is all on
// these two queues, and that nothing else accesses during the call.  Copies run on `queue`; *owner
// is set to the new block.
struct yk_movable {
	const void *group;
	struct yk_queue *queue, *up;
	const struct yk_who *who; // for the history; NULL: unknown
};
// Like yk_pool_alloc; moves blocks before it gives up (compact.c).
int yk_pool_alloc_among(struct yk_pool *, uint64_t bytes, struct yk_queue *q, struct yk_movable,
			struct yk_block **);
// The same for a block that is freed right after one launch.  Room permitting, a repeated plan gets
// the same address each time, so that graphs the driver recorded of its launches stay valid.
int yk_pool_alloc_brief(struct yk_pool *, uint64_t bytes, struct yk_queue *q, struct yk_movable,
			struct yk_block **);
// Makes the block reusable once all work enqueued on q so far is done.  e: an event after that work
// (a reference is taken if needed), or NULL: one is marked here if needed.  block NULL has no
// effect.
void yk_pool_free(struct yk_block *, struct yk_queue *q, struct yk_event *e);
// Returns free segments to the device, once its work on them is done; returns their bytes.
uint64_t yk_pool_trim(struct yk_pool *);
// Some drivers overcommit: memory is missing only when it is first used.  Returns the free segments
// of the device's pools; true if there were any, so that a retry may succeed.
bool yk_pool_make_room(struct yk_device *);
void yk_pool_stats(struct yk_pool *, struct yk_pool_stats *);
void yk_pool_reset_peaks(struct yk_pool *);
// The most bytes it may reserve: the device's memory, or the limit.
uint64_t yk_pool_capacity(const struct yk_pool *);
// The bytes it could reserve now, given the memory that other programs use.
uint64_t yk_pool_could(struct yk_pool *);
// Limits the reserved bytes from now on; returns the previous limit.
uint64_t yk_pool_limit(struct yk_pool *, uint64_t bytes);
// The bytes that a request adds to allocated_bytes, after rounding; the planner predicts with it.
uint64_t yk_pool_round(struct yk_pool *, uint64_t bytes);

// ---- history; settings memory.history, memory.events, memory.snapshot ----

// Starts or stops recording a history.  ENOMEM.
int yk_pool_record(struct yk_pool *, bool on);
bool yk_pool_is_recorded(struct yk_pool *);
// Calls fn with the history, or NULL if none is recorded, with the pool's lock held.
void yk_pool_with_history(struct yk_pool *,
			  void (*fn)(const struct yk_history *, const struct yk_pool_stats *,
				     void *),
			  void *arg);
// Writes the history to a file (include/yoke-observe.h); why: "request".  EINVAL: none is recorded.
int yk_pool_snapshot(struct yk_pool *, const char *path, const char *why);

#endif
