// SPDX-License-Identifier: Apache-2.0
// Reading values back to the host, and other calls that wait for or query results.

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "device/plugin.h"
#include "plan/eval.h"
#include "plan/planner.h"

// The queue that reads a storage, and the event after which it may: later runs are not waited for.
// NULL: the queue of the steps, after all its work.
static struct yk_queue *download_queue(const struct yk_storage *s, struct yk_event **after)
{
	struct yoke_context *ctx = s->ctx;
	// of the older run
	struct yk_event *done = ctx->flights.last[ctx->flights.n % 2].done[YK_STREAM_DEVICE];
	*after = NULL;
	if (s->buffer->host) // the CPU's queue has finished with it
		return ctx->queues.cpu;
	if (ctx->queues.down == ctx->queues.steps)
		return ctx->queues.steps;
	if (s->up)
		*after = s->up;
	else if (s->written[YK_STREAM_DEVICE] && done &&
		 s->written[YK_STREAM_DEVICE] <= done->serial)
		*after = done;
	return *after ? ctx->queues.down : ctx->queues.steps;
}

// Waits separately, so that a profiler that uses the host's clock does not count the computation as
// part of the copy.  Errors stay with the queue.
static void wait_separately(struct yoke_context *ctx, struct yk_queue *q, struct yk_event *after)
{
	yk_work_begin(ctx, ctx->queues.steps);
	if (after)
		yk_event_sync(after);
	else
		yk_queue_drain(q);
	yk_work_end(ctx, ctx->queues.steps, YK_WORK_WAIT, NULL, 0);
}

// Enqueues the copy and waits for it and for all work before it.  On failure `why` has a message,
// or is empty if the queue of the steps reports it.
static int fetch(struct yk_storage *s, uint64_t from, void *to, uint64_t bytes, char *why,
		 size_t cap)
{
	struct yoke_context *ctx = s->ctx;
	struct yk_event *after;
	struct yk_queue_failure f;
	struct yk_queue *q = download_queue(s, &after);
	bool had = yoke_error_code() != 0;
	const bool waits = q->device != ctx->cpu;
	const uint64_t began = waits ? yk_wait_begin() : 0;
	int err = after ? yk_event_before(after, q) : yk_storage_join(s);
	if (!err && waits && ctx->observe.first && !yk_is_timed(ctx))
		wait_separately(ctx, q, after);
	yk_work_begin(ctx, q);
	if (!err)
		err = q->device->ops->get(q->handle, s->buffer->block->segment,
					  yk_storage_at(s) + from, to, bytes);
	*why = 0;
	if (err)
		yk_backend_detail(had, err, why, cap);
	else
		err = yk_queue_drain(q);
	// these are done as well; collect their failures
	yk_event_sync(after);
	yk_event_sync(ctx->uploads.joined);
	if (q == ctx->queues.down && q != ctx->queues.steps && yk_queue_take(q, &f) && !*why)
		snprintf(why, cap, "%s", f.why);
	yk_work_end(ctx, q, YK_WORK_DOWN, NULL, bytes);
	ctx->counts.copies_down++;
	if (waits)
		yk_wait_end(ctx, began, "a read");
	return err;
}

// Copies a computed value's bytes, from an offset on, to the host and waits.
static int download(const struct yk_tensor *t, uint64_t from, void *to, uint64_t bytes)
{
	struct yoke_context *ctx = t->ctx;
	char why[400];
	int err = fetch(t->storage, from, to, bytes, why, sizeof why);
	yk_settle_at(ctx, "read");
	if (t->storage->failed)
		return yk_failure_of(t);
	if (err && !*why)
		return yk_failure_report(ctx);
	if (err) { // stored, not reported: a lost device fails on every queue
		yk_failure_set(ctx, err, "read: %llu bytes from %s: %s", (unsigned long long)bytes,
			       ctx->device->id, why);
		return yk_failure_report(ctx);
	}
	ctx->stats.bytes_down += bytes;
	return 0;
}

// Evaluates a value that is not computed yet.
static int evaluate_pending(struct yk_tensor *t, yoke_tensor *handle, const char *call)
{
	if (t->kind == YK_HOST_SCALAR || t->kind == YK_LITERAL)
		return yk_fail(YOKE_EINVAL, "%s: takes a tensor, not a host scalar or literal",
			       call);
	yk_settle(t->ctx);
	if (yk_is_pending(t) || t->storage->failed)
		return yk_evaluate(t->ctx, 1, &handle);
	return 0;
}

static int read_tensor(struct yk_tensor *t, yoke_tensor *handle, uint64_t from, void *to,
		       size_t bytes)
{
	if (!to && bytes)
		return yk_fail(YOKE_EINVAL, "read: nowhere to put %zu bytes", bytes);
	const int err = evaluate_pending(t, handle, "read");
	return err || !bytes ? err : download(t, from, to, bytes);
}

yoke_tensor *yoke_share(yoke_tensor *handle, const void **at)
{
	if (yk_require(at, "place of the address"))
		return NULL;
	*at = NULL;
	if (yk_require(handle, "tensor"))
		return NULL;
	if (handle == YOKE_NONE) {
		yk_fail(YOKE_EINVAL, "share: takes a tensor");
		return NULL;
	}
	struct yk_tensor *t = yk_enter_of(handle, "share");
	if (!t)
		return NULL;
	struct yoke_context *ctx = t->ctx;
	yoke_tensor *shared = NULL;
	int err = evaluate_pending(t, handle, "share");
	if (!err) {
		yk_queue_drain(ctx->queues.steps);
		yk_settle_at(ctx, "share");
		err = t->storage->failed ? yk_failure_of(t) : 0;
	}
	if (!err)
		shared = yk_share_bytes(t, at);
	yk_leave(ctx);
	return shared;
}

int yoke_read(yoke_tensor *handle, void *to, size_t bytes)
{
	const int given = yk_require(handle, "tensor");
	if (given)
		return given;
	if (handle == YOKE_NONE)
		return yk_fail(YOKE_EINVAL, "read: takes a tensor");
	struct yk_tensor *t = yk_enter_of(handle, "read");
	if (!t)
		return yk_error_last();
	struct yoke_context *ctx = t->ctx;
	int err = bytes ? yk_require(to, "memory to read into") : 0;
	if (!err)
		err = bytes == yk_bytes_of(t) ?
			      read_tensor(t, handle, 0, to, bytes) :
			      yk_fail(YOKE_ESHAPE,
				      "read: the value has %zu bytes, got room for %zu",
				      yk_bytes_of(t), bytes);
	yk_leave(ctx);
	return err;
}

int yk_read_part(yoke_tensor *handle, uint64_t from, void *to, size_t bytes)
{
	struct yk_tensor *t = yk_enter_of(handle, "read");
	if (!t)
		return yk_error_last();
	struct yoke_context *ctx = t->ctx;
	const size_t all = yk_bytes_of(t);
	int err = from <= all && bytes <= all - from ?
			  read_tensor(t, handle, from, to, bytes) :
			  yk_fail(YOKE_ERANGE, "read: %zu bytes from %llu on, of a value of %zu",
				  bytes, (unsigned long long)from, all);
	yk_leave(ctx);
	return err;
}

int yoke_sync(void)
{
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	const uint64_t began = yk_wait_begin();
	yk_work_begin(ctx, ctx->queues.steps);
	yk_queue_drain(ctx->queues.up);
	yk_queue_drain(ctx->queues.steps);
	yk_work_end(ctx, ctx->queues.steps, YK_WORK_WAIT, NULL, 0);
	if (ctx->device != ctx->cpu)
		yk_wait_end(ctx, began, "yoke_sync");
	yk_settle(ctx);
	if (ctx->failure.code && !ctx->failure.reported)
		err = yk_failure_report(ctx);
	yk_leave(ctx);
	return err;
}

int yoke_stats(struct yoke_stats *to)
{
	struct yoke_context *ctx = yk_current();
	const int given = yk_sized_check(to, sizeof to->size, "stats", "yoke_stats");
	int err = given < 0 ? given : ctx ? yk_enter(ctx) : yk_error_last();
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
	s.pending_nodes = ctx->history.leftover + ctx->graph.nodes - ctx->graph.settled;
	s.live_handles = ctx->handles.live;
	s.plans = ctx->planner ? ctx->planner->cache.plans : 0;
	yk_host_programs(&s.programs_compiled, &s.programs_found);
	s.promoted_rows = yk_host_promoted();
	yk_leave(ctx);
	return yk_sized_write(to, sizeof s, &s, "stats", "yoke_stats");
}

int yoke_stats_reset_peaks(void)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx)
		return yk_error_last();
	yk_pool_reset_peaks(ctx->device->pool);
	ctx->stats.predicted_peak = ctx->stats.activations = ctx->stats.workspace = 0;
	return 0;
}
