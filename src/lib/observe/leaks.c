// SPDX-License-Identifier: Apache-2.0
// Finds leaks of device memory: records allocation history on request and reports blocks that stay
// allocated.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sized.h"
#include "device/pool_history.h"
#include "graph/context.h"
#include "observe/memory.h"
#include "yoke-observe.h"

#define WARNED 100000000 // warns at this many bytes above the initial use
#define LISTED 1000000   // min size of a listed block, in bytes

int yoke_memory_record(int on)
{
	struct yoke_context *ctx = yk_current();
	return ctx ? yk_pool_record(ctx->device->pool, on) : yk_error_last();
}

int yoke_memory_snapshot(const char *path)
{
	struct yoke_context *ctx = yk_current();
	const int err = ctx ? yk_require(path, "path") : yk_error_last();
	return err ? err : yk_pool_snapshot(ctx->device->pool, path, "request");
}

struct yoke_leaks {
	struct yk_pool *pool;
	bool began; // the history
	uint64_t ns, begin;
};

yoke_leaks *yoke_leaks_begin(void)
{
	struct yk_pool_stats s;
	struct yoke_context *ctx = yk_current();
	yoke_leaks *l = ctx ? calloc(1, sizeof *l) : NULL;
	if (!l) {
		if (ctx)
			yk_fail(YOKE_ENOMEM, "leaks: no memory");
		return NULL;
	}
	l->pool = ctx->device->pool;
	l->began = !yk_pool_is_recorded(l->pool);
	if (l->began && yk_pool_record(l->pool, true) < 0) {
		free(l);
		return NULL;
	}
	yk_pool_stats(l->pool, &s);
	l->begin = s.allocated_bytes.current;
	l->ns = yk_nanoseconds();
	return l;
}

void yoke_leaks_end(yoke_leaks *l)
{
	if (l && l->began)
		yk_pool_record(l->pool, false);
	free(l);
}

struct finding {
	const yoke_leaks *leaks;
	struct suspect {
		uint64_t bytes;
		char who[400];
	} *list;
	size_t n, cap;
};

static void find(const struct yk_history *h, const struct yk_pool_stats *s, void *arg)
{
	struct finding *f = arg;
	(void)s;
	for (size_t i = 0; h && i < h->now.size; i++) {
		const struct yk_held *b = &h->now.at[i];
		if (!b->used || b->bytes <= LISTED || b->ns <= f->leaks->ns ||
		    yk_grow(&f->list, &f->cap, f->n + 1, sizeof *f->list) < 0)
			continue;
		const struct yk_who *w = &h->who[b->who];
		struct suspect *x = &f->list[f->n++];
		x->bytes = b->bytes;
		snprintf(x->who, sizeof x->who, "%s%s%s%s%s", *w->op ? w->op : "unknown",
			 *w->range ? " in " : "", w->range, *w->site ? " at " : "", w->site);
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->who, y->who);
}

static void list(const yoke_leaks *l)
{
	struct finding f = { .leaks = l };
	char bytes[32];
	yk_pool_with_history(l->pool, find, &f);
	if (f.n)
		qsort(f.list, f.n, sizeof *f.list, by_bytes);
	for (size_t i = 0; i < f.n; i++)
		yk_warn("leaks", "  %s by %s", yk_bytes_text(bytes, f.list[i].bytes),
			f.list[i].who);
	free(f.list);
}

int yoke_leaks_check(yoke_leaks *l, const char *name, struct yoke_leak *to)
{
	struct yk_pool_stats s;
	char more[32];
	const int err = yk_require(l, "check for leaks");
	if (err)
		return err;
	yk_pool_stats(l->pool, &s);
	struct yoke_leak x = { sizeof x,
			       l->begin,
			       s.allocated_bytes.current,
			       s.allocated_bytes.peak,
			       (int64_t)(s.allocated_bytes.current - l->begin),
			       0 };
	x.warned = x.diff > WARNED;
	if (x.warned) {
		yk_warn("leaks",
			"%s: %s more than at the beginning; blocks of more than 1 MB since then:",
			name ? name : "leaks", yk_bytes_text(more, (uint64_t)x.diff));
		list(l);
	}
	return to ? yk_sized_write(to, sizeof x, &x, "leaks_check", "yoke_leak") : 0;
}
