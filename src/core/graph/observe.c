// SPDX-License-Identifier: Apache-2.0
// Observers of a context, and the profiler ranges that the application marks.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/context.h"

void yk_observer_add(struct yoke_context *ctx, struct yk_observer *o)
{
	o->next = ctx->observe.first;
	ctx->observe.first = o;
}

void yk_observer_remove(struct yoke_context *ctx, struct yk_observer *o)
{
	struct yk_observer **at = &ctx->observe.first;
	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
}

void yk_observers_begin(struct yoke_context *ctx, struct yk_queue *q)
{
	for (struct yk_observer *o = ctx->observe.first; o; o = o->next)
		o->begin(o, q);
}

void yk_observers_end(struct yoke_context *ctx, struct yk_queue *q, enum yk_work_kind kind,
		      const struct yk_plan *p, uint64_t step_or_bytes)
{
	for (struct yk_observer *o = ctx->observe.first; o; o = o->next)
		o->end(o, q, kind, p, step_or_bytes);
}

bool yk_is_timed(const struct yoke_context *ctx)
{
	const struct yk_observer *o = ctx->observe.first;
	while (o && !o->times)
		o = o->next;
	return o;
}

// ---- ranges ----

static void notify(struct yoke_context *ctx, uint32_t path, bool begins)
{
	for (struct yk_observer *o = ctx->observe.first; o; o = o->next)
		if (o->range)
			o->range(o, path, begins);
}

int yk_range_push(struct yoke_context *ctx, const char *name)
{
	struct yk_range_open *r = malloc(sizeof *r);
	uint32_t path = r ? yk_path_get(&ctx->observe.ranges, ctx->graph.range, name) : YK_NIL;
	if (path == YK_NIL) {
		free(r);
		return yk_fail(YOKE_ENOMEM, "range %s: no memory", name);
	}
	*r = (struct yk_range_open){ ctx->observe.range, path };
	ctx->observe.range = r;
	ctx->graph.range = path;
	yk_profiler_push(ctx, name);
	notify(ctx, path, true);
	return 0;
}

int yk_range_pop(struct yoke_context *ctx)
{
	struct yk_range_open *r = ctx->observe.range;
	if (!r)
		return yk_fail(YOKE_EINVAL,
			       "range_pop: no range is open; each pop ends one yoke_range_push");
	yk_profiler_pop(ctx);
	notify(ctx, r->path, false);
	ctx->observe.range = r->outer;
	ctx->graph.range = r->outer ? r->outer->path : 0;
	free(r);
	return 0;
}

void yk_ranges_fini(struct yoke_context *ctx)
{
	while (ctx->observe.range) {
		struct yk_range_open *r = ctx->observe.range;
		ctx->observe.range = r->outer;
		free(r);
	}
	yk_paths_fini(&ctx->observe.ranges);
}
