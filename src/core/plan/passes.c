// SPDX-License-Identifier: Apache-2.0
// The pass pipeline: turns marked nodes into a plan.  A plan that does not fit the device is made
// again in ways that save memory: without padding, with recomputed activations, with values spilled
// to the host.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/usable.h"
#include "plan/key.h"
#include "plan/launch.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/replay.h"
#include "plan/work.h"

YK_PARAM(spill, "spill", YK_INT, "0",
	 "1: if a plan does not fit the device, keep values in host memory until they are read; "
		"2: whenever possible (for tests)",
	 .max = 2);

void yk_plan_free(struct yk_plan *p)
{
	if (!p)
		return;
	free(p->key.word);
	// handles of a device that no longer responds are leaked
	bool over = yk_event_sync(p->last) >= 0 || yk_event_done(p->last);
	for (size_t i = 0; i < p->steps && over; i++)
		if (p->step[i].handle)
			p->step[i].ops->release(p->step[i].handle);
	yk_replay_free(p->replay.graphs, over);
	yk_event_unref(p->last);
	free(p->step);
	free(p->view);
	free(p->ref);
	free(p->layout.block);
	free(p->layout.root_block);
	for (int k = 0; k < YK_STREAMS; k++)
		free(p->layout.arena[k].chunk);
	free(p->sync.wait);
	yk_arena_fini(&p->memory);
	free(p);
}

void yk_work_fini(struct yk_work *w)
{
	yk_graph_fini(&w->g);
	for (uint32_t i = 0; i < w->schedule.groups; i++)
		free(w->schedule.group[i].member);
	free(w->schedule.group);
	free(w->lowering.joined);
	free(w->node);
	free(w->value);
	free(w->edit.replaced);
	free(w->lowering.table);
	free(w->root_value);
	free(w->use);
	free(w->schedule.order);
	free(w->schedule.clock);
	free(w->scalars.index);
}

static uint32_t guaranteed(const struct yk_planner *pl)
{
	const struct yoke_context *ctx = pl->ctx;
	uint32_t a = ctx->device->info.align, b = ctx->cpu->info.align, min = a < b ? a : b;
	for (size_t i = 0; i < pl->marks.leaves; i++) {
		const struct yk_leaf *l = &ctx->leaves.at[pl->marks.leaf[i]];
		uint32_t of = yk_is_skewed(l) ? (uint32_t)yoke_dtype_size(l->dtype) : YK_ALIGN;
		min = of < min ? of : min;
	}
	return min < YK_ALIGN ? min : YK_ALIGN;
}

uint64_t yk_plan_bytes(const struct yoke_context *ctx, const struct yk_plan *p)
{
	struct yk_pool *pool = ctx->device->pool;
	uint64_t bytes = 0;
	for (int k = 0; k < YK_STREAMS; k++)
		for (size_t i = 0; i < p->layout.arena[k].n && ctx->stream[k].device->pool == pool;
		     i++)
			bytes += yk_pool_round(pool, p->layout.arena[k].chunk[i]);
	for (size_t i = 0; i < p->layout.blocks; i++)
		bytes += yk_is_new(&p->layout.block[i]) && !p->layout.block[i].host ?
				 yk_pool_round(pool, p->layout.block[i].bytes) :
				 0;
	return bytes;
}

// A device that failed its self-test runs no step: all steps are then on the CPU.
static int self_test(struct yk_work *w)
{
	return yk_device_verdict(w->ctx->device);
}

static int print(struct yk_work *w)
{
	if (yk_log_on(YOKE_LOG_DEBUG, "plan"))
		yk_plan_print(w, w->plan);
	return 0;
}

// In order; passes.h describes each pass. What a pass requires is guaranteed by the passes above
// it.
static int (*const pipeline[])(struct yk_work *) = {
	// guarantees work.g, in creation order, each node on a device that can run it, no equal
	// nodes
	yk_lower,
	yk_live,            // guarantees live nodes and lists of readers; edits maintain both
	yk_clones,          // from here on nodes are no longer in creation order: see yk_in_time
	yk_recompute,
	yk_regather,
	yk_concat_in_place,
	yk_fuse,            // guarantees that each live node that computes is in one group
	yk_remat,           // may leave groups empty
	yk_spill,
	yk_order,           // guarantees work.order: no group before one whose results it reads
	yk_replay_prepare,
	yk_emit,            // guarantees the plan's steps, with views but without memory
	self_test,          // emitting may compile and so test kernels
	yk_fallbacks_note,
	yk_waits,           // guarantees work.clock: the steps known to be done when a step begins
	yk_layout,          // guarantees the location of each view; reuses memory by work.clock
	yk_omitted_nodes,
	print,
};

// *again: it must be made once more, because a device now offers less.
static struct yk_plan *try_plan(struct yk_planner *pl, struct yk_savings *save, bool *again)
{
	struct yk_plan *p = calloc(1, sizeof *p);
	struct yk_work w = { .ctx = pl->ctx,
			     .marks = &pl->marks,
			     .root = pl->root,
			     .roots = pl->roots,
			     .align = guaranteed(pl),
			     .wanted = *save,
			     .scalars.buffer = YK_NIL,
			     .plan = p };
	int err = p ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t i = 0; i < sizeof pipeline / sizeof *pipeline && !err; i++)
		err = pipeline[i](&w);
	*again = w.replan;
	*save = (struct yk_savings){ w.available.segments, w.available.spills, save->plain };
	yk_work_fini(&w);
	if (!err)
		return p;
	if (!*again)
		yk_fail(err, "no plan could be made");
	yk_plan_free(p);
	return NULL;
}

static struct yk_plan *make_at(struct yk_planner *pl, struct yk_savings *save)
{
	const struct yk_savings wanted = *save;
	struct yk_plan *p;
	bool again;
	memset(pl->attempt.large, 0, pl->marks.nodes * sizeof *pl->attempt.large);
	do {
		*save = wanted;
		p = try_plan(pl, save, &again);
	} while (again); // ends: each time a device offers less, or one more node is split
	return p;
}

static bool fits(struct yk_planner *pl, struct yk_plan *p)
{
	struct yk_pool *pool = pl->ctx->device->pool;
	struct yk_pool_stats stats;
	yk_pool_stats(pool, &stats);
	return stats.allocated_bytes.current + yk_plan_bytes(pl->ctx, p) <= yk_pool_could(pool) &&
	       yk_launch_fits(pl, p);
}

// Replaces a plan that does not fit by one that fits with the fewest savings between `min` and
// `max` (segments before spills), found by bisection; if none fits, by the one with all savings.
static struct yk_plan *make_fit(struct yk_planner *pl, struct yk_savings min,
				struct yk_savings max)
{
	struct yk_savings there = max;
	struct yk_plan *p, *best = make_at(pl, &there);
	const uint32_t segments = there.segments < max.segments ? there.segments : max.segments;
	uint32_t few = min.segments < segments ? min.segments : segments,
		 many = segments + there.spills;
	const bool any = best && fits(pl, best);
	while (any && many - few > 1) {
		uint32_t half = few + (many - few) / 2;
		struct yk_savings at = { half < segments ? half : segments,
					 half < segments ? 0 : half - segments, max.plain };
		if (!(p = make_at(pl, &at)))
			break; // keep the best plan so far
		if (fits(pl, p)) {
			yk_plan_free(best);
			best = p;
			many = half;
		} else {
			yk_plan_free(p);
			few = half;
		}
	}
	return best;
}

struct yk_plan *yk_plan_make(struct yk_planner *pl)
{
	enum yk_recompute mode;
	if (yk_recompute_setting(&mode) < 0)
		return NULL;
	if (yk_grow(&pl->attempt.large, &pl->attempt.large_cap, pl->marks.nodes + 1,
		    sizeof *pl->attempt.large) < 0) {
		yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	const int64_t spills = yk_param_int(&spill);
	pl->attempt.by_value = pl->attempt.unfused = false;
	struct yk_savings min = { mode == YK_RECOMPUTE_BLOCK ? UINT32_MAX : 0,
				    spills > 1 ? UINT32_MAX : 0, pl->plain };
	struct yk_savings at = min;
	struct yk_plan *p = make_at(pl, &at);
	if (p && p->padded && !fits(pl, p)) { // no other saving costs less
		yk_plan_free(p);
		at = min;
		at.plain = min.plain = true;
		p = make_at(pl, &at);
	}
	const struct yk_savings max = { mode == YK_RECOMPUTE_NONE ? 0 : UINT32_MAX,
					 spills ? UINT32_MAX : 0, min.plain };
	if (p && (mode == YK_RECOMPUTE_AUTO || spills == 1) && !fits(pl, p)) {
		yk_plan_free(p);
		p = make_fit(pl, min, max);
	}
	if (p) { // the plan takes over the key
		p->key = pl->key;
		p->ranged = yk_is_ranged(pl);
		pl->key = (struct yk_key){ 0 };
	}
	return p;
}
