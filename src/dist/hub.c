// SPDX-License-Identifier: Apache-2.0
// Hubs: what the ranks of a group in one memory share; and bells.
#include "config.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "dist/ranks.h"

// ---- bells ----

struct yk_bell *yk_bell_new(void)
{
	struct yk_bell *b = calloc(1, sizeof *b);
	if (b)
		atomic_init(&b->refs, 1);
	return b;
}

void yk_bell_unref(struct yk_bell *b)
{
	if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
		free(b);
}

void yk_bell_ring(struct yk_bell *b)
{
	if (!b)
		return;
	// either the sleeper sees this ring or it is seen here: both are sequentially consistent
	atomic_fetch_add(&b->rings, 1);
	if (atomic_load(&b->sleepers))
		syscall(SYS_futex, &b->rings, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void yk_bell_sleep(struct yk_bell *b, uint32_t rings, uint64_t nanoseconds)
{
	const struct timespec most = { .tv_sec = (time_t)(nanoseconds / 1000000000u),
				       .tv_nsec = (long)(nanoseconds % 1000000000u) };
	atomic_fetch_add(&b->sleepers, 1);
	if (atomic_load(&b->rings) == rings)
		syscall(SYS_futex, &b->rings, FUTEX_WAIT, rings, &most, NULL, 0);
	atomic_fetch_sub(&b->sleepers, 1);
}

// ---- hubs ----

struct yk_hub *yk_hub_new(uint32_t ranks)
{
	struct yk_hub *h = calloc(1, sizeof *h);
	if (!h)
		return NULL;
	const size_t bytes = ranks * sizeof *h->seat;
	h->seat = aligned_alloc(_Alignof(struct yk_seat), bytes);
	h->box = calloc((size_t)ranks * ranks, sizeof *h->box);
	if (!h->seat || !h->box) {
		free(h->seat);
		free(h->box);
		free(h);
		return NULL;
	}
	for (uint32_t i = 0; i < ranks; i++)
		h->seat[i] = (struct yk_seat){ .came = 0 };
	h->ranks = ranks;
	atomic_init(&h->refs, (int)ranks);
	return h;
}

void yk_hub_unref(struct yk_hub *h)
{
	if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (uint32_t i = 0; i < h->ranks; i++)
		yk_bell_unref(atomic_load(&h->seat[i].bell));
	free(h->seat);
	free(h->box);
	free(h);
}

void yk_hub_break(struct yk_hub *h, int code, const char *fmt, ...)
{
	int whole = 0;
	va_list ap;
	if (!atomic_compare_exchange_strong(&h->broken, &whole, 1))
		return;
	h->code = code;
	va_start(ap, fmt);
	vsnprintf(h->why, sizeof h->why, fmt, ap);
	va_end(ap);
	atomic_store(&h->broken, 2);
	for (uint32_t i = 0; i < h->ranks; i++)
		yk_bell_ring(atomic_load(&h->seat[i].bell));
}
