// SPDX-License-Identifier: Apache-2.0
// Prefetched values: memory is allocated once and filled asynchronously from memory that the caller
// must not change until the copy is done.  Then it is shared with a scope or variable, and refilled
// after all its readers.  So launches find batches at a few fixed addresses, also when a plan is
// replayed.

#include "config.h"

#include <string.h>

#include "base/error.h"
#include "graph/context.h"
#include "graph/handle.h"

// A value on this storage, in the given scope; takes the reference.
static yoke_tensor *value_of(struct yoke_context *ctx, struct yk_scope *in, struct yk_storage *s,
			     int dtype, int rank, const int64_t *dims)
{
	struct yk_scope *scope = ctx->scopes.innermost;
	ctx->scopes.innermost = in;
	struct yk_tensor *t = yk_tensor_new(ctx, YK_VALUE, YK_LEAF);
	ctx->scopes.innermost = scope;
	if (!t) {
		yk_storage_unref(s);
		return NULL;
	}
	t->storage = s;
	t->dtype = (uint8_t)dtype;
	t->rank = (uint8_t)rank;
	memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
	return yk_handle(t);
}

yoke_tensor *yk_prefetch_new(struct yoke_context *ctx, int dtype, int rank, const int64_t *dims)
{
	uint64_t bytes = yoke_dtype_size(dtype);
	struct yk_storage *s = NULL;
	yoke_tensor *handle = NULL;
	for (int i = 0; i < rank; i++)
		bytes *= (uint64_t)dims[i];
	if (yk_enter(ctx) < 0)
		return NULL;
	if (yk_storage_new(ctx, bytes, false, ctx->queues.up, &s) == 0)
		handle = value_of(ctx, NULL, s, dtype, rank, dims);
	yk_leave(ctx);
	return handle;
}

yoke_tensor *yk_prefetch_share(yoke_tensor *ahead)
{
	const struct yk_tensor *t = yk_enter_of(ahead, "loader_next");
	if (!t)
		return NULL;
	struct yoke_context *ctx = t->ctx;
	t->storage->refs++;
	yoke_tensor *handle =
		value_of(ctx, ctx->scopes.innermost, t->storage, t->dtype, t->rank, t->dims);
	yk_leave(ctx);
	return handle;
}

yoke_tensor *yk_share_bytes(struct yk_tensor *t, const void **at)
{
	struct yk_storage *s = t->storage;
	const char *host = t->ctx->device == t->ctx->cpu ? s->buffer->block->host : NULL;
	if (!host || yk_is_packed(t)) {
		yk_fail(YOKE_EUNSUPPORTED, "share: %s; read it instead",
			yk_is_packed(t) ?
				"the variable is part of a pack, whose bytes are overwritten in place" :
				"the device's memory has no address on the host");
		return NULL;
	}
	s->refs++;
	s->buffer->block->owner = NULL; // not movable by compaction any more
	yoke_tensor *shared = value_of(t->ctx, NULL, s, t->dtype, t->rank, t->dims);
	if (shared)
		*at = host + s->offset;
	return shared;
}

bool yk_prefetch_free(yoke_tensor *ahead)
{
	const struct yk_tensor *t = yk_enter_of(ahead, "loader_next");
	if (!t)
		return false;
	struct yoke_context *ctx = t->ctx;
	struct yk_storage *s = t->storage;
	struct yk_event *e = NULL;
	bool free =
		s->refs == 1 && t->id == YK_NIL &&
		(ctx->queues.up == ctx->queues.steps || yk_event_try(ctx->queues.steps, &e) == 0);
	if (free && e)
		free = yk_event_before(e, ctx->queues.up) == 0;
	yk_event_unref(e);
	if (free) {
		s->failed = 0;
		memset(s->written, 0, sizeof s->written);
	}
	yk_leave(ctx);
	return free;
}

// Copies on the upload queue; *done is its event.  A value too large for the device is in place on
// return, without event.
static int bring(struct yoke_context *ctx, struct yk_storage *s, const void *from,
		 struct yk_event **done)
{
	struct yk_queue *q = s->buffer->host ? ctx->queues.cpu : ctx->queues.up;
	struct yk_event *e = NULL;
	yk_work_begin(ctx, q);
	int err = q->device->ops->put(q->handle, s->buffer->block->segment, yk_storage_at(s), from,
				      s->bytes);
	if (!err && q != ctx->queues.cpu)
		err = yk_event_mark(q, &e);
	yk_work_end(ctx, q, YK_WORK_UP, NULL, s->bytes);
	if (err)
		yk_queue_drain(q); // the failed copy may still read `from`
	if (!err && e) {
		struct yk_prefetch *a = &ctx->uploads.ahead[ctx->uploads.aheads++ % YK_AHEAD];
		yk_event_unref(a->event);
		*a = (struct yk_prefetch){ yk_event_ref(e), ctx->queues.steps->marks };
		yk_event_unref(s->up);
		s->up = yk_event_ref(e);
		s->written[YK_STREAM_UP] = e->serial;
	}
	if (!err)
		ctx->stats.bytes_up += s->bytes;
	*done = e;
	return err;
}

int yk_prefetch_fill(yoke_tensor *handle, const void *from, struct yk_event **done)
{
	char why[400];
	*done = NULL;
	struct yk_tensor *t = yk_enter_of(handle, "loader_next");
	if (!t)
		return yk_error_last();
	struct yoke_context *ctx = t->ctx;
	yk_settle(ctx); // earlier failures do not concern this value; also notes finished uploads
	const bool had = yoke_error_code() != 0;
	const int err = bring(ctx, t->storage, from, done);
	if (err) {
		yk_backend_detail(had, err, why, sizeof why);
		if (yk_settle(ctx))
			ctx->failure.reported = true; // by the error of this call
		yk_fail(err, "%llu bytes could not be copied to %s: %s",
			(unsigned long long)t->storage->bytes, ctx->device->id, why);
	}
	yk_leave(ctx);
	return err;
}

int yk_prefetch_put(yoke_tensor *variable, yoke_tensor *ahead)
{
	const struct yk_tensor *from = yk_enter_of(ahead, "loader_put");
	if (!from)
		return yk_error_last();
	struct yoke_context *ctx = from->ctx;
	struct yk_tensor *t = yk_tensor_in(ctx, variable);
	const int err = t && t->kind == YK_VARIABLE ? 0 :
			yk_fail(YOKE_EINVAL, "loader_put: takes variables of the current context");
	if (!err) {
		from->storage->refs++;
		yk_materialised(t, from->storage);
	}
	yk_leave(ctx);
	return err;
}
