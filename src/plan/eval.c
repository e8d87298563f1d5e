// SPDX-License-Identifier: Apache-2.0
// Evaluation: roots, the key, the plan from the cache or made anew, the launch; and reading.

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "conform/selftest.h"
#include "device/warmup.h"
#include "plan/plan.h"

YK_PARAM(plan_max, "plan.max", YK_INT, "64",
	 "plans kept, least recently used go first; 0 keeps none", .most = INT64_MAX);
YK_PARAM(plan_hash, "plan.hash", YK_BOOL, "1", "0 gives all keys the hash 0 (for tests)");

void yk_plan_free(struct yk_plan *p)
{
	if (!p)
		return;
	free(p->key.word);
	yk_sources_free(p->sources, p->roots);
	// of a device that does not answer any more, handles are never given back
	bool over = yk_event_settle(p->last) >= 0 || yk_event_done(p->last);
	for (size_t i = 0; i < p->steps && over; i++)
		if (p->step[i].handle)
			p->step[i].ops->release(p->step[i].handle);
	yk_event_unref(p->last);
	free(p->step);
	free(p->view);
	free(p->ref);
	free(p->block);
	free(p->root_block);
	free(p->chunk[0]);
	free(p->chunk[1]);
	yk_arena_fini(&p->memory);
	free(p);
}

void yk_work_fini(struct yk_work *w)
{
	yk_graph_fini(&w->g);
	for (uint32_t i = 0; i < w->groups; i++)
		free(w->group[i].member);
	free(w->group);
	free(w->place);
	free(w->joined);
	free(w->cause);
	free(w->from);
	free(w->table);
	free(w->root_value);
	free(w->use);
	free(w->uses);
	free(w->rooted);
	free(w->live);
	free(w->again);
	free(w->group_of);
	free(w->order);
}

static void planner_free(struct yk_planner *pl)
{
	for (int i = 0; i < YK_BUCKETS; i++)
		while (pl->bucket[i]) {
			struct yk_plan *p = pl->bucket[i];
			pl->bucket[i] = p->next;
			yk_plan_free(p);
		}
	for (int i = 0; i < 2; i++)
		free(pl->chunk[i]);
	yk_eager_free(pl);
	free(pl->bucket);
	free(pl->fallback);
	free(pl->storage);
	free(pl->large);
	free(pl->root);
	free(pl->key.word);
	free(pl->marks.number);
	free(pl->marks.first);
	free(pl->marks.node);
	free(pl->marks.leaf);
	free(pl->marks.place);
	free(pl);
}

struct yk_planner *yk_planner_of(struct yoke_context *ctx)
{
	if (ctx->planner)
		return ctx->planner;
	struct yk_planner *pl = calloc(1, sizeof *pl);
	if (!pl || !(pl->bucket = calloc(YK_BUCKETS, sizeof *pl->bucket))) {
		free(pl);
		yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	if (yk_check_wanted(&pl->check_nan) < 0) {
		free(pl->bucket);
		free(pl);
		return NULL;
	}
	pl->ctx = ctx;
	ctx->planner = pl;
	ctx->planner_free = planner_free;
	return pl;
}

// ---- the cache ----

static struct yk_plan **bucket_of(struct yk_planner *pl, const struct yk_key *key)
{
	return &pl->bucket[yk_param_bool(&plan_hash) ? key->hash % YK_BUCKETS : 0];
}

static struct yk_plan *find(struct yk_planner *pl)
{
	for (struct yk_plan *p = *bucket_of(pl, &pl->key); p; p = p->next)
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
		for (struct yk_plan **p = &pl->bucket[i]; *p; p = &(*p)->next)
			if (!oldest || (*p)->used < (*oldest)->used)
				oldest = p;
	struct yk_plan *gone = *oldest;
	*oldest = gone->next;
	yk_plan_free(gone);
	pl->plans--;
}

static uint32_t guaranteed(const struct yoke_context *ctx)
{
	uint32_t a = ctx->device->info.align, b = ctx->cpu->info.align, least = a < b ? a : b;
	return least < YK_ALIGN ? least : YK_ALIGN;
}

// *again: make it once more, for a device that offers less now.
static struct yk_plan *try_plan(struct yk_planner *pl, bool *again)
{
	struct yk_plan *p = calloc(1, sizeof *p);
	struct yk_work w = { .ctx = pl->ctx,
			     .marks = &pl->marks,
			     .root = pl->root,
			     .roots = pl->roots,
			     .align = guaranteed(pl->ctx),
			     .plan = p };
	int err = p ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err)
		err = yk_lower(&w);
	if (!err)
		err = yk_uses(&w);
	if (!err)
		err = yk_fuse(&w);
	if (!err)
		err = yk_order(&w);
	if (!err)
		err = yk_emit(&w);
	if (!err) // all of it is on the CPU then
		err = yk_selftest_verdict(w.ctx->device);
	if (!err)
		err = yk_fallbacks_note(&w);
	if (!err)
		err = yk_layout(&w);
	if (!err)
		err = yk_parts_gone(&w);
	if (!err && yk_log_on(YOKE_LOG_DEBUG, "plan"))
		yk_plan_print(&w, p);
	if (!err) { // the plan keeps the key
		p->key = pl->key;
		pl->key = (struct yk_key){ 0 };
	}
	*again = w.again_without;
	yk_work_fini(&w);
	if (!err)
		return p;
	if (!*again)
		yk_fail(err, "no plan could be made");
	yk_plan_free(p);
	return NULL;
}

static struct yk_plan *make_plan(struct yk_planner *pl)
{
	struct yk_plan *p;
	bool again;
	if (yk_grow(&pl->large, &pl->large_cap, pl->marks.nodes + 1, sizeof *pl->large) < 0) {
		yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	memset(pl->large, 0, pl->marks.nodes * sizeof *pl->large);
	do
		p = try_plan(pl, &again);
	while (again); // ends: each time some device offers less, or some node more is cut
	if (p && !pl->ctx->eager && yk_sources_find(pl, &p->sources) < 0) {
		yk_plan_free(p);
		p = NULL;
	}
	return p;
}

// The plan for the key at hand; NULL on error.
static struct yk_plan *plan_for(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	struct yk_plan *p = find(pl);
	pl->misses = pl->misses << 1 | !p;
	if (p) {
		ctx->stats.plan_hits++;
		return p;
	}
	ctx->stats.plan_misses++;
	yk_miss_report(pl);
	yk_work_begin(ctx, ctx->queue);
	yk_warmup_begin(ctx->device->id);
	p = make_plan(pl);
	yk_warmup_end();
	yk_work_end(ctx, ctx->queue, YK_WORK_PLAN, NULL, 0);
	if (!p)
		return NULL;
	while (pl->plans && (int64_t)pl->plans >= yk_param_int(&plan_max))
		drop_oldest(pl);
	struct yk_plan **bucket = bucket_of(pl, &p->key);
	p->next = *bucket;
	*bucket = p;
	pl->plans++;
	return p;
}

// ---- roots ----

int yk_root_add(struct yk_planner *pl, struct yk_tensor *t)
{
	if (yk_grow(&pl->root, &pl->root_cap, pl->roots + 1, sizeof *pl->root) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	pl->root[pl->roots++] =
		(struct yk_root){ .id = t->id, .handle = t, .donor = YK_NIL };
	return 0;
}

// Which roots may take over the block of their variable's old version.
static void find_donors(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	for (size_t i = 0; i < pl->roots; i++) {
		const struct yk_tensor *t = pl->root[i].handle;
		if (t->kind != YK_VARIABLE || t->leaf == YK_NIL ||
		    t->leaf_epoch != ctx->epoch)
			continue;
		const struct yk_node *n = yk_maker(&ctx->graph, t->leaf);
		uint32_t at = (uint32_t)ctx->graph.attrs[n->attr].i;
		const struct yk_leaf *leaf = &ctx->leaf[at];
		if (pl->marks.place[at] == YK_NIL || leaf->storage != t->storage)
			continue;
		pl->root[i].donor = pl->marks.place[at];
		// the variable's reference and the leaf's; memory lent by the caller stays as it is
		pl->root[i].idle = t->storage->refs == 2 && !t->storage->wrapped;
	}
}

// Roots that need a value which failed after it was recorded are lost as well, and leave; the rest is
// evaluated.
static int drop_lost(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	const struct yk_graph *g = &ctx->graph;
	const struct yk_marks *m = &pl->marks;
	bool any = false;
	for (size_t i = 0; i < m->leaves && !any; i++)
		any = ctx->leaf[m->leaf[i]].storage && ctx->leaf[m->leaf[i]].storage->failed;
	if (!any)
		return 0;
	struct yk_storage **lost = calloc(g->nodes, sizeof *lost); // by node: what it failed with
	if (!lost)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t i = 0; i < m->nodes; i++) {
		uint32_t k = m->node[i];
		const struct yk_node *n = &g->node[k];
		struct yk_storage *s = n->op == YK_LEAF ? ctx->leaf[g->attrs[n->attr].i].storage : NULL;
		lost[k] = s && s->failed ? s : NULL;
		for (uint32_t j = 0; j < n->nin && !lost[k]; j++) {
			yk_id v = g->arg[n->in + j];
			lost[k] = v == YK_NIL ? NULL : lost[g->value[v].node];
		}
	}
	size_t kept = 0;
	for (size_t i = 0; i < pl->roots; i++) {
		struct yk_tensor *t = pl->root[i].handle;
		struct yk_storage *s = lost[g->value[pl->root[i].id].node];
		if (!s) {
			pl->root[kept++] = pl->root[i];
			continue;
		}
		s->refs++;
		yk_storage_unref(t->storage);
		t->storage = s;
		ctx->root[t->root] = NULL;
		t->root = t->id = t->leaf = YK_NIL;
		yk_failure_of(t);
	}
	pl->roots = kept;
	free(lost);
	return YOKE_EFAILED;
}

// Handles added to the roots by a call that failed before it began are roots no longer.
static void unroot(struct yoke_context *ctx, size_t from)
{
	for (size_t i = from; i < ctx->roots; i++)
		if (ctx->root[i])
			ctx->root[i]->root = YK_NIL;
	ctx->roots = from;
}

int yk_run_roots(struct yk_planner *pl, bool *started)
{
	struct yoke_context *ctx = pl->ctx;
	*started = false;
	int err = yk_mark(ctx, &pl->marks, pl->root, pl->roots);
	int lost = err ? 0 : drop_lost(pl);
	if (lost == YOKE_ENOMEM)
		return lost;
	if (lost && pl->roots)
		err = yk_mark(ctx, &pl->marks, pl->root, pl->roots);
	if (lost && !pl->roots) {
		*started = true;
		return lost;
	}
	if (!ctx->eager) // then old versions stay while the tape does
		find_donors(pl);
	if (!err)
		err = yk_key_make(ctx, &pl->marks, pl->root, pl->roots, yk_param_epoch(), &pl->key);
	if (err)
		return err;
	struct yk_plan *p = plan_for(pl);
	if (!p)
		return yk_error_last();
	p->used = ++pl->evaluations;
	struct yk_evaluated *seen;
	if ((err = yk_sources_seen(pl, p->sources, &seen)) < 0)
		return err;
	err = yk_launch(pl, p, started);
	if (err)
		yk_evaluated_unref(seen);
	else
		yk_sources_note(pl, p->sources, seen);
	return err ? err : lost;
}

// A tensor that is asked for becomes a root; says what is wrong with a spent, failed or foreign one.
static int ask_for(struct yoke_context *ctx, const yoke_tensor *handle)
{
	struct yk_tensor *t = handle && handle != YOKE_NONE ? yk_tensor(handle, "eval") : NULL;
	if (t && t->kind >= YK_HOST_SCALAR)
		return 0;
	if (yk_operand(ctx, handle, yoke_f32) == YK_BAD)
		return yk_error_last();
	return t ? yk_root(t) : 0;
}

static int evaluate(struct yoke_context *ctx, int n, yoke_tensor *const *t)
{
	struct yk_planner *pl = yk_planner_of(ctx);
	size_t roots = ctx->roots;
	int err = 0;
	if (!pl)
		return yk_error_last();
	yk_work_begin(ctx, ctx->queue);
	yk_flight_wait(ctx);
	yk_work_end(ctx, ctx->queue, YK_WORK_WAIT, NULL, 0);
	ctx->graph.call = "eval"; // in errors
	for (int i = 0; i < n && !err; i++)
		err = ask_for(ctx, t[i]);
	pl->roots = 0;
	for (size_t i = 0; i < ctx->roots && !err; i++)
		if (ctx->root[i])
			err = yk_root_add(pl, ctx->root[i]);
	bool started = !err && !pl->roots;
	if (!err) {
		ctx->stats.evals++;
		if (pl->roots)
			err = ctx->eager ? yk_eager_roots(pl, &started) :
					   yk_run_roots(pl, &started);
	}
	if (!err && yk_settle(ctx)) // the run's own event, or what was found on the way
		err = yk_failure_tell(ctx);
	if (err && !started) {
		unroot(ctx, roots);
	} else {
		yk_context_reset(ctx);
		yk_eager_reset(pl);
	}
	return err;
}

int yoke_eval(int n, yoke_tensor *const *t)
{
	struct yoke_context *ctx = NULL;
	for (int i = 0; i < n && !ctx; i++) {
		if (!t[i] || t[i] == YOKE_NONE)
			continue;
		const struct yk_tensor *h = yk_tensor(t[i], "eval");
		if (!h)
			return yk_error_last();
		ctx = h->ctx;
	}
	if (!ctx && !(ctx = yk_current()))
		return yk_error_last();
	int err = yk_enter(ctx);
	if (err)
		return err;
	err = evaluate(ctx, n, t);
	yk_leave(ctx);
	return err;
}

// ---- reading ----

// The queue that reads a storage, and the event that it has to be behind: what another run computes
// now is not waited for.  NULL: the queue of the steps, behind all that is on it.
static struct yk_queue *download_queue(const struct yk_storage *s, struct yk_event **behind)
{
	struct yoke_context *ctx = s->ctx;
	const struct yk_flight *older = &ctx->flight[ctx->flights % 2];
	*behind = NULL;
	if (s->host) // the CPU's queue is done with it
		return ctx->cpu_queue;
	if (ctx->down == ctx->queue || (ctx->observer && ctx->observer->ordered))
		return ctx->queue;
	if (s->up)
		*behind = s->up;
	else if (s->written && older->done && s->written <= older->done->serial)
		*behind = older->done;
	return *behind ? ctx->down : ctx->queue;
}

// Enqueues the copy and waits for it, and for whatever it was behind.  On failure `why` has a text, or
// none when it is the queue of the steps that says so.
static int fetch(struct yk_storage *s, void *to, uint64_t bytes, char *why, size_t cap)
{
	struct yoke_context *ctx = s->ctx;
	struct yk_event *behind;
	struct yk_queue_failure f;
	struct yk_queue *q = download_queue(s, &behind);
	bool had = yoke_error_code() != 0;
	yk_work_begin(ctx, q);
	int err = behind ? yk_event_before(behind, q) : yk_storage_join(s);
	if (!err)
		err = q->device->ops->get(q->handle, s->block->segment, s->block->offset, to, bytes);
	*why = 0;
	if (err)
		yk_backend_detail(had, err, why, cap);
	else
		err = yk_queue_drain(q);
	// these are over as well, and what they say matters
	yk_event_settle(behind);
	yk_event_settle(ctx->joined);
	if (q == ctx->down && q != ctx->queue && yk_queue_take(q, &f) && !*why)
		snprintf(why, cap, "%s", f.why);
	yk_work_end(ctx, q, YK_WORK_DOWN, NULL, bytes);
	return err;
}

// Brings a materialised value's bytes to the host and waits.
static int download(const struct yk_tensor *t, void *to, uint64_t bytes)
{
	struct yoke_context *ctx = t->ctx;
	char why[400];
	int err = fetch(t->storage, to, bytes, why, sizeof why);
	yk_settle_at(ctx, "read");
	if (t->storage->failed)
		return yk_failure_of(t);
	if (err && !*why)
		return yk_failure_tell(ctx);
	if (err)
		return yk_fail(err, "read: %llu bytes from %s: %s", (unsigned long long)bytes,
			       ctx->device->id, why);
	ctx->stats.bytes_down += bytes;
	return 0;
}

static int read_tensor(struct yk_tensor *t, yoke_tensor *handle, void *to, size_t bytes)
{
	if (t->kind == YK_HOST_SCALAR || t->kind == YK_LITERAL)
		return yk_fail(YOKE_EINVAL,
			       "read: takes a tensor, not a host scalar or literal");
	if (bytes != yk_bytes_of(t))
		return yk_fail(YOKE_ESHAPE,
			       "read: the value has %zu bytes, got room for %zu",
			       yk_bytes_of(t), bytes);
	if (!to && bytes)
		return yk_fail(YOKE_EINVAL, "read: nowhere to put %zu bytes", bytes);
	int err = 0;
	yk_settle(t->ctx);
	if (t->id != YK_NIL || !t->storage || t->storage->failed)
		err = evaluate(t->ctx, 1, &handle);
	return err || !bytes ? err : download(t, to, bytes);
}

int yoke_read(yoke_tensor *handle, void *to, size_t bytes)
{
	if (!handle)
		return yoke_error_code() ? yoke_error_code() :
					   yk_fail(YOKE_EINVAL, "read: NULL");
	if (handle == YOKE_NONE)
		return yk_fail(YOKE_EINVAL, "read: takes a tensor");
	struct yk_tensor *t = yk_enter_of(handle, "read");
	if (!t)
		return yk_error_last();
	struct yoke_context *ctx = t->ctx;
	int err = read_tensor(t, handle, to, bytes);
	yk_leave(ctx);
	return err;
}

int yoke_sync(void)
{
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	yk_work_begin(ctx, ctx->queue);
	yk_queue_drain(ctx->up);
	yk_queue_drain(ctx->queue);
	yk_work_end(ctx, ctx->queue, YK_WORK_WAIT, NULL, 0);
	yk_settle(ctx);
	if (ctx->failure.code && !ctx->failure.told)
		err = yk_failure_tell(ctx);
	yk_leave(ctx);
	return err;
}

int yoke_stats(struct yoke_stats *to)
{
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	struct yk_pool_stats pool;
	struct yoke_stats s = ctx->stats;
	yk_pool_stats(ctx->device->pool, &pool);
	s.pool_allocated = pool.allocated_bytes.current;
	s.pool_allocated_peak = pool.allocated_bytes.peak;
	s.pool_reserved = pool.reserved_bytes.current;
	s.pool_reserved_peak = pool.reserved_bytes.peak;
	s.pool_hits = pool.hits;
	s.pool_misses = pool.misses;
	s.pool_retries = pool.num_alloc_retries;
	s.pool_ooms = pool.num_ooms;
	s.pool_compactions = pool.num_compactions;
	s.pool_moved_bytes = pool.moved_bytes;
	s.pending_nodes = ctx->graph.nodes;
	s.live_handles = ctx->live_handles;
	s.plans = ctx->planner ? ctx->planner->plans : 0;
	yk_host_programs(&s.programs_compiled, &s.programs_found);
	yk_leave(ctx);
	size_t size = to->size < sizeof s ? to->size : sizeof s;
	if (size < sizeof to->size)
		return yk_fail(YOKE_EINVAL,
			       "stats: set size to sizeof(struct yoke_stats)");
	s.size = size;
	memcpy(to, &s, size);
	return 0;
}

int yoke_stats_reset_peaks(void)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx)
		return yk_error_last();
	yk_pool_reset_peaks(ctx->device->pool);
	ctx->stats.predicted_peak = 0;
	return 0;
}
