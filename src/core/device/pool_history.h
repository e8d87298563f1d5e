// SPDX-License-Identifier: Apache-2.0
// The history of a pool: the last events in a ring, and beside it tables of all blocks and segments, those of
// now and those before the ring's first event.  The first, with the events in the ring, gives the second.
//
// All of it is called with the pool's lock held, or on a copy.
#ifndef YK_POOL_HISTORY_H
#define YK_POOL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "device/pool.h"

enum yk_moment_kind {
	YK_MOMENT_ALLOC, YK_MOMENT_FREE, YK_MOMENT_SEGMENT, YK_MOMENT_RELEASE, YK_MOMENT_TRIM, YK_MOMENT_MOVE,
	YK_MOMENT_OOM, YK_MOMENT_KINDS
};
extern const char *const yk_moment_name[YK_MOMENT_KINDS];

struct yk_moment { // TRIM: bytes that went back; OOM: bytes asked for
	uint64_t ns, bytes, offset, segment;
	uint64_t to_offset, to_segment; // of MOVE
	uint32_t who;
	uint8_t kind;
};

struct yk_held { // a block that is handed out
	uint64_t segment, offset, bytes, ns;
	uint32_t who;
	bool used; // this place of the table is taken
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
	size_t cap, n, next; // next: where the next event goes
	uint64_t overflowed;
	bool failed;         // there was no memory for a table: it is not kept any more
	struct yk_held_table first, now;
	struct yk_who *who;
	size_t whos, who_cap;
	uint32_t *index; // of who, open addressing by hash: number + 1
	size_t index_size;
	struct yk_arena text;
};

struct yk_history *yk_history_new(size_t events); // NULL: no memory
void yk_history_free(struct yk_history *);
// The event is now: its ns is set, and `who` if it is not NULL.
void yk_history_note(struct yk_history *, struct yk_moment, const struct yk_who *);
// The block there; NULL: there is none.
const struct yk_held *yk_held_find(const struct yk_held_table *, uint64_t segment, uint64_t offset);
// Puts an event into a table, as a replay does; false: there is no memory.
bool yk_held_apply(struct yk_held_table *, const struct yk_moment *);
void yk_held_fini(struct yk_held_table *);
bool yk_held_copy(struct yk_held_table *to, const struct yk_held_table *from);

#endif
