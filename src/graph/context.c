// SPDX-License-Identifier: Apache-2.0
// Contexts, scopes and handles: who owns what, and which thread is inside.

#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/plugin.h"
#include "graph/context.h"

YK_PARAM(graph_max, "graph.max", YK_INT, "1048576", "pending operations allowed; 0: any number",
	 .most = INT64_MAX);
YK_PARAM(graph_warn, "graph.warn", YK_INT, "65536",
	 "pending operations that are warned about once", .most = INT64_MAX);
YK_PARAM(eager_setting, "eager", YK_BOOL, "0",
	 "launch each operation as it is recorded, and wait: errors appear at the call");
YK_PARAM(trace_setting, "trace.ops", YK_BOOL, "0",
	 "keep where each operation is recorded: errors name the calling functions");

// Memory that only pending operations hold is warned about beyond this part of the device's.
enum { HELD_PART = 4 };

static _Thread_local struct yoke_context *current;
static _Thread_local int own_id; // the system's number of this thread, 0: not asked yet
static pthread_key_t own_key;   // a context that yk_current made goes with its thread
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

int yk_enter(struct yoke_context *ctx)
{
	int inside = 0;
	if (yk_forked())
		return yk_fail(YOKE_EFORK,
			       "devices were in use before this process was forked off and cannot be used "
			       "here; fork first, or exec");
	if (!own_id)
		own_id = (int)gettid();
	if (!atomic_compare_exchange_strong_explicit(&ctx->owner, &inside, own_id,
						     memory_order_acquire,
						     memory_order_relaxed))
		return yk_fail(YOKE_EBUSY,
			       "context %p: thread %d is inside, thread %d may not enter; "
			       "give each thread a context of its own",
			       (void *)ctx, inside, own_id);
	if (ctx->traced)
		ctx->graph.site = yk_site_here(&ctx->sites);
	return 0;
}

void yk_leave(struct yoke_context *ctx)
{
	ctx->graph.call = NULL;
	atomic_store_explicit(&ctx->owner, 0, memory_order_release);
}

static void own_free(void *ctx)
{
	if (current == ctx)
		current = NULL;
	yoke_context_free(ctx);
}

static void own_make(void)
{
	pthread_key_create(&own_key, own_free);
}

struct yoke_context *yk_current(void)
{
	if (!current && (current = yoke_context_new(NULL))) {
		pthread_once(&own_once, own_make);
		pthread_setspecific(own_key, current);
	}
	return current;
}

static void free_queues(struct yoke_context *ctx)
{
	struct yk_queue *const other[] = { ctx->down, ctx->up, ctx->cpu_queue };
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (other[i] != ctx->queue)
			yk_queue_free(other[i]);
	yk_queue_free(ctx->queue);
}

yoke_context *yoke_context_new(const char *backend)
{
	struct yk_device *device = yk_device_choose(backend), *cpu = yk_device_cpu();
	if (!device || !cpu)
		return NULL;
	struct yoke_context *ctx = calloc(1, sizeof *ctx);
	if (!ctx) {
		yk_fail(YOKE_ENOMEM, "no memory for a context");
		return NULL;
	}
	ctx->device = device;
	ctx->cpu = cpu;
	ctx->epoch = 1;
	ctx->graph.paths = &ctx->paths;
	ctx->graph.sites = &ctx->sites;
	ctx->graph.max = (size_t)yk_param_int(&graph_max);
	ctx->eager = yk_param_bool(&eager_setting);
	ctx->traced = yk_param_bool(&trace_setting);
	if (yk_path_get(&ctx->paths, 0, "") == YK_NIL) {
		yk_fail(YOKE_ENOMEM, "no memory for a context");
		goto fail;
	}
	if (yk_queue_new(device, YOKE_QUEUE_COMPUTE, &ctx->queue) < 0)
		goto fail;
	ctx->cpu_queue = ctx->up = ctx->down = ctx->queue;
	if (cpu != device && (yk_queue_new(cpu, YOKE_QUEUE_COMPUTE, &ctx->cpu_queue) < 0 ||
			      yk_queue_new(device, YOKE_QUEUE_UP, &ctx->up) < 0 ||
			      yk_queue_new(device, YOKE_QUEUE_DOWN, &ctx->down) < 0))
		goto fail;
	return ctx;
fail:
	free_queues(ctx);
	yk_paths_fini(&ctx->paths);
	free(ctx);
	return NULL;
}

void yoke_context_free(yoke_context *ctx)
{
	if (!ctx || yk_enter(ctx) < 0)
		return;
	yk_queue_drain(ctx->up);
	yk_queue_drain(ctx->queue);
	yk_settle(ctx);
	if (ctx->failure.code && !ctx->failure.told) // nobody else will hear of it
		yk_log(YOKE_LOG_ERROR, "eval", "%s", ctx->failure.text);
	while (ctx->scope) {
		struct yoke_scope *s = ctx->scope;
		ctx->scope = s->parent;
		for (struct yoke_tensor *t = s->handles; t; t = t->next)
			yk_storage_unref(t->storage);
		free(s);
	}
	for (struct yoke_tensor *t = ctx->handles; t; t = t->next)
		yk_storage_unref(t->storage);
	yk_context_reset(ctx);
	if (ctx->planner)
		ctx->planner_free(ctx->planner);
	for (int i = 0; i < 2; i++)
		yk_event_unref(ctx->flight[i].done);
	yk_event_unref(ctx->joined);
	for (int i = 0; i < 4; i++) {
		yk_event_unref(ctx->staging[i].event);
		yk_pool_free(ctx->staging[i].block, ctx->up, NULL);
	}
	free_queues(ctx);
	yk_graph_fini(&ctx->graph);
	yk_paths_fini(&ctx->paths);
	yk_sites_fini(&ctx->sites);
	yk_arena_fini(&ctx->handle_memory);
	free(ctx->leaf);
	free(ctx->root);
	if (current == ctx)
		current = NULL;
	pthread_once(&own_once, own_make);
	if (pthread_getspecific(own_key) == ctx)
		pthread_setspecific(own_key, NULL);
	free(ctx);
}

yoke_context *yoke_use(yoke_context *ctx)
{
	struct yoke_context *former = current;
	current = ctx;
	return former;
}

int yoke_random_set(uint64_t seed, int64_t step)
{
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yoke_error_code();
	if (err)
		return err;
	ctx->stale |= ctx->graph.nodes && (ctx->seed != seed || ctx->step != step);
	ctx->seed = seed;
	ctx->step = step;
	yk_leave(ctx);
	return 0;
}

// ---- handles ----

static struct yoke_tensor **list_of(struct yoke_tensor *t)
{
	return t->scope ? &t->scope->handles : &t->ctx->handles;
}

static void link_handle(struct yoke_tensor *t)
{
	struct yoke_tensor **list = list_of(t);
	t->prev = NULL;
	t->next = *list;
	if (*list)
		(*list)->prev = t;
	*list = t;
}

static void unlink_handle(struct yoke_tensor *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		*list_of(t) = t->next;
	if (t->next)
		t->next->prev = t->prev;
}

struct yoke_tensor *yk_handle_new(struct yoke_context *ctx, int kind)
{
	struct yoke_tensor *t = ctx->free_handles;
	if (t)
		ctx->free_handles = t->next;
	else if (!(t = yk_arena_alloc(&ctx->handle_memory, sizeof *t))) {
		yk_fail(YOKE_ENOMEM, "no memory for a handle");
		return NULL;
	}
	*t = (struct yoke_tensor){ .ctx = ctx,
				   .scope = ctx->scope,
				   .kind = (uint8_t)kind,
				   .id = YK_NIL,
				   .leaf = YK_NIL,
				   .root = YK_NIL };
	t->path = ctx->graph.scope;
	link_handle(t);
	ctx->live_handles++;
	return t;
}

static void warn_of_growth(struct yoke_context *ctx)
{
	bool many = ctx->graph.nodes > (size_t)yk_param_int(&graph_warn);
	uint64_t all = yk_pool_most(ctx->device->pool);
	if (!many && ctx->held_bytes <= all / HELD_PART)
		return;
	ctx->warned = true;
	yk_warn("graph",
		"%zu operations are pending, and hold %llu bytes that nothing else does; "
		"the oldest is from scope \"%s\": evaluate them (yoke_eval, yoke_read)",
		ctx->graph.nodes, (unsigned long long)ctx->held_bytes,
		yk_path_name(&ctx->paths, ctx->graph.node[0].scope));
}

struct yoke_tensor *yk_handle_of(struct yoke_context *ctx, yk_id id)
{
	struct yoke_tensor *t = yk_handle_new(ctx, YK_VALUE);
	if (!t)
		return NULL;
	const struct yk_value *v = &ctx->graph.value[id];
	t->id = id;
	t->epoch = ctx->epoch;
	t->op = ctx->graph.node[v->node].op;
	t->dtype = v->dtype;
	t->rank = v->rank;
	memcpy(t->dims, v->dims, sizeof t->dims);
	if (!ctx->warned)
		warn_of_growth(ctx);
	return t;
}

static void handle_free(struct yoke_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	if (t->root != YK_NIL)
		ctx->root[t->root] = NULL;
	if (t->kind == YK_HOST_SCALAR && t->leaf_epoch == ctx->epoch)
		for (size_t i = 0; i < ctx->leaves;
		     i++) // a scalar goes, its last value stays
			if (ctx->leaf[i].scalar == t) {
				ctx->leaf[i].scalar = NULL;
				ctx->leaf[i].ordinal =
					yk_bits(ctx->leaf[i].dtype, t->scalar);
			}
	if (t->kind == YK_VARIABLE && t->leaf_epoch == ctx->epoch)
		for (size_t i = 0; i < ctx->leaves; i++)
			if (ctx->leaf[i].variable == t)
				ctx->leaf[i].variable = NULL;
	yk_storage_unref(t->storage);
	unlink_handle(t);
	t->ctx = NULL;
	t->next = ctx->free_handles;
	ctx->free_handles = t;
	ctx->live_handles--;
}

void yoke_free(yoke_tensor *t)
{
	if (!t || t == YOKE_NONE || yk_enter(t->ctx) < 0)
		return;
	struct yoke_context *ctx = t->ctx;
	handle_free(t);
	yk_leave(ctx);
}

int yk_root(struct yoke_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	if (t->root != YK_NIL || t->id == YK_NIL || t->epoch != ctx->epoch)
		return 0;
	if (yk_grow(&ctx->root, &ctx->root_cap, ctx->roots + 1, sizeof *ctx->root) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory for a root");
	t->root = (uint32_t)ctx->roots;
	ctx->root[ctx->roots++] = t;
	return 0;
}

static void move_handle(struct yoke_tensor *t, struct yoke_scope *to)
{
	unlink_handle(t);
	t->scope = to;
	link_handle(t);
}

yoke_tensor *yoke_lift(yoke_tensor *t)
{
	if (!t || t == YOKE_NONE || yk_enter(t->ctx) < 0)
		return t;
	if (t->scope)
		move_handle(t, t->scope->parent);
	yk_leave(t->ctx);
	return t;
}

yoke_tensor *yoke_keep(yoke_tensor *t)
{
	if (!t || t == YOKE_NONE || yk_enter(t->ctx) < 0)
		return t;
	move_handle(t, NULL);
	struct yoke_context *ctx = t->ctx;
	if (yk_root(t) < 0)
		t = NULL;
	yk_leave(ctx);
	return t;
}

// ---- scopes ----

yoke_scope *yoke_scope_begin(const char *name)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx || yk_enter(ctx) < 0)
		return NULL;
	struct yoke_scope *s = calloc(1, sizeof *s);
	uint32_t path = yk_path_get(&ctx->paths, ctx->scope ? ctx->scope->path : 0,
				    name ? name : "");
	if (!s || path == YK_NIL) {
		yk_fail(YOKE_ENOMEM, "no memory for scope \"%s\"", name ? name : "");
		free(s);
		yk_leave(ctx);
		return NULL;
	}
	*s = (struct yoke_scope){ .ctx = ctx, .parent = ctx->scope, .path = path };
	if (!s->parent)
		ctx->opening++;
	ctx->scope = s;
	ctx->graph.scope = path;
	yk_leave(ctx);
	return s;
}

int yoke_scope_end(yoke_scope *s)
{
	if (!s)
		return yk_fail(YOKE_EINVAL, "scope_end: no scope");
	struct yoke_context *ctx = s->ctx;
	int err = yk_enter(ctx);
	if (err)
		return err;
	if (ctx->scope != s) {
		err = yk_fail(YOKE_EINVAL, "scope \"%s\" is not the innermost one",
			      yk_path_name(&ctx->paths, s->path));
		yk_leave(ctx);
		return err;
	}
	while (s->handles)
		handle_free(s->handles);
	ctx->scope = s->parent;
	ctx->graph.scope = s->parent ? s->parent->path : 0;
	free(s);
	yk_leave(ctx);
	return yoke_error_code();
}

void yk_context_reset(struct yoke_context *ctx)
{
	for (size_t i = 0; i < ctx->leaves; i++)
		yk_storage_unref(ctx->leaf[i].storage);
	for (size_t i = 0; i < ctx->roots; i++)
		if (ctx->root[i])
			ctx->root[i]->root = YK_NIL;
	ctx->leaves = ctx->roots = 0;
	yk_graph_clear(&ctx->graph);
	ctx->held_bytes = 0;
	ctx->stale = false;
	ctx->epoch++;
}

// ---- storages ----

int yk_storage_new(struct yoke_context *ctx, uint64_t bytes, struct yk_queue *q,
		   struct yk_storage **to)
{
	struct yk_storage *s = calloc(1, sizeof *s);
	if (!s)
		return yk_fail(YOKE_ENOMEM, "no memory for a storage");
	int err = yk_pool_alloc_among(ctx->device->pool, bytes, q, yk_movable(ctx), &s->block);
	if (err) {
		free(s);
		return err;
	}
	yk_block_own(s->block, &s->block, ctx);
	s->refs = 1;
	s->bytes = bytes;
	s->ctx = ctx;
	*to = s;
	return 0;
}

int yk_storage_join(struct yk_storage *s)
{
	if (!s->up)
		return 0;
	int err = yk_event_before(s->up, s->ctx->queue);
	if (err)
		return err;
	struct yk_event **last = &s->ctx->joined;
	if (!*last || (*last)->serial < s->up->serial) {
		yk_event_unref(*last);
		*last = yk_event_ref(s->up);
	}
	yk_event_unref(s->up);
	s->up = NULL;
	return 0;
}

// The block as it is given back: its stamp on the queue of the steps stands for the upload, too.
static void release(struct yk_storage *s)
{
	bool had = yoke_error_code() != 0;
	if (yk_storage_join(s) < 0) {
		if (!had)
			yoke_error_clear();
		yk_event_settle(s->up);
		yk_event_unref(s->up);
	}
	yk_pool_free(s->block, s->ctx->queue, NULL);
}

void yk_storage_unref(struct yk_storage *s)
{
	if (!s)
		return;
	if (--s->refs) { // a version that is over, but for what is pending
		if (s->refs == 1 && s->leaf_epoch == s->ctx->epoch)
			s->ctx->held_bytes += s->bytes;
		return;
	}
	if (s->wrapped)
		yk_wrapped_free(s->ctx, s->wrapped);
	else
		release(s);
	free(s);
}
