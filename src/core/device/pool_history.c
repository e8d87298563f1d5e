// SPDX-License-Identifier: Apache-2.0
// The history of a pool: the ring of events and the tables of blocks and segments they apply to.
#include "config.h"

#include "device/pool_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

const char *const yk_moment_name[YK_MOMENT_KINDS] = { "alloc", "free", "segment", "release",
						      "trim",  "move", "oom" };

// ---- tables ----

static size_t place_of(const struct yk_held_table *t, uint64_t segment, uint64_t offset)
{
	const uint64_t key[2] = { segment, offset };
	return yk_hash(key, sizeof key, 0) & (t->size - 1);
}

// The slot of the block, or the free slot where it would go.
static struct yk_held *find(const struct yk_held_table *t, uint64_t segment, uint64_t offset)
{
	size_t i = place_of(t, segment, offset);
	while (t->at[i].used && (t->at[i].segment != segment || t->at[i].offset != offset))
		i = (i + 1) & (t->size - 1);
	return &t->at[i];
}

const struct yk_held *yk_held_find(const struct yk_held_table *t, uint64_t segment, uint64_t offset)
{
	const struct yk_held *h = t->size ? find(t, segment, offset) : NULL;
	return h && h->used ? h : NULL;
}

static bool grow(struct yk_held_table *t)
{
	struct yk_held_table more = { .size = t->size ? 2 * t->size : 256 };
	if (2 * (t->n + 1) <= t->size)
		return true;
	if (!(more.at = calloc(more.size, sizeof *more.at)))
		return false;
	for (size_t i = 0; i < t->size; i++)
		if (t->at[i].used)
			*find(&more, t->at[i].segment, t->at[i].offset) = t->at[i];
	free(t->at);
	t->at = more.at;
	t->size = more.size;
	return true;
}

static bool put(struct yk_held_table *t, struct yk_held h)
{
	if (!grow(t))
		return false;
	struct yk_held *at = find(t, h.segment, h.offset);
	t->n += !at->used;
	h.used = true;
	*at = h;
	return true;
}

// Removes a block; later entries of its probe sequence are shifted up (Knuth, algorithm 6.4R).
static void take(struct yk_held_table *t, uint64_t segment, uint64_t offset)
{
	struct yk_held *h = t->size ? find(t, segment, offset) : NULL;
	if (!h || !h->used)
		return;
	const size_t mask = t->size - 1;
	size_t hole = (size_t)(h - t->at);
	for (size_t i = (hole + 1) & mask; t->at[i].used; i = (i + 1) & mask) {
		const size_t home = place_of(t, t->at[i].segment, t->at[i].offset);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->at[hole] = t->at[i];
		hole = i;
	}
	t->at[hole].used = false;
	t->n--;
}

static bool segment_put(struct yk_held_table *t, uint64_t serial, uint64_t bytes)
{
	if (yk_grow(&t->segment, &t->segment_cap, t->segments + 1, sizeof *t->segment) < 0)
		return false;
	t->segment[t->segments++] = (struct yk_part_of){ serial, bytes };
	return true;
}

static void segment_take(struct yk_held_table *t, uint64_t serial)
{
	size_t i = 0;
	while (i < t->segments && t->segment[i].serial != serial)
		i++;
	if (i < t->segments)
		t->segment[i] = t->segment[--t->segments];
}

bool yk_held_apply(struct yk_held_table *t, const struct yk_moment *m)
{
	const struct yk_held *old;
	struct yk_held moved;
	switch (m->kind) {
	case YK_MOMENT_ALLOC:
		return put(t, (struct yk_held){ m->segment, m->offset, m->bytes, m->ns, m->who,
						true });
	case YK_MOMENT_FREE: take(t, m->segment, m->offset); return true;
	case YK_MOMENT_SEGMENT: return segment_put(t, m->segment, m->bytes);
	case YK_MOMENT_RELEASE: segment_take(t, m->segment); return true;
	case YK_MOMENT_MOVE:
		if (!(old = yk_held_find(t, m->segment, m->offset)))
			return true;
		moved = *old;
		take(t, m->segment, m->offset);
		moved.segment = m->to_segment;
		moved.offset = m->to_offset;
		return put(t, moved);
	}
	return true;
}

void yk_held_fini(struct yk_held_table *t)
{
	free(t->at);
	free(t->segment);
	*t = (struct yk_held_table){ 0 };
}

bool yk_held_copy(struct yk_held_table *to, const struct yk_held_table *from)
{
	*to = *from;
	to->segment_cap = from->segments;
	to->at = malloc((from->size + 1) * sizeof *to->at);
	to->segment = malloc((from->segments + 1) * sizeof *to->segment);
	if (!to->at || !to->segment) {
		yk_held_fini(to);
		return false;
	}
	if (from->size)
		memcpy(to->at, from->at, from->size * sizeof *to->at);
	if (from->segments)
		memcpy(to->segment, from->segment, from->segments * sizeof *to->segment);
	return true;
}

// ---- requesters ----

static const char *text(const char *s)
{
	return s ? s : "";
}

static bool is_who(const struct yk_who *a, const struct yk_who *b)
{
	return !strcmp(a->op, text(b->op)) && !strcmp(a->range, text(b->range)) &&
	       !strcmp(a->site, text(b->site));
}

static uint64_t hash_of(const struct yk_who *w)
{
	const char *part[] = { text(w->op), text(w->range), text(w->site) };
	uint64_t h = 0;
	for (size_t i = 0; i < 3; i++)
		h = yk_hash(part[i], strlen(part[i]) + 1, h);
	return h;
}

static bool index_grow(struct yk_history *h)
{
	const size_t size = h->index_size ? 2 * h->index_size : 64;
	uint32_t *index;
	if (2 * (h->whos + 1) <= h->index_size)
		return true;
	if (!(index = calloc(size, sizeof *index)))
		return false;
	for (size_t i = 0; i < h->whos; i++) {
		size_t at = hash_of(&h->who[i]) & (size - 1);
		while (index[at])
			at = (at + 1) & (size - 1);
		index[at] = (uint32_t)i + 1;
	}
	free(h->index);
	h->index = index;
	h->index_size = size;
	return true;
}

// The index of a requester; 0, "unknown", if there is no memory.
static uint32_t number_of(struct yk_history *h, const struct yk_who *w)
{
	if (!index_grow(h))
		return 0;
	size_t at = hash_of(w) & (h->index_size - 1);
	for (; h->index[at]; at = (at + 1) & (h->index_size - 1))
		if (is_who(&h->who[h->index[at] - 1], w))
			return h->index[at] - 1;
	if (yk_grow(&h->who, &h->who_cap, h->whos + 1, sizeof *h->who) < 0)
		return 0;
	const struct yk_who kept = { yk_arena_strdup(&h->text, text(w->op)),
				     yk_arena_strdup(&h->text, text(w->range)),
				     yk_arena_strdup(&h->text, text(w->site)) };
	if (!kept.op || !kept.range || !kept.site)
		return 0;
	h->who[h->whos++] = kept;
	h->index[at] = (uint32_t)h->whos;
	return (uint32_t)h->whos - 1;
}

// ---- the ring ----

struct yk_history *yk_history_new(size_t events)
{
	struct yk_history *h = calloc(1, sizeof *h);
	if (!h || !(h->ring = malloc(events * sizeof *h->ring))) {
		free(h);
		return NULL;
	}
	h->cap = events;
	number_of(h, &(struct yk_who){ "", "", "" });
	if (!h->whos) {
		yk_history_free(h);
		return NULL;
	}
	return h;
}

void yk_history_free(struct yk_history *h)
{
	if (!h)
		return;
	yk_held_fini(&h->first);
	yk_held_fini(&h->now);
	yk_arena_fini(&h->text);
	free(h->who);
	free(h->index);
	free(h->ring);
	free(h);
}

void yk_history_note(struct yk_history *h, struct yk_moment m, const struct yk_who *who)
{
	if (h->failed)
		return;
	m.ns = yk_nanoseconds();
	if (who)
		m.who = number_of(h, who);
	if (h->n == h->cap) { // the ring is full: drop the oldest event
		h->failed = !yk_held_apply(&h->first, &h->ring[h->next]);
		h->overflowed++;
	} else {
		h->n++;
	}
	h->ring[h->next] = m;
	h->next = (h->next + 1) % h->cap;
	h->failed |= !yk_held_apply(&h->now, &m);
}
