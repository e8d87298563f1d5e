// SPDX-License-Identifier: Apache-2.0
// Application-defined ranges and counters.
#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sized.h"
#include "graph/context.h"
#include "yoke-observe.h"

static struct yoke_context *enter(void)
{
	struct yoke_context *ctx = yk_current();
	return ctx && yk_enter(ctx) == 0 ? ctx : NULL;
}

int yoke_range_push(const char *name)
{
	struct yoke_context *ctx;
	if (!name || !*name)
		return yk_fail(YOKE_EINVAL, "range_push: a range has a name");
	if (!(ctx = enter()))
		return yk_error_last();
	int e = yk_range_push(ctx, name);
	yk_leave(ctx);
	return e;
}

int yoke_range_pop(void)
{
	struct yoke_context *ctx = enter();
	if (!ctx)
		return yk_error_last();
	int e = yk_range_pop(ctx);
	yk_leave(ctx);
	return e;
}

int yoke_counters(struct yoke_counters *to)
{
	struct yoke_stats s = { .size = sizeof s };
	int e = yoke_stats(&s);
	if (e < 0)
		return e;
	const struct yk_counts *c = &yk_current()->counts;
	const struct yoke_counters n = {
		.ns = yk_nanoseconds(),
		.bytes_up = s.bytes_up,
		.bytes_down = s.bytes_down,
		.copies_up = c->copies_up,
		.copies_down = c->copies_down,
		.launches = s.launches,
		.fallbacks = s.fallbacks,
		.fallback_bytes = s.fallback_bytes,
		.evals = s.evals,
		.plan_hits = s.plan_hits,
		.plan_misses = s.plan_misses,
		.waits = c->waits,
		.wait_ns = c->wait_ns,
		.programs_compiled = s.programs_compiled,
		.programs_found = s.programs_found,
		.idle_ns = c->idle_known ? (int64_t)c->idle_ns : -1,
	};
	return yk_sized_write(to, sizeof n, &n, "counters", "yoke_counters");
}

int yoke_counters_between(const struct yoke_counters *former, const struct yoke_counters *later,
			  struct yoke_counters *to)
{
	struct yoke_counters a = { 0 }, b = { 0 }, d;
	int e = yk_sized_read(&a, sizeof a, former, "counters_between", "yoke_counters");
	if (e == 0)
		e = yk_sized_read(&b, sizeof b, later, "counters_between", "yoke_counters");
	if (e < 0)
		return e;
	d = (struct yoke_counters){
		.ns = b.ns - a.ns,
		.bytes_up = b.bytes_up - a.bytes_up,
		.bytes_down = b.bytes_down - a.bytes_down,
		.copies_up = b.copies_up - a.copies_up,
		.copies_down = b.copies_down - a.copies_down,
		.launches = b.launches - a.launches,
		.fallbacks = b.fallbacks - a.fallbacks,
		.fallback_bytes = b.fallback_bytes - a.fallback_bytes,
		.evals = b.evals - a.evals,
		.plan_hits = b.plan_hits - a.plan_hits,
		.plan_misses = b.plan_misses - a.plan_misses,
		.waits = b.waits - a.waits,
		.wait_ns = b.wait_ns - a.wait_ns,
		.programs_compiled = b.programs_compiled - a.programs_compiled,
		.programs_found = b.programs_found - a.programs_found,
		.idle_ns = a.idle_ns < 0 ? b.idle_ns : b.idle_ns < 0 ? -1 : b.idle_ns - a.idle_ns,
	};
	return yk_sized_write(to, sizeof d, &d, "counters_between", "yoke_counters");
}
