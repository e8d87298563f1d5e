// SPDX-License-Identifier: Apache-2.0
// The history of a pool: a ring of the latest events, and two tables of all blocks and segments:
// the state before the ring's first event, and the current state. Replaying the ring on the first
// table gives the second.
//
// All functions are called with the pool's lock held, or on a copy.
#ifndef YK_POOL_HISTORY_H
#define YK_POOL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "device/block.h"

enum yk_moment_kind {
	YK_MOMENT_ALLOC,
	YK_MOMENT_FREE,
	YK_MOMENT_SEGMENT,
	YK_MOMENT_RELEASE,
	YK_MOMENT_TRIM,
	YK_MOMENT_MOVE,
	YK_MOMENT_OOM,
	YK_MOMENT_KINDS
};
extern const char *const yk_moment_name[YK_MOMENT_KINDS];

struct yk_moment { // TRIM: bytes returned to the device; OOM: bytes requested
	uint64_t ns, bytes, offset, segment;
	uint64_t to_offset, to_segment; // for MOVE
	uint32_t who;
	uint8_t kind;
};

struct yk_held { // an allocated block
	uint64_t segment, offset, bytes, ns;
	uint32_t who;
	bool used; // this slot of the table is occupied
};

struct yk_held_table { // open addressing by segment and offset
	struct yk_held *at;
	size_t n, size;
	struct yk_part_of {
		uint64_t serial, bytes;
	} *segment;
	size_t segments, segment_cap;
};

struct yk_history {
	struct yk_moment *ring;
	size_t cap, n, next; // next: index in ring of the next event
	uint64_t overflowed;
	bool failed;         // a table could not grow: recording has stopped
	struct yk_held_table first, now;
	struct yk_who *who;
	size_t whos, who_cap;
	uint32_t *index; // index into who, open addressing by hash: number + 1
	size_t index_size;
	struct yk_arena text;
};

struct yk_history *yk_history_new(size_t events); // NULL: no memory
void yk_history_free(struct yk_history *);
// Appends an event that happens now: sets its ns, and its `who` if that is not NULL.
void yk_history_note(struct yk_history *, struct yk_moment, const struct yk_who *);
// The block at this address, or NULL.
const struct yk_held *yk_held_find(const struct yk_held_table *, uint64_t segment, uint64_t offset);
// Applies an event to a table, as a replay does; false: no memory.
bool yk_held_apply(struct yk_held_table *, const struct yk_moment *);
void yk_held_fini(struct yk_held_table *);
bool yk_held_copy(struct yk_held_table *to, const struct yk_held_table *from);

#endif
