// SPDX-License-Identifier: Apache-2.0
// The plan cache: one planner per context; plans are found by key, and the least recently used one
// is evicted.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "device/warmup.h"
#include "plan/key.h"
#include "plan/launch.h"
#include "plan/plan.h"
#include "plan/planner.h"

YK_PARAM(plan_max, "plan.max", YK_INT, "64",
	 "maximum number of cached plans; the least recently used is evicted; 0: none is "
		"cached", .max = INT64_MAX);
YK_PARAM(plan_hash, "plan.hash", YK_BOOL, "1", "0 gives all keys the hash 0 (for tests)",
	 .debug = true);

static void planner_free(struct yk_planner *pl)
{
	for (int i = 0; i < YK_BUCKETS; i++)
		while (pl->cache.bucket[i]) {
			struct yk_plan *p = pl->cache.bucket[i];
			pl->cache.bucket[i] = p->cached.next;
			yk_plan_free(p);
		}
	for (int k = 0; k < YK_STREAMS; k++)
		free(pl->launch.chunk[k]);
	free(pl->launch.event);
	free(pl->left);
	yk_marks_fini(&pl->marks);
	free(pl->cache.bucket);
	free(pl->fallbacks.kind);
	free(pl->misaligned.product);
	free(pl->launch.storage);
	free(pl->launch.spot);
	free(pl->launch.scalar);
	free(pl->launch.root_storage);
	free(pl->attempt.large);
	free(pl->root);
	free(pl->key.word);
	free(pl);
}

struct yk_planner *yk_planner_of(struct yoke_context *ctx)
{
	if (ctx->planner)
		return ctx->planner;
	struct yk_planner *pl = calloc(1, sizeof *pl);
	if (!pl || !(pl->cache.bucket = calloc(YK_BUCKETS, sizeof *pl->cache.bucket))) {
		free(pl);
		yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	if (yk_check_setting(&pl->check.nan) < 0) {
		free(pl->cache.bucket);
		free(pl);
		return NULL;
	}
	pl->ctx = ctx;
	ctx->planner = pl;
	ctx->planner_free = planner_free;
	return pl;
}

static struct yk_plan **bucket_of(struct yk_planner *pl, const struct yk_key *key)
{
	return &pl->cache.bucket[yk_param_bool(&plan_hash) ? key->hash % YK_BUCKETS : 0];
}

static struct yk_plan *find(struct yk_planner *pl)
{
	for (struct yk_plan *p = *bucket_of(pl, &pl->key); p; p = p->cached.next)
		if ((p->key.hash == pl->key.hash || !yk_param_bool(&plan_hash)) &&
		    p->key.n == pl->key.n &&
		    !memcmp(p->key.word, pl->key.word, pl->key.n * sizeof *pl->key.word))
			return p;
	return NULL;
}

static void drop_oldest(struct yk_planner *pl)
{
	struct yk_plan **oldest = NULL;
	for (int i = 0; i < YK_BUCKETS; i++)
		for (struct yk_plan **p = &pl->cache.bucket[i]; *p; p = &(*p)->cached.next)
			if (!oldest || (*p)->cached.used < (*oldest)->cached.used)
				oldest = p;
	struct yk_plan *gone = *oldest;
	*oldest = gone->cached.next;
	yk_plan_free(gone);
	pl->cache.plans--;
}

// The plan for the current key; NULL on error.
struct yk_plan *yk_plan_for(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	struct yk_plan *p = find(pl);
	pl->miss.vain <<= 1;
	if (p) {
		ctx->stats.plan_hits++;
		return p;
	}
	ctx->stats.plan_misses++;
	yk_miss_report(pl);
	yk_work_begin(ctx, ctx->queues.steps);
	yk_warmup_begin(ctx->device->id);
	p = yk_plan_make(pl);
	yk_warmup_end();
	yk_work_end(ctx, ctx->queues.steps, YK_WORK_PLAN, NULL, 0);
	if (!p)
		return NULL;
	p->cached.made = pl->evaluations + 1;
	p->brief = yk_plan_is_brief(p);
	while (pl->cache.plans && (int64_t)pl->cache.plans >= yk_param_int(&plan_max))
		drop_oldest(pl);
	struct yk_plan **bucket = bucket_of(pl, &p->key);
	p->cached.next = *bucket;
	*bucket = p;
	pl->cache.plans++;
	return p;
}
