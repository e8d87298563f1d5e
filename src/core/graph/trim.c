// SPDX-License-Identifier: Apache-2.0
// Gives cached memory of a context's devices back (yoke_trim).

#include "config.h"

#include "base/error.h"
#include "graph/context.h"

// Pinned memory of uploads that are done; the next upload takes a new block.
static void free_staging(struct yoke_context *ctx)
{
	for (size_t i = 0; i < sizeof ctx->uploads.staging / sizeof *ctx->uploads.staging; i++) {
		struct yk_staging *s = &ctx->uploads.staging[i];
		if (yk_event_sync(s->event) < 0 && !yk_event_done(s->event))
			continue; // the copy may still be running
		yk_event_unref(s->event);
		yk_pool_free(s->block, ctx->queues.up, NULL);
		s->event = NULL;
		s->block = NULL;
	}
}

int64_t yoke_trim(void)
{
	struct yoke_context *ctx = yk_current();
	const int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	if (ctx->access.callbacks)
		return yk_fail(YOKE_EINVAL, "trim: a callback of a custom op is running");
	yk_queue_drain(ctx->queues.up);
	yk_queue_drain(ctx->queues.steps);
	yk_settle(ctx); // a failure is returned by the next call that uses a value
	free_staging(ctx);
	if (ctx->graph.nodes)
		yk_history_collect(ctx); // values that only dropped operations hold
	uint64_t bytes = yk_pool_trim(ctx->device->pool) + yk_pool_trim(ctx->device->pinned);
	if (ctx->cpu != ctx->device)
		bytes += yk_pool_trim(ctx->cpu->pool) + yk_pool_trim(ctx->cpu->pinned);
	yk_leave(ctx);
	return (int64_t)bytes;
}
