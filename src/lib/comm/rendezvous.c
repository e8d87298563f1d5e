// SPDX-License-Identifier: Apache-2.0
// Rendezvous of ranks that are threads of one process; wakeups; and the memory layout that the
// ranks of a group share.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "base/system.h"
#include "comm/ranks.h"
#include "comm/segment.h"

// ---- wakeups ----

struct yk_wakeup *yk_wakeup_new(void)
{
	struct yk_wakeup *w = calloc(1, sizeof *w);
	if (w)
		atomic_init(&w->refs, 1);
	return w;
}

void yk_wakeup_unref(struct yk_wakeup *w)
{
	if (w && atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) == 1)
		free(w);
}

void yk_wakeup_ring(struct yk_wakeup *w)
{
	if (!w)
		return;
	// sequentially consistent: either the sleeper sees the change or it is counted here
	if (!atomic_load(&w->sleepers))
		return;
	atomic_fetch_add(&w->rings, 1);
	yk_word_wake(&w->rings);
}

uint32_t yk_wakeup_register(struct yk_wakeup *w)
{
	atomic_fetch_add(&w->sleepers, 1);
	return atomic_load(&w->rings);
}

void yk_wakeup_deregister(struct yk_wakeup *w)
{
	atomic_fetch_sub(&w->sleepers, 1);
}

void yk_wakeup_sleep(struct yk_wakeup *w, uint32_t rings, uint64_t nanoseconds)
{
	if (atomic_load(&w->rings) == rings)
		yk_word_wait(&w->rings, rings, nanoseconds);
}

// ---- areas ----

enum { LINE = 128 };

static size_t up(size_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

static size_t link_bytes(uint32_t ring)
{
	return up(sizeof(struct yk_rank_link) + ring);
}

static size_t links_at(uint32_t ranks)
{
	return up(sizeof(struct yk_area) + ranks * sizeof(struct yk_rank_slot));
}

size_t yk_area_bytes(uint32_t ranks, uint32_t ring)
{
	return links_at(ranks) + 2 * (size_t)ranks * ranks * link_bytes(ring);
}

void yk_area_init(struct yk_area *a, uint32_t ranks, uint32_t ring)
{
	a->ranks = ranks;
	a->ring = ring;
}

struct yk_rank_link *yk_rendezvous_link(const struct yk_rendezvous *h, bool sends, uint32_t from,
					uint32_t to)
{
	const size_t number = ((size_t)sends * h->ranks + from) * h->ranks + to;
	return (struct yk_rank_link *)((char *)h->area + links_at(h->ranks) +
				       number * link_bytes(h->area->ring));
}

void yk_area_break(struct yk_area *a, int code, const char *fmt, va_list ap)
{
	int whole = 0;
	if (!atomic_compare_exchange_strong(&a->broken, &whole, 1))
		return;
	a->code = code;
	yk_vsnprintf(a->why, sizeof a->why, fmt, ap);
	atomic_store(&a->broken, 2);
}

// ---- rendezvous ----

// for ranks that are threads; they send messages only if dist.algorithm or dist.link requires it
enum { RING = 4096 };

static struct yk_rendezvous *rendezvous_new(uint32_t ranks)
{
	struct yk_rendezvous *h = calloc(1, sizeof *h);
	if (h)
		h->wakeup = calloc(ranks, sizeof *h->wakeup);
	if (h && h->wakeup)
		h->box = calloc((size_t)ranks * ranks, sizeof *h->box);
	if (h && h->box) {
		h->ranks = ranks;
		return h;
	}
	if (h)
		free(h->wakeup);
	free(h);
	return NULL;
}

struct yk_rendezvous *yk_rendezvous_new(uint32_t ranks)
{
	const size_t bytes = yk_area_bytes(ranks, RING);
	struct yk_rendezvous *h = rendezvous_new(ranks);
	if (!h)
		return NULL;
	if (!(h->area = aligned_alloc(LINE, bytes))) {
		free(h->wakeup);
		free(h->box);
		free(h);
		return NULL;
	}
	memset(h->area, 0, bytes);
	yk_area_init(h->area, ranks, RING);
	h->slot = h->area->slot;
	atomic_init(&h->refs, (int)ranks);
	return h;
}

struct yk_rendezvous *yk_rendezvous_apart(struct yk_segment *segment, struct yk_area *area,
					  struct yk_wakeup *const *wakeup)
{
	struct yk_rendezvous *h = rendezvous_new(area->ranks);
	if (!h)
		return NULL;
	h->apart = true;
	h->area = area;
	h->slot = area->slot;
	h->segment = yk_segment_ref(segment);
	for (uint32_t i = 0; i < h->ranks; i++)
		atomic_init(&h->wakeup[i], wakeup[i]);
	atomic_init(&h->refs, 1);
	return h;
}

void yk_rendezvous_unref(struct yk_rendezvous *h)
{
	if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (uint32_t i = 0; i < h->ranks && !h->apart; i++)
		yk_wakeup_unref(atomic_load(&h->wakeup[i]));
	if (h->apart)
		yk_segment_unref(h->segment);
	else
		free(h->area);
	free(h->wakeup);
	free(h->box);
	free(h);
}

void yk_rendezvous_break(struct yk_rendezvous *h, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	yk_area_break(h->area, code, fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < h->ranks; i++)
		yk_wakeup_ring(atomic_load(&h->wakeup[i]));
}
