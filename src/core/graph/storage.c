// SPDX-License-Identifier: Apache-2.0
// Storages: values that outlive an evaluation.  Each is a range of a buffer, which is a block of
// the pool.

#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/context.h"

// Describes the node whose result is being allocated, or else the call in progress, for the pool's
// history.
static void describe_who(struct yoke_context *ctx, struct yk_who *who, char site[YK_SITE_TEXT])
{
	const struct yk_node *n = ctx->observe.making;
	const struct yk_graph *g = &ctx->graph;
	*who = (struct yk_who){
		.op = n       ? yk_op_def(n->op)->name :
		      g->call ? g->call :
				"data",
		.range = yk_path_name(&ctx->observe.ranges, n ? n->range : g->range),
		.site = yk_site_line(&ctx->observe.sites,
				     n                   ? n->site :
				     ctx->observe.traced ? g->site :
							   0,
				     site),
	};
}

int yk_buffer_new(struct yoke_context *ctx, uint64_t bytes, bool host, struct yk_queue *q,
		  struct yk_buffer **to)
{
	struct yk_buffer *b = calloc(1, sizeof *b);
	if (!b)
		return yk_fail(YOKE_ENOMEM, "no memory for a storage");
	b->host = (host && ctx->device != ctx->cpu) || yk_is_hosts(ctx, bytes);
	struct yk_pool *pool = b->host ? ctx->cpu->pool : ctx->device->pool;
	struct yk_movable m = b->host ? (struct yk_movable){ 0 } : yk_movable(ctx);
	struct yk_who who;
	char site[YK_SITE_TEXT];
	if (yk_pool_is_recorded(pool)) {
		describe_who(ctx, &who, site);
		m.who = &who;
	}
	int err = yk_pool_alloc_among(pool, bytes, b->host ? ctx->queues.cpu : q, m, &b->block);
	if (err) {
		free(b);
		return err;
	}
	b->block->owner = &b->block;
	b->refs = 1;
	b->ctx = ctx;
	*to = b;
	return 0;
}

void yk_buffer_unref(struct yk_buffer *b)
{
	if (!b || --b->refs)
		return;
	if (b->wrapped)
		yk_wrapped_free(b->ctx, b->wrapped);
	else
		yk_pool_free(b->block, b->host ? b->ctx->queues.cpu : b->ctx->queues.steps, NULL);
	free(b);
}

int yk_storage_in(struct yk_buffer *b, uint64_t offset, uint64_t bytes, struct yk_storage **to)
{
	struct yk_storage *s = calloc(1, sizeof *s);
	if (!s)
		return yk_fail(YOKE_ENOMEM, "no memory for a storage");
	b->refs++;
	*s = (struct yk_storage){
		.refs = 1, .buffer = b, .offset = offset, .bytes = bytes, .ctx = b->ctx
	};
	*to = s;
	return 0;
}

int yk_storage_new(struct yoke_context *ctx, uint64_t bytes, bool host, struct yk_queue *q,
		   struct yk_storage **to)
{
	struct yk_buffer *b;
	int err = yk_buffer_new(ctx, bytes, host, q, &b);
	if (err)
		return err;
	err = yk_storage_in(b, 0, bytes, to);
	yk_buffer_unref(b);
	return err;
}

void yk_storage_take(struct yk_storage *s, struct yk_storage *old)
{
	s->buffer = old->buffer;
	s->offset = old->offset;
	s->home = old->home;
	old->buffer = NULL;
	old->home = NULL;
}

int yk_storage_join(struct yk_storage *s)
{
	if (!s->up)
		return 0;
	int err = yk_event_before(s->up, s->ctx->queues.steps);
	if (err)
		return err;
	struct yk_event **last = &s->ctx->uploads.joined;
	if (!*last || (*last)->serial < s->up->serial) {
		yk_event_unref(*last);
		*last = yk_event_ref(s->up);
	}
	yk_event_unref(s->up);
	s->up = NULL;
	return 0;
}

// Joins the upload first, so that the buffer's last event on the queue of the steps also covers it.
static void release(struct yk_storage *s)
{
	bool had = yoke_error_code() != 0;
	if (yk_storage_join(s) < 0) {
		if (!had)
			yoke_error_clear();
		yk_event_sync(s->up);
		yk_event_unref(s->up);
	}
	yk_buffer_unref(s->buffer);
}

void yk_storage_unref(struct yk_storage *s)
{
	if (!s)
		return;
	if (--s->refs) { // only pending operations still hold this version
		s->ctx->warn.held_bytes += s->refs == s->leaves ? s->bytes : 0;
		yk_storage_loose(s);
		return;
	}
	release(s);
	free(s);
}
