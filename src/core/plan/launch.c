// SPDX-License-Identifier: Apache-2.0
// Launching: allocates blocks for arenas and roots, binds leaves, and enqueues every step in order.
// It does not wait: blocks return to the pool with an event after the last step.

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/handle.h"
#include "plan/key.h"
#include "plan/launch.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/replay.h"

struct launch {
	struct yk_planner *pl;
	struct yoke_context *ctx;
	struct yk_plan *p;
};

// done: an event after the whole run; NULL: free after the work enqueued on each stream.
static void free_blocks(struct launch *l, struct yk_event *done)
{
	for (int k = 0; k < YK_STREAMS; k++)
		for (size_t i = 0; i < l->p->layout.arena[k].n; i++) {
			yk_pool_free(l->pl->launch.chunk[k][i], l->ctx->stream[k].queue, done);
			l->pl->launch.chunk[k][i] = NULL;
		}
}

// The node whose result is in a root block, NULL: unknown.
static const struct yk_node *maker_of(const struct launch *l, size_t block)
{
	const struct yk_graph *g = &l->ctx->graph;
	for (size_t i = 0; i < l->pl->roots; i++)
		if (l->p->layout.root_block[i] == block)
			return yk_maker(g, l->pl->root[i].id);
	return NULL;
}

// Makes all allocations, before anything runs.
static int allocate(struct launch *l)
{
	struct yk_planner *pl = l->pl;
	struct yk_plan *p = l->p;
	int err = 0;
	if (yk_grow(&pl->launch.storage, &pl->launch.storage_cap, p->layout.blocks + 1,
		    sizeof *pl->launch.storage) < 0 ||
	    yk_grow(&pl->launch.event, &pl->launch.event_cap, p->sync.events + 1,
		    sizeof *pl->launch.event) < 0 ||
	    yk_grow(&pl->launch.root_storage, &pl->launch.root_storage_cap, pl->roots + 1,
		    sizeof *pl->launch.root_storage) < 0 ||
	    yk_grow(&pl->launch.scalar, &pl->launch.scalar_cap, p->replay.scalars + (size_t)1,
		    sizeof *pl->launch.scalar) < 0 ||
	    yk_grow(&pl->launch.spot, &pl->launch.spot_cap,
		    1 + p->layout.arena[YK_STREAM_DEVICE].n + p->layout.blocks + p->layout.leaves,
		    sizeof *pl->launch.spot) < 0 ||
	    yk_grow(&l->ctx->leaves.at, &l->ctx->leaves.cap, l->ctx->leaves.n + pl->roots,
		    sizeof *l->ctx->leaves.at) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to launch");
	memset(pl->launch.storage, 0, p->layout.blocks * sizeof *pl->launch.storage);
	memset(pl->launch.event, 0, p->sync.events * sizeof *pl->launch.event);
	for (int k = 0; k < YK_STREAMS; k++) {
		if (yk_grow(&pl->launch.chunk[k], &pl->launch.chunk_cap[k],
			    p->layout.arena[k].n + 1, sizeof **pl->launch.chunk) < 0)
			return yk_fail(YOKE_ENOMEM, "no memory to launch");
		memset(pl->launch.chunk[k], 0, p->layout.arena[k].n * sizeof **pl->launch.chunk);
	}
	for (int k = 0; k < YK_STREAMS; k++)
		for (size_t i = 0; i < p->layout.arena[k].n && !err; i++) {
			struct yk_pool *pool = l->ctx->stream[k].device->pool;
			struct yk_movable m = yk_movable(l->ctx);
			const struct yk_who who = { .op = "arena of an evaluation",
						    .range = yk_path_name(&l->ctx->observe.ranges,
									  l->ctx->graph.range) };
			m.who = &who;
			err = yk_pool_alloc_brief(pool, p->layout.arena[k].chunk[i],
						  l->ctx->stream[k].queue, m,
						  &pl->launch.chunk[k][i]);
		}
	for (size_t i = 0; i < p->layout.blocks && !err; i++) {
		if (p->layout.block[i].leaf != YK_NIL)
			continue;
		if (yk_is_new(&p->layout.block[i])) {
			l->ctx->observe.making =
				yk_pool_is_recorded(l->ctx->device->pool) ? maker_of(l, i) : NULL;
			err = yk_storage_new(l->ctx, p->layout.block[i].bytes,
					     p->layout.block[i].host, l->ctx->queues.steps,
					     &pl->launch.storage[i]);
			l->ctx->observe.making = NULL;
		} else if ((pl->launch.storage[i] = calloc(1, sizeof **pl->launch.storage))) {
			*pl->launch.storage[i] = (struct yk_storage){ .refs = 1,
							       .bytes = p->layout.block[i].bytes,
							       .ctx = l->ctx };
		} else {
			err = yk_fail(YOKE_ENOMEM, "no memory to launch");
		}
	}
	if (!err)
		return 0;
	for (size_t i = 0; i < p->layout.blocks; i++)
		yk_storage_unref(pl->launch.storage[i]);
	free_blocks(l, NULL);
	return err;
}

static void note_max(uint64_t *max, uint64_t n)
{
	*max = n > *max ? n : *max;
}

// Records the predicted memory of the launch.
static void predict(const struct launch *l)
{
	struct yk_pool_stats pool;
	yk_pool_stats(l->ctx->device->pool, &pool);
	note_max(&l->ctx->stats.predicted_peak,
		 pool.allocated_bytes.current + yk_plan_bytes(l->ctx, l->p));
	note_max(&l->ctx->stats.activations, l->p->layout.activations);
	note_max(&l->ctx->stats.workspace, l->p->layout.workspace);
}

// Makes the steps, not the host, wait for uploads on a separate queue.
static int join_leaves(const struct launch *l)
{
	int err = 0;
	for (size_t i = 0; l->pl->marks.uploads && i < l->p->layout.leaves && !err; i++) {
		struct yk_storage *s = l->ctx->leaves.at[l->pl->marks.leaf[i]].storage;
		err = s ? yk_storage_join(s) : 0;
	}
	return err;
}

// Transfers the bytes of dead old versions to roots.  Nothing fails from here on.
static void donate(struct launch *l)
{
	const struct yk_planner *pl = l->pl;
	for (size_t i = 0; i < l->p->layout.blocks; i++) {
		const struct yk_root_block *b = &l->p->layout.block[i];
		if (b->donor != YK_NIL) {
			const uint32_t at = pl->marks.leaf[b->donor];
			struct yk_storage *old = l->ctx->leaves.at[at].storage;
			yk_storage_take(pl->launch.storage[i], old);
			yk_leaves_forget(old, at);
		} else if (b->home != YK_NIL) {
			const struct yk_tensor *t = pl->root[b->home].handle;
			yk_storage_take(pl->launch.storage[i], t->storage);
			yk_leaves_forget(t->storage, yk_leaf_at(t));
		}
	}
}

struct at { // an address in a block
	const struct yk_block *block;
	uint64_t offset; // bytes in its segment
};

static struct at at_of(const struct launch *l, const struct yk_ref *r)
{
	if (r->where == YK_AT_ARENA) {
		const struct yk_block *b = l->pl->launch.chunk[r->stream][r->index];
		return (struct at){ b, b->offset + r->offset };
	}
	const struct yk_storage *s = r->where == YK_AT_ROOT ?
					     l->pl->launch.storage[r->index] :
					     l->ctx->leaves.at[l->pl->marks.leaf[r->index]].storage;
	return (struct at){ s->buffer->block, yk_storage_at(s) + r->offset };
}

uint64_t yk_scalar_bits(const struct yk_planner *pl, uint32_t index)
{
	const struct yk_leaf *leaf = &pl->ctx->leaves.at[pl->marks.leaf[index]];
	if (leaf->frozen)
		return leaf->bits;
	return leaf->scalar ? yk_bits(leaf->dtype, leaf->scalar->scalar) : leaf->bits;
}

static void bind_views(struct launch *l)
{
	struct yk_plan *p = l->p;
	for (size_t i = 0; i < p->views; i++) {
		const struct yk_ref *r = &p->ref[i];
		if (r->where == YK_AT_SCALAR) {
			p->view[i].offset = yk_scalar_bits(l->pl, r->index);
		} else if (r->where != YK_AT_NONE) {
			const struct at at = at_of(l, r);
			p->view[i].segment = at.block->segment;
			p->view[i].offset = at.offset;
		}
	}
}

// Copies between device and host memory.
static int transfer(struct launch *l, const struct yk_step *s)
{
	const struct yk_ref *to = &l->p->ref[s->view], *from = to + 1;
	bool down = s->kind == YK_STEP_DOWN;
	const struct yk_ref *near = down ? to : from, *far = down ? from : to;
	const struct at host = at_of(l, near), dev = at_of(l, far);
	char *address = (char *)host.block->host + (host.offset - host.block->offset);
	struct yk_queue *q = l->ctx->stream[s->stream].queue;
	const struct yoke_backend *ops = q->device->ops;
	if (s->fallback) {
		l->ctx->stats.fallback_bytes += s->bytes;
		l->pl->fallbacks.kind[s->fallback - 1].bytes += s->bytes;
	}
	return down ? ops->get(q->handle, dev.block->segment, dev.offset, address, s->bytes) :
		      ops->put(q->handle, dev.block->segment, dev.offset, address, s->bytes);
}

// Writes the host scalars to the buffer from which the plan reads them.
static int write_numbers(struct launch *l, const struct yk_step *s)
{
	const struct at to = at_of(l, &l->p->ref[s->view]);
	for (uint32_t i = 0; i < l->p->replay.scalars; i++)
		l->pl->launch.scalar[i] = yk_scalar_bits(l->pl, l->p->replay.scalar[i]);
	return yk_upload_to(l->ctx, to.block->segment, to.offset, l->pl->launch.scalar, s->bytes);
}

// Binds the step's op to its views and workspace.
static struct yoke_op *bind_op(struct launch *l, struct yk_step *s)
{
	s->op.out = &l->p->view[s->view];
	s->op.in = s->op.out + s->op.nout;
	if (s->work_bytes) {
		const struct at at = at_of(l, &s->work);
		s->op.workspace.segment = at.block->segment;
		s->op.workspace.offset = at.offset;
	}
	return &s->op;
}

// Binds views to host addresses.
static struct yoke_op *bind_host(struct launch *l, struct yk_step *s)
{
	for (uint32_t i = s->view; i < s->view + s->views; i++) {
		const struct at at = at_of(l, &l->p->ref[i]);
		l->p->view[i].segment = (char *)at.block->host + (at.offset - at.block->offset);
		l->p->view[i].offset = 0;
	}
	s->op.out = &l->p->view[s->view];
	s->op.in = s->op.out + s->op.nout;
	return &s->op;
}

static void count_fallback(struct launch *l, const struct yk_step *s)
{
	l->ctx->stats.fallbacks++;
	l->pl->fallbacks.kind[s->fallback - 1].count++;
	if (!l->pl->fallbacks.logged)
		yk_warn("plan",
			"%s does not run %s; the CPU runs it and other unsupported ops (logged "
				"once, counted in the statistics)",
			l->ctx->device->id, yk_op_def(s->opcode)->name);
	l->pl->fallbacks.logged = true;
}

static int run_step(struct launch *l, struct yk_step *s)
{
	struct yk_queue *q = l->ctx->stream[s->stream].queue;
	const struct yoke_backend *ops = q->device->ops;
	const struct yoke_view *v = &l->p->view[s->view];
	switch (s->kind) {
	case YK_STEP_FILL:
		return yk_queue_fill(q, v->segment, v->offset, s->bytes, &s->pattern,
				     (uint32_t)yoke_dtype_size(v->dtype));
	case YK_STEP_UP:
	case YK_STEP_DOWN: return transfer(l, s);
	case YK_STEP_NUMBERS: return write_numbers(l, s);
	case YK_STEP_RANKS:
		return ops->run(q->handle, s->handle,
				s->on_device ? bind_op(l, s) : bind_host(l, s));
	}
	return ops->run(q->handle, s->handle, bind_op(l, s));
}

static int try_step(struct launch *l, struct yk_step *s, struct yk_queue *q, bool had)
{
	char why[8];
	if (s->kind == YK_STEP_RUN && s->stream == YK_STREAM_CPU && s->fallback)
		count_fallback(l, s);
	int err = run_step(l, s);
	if (err == YOKE_ENOMEM) { // retry with all memory that can be freed
		yk_queue_drain(q);
		yk_pool_make_room(q->device);
		yk_backend_detail(had, err, why, sizeof why);
		err = run_step(l, s);
	}
	// not for RANKS: other ranks may wait for later steps
	const bool check = l->pl->check.nan, own = s->kind != YK_STEP_RANKS;
	if (!err && own && (check || l->ctx->observe.sync == YK_SYNC_STEPS))
		err = yk_queue_drain(q);
	if (!err && check)
		err = yk_check_step(l->pl, l->p, s, q);
	return err;
}

// replay: the failure is that of a graph of this step and all later ones.
static void step_failed(struct launch *l, size_t at, int code, bool had, bool replay)
{
	struct yoke_context *ctx = l->ctx;
	const struct yk_step *s = &l->p->step[at];
	const struct yk_device *d = ctx->stream[s->stream].device;
	char step[700], where[800], why[600];
	yk_step_text(l->pl, s, step, sizeof step);
	snprintf(where, sizeof where, "evaluation %llu, %s %zu of %zu, %s",
		 (unsigned long long)ctx->stats.evals, replay ? "replay from step" : "step", at,
		 l->p->steps, step);
	// before later calls on a lost device fail, too
	yk_backend_detail(had, code, why, sizeof why);
	if (!yk_settle_at(ctx, where)) { // the call itself failed, not an earlier step
		yk_failure_set(ctx, code, "%s, on %s (%s%s%s) failed: %s: %s", where, d->id,
			       d->info.name, *d->info.driver ? ", " : "", d->info.driver,
			       yoke_error_name(code), why);
	}
	for (size_t i = 0; i < l->pl->roots; i++)
		ctx->failure.variables |= l->pl->root[i].handle &&
					  l->pl->root[i].handle->kind == YK_VARIABLE;
	yk_failure_report(ctx);
}

// Keeps a value's bytes with the graph, for pending operations and for gradients.
static void keep_made(struct yoke_context *ctx, const struct yk_root *r, struct yk_storage *s)
{
	struct yk_value *v = &ctx->graph.value[r->id];
	const struct yk_node *n = &ctx->graph.node[v->node];
	if (v->made != YK_NIL || n->op == YK_LEAF)
		return;
	v->made = (uint32_t)ctx->leaves.n;
	ctx->leaves.at[ctx->leaves.n++] = (struct yk_leaf){
		.kind = YK_LEAF_STORAGE,
		.dtype = v->dtype,
		.id = r->id,
		.storage = s,
		.handle = r->handle && r->handle->kind == YK_VARIABLE ? yk_handle(r->handle) : NULL,
		.op = n->op,
		.path = n->scope,
		.former = YK_NIL
	};
	s->refs++;
	s->leaves++;
}

// Takes a reference to s.
static void set_handle(struct launch *l, const struct yk_root *r, struct yk_storage *s)
{
	struct yk_tensor *t = r->handle;
	if (!t || !s->failed)
		keep_made(l->ctx, r, s);
	if (!t) {
		yk_storage_unref(s);
		return;
	}
	yk_version_set(t, s);
	if (s->failed)
		yk_take_id(t, YK_NIL);
	if (t->kind == YK_VARIABLE)
		yk_version_made(t);
	else
		t->leaf = YK_NIL;
}

// Marks nodes as computed, and records the scalars they used.
static void settle_nodes(struct launch *l)
{
	const struct yk_marks *m = &l->pl->marks;
	struct yoke_context *ctx = l->ctx;
	for (size_t i = 0; i < m->leaves; i++) {
		struct yk_leaf *leaf = &ctx->leaves.at[m->leaf[i]];
		if (leaf->kind == YK_LEAF_STORAGE) {
			yk_storage_loose(leaf->storage);
		} else { // a frozen leaf keeps its bits
			leaf->bits = yk_scalar_bits(l->pl, (uint32_t)i);
			leaf->frozen = true;
		}
	}
	for (size_t k = 0; k < m->nodes; k++)
		if (!m->made[k]) {
			struct yk_node *n = &ctx->graph.node[m->node[k]];
			if (ctx->graph.owed)
				ctx->graph.owed -= !n->done && yk_is_ranks(n);
			n->done = true;
		}
	if (m->repeated) {
		const struct yk_node *n = &ctx->graph.node[m->repeats];
		const char *scope = yk_path_name(&ctx->scopes.paths, n->scope);
		if (!ctx->stats.repeated)
			yk_warn("eval", "%zu operations, the last %s%s%s%s, are computed again "
				"because their results were not kept; apply yoke_keep to values "
				"that are read or differentiated later (logged once, counted in "
				"the statistics)", m->repeated, yk_op_def(n->op)->name,
				*scope ? " in scope \"" : "", scope, *scope ? "\"" : "");
		ctx->stats.repeated += m->repeated;
	}
}

// Stores the roots' storages; packed variables are updated in their pack.
static void place_roots(struct launch *l, int failed)
{
	struct yk_planner *pl = l->pl;
	for (size_t i = 0; i < l->p->layout.blocks; i++)
		if (pl->launch.storage[i]) {
			pl->launch.storage[i]->failed = failed;
			pl->launch.storage[i]->failure = l->ctx->failure.number;
		}
	for (size_t i = 0; i < pl->roots; i++) {
		const struct yk_root_block *b = &l->p->layout.block[l->p->layout.root_block[i]];
		pl->launch.root_storage[i] =
			b->leaf == YK_NIL ? pl->launch.storage[l->p->layout.root_block[i]] :
					    l->ctx->leaves.at[pl->marks.leaf[b->leaf]].storage;
		pl->launch.root_storage[i]->refs++;
	}
	for (size_t i = 0; i < pl->roots; i++) {
		struct yk_tensor *t = pl->root[i].handle;
		if (t && yk_is_packed(t) && pl->launch.root_storage[i] != t->storage)
			yk_pack_keep(t, pl->root[i].idle, &pl->launch.root_storage[i]);
	}
}

// Gives the roots' handles their results, or marks them as failed.
static void set_handles(struct launch *l, const uint64_t written[YK_STREAMS])
{
	struct yk_planner *pl = l->pl;
	for (size_t i = 0; i < l->p->layout.blocks; i++)
		if (pl->launch.storage[i])
			memcpy(pl->launch.storage[i]->written, written,
			       sizeof pl->launch.storage[i]->written);
	for (size_t i = 0; i < pl->roots; i++)
		set_handle(l, &pl->root[i], pl->launch.root_storage[i]);
	for (size_t i = 0; i < l->p->layout.blocks; i++)
		yk_storage_unref(pl->launch.storage[i]);
}

static void take_off(struct launch *l, struct yk_event *const done[YK_STREAMS])
{
	struct yk_plan *p = l->p;
	const struct yk_step *first = p->steps ? &p->step[p->replay.scalars > 0] : NULL,
			     *last = p->steps ? &p->step[p->steps - 1] : NULL;
	yk_event_unref(p->last);
	p->last = yk_event_ref(done[YK_STREAM_DEVICE]);
	struct yk_flight *f = &l->ctx->flights.last[l->ctx->flights.n++ % 2];
	*f = (struct yk_flight){ .serial = l->ctx->queues.steps->marks,
				 .number = l->ctx->stats.evals,
				 .steps = p->steps };
	for (int k = 0; k < YK_STREAMS; k++)
		f->done[k] = done[k];
	if (last) {
		f->op[0] = first->opcode;
		f->op[1] = last->opcode;
		f->scope[0] = first->scope;
		f->scope[1] = last->scope;
	}
}

// ---- streams ----

// Makes the step's queue wait for the events the step depends on; for the CPU's stream the host
// waits.
static int wait_for_others(struct launch *l, const struct yk_step *s)
{
	struct yk_queue *q = l->ctx->stream[s->stream].queue;
	bool host = s->stream == YK_STREAM_CPU;
	int err = 0;
	const uint64_t began = host ? yk_wait_begin() : 0;
	if (host)
		yk_work_begin(l->ctx, l->ctx->queues.steps);
	for (uint32_t i = 0; i < s->waits && !err; i++) {
		uint32_t e = l->p->sync.wait[s->wait + i];
		struct yk_event *start = NULL, *earlier = NULL;
		if (e != YK_NIL)
			earlier = l->pl->launch.event[e];
		else if (!(err = yk_event_try(l->ctx->queues.steps, &start)))
			earlier = start;
		if (!err)
			err = host || (earlier && earlier->queue == q) ?
				      yk_event_sync(earlier) :
				      yk_event_before(earlier, q);
		yk_event_unref(start);
	}
	if (host) {
		yk_work_end(l->ctx, l->ctx->queues.steps, YK_WORK_WAIT, NULL, 0);
		yk_wait_end(l->ctx, began, "a step on the CPU");
	}
	return err;
}

static int launch_step(struct launch *l, size_t i, bool had)
{
	struct yk_step *s = &l->p->step[i];
	struct yk_queue *q = l->ctx->stream[s->stream].queue;
	int err = s->waits ? wait_for_others(l, s) : 0;
	yk_work_begin(l->ctx, q);
	if (!err)
		err = try_step(l, s, q, had);
	if (!err && s->event != YK_NIL)
		err = yk_event_try(q, &l->pl->launch.event[s->event]);
	yk_work_end(l->ctx, q, YK_WORK_STEP, l->p, i);
	if (err)
		step_failed(l, i, err, had, false);
	l->ctx->stats.launches++;
	return err;
}

// ---- replay ----

static struct yk_spot spot_of(const struct yk_block *b, uint64_t offset)
{
	return (struct yk_spot){ b->segment, offset };
}

// Lists the locations of all memory that the plan's views use, and how often the device took memory
// back: the same address may be different memory after that.
static size_t find_spots(const struct launch *l)
{
	const struct yk_planner *pl = l->pl;
	const struct yk_plan *p = l->p;
	struct yk_spot *to = pl->launch.spot;
	*to++ = (struct yk_spot){ NULL, atomic_load(&l->ctx->device->freed) };
	for (size_t i = 0; i < p->layout.arena[YK_STREAM_DEVICE].n; i++) {
		const struct yk_block *b = pl->launch.chunk[YK_STREAM_DEVICE][i];
		*to++ = spot_of(b, b->offset);
	}
	for (size_t i = 0; i < p->layout.blocks; i++)
		if (pl->launch.storage[i])
			*to++ = spot_of(pl->launch.storage[i]->buffer->block,
					yk_storage_at(pl->launch.storage[i]));
	for (size_t i = 0; i < p->layout.leaves; i++) {
		const struct yk_storage *s = l->ctx->leaves.at[pl->marks.leaf[i]].storage;
		if (s && s->buffer && p->layout.leaf_bytes[i]) // otherwise a root took it over
			*to++ = spot_of(s->buffer->block, yk_storage_at(s));
	}
	return (size_t)(to - pl->launch.spot);
}

static int record_steps(void *arg)
{
	struct launch *l = arg;
	int err = 0;
	for (size_t i = l->p->replay.scalars > 0; i < l->p->steps && !err; i++)
		err = run_step(l, &l->p->step[i]);
	return err;
}

// The graph for this launch, recorded if its block locations recur; NULL: there is none.
static struct yk_graph_of *graph_of(struct launch *l, bool had)
{
	struct yk_replay *r = l->p->replay.graphs;
	char why[600];
	if (!r || r->off || yk_is_timed(l->ctx) || l->pl->check.nan ||
	    l->ctx->observe.sync == YK_SYNC_STEPS)
		return NULL;
	struct yk_graph_of *g = yk_replay_find(r, l->pl->launch.spot, find_spots(l));
	int err = g && g->seen && !g->graph ?
			  yk_replay_record(g, l->ctx->queues.steps, record_steps, l) :
			  0;
	if (err) {
		yk_backend_detail(had, err, why, sizeof why);
		yk_log(YOKE_LOG_DEBUG, "plan", "%s: %zu steps are not recorded as a graph: %s",
		       l->ctx->device->id, l->p->steps, why);
		r->off = true;
	}
	return g && g->graph ? g : NULL;
}

// Runs all steps: those after NUMBERS as a graph, if there is one.  *at: the number of steps
// attempted, if they are launched one by one.
static int run_steps(struct launch *l, bool had, size_t *at)
{
	const struct yk_plan *p = l->p;
	const uint32_t base = l->ctx->scopes.innermost ? l->ctx->scopes.innermost->path : 0;
	uint32_t scope = base; // the scope reported to the vendor's profiler
	size_t i = 0;
	int err = 0;
	if (p->replay.scalars)
		err = launch_step(l, i++, had);
	struct yk_graph_of *g = err ? NULL : graph_of(l, had);
	if (!g) {
		for (; i < p->steps && !err; i++) {
			yk_profiler_go(l->ctx, base, &scope, p->step[i].scope);
			err = launch_step(l, i, had);
		}
		yk_profiler_go(l->ctx, base, &scope, base);
		*at = i;
		return err;
	}
	yk_work_begin(l->ctx, l->ctx->queues.steps);
	err = g->ops->graph_run(l->ctx->queues.steps->handle, g->graph);
	if (err)
		step_failed(l, i, err, had, true);
	for (; i < p->steps; i++) {
		yk_work_end(l->ctx, l->ctx->queues.steps, YK_WORK_STEP, p, i);
		l->ctx->stats.launches++;
	}
	l->ctx->stats.replays++;
	return err;
}

// Makes the steps' queue wait for all streams.  The host waits for downloads: reads use the same
// queue, and would report their failures.
static int join_streams(struct launch *l)
{
	int err = 0;
	for (int k = 0; k < YK_STREAMS && !err; k++) {
		if (!(l->p->sync.unjoined >> k & 1))
			continue;
		struct yk_event *e = l->pl->launch.event[l->p->sync.last[k]];
		if (k != YK_STREAM_DOWN) {
			err = yk_event_before(e, l->ctx->queues.steps);
			continue;
		}
		const uint64_t began = yk_wait_begin();
		err = yk_event_sync(e);
		yk_wait_end(l->ctx, began, "what comes down");
	}
	return err;
}

// After a failure, waits until nothing of the run is executing, and notifies ranks that would wait
// for missing steps.
static void drain_streams(struct launch *l, size_t from)
{
	for (; from < l->p->steps; from++) {
		const struct yk_step *s = &l->p->step[from];
		if (s->kind == YK_STEP_RANKS)
			s->ops->run(l->ctx->stream[s->stream].queue->handle, s->handle, NULL);
	}
	for (int k = 0; k < YK_STREAMS; k++)
		if (l->ctx->stream[k].queue != l->ctx->queues.steps)
			yk_queue_drain(l->ctx->stream[k].queue);
}

// Marks events after the run on the steps' queue and on the other streams it uses; failures stay
// with the queues.  written: their serials.
static void mark_streams(struct launch *l, struct yk_event *done[YK_STREAMS],
			 uint64_t written[YK_STREAMS])
{
	if (yk_event_try(l->ctx->queues.steps, &done[YK_STREAM_DEVICE]) < 0)
		done[YK_STREAM_DEVICE] = NULL;
	written[YK_STREAM_DEVICE] = l->ctx->queues.steps->marks;
	for (int k = 0; k < YK_STREAMS && l->p->sync.events; k++) {
		uint32_t e = l->p->sync.last[k];
		if (e == YK_NIL || !l->pl->launch.event[e])
			continue;
		done[k] = yk_event_ref(l->pl->launch.event[e]);
		written[k] = done[k]->serial;
	}
}

bool yk_launch_fits(struct yk_planner *pl, struct yk_plan *p)
{
	struct launch l = { .pl = pl, .ctx = pl->ctx, .p = p };
	struct yk_error_aside *was = yk_error_aside();
	bool good = allocate(&l) == 0;
	for (size_t i = 0; i < p->layout.blocks && good; i++)
		yk_storage_unref(pl->launch.storage[i]);
	if (good)
		free_blocks(&l, NULL);
	yk_error_restore(was);
	return good;
}

int yk_launch(struct yk_planner *pl, struct yk_plan *p, bool *started)
{
	struct launch l = { .pl = pl, .ctx = pl->ctx, .p = p };
	struct yk_event *done[YK_STREAMS] = { NULL };
	uint64_t written[YK_STREAMS] = { 0 };
	bool had = yoke_error_code() != 0;
	*started = false;
	int err = yk_check_scalars(pl, p);
	if (err || (err = yk_check_leaves(pl, p)) < 0 || (err = join_leaves(&l)) < 0)
		return err;
	predict(&l);
	if ((err = allocate(&l)) < 0)
		return err;
	*started = true;
	donate(&l);
	bind_views(&l);
	size_t at = 0;
	if (!l.ctx->mode.dry) {
		yk_profiler_push(l.ctx, "evaluation");
		err = run_steps(&l, had, &at);
		yk_profiler_pop(l.ctx);
	}
	if (!err && p->sync.unjoined)
		err = join_streams(&l);
	place_roots(&l, err);
	mark_streams(&l, done, written); // also after a failure: earlier steps may be running
	if (p->sync.events && (err || !done[YK_STREAM_DEVICE]))
		drain_streams(&l, at ? at - 1 : p->steps);
	l.ctx->stats.assign_copies += p->layout.copies;
	l.ctx->stats.assign_copy_bytes += p->layout.copy_bytes;
	set_handles(&l, written);
	free_blocks(&l, done[YK_STREAM_DEVICE]);
	for (uint32_t i = 0; i < p->sync.events; i++)
		yk_event_unref(pl->launch.event[i]);
	take_off(&l, done);
	settle_nodes(&l);
	return err;
}
