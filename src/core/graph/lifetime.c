// SPDX-License-Identifier: Apache-2.0
// Creates and frees contexts, and admits one thread at a time to a context.

#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/system.h"
#include "device/plugin.h"
#include "graph/context.h"
#include "graph/handle.h"

YK_PARAM(graph_warn, "graph.warn", YK_INT, "65536", "pending operations that are warned about once",
	 .max = INT64_MAX);
YK_PARAM(graph_max, "graph.max", YK_INT, "1048576", "pending operations allowed; 0: any number",
	 .max = INT64_MAX);
YK_PARAM(graph_handles, "graph.handles", YK_INT, "10000",
	 "handles outside of scopes, but for variables, that are warned "
	 "about once; 0: never",
	 .max = INT64_MAX);
YK_PARAM(eager_setting, "eager", YK_BOOL, "0",
	 "launch each operation as it is recorded and wait for it, so that errors appear at the "
		"call");
YK_PARAM(trace_setting, "trace.ops", YK_BOOL, "0",
	 "record the call site of each operation, so that errors name the calling functions");

int (*yk_eager_hook)(struct yoke_context *);

static _Thread_local struct yoke_context *current;
static _Thread_local int own_id; // thread id from the system, 0: not yet queried
static pthread_key_t own_key;   // frees the contexts that yk_context_on made when their thread ends
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

// All contexts, with the thread that used each last.
static struct {
	pthread_mutex_t lock;
	struct yoke_context *first;
	uint64_t uses;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int thread_number(void)
{
	if (!own_id)
		own_id = yk_thread_number();
	return own_id;
}

// Notes that this thread uses a context, if it still exists.
static void note_use(struct yoke_context *ctx)
{
	if (!ctx || yk_forked())
		return;
	pthread_mutex_lock(&all.lock);
	struct yoke_context *c = all.first;
	while (c && c != ctx)
		c = c->access.next;
	if (c) {
		c->access.user = thread_number();
		c->access.used = ++all.uses;
	}
	pthread_mutex_unlock(&all.lock);
}

static void list_add(struct yoke_context *ctx)
{
	pthread_mutex_lock(&all.lock);
	ctx->access.next = all.first;
	all.first = ctx;
	pthread_mutex_unlock(&all.lock);
	note_use(ctx);
}

static void list_remove(struct yoke_context *ctx)
{
	pthread_mutex_lock(&all.lock);
	struct yoke_context **at = &all.first;
	while (*at != ctx)
		at = &(*at)->access.next;
	*at = ctx->access.next;
	pthread_mutex_unlock(&all.lock);
}

int yk_fork_check(void)
{
	if (!yk_forked())
		return 0;
	return yk_fail(YOKE_EFORK,
		       "devices were in use before this process was forked off and cannot be used "
		       "here; fork first, or exec");
}

static inline int try_enter(struct yoke_context *ctx)
{
	int inside = 0;
	const int thread = thread_number();
	if (!atomic_compare_exchange_strong_explicit(&ctx->access.owner, &inside, thread,
						     memory_order_acquire,
						     memory_order_relaxed))
		return inside == thread && ctx->access.callbacks ? 0 : inside;
	if (atomic_load_explicit(&ctx->handles.deferrals, memory_order_relaxed))
		yk_free_deferred(ctx);
	return 0;
}

int yk_try_enter(struct yoke_context *ctx)
{
	return try_enter(ctx);
}

int yk_enter(struct yoke_context *ctx)
{
	int err = yk_fork_check();
	if (err)
		return err;
	int inside = try_enter(ctx);
	if (inside)
		return yk_fail(YOKE_EBUSY,
			       "context %p: thread %d is inside, thread %d may not enter; "
			       "create a context for each thread",
			       (void *)ctx, inside, own_id);
	if (ctx->observe.traced)
		ctx->graph.site = yk_site_here(&ctx->observe.sites);
	return 0;
}

void yk_leave(struct yoke_context *ctx)
{
	if (ctx->access.callbacks) { // the enclosing call is still inside
		ctx->graph.call = NULL;
		return;
	}
	if (ctx->graph.nodes && yk_history_is_unused(ctx))
		yk_history_drop(ctx);
	// with no scope open, handles are freed one by one, and nodes that only they needed stay
	// pending
	if (ctx->history.loose > ctx->history.bound ||
	    (!ctx->scopes.innermost && yk_history_is_long(ctx)))
		yk_history_collect(ctx);
	ctx->graph.call = NULL;
	atomic_store_explicit(&ctx->access.owner, 0, memory_order_release);
}

// Finds a context that ends with this thread, and detaches it from the thread; NULL: none is left.
static struct yoke_context *own_take(void)
{
	pthread_mutex_lock(&all.lock);
	struct yoke_context *c = all.first;
	while (c && c->access.maker != thread_number())
		c = c->access.next;
	if (c)
		c->access.maker = 0;
	pthread_mutex_unlock(&all.lock);
	return c;
}

static void own_free(void *unused)
{
	(void)unused;
	for (struct yoke_context *ctx; (ctx = own_take());) {
		if (current == ctx)
			current = NULL;
		yoke_context_free(ctx);
	}
}

static void own_make(void)
{
	pthread_key_create(&own_key, own_free);
}

struct yoke_context *yk_current_or_null(void)
{
	return current;
}

// Makes the context end with this thread.
static struct yoke_context *own(struct yoke_context *ctx)
{
	if (!ctx)
		return NULL;
	pthread_mutex_lock(&all.lock);
	ctx->access.maker = thread_number();
	pthread_mutex_unlock(&all.lock);
	pthread_once(&own_once, own_make);
	pthread_setspecific(own_key, &all); // any pointer but NULL has own_free called
	return ctx;
}

struct yoke_context *yk_current(void)
{
	if (!current)
		current = own(yoke_context_new(NULL));
	return current;
}

static void free_queues(struct yoke_context *ctx)
{
	struct yk_queue *const other[] = { ctx->stream[YK_STREAM_RANKS].queue, ctx->queues.down,
					   ctx->queues.up, ctx->queues.cpu };
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (other[i] !=
		    ctx->queues.steps) // streams without a queue of their own use ctx->queue
			yk_queue_free(other[i]);
	yk_queue_free(ctx->queues.steps);
}

static yoke_context *context_new(struct yk_device *device, bool dry)
{
	struct yk_device *cpu = device ? yk_device_cpu() : NULL;
	if (device && cpu && device->backend == cpu->backend)
		cpu = device; // the chosen one of several CPU devices
	if (dry && device && cpu) {
		device = yk_device_dry(device);
		cpu = yk_device_dry(cpu);
	}
	if (!device || !cpu)
		return NULL;
	struct yoke_context *ctx = calloc(1, sizeof *ctx);
	if (!ctx) {
		yk_fail(YOKE_ENOMEM, "no memory for a context");
		return NULL;
	}
	atomic_init(&ctx->access.refs, 1);
	ctx->mode.dry = dry;
	ctx->device = device;
	ctx->cpu = cpu;
	ctx->history.epoch = 1;
	ctx->random.setting = 1; // that of no path
	ctx->graph.paths = &ctx->scopes.paths;
	ctx->graph.sites = &ctx->observe.sites;
	ctx->graph.max = (size_t)yk_param_int(&graph_max);
	ctx->warn.max_nodes = (size_t)yk_param_int(&graph_warn);
	ctx->warn.max_unscoped = (uint64_t)yk_param_int(&graph_handles);
	ctx->mode.eager = yk_param_bool(&eager_setting);
	ctx->observe.traced = yk_param_bool(&trace_setting);
	if (yk_sync_setting(&ctx->observe.sync) < 0)
		goto fail;
	if (yk_path_get(&ctx->scopes.paths, 0, "") == YK_NIL) {
		yk_fail(YOKE_ENOMEM, "no memory for a context");
		goto fail;
	}
	if (yk_queue_new(device, YOKE_QUEUE_COMPUTE, &ctx->queues.steps) < 0)
		goto fail;
	ctx->queues.cpu = ctx->queues.up = ctx->queues.down = ctx->queues.steps;
	if (cpu != device && (yk_queue_new(cpu, YOKE_QUEUE_COMPUTE, &ctx->queues.cpu) < 0 ||
			      yk_queue_new(device, YOKE_QUEUE_UP, &ctx->queues.up) < 0 ||
			      yk_queue_new(device, YOKE_QUEUE_DOWN, &ctx->queues.down) < 0))
		goto fail;
	ctx->stream[YK_STREAM_DEVICE] = (struct yk_stream){ device, ctx->queues.steps };
	ctx->stream[YK_STREAM_CPU] = (struct yk_stream){ cpu, ctx->queues.cpu };
	ctx->stream[YK_STREAM_UP] = (struct yk_stream){ device, ctx->queues.up };
	ctx->stream[YK_STREAM_DOWN] = (struct yk_stream){ device, ctx->queues.down };
	ctx->stream[YK_STREAM_RANKS] = (struct yk_stream){ device, ctx->queues.steps };
	yk_profiler_open(ctx);
	list_add(ctx);
	return ctx;
fail:
	free_queues(ctx);
	yk_paths_fini(&ctx->scopes.paths);
	free(ctx);
	return NULL;
}

yoke_context *yoke_context_new(const char *backend)
{
	return context_new(yk_device_choose(backend), false);
}

yoke_context *yoke_context_dry(const char *backend)
{
	return yk_context_dry(yk_device_choose(backend));
}

struct yoke_context *yk_context_dry(struct yk_device *device)
{
	return context_new(device, true);
}

bool yk_context_has(const struct yoke_context *ctx, const struct yk_device *d)
{
	return ctx->device == d || ctx->device->real == d;
}

struct yoke_context *yk_context_on(struct yk_device *d, bool dry)
{
	struct yoke_context *found = NULL;
	if (!d || (current && current->mode.dry == dry && yk_context_has(current, d)))
		return d ? current : NULL;
	pthread_mutex_lock(&all.lock);
	for (struct yoke_context *c = all.first; c; c = c->access.next)
		if (c->access.user == thread_number() && c->mode.dry == dry &&
		    yk_context_has(c, d) && (!found || found->access.used < c->access.used))
			found = c;
	pthread_mutex_unlock(&all.lock);
	return found ? found : own(context_new(d, dry));
}

yoke_context *yoke_context_on(const char *device)
{
	const bool dry = current && current->mode.dry;
	return yk_require(device, "name of a device") ? NULL :
							yk_context_on(yk_device_named(device), dry);
}

const char *yoke_device_name(int i)
{
	return yk_device_at(i);
}

yoke_context *yoke_context_new_on(const char *device)
{
	return yk_require(device, "name of a device") ? NULL :
							context_new(yk_device_named(device), false);
}

void yoke_context_free(yoke_context *ctx)
{
	if (!ctx || yk_enter(ctx) < 0)
		return;
	if (ctx->access.callbacks) {
		yk_fail(YOKE_EINVAL, "context_free: a callback of a custom op is running in it");
		return;
	}
	yk_queue_drain(ctx->queues.up);
	yk_queue_drain(ctx->queues.steps);
	yk_settle(ctx);
	// The last chance to report it; a device marked as lost reports its failure at every use.
	if (ctx->failure.code && !ctx->failure.reported && !ctx->device->left)
		yk_log(YOKE_LOG_ERROR, "eval", "%s", ctx->failure.text);
	yk_tensors_free(&ctx->handles.list, YK_END_CONTEXT);
	while (ctx->scopes.innermost) {
		struct yk_scope *s = ctx->scopes.innermost;
		ctx->scopes.innermost = s->parent;
		if (s->casts) // otherwise `former` is not set
			free(s->former.keep);
		yk_tensors_free(&s->handles, YK_END_CONTEXT);
		free(s);
	}
	for (struct yk_scope *s; (s = ctx->scopes.idle);) {
		ctx->scopes.idle = s->parent;
		free(s);
	}
	yk_history_drop(ctx);
	if (ctx->planner)
		ctx->planner_free(ctx->planner);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < YK_STREAMS; k++)
			yk_event_unref(ctx->flights.last[i].done[k]);
	yk_event_unref(ctx->uploads.joined);
	for (int i = 0; i < 4; i++) {
		yk_event_unref(ctx->uploads.staging[i].event);
		yk_pool_free(ctx->uploads.staging[i].block, ctx->queues.up, NULL);
	}
	for (int i = 0; i < YK_AHEAD; i++)
		yk_event_unref(ctx->uploads.ahead[i].event);
	free_queues(ctx);
	yk_graph_fini(&ctx->graph);
	yk_paths_fini(&ctx->scopes.paths);
	yk_sites_fini(&ctx->observe.sites);
	yk_ranges_fini(ctx);
	yk_waited_free(ctx->observe.waited);
	yk_slots_return(ctx);
	yk_arena_fini(&ctx->handles.names);
	free(ctx->autocast.setting.keep);
	free(ctx->autocast.casts.held);
	free(ctx->leaves.at);
	free(ctx->pending.root);
	free(ctx->pending.assigned);
	free(ctx->history.former);
	if (current == ctx)
		current = NULL;
	list_remove(ctx);
	ctx->access.ended = true;
	yk_context_unref(ctx);
}

struct yoke_context *yk_context_ref(struct yoke_context *ctx)
{
	atomic_fetch_add(&ctx->access.refs, 1);
	return ctx;
}

void yk_context_unref(struct yoke_context *ctx)
{
	if (atomic_fetch_sub(&ctx->access.refs, 1) == 1)
		free(ctx);
}

yoke_context *yoke_use(yoke_context *ctx)
{
	struct yoke_context *former = current;
	current = ctx;
	note_use(ctx);
	return former;
}

int yoke_random_set(uint64_t seed, int64_t step)
{
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	if (ctx->random.seed != seed || ctx->random.step != step) {
		ctx->scopes.opening++; // random calls are counted from 0 again
		ctx->random.step_epoch = 0; // the step gets a new leaf
	}
	ctx->random.seed = seed;
	ctx->random.step = step;
	ctx->random.setting++; // a step that is repeated draws the same numbers
	ctx->random.drawn = 0;
	yk_leave(ctx);
	return 0;
}
