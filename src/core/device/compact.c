// SPDX-License-Identifier: Apache-2.0
// Compaction, the pool's last resort when free memory suffices but is fragmented: copies movable
// blocks to free chunks elsewhere and updates their owners' pointers.
//
// A window is a run of adjacent chunks of one segment that are free or movable.  The cheapest
// option is tried first: the window of the requested size with the fewest bytes in blocks; if no
// segment is that large, whole segments, which then return to the device.  A block is copied on the
// queue of its context, after all work that uses it; its old chunk is stamped with an event after
// the copy.
#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "device/pool_priv.h"

enum { TRIES = 4 }; // windows tried, in order of bytes in blocks

struct window {
	struct yk_chunk *first;
	uint32_t chunks;
	uint64_t live; // bytes in blocks, all to be copied
};

struct move {
	struct yk_chunk *from, *to;
};

struct moves {
	struct move *move;
	size_t n, cap;
};

static bool may_move(const struct yk_chunk *c, const void *group)
{
	// check the group first: another group's owner pointer must not be read
	return c->free || (c->block.group == group && c->block.owner);
}

// The cheapest window of a segment among those with more than `above` bytes in blocks.
static bool find_in(const struct yk_pool_segment *s, uint64_t bytes, const void *group,
		    uint64_t above, struct window *best)
{
	struct window w = { .first = s->first };
	uint64_t size = 0;
	bool found = false;
	for (struct yk_chunk *end = s->first; end; end = end->next) {
		if (!may_move(end, group)) {
			w = (struct window){ .first = end->next };
			size = 0;
			continue;
		}
		size += end->block.bytes;
		w.live += end->free ? 0 : end->block.bytes;
		w.chunks++;
		while (w.first != end && size - w.first->block.bytes >= bytes) {
			size -= w.first->block.bytes;
			w.live -= w.first->free ? 0 : w.first->block.bytes;
			w.chunks--;
			w.first = w.first->next;
		}
		if (size >= bytes && w.live > above && w.live < best->live) {
			*best = w;
			found = true;
		}
	}
	return found;
}

static bool find(const struct yk_pool *p, uint64_t bytes, const void *group, uint64_t above,
		 struct window *best)
{
	bool found = false;
	best->live = UINT64_MAX;
	for (const struct yk_pool_segment *s = p->segments; s; s = s->next)
		if (s->bytes >= bytes)
			found |= find_in(s, bytes, group, above, best);
	return found;
}

// Reserves a free chunk outside the window for each block of the window.
static bool find_holes(struct yk_pool *p, const struct window *w, struct yk_queue *q,
		       struct moves *m)
{
	struct yk_chunk *c = w->first;
	bool good = true;
	for (uint32_t i = 0; i < w->chunks; i++, c = c->next)
		if (c->free)
			yk_pool_hide(p, c);
	c = w->first;
	for (uint32_t i = 0; i < w->chunks && good; i++, c = c->next) {
		if (c->free)
			continue;
		struct yk_chunk *to = NULL;
		if (yk_grow(&m->move, &m->cap, m->n + 1, sizeof *m->move) == 0)
			to = yk_pool_lookup(p, c->block.bytes, q, false, true);
		good = to != NULL;
		if (!good)
			break;
		yk_pool_split(p, to, c->block.bytes);
		m->move[m->n++] = (struct move){ c, to };
	}
	c = w->first; // chunks were split outside the window, so it is unchanged
	for (uint32_t i = 0; i < w->chunks; i++, c = c->next)
		if (c->free)
			yk_pool_show(p, c);
	return good;
}

static void give_back(struct yk_pool *p, struct moves *m)
{
	while (m->n)
		yk_pool_free_chunk(p, m->move[--m->n].to);
}

// Enqueues the copies; false, without any change to the pool, if one cannot be enqueued.
static bool copy_all(const struct moves *m, struct yk_queue *q)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct yk_block *from = &m->move[i].from->block, *to = &m->move[i].to->block;
		if (yk_pool_claim(m->move[i].to, q) < 0 ||
		    yk_queue_copy(q, to->segment, to->offset, from->segment, from->offset,
				  from->bytes) < 0)
			return false;
	}
	return true;
}

static void hand_over(struct yk_pool *p, struct moves *m, struct yk_event *done)
{
	for (size_t i = 0; i < m->n; i++) {
		struct yk_chunk *from = m->move[i].from, *to = m->move[i].to;
		to->block.owner = from->block.owner;
		to->block.group = from->block.group;
		*to->block.owner = &to->block;
		from->block.owner = NULL;
		yk_pool_count_free(p, from);
		yk_pool_count_alloc(p, to);
		if (p->history)
			yk_history_note(p->history, (struct yk_moment){ .kind = YK_MOMENT_MOVE,
				.segment = from->segment->serial, .offset = from->block.offset,
				.bytes = to->block.bytes, .to_segment = to->segment->serial,
				.to_offset = to->block.offset }, NULL);
		p->stats.moved_bytes += to->block.bytes;
		if (done->handle)
			yk_chunk_stamp(from, yk_event_ref(done));
		yk_pool_free_chunk(p, from);
	}
	p->stats.num_compactions++;
}

// Moves all blocks out of a window; false: nothing has changed.
static bool empty(struct yk_pool *p, const struct window *w, struct yk_queue *q)
{
	struct moves m = { 0 };
	struct yk_event *done = NULL;
	bool good = find_holes(p, w, q, &m);
	if (good && copy_all(&m, q))
		good = yk_event_try(q, &done) == 0;
	else
		good = false;
	if (good) {
		hand_over(p, &m, done);
		yk_event_unref(done);
	} else {
		yk_queue_drain(q); // enqueued copies may still write to these chunks
		give_back(p, &m);
	}
	free(m.move);
	return good;
}

// The window of a whole segment; true if all of it is movable and some is in use.
static bool whole(const struct yk_pool_segment *s, const void *group, struct window *w)
{
	struct yk_chunk *c = s->first;
	*w = (struct window){ .first = c, .live = s->live };
	for (; c && may_move(c, group); c = c->next)
		w->chunks++;
	return !c && w->live;
}

// Empties whole segments, those with the fewest bytes in use first, and returns them until `bytes`
// are returned.
static bool empty_segments(struct yk_pool *p, uint64_t bytes, struct yk_queue *q,
			   const void *group)
{
	uint64_t back = 0;
	while (back < bytes) {
		struct window best = { .live = UINT64_MAX }, w;
		for (const struct yk_pool_segment *s = p->segments; s; s = s->next)
			if (whole(s, group, &w) && w.live < best.live)
				best = w;
		if (best.live == UINT64_MAX || !empty(p, &best, q))
			return false;
		uint64_t more = yk_pool_trim_locked(p);
		if (!more) // the device does not respond
			return false;
		back += more;
	}
	return true;
}

// Makes copies wait for uploads on the other queue.
static bool join(const struct yk_movable *m)
{
	struct yk_event *e = NULL;
	if (m->up == m->queue)
		return true;
	bool good = yk_event_try(m->up, &e) == 0 && yk_event_before(e, m->queue) == 0;
	yk_event_unref(e);
	return good;
}

bool yk_pool_compact(struct yk_pool *p, uint64_t bytes, const struct yk_movable *m)
{
	uint64_t reserved = p->stats.reserved_bytes.current,
		 unused = reserved - p->stats.allocated_bytes.current, above = 0;
	bool good = false, fits = false;
	struct window w;
	if (unused < bytes || !join(m)) // compaction cannot help
		return false;
	for (int i = 0; i < TRIES && !good && find(p, bytes, m->group, above, &w); i++) {
		fits = true;
		above = w.live;
		good = empty(p, &w, m->queue);
	}
	if (!good && !fits)
		good = empty_segments(p, bytes, m->queue, m->group);
	yk_info("pool", "%s: %llu of %llu reserved bytes are free but fragmented: compaction %s",
		p->device->id, (unsigned long long)unused, (unsigned long long)reserved,
		good ? "made room" : "made no room");
	return good;
}
