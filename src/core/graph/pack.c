// SPDX-License-Identifier: Apache-2.0
// Packs: variables that share one block, in the caller's order.
//
// A packed variable owns the range of the buffer that yoke_pack gave it.  Its new versions stay
// there: a plan writes them in place if it can; otherwise they are copied on the queue of the
// steps, after the readers of the old version.  An old version that is still held is moved out
// first.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/handle.h"
#include "graph/record.h"

// Copies on the queue of the steps, after the upload of `from`.
static int copy(struct yk_storage *to, struct yk_storage *from)
{
	struct yk_queue *q = to->ctx->queues.steps;
	int err = yk_storage_join(from);
	if (!err && to->bytes)
		err = yk_queue_copy(q, to->buffer->block->segment, yk_storage_at(to),
				    from->buffer->block->segment, yk_storage_at(from), to->bytes);
	memcpy(to->written, from->written, sizeof to->written);
	to->written[YK_STREAM_DEVICE] = q->marks + 1;
	return err;
}

// ---- new versions ----

// Gives an old version its own buffer; its holders are not affected.
static int move_out(struct yk_storage *s)
{
	struct yk_storage *to;
	int err = yk_storage_new(s->ctx, s->bytes, false, s->ctx->queues.steps, &to);
	if (err)
		return err;
	err = copy(to, s);
	if (!err) {
		yk_buffer_unref(s->buffer);
		yk_storage_take(s, to);
		memcpy(s->written, to->written, sizeof s->written);
	}
	yk_storage_unref(to);
	return err;
}

void yk_pack_keep(struct yk_tensor *t, bool idle, struct yk_storage **version)
{
	struct yk_storage *old = t->storage, *from = *version, *s = NULL;
	bool had = yoke_error_code() != 0;
	int err = yk_storage_in(old->buffer, old->offset, old->bytes, &s);
	if (!err && old->refs > 1 + (idle ? old->leaves : 0)) {
		err = move_out(old);
	} else if (!err) {
		yk_buffer_unref(old->buffer);
		old->buffer = NULL;
		yk_leaves_forget(old, yk_leaf_at(t));
	}
	if (!err && !from->failed)
		err = copy(s, from);
	if (err) {
		yk_storage_unref(s);
		if (!had)
			yoke_error_clear();
		return;
	}
	old->home = NULL;
	s->home = t;
	s->failed = from->failed;
	s->failure = from->failure;
	t->ctx->stats.pack_copies += !s->failed;
	t->ctx->stats.pack_copy_bytes += s->failed ? 0 : s->bytes;
	yk_storage_unref(from);
	*version = s;
}

void yk_version_set(struct yk_tensor *t, struct yk_storage *s)
{
	struct yk_storage *old = t->storage;
	if (old && old != s && old->home == t) {
		old->home = NULL;
		t->ctx->stats.unpacked += s->home != t;
	}
	yk_storage_unref(old);
	t->storage = s;
}

// ---- packing ----

static const char *name_of(const struct yk_tensor *t)
{
	return t->name ? t->name : "unnamed";
}

// The variable's size in the block: at least one unit, even without elements.
static uint64_t aligned(uint64_t bytes)
{
	return (bytes + !bytes + YK_ALIGN - 1) / YK_ALIGN * YK_ALIGN;
}

static int check(const struct yoke_context *ctx, const yoke_tensor *handle, int i,
		 struct yk_tensor **to)
{
	if (!handle || handle == YOKE_NONE)
		return yk_fail(YOKE_EINVAL, "pack: variable %d is %s", i,
			       handle ? "YOKE_NONE" : "NULL");
	struct yk_tensor *t = *to = yk_tensor(handle, "pack");
	if (!t)
		return yk_error_last();
	if (t->ctx != ctx)
		return yk_fail(YOKE_ECONTEXT, "pack: tensor %d (%s) belongs to another context", i,
			       name_of(t));
	if (t->kind != YK_VARIABLE)
		return yk_fail(YOKE_EINVAL, "pack: tensor %d is no variable%s", i,
			       t->storage && yk_is_wrapped(t->storage) ?
				       ", but memory given to yoke_wrap" : "");
	if (yk_is_pending(t))
		return yk_fail(YOKE_EINVAL,
			       "pack: variable %d (%s) has a pending value; evaluate it before", i,
			       name_of(t));
	return t->storage->failed ? yk_failure_of(t) : 0;
}

// Are all variables distinct and on the device?
static int check_variables(struct yk_tensor *const *var, int n)
{
	for (int i = 0; i < n; i++)
		if (var[i]->host)
			return yk_fail(YOKE_EINVAL,
				       "pack: variable %s is placed in the host's memory",
				       name_of(var[i]));
	return yk_lists_once((size_t)n, var, "pack");
}

// Adds up the bytes.
static int check_size(const struct yoke_context *ctx, struct yk_tensor *const *var, int n,
		      uint64_t *bytes)
{
	bool fits = true;
	*bytes = 0;
	for (int i = 0; i < n && fits; i++)
		fits = !__builtin_add_overflow(*bytes, aligned(var[i]->storage->bytes), bytes);
	if (fits && *bytes <= yk_largest(ctx))
		return 0;
	return yk_fail(YOKE_ERANGE, "pack: %d variables of %s%llu bytes do not fit one block of "
		"%s, whose largest allocation has %llu", n, fits ? "" : "more than ",
		       (unsigned long long)(fits ? *bytes : UINT64_MAX), ctx->device->id,
		       (unsigned long long)yk_largest(ctx));
}

// Fills the block with zeros and copies the variables into it.
static int fill(struct yk_buffer *b, struct yk_tensor *const *var, int n, uint64_t bytes,
		struct yk_storage **to)
{
	int err = yk_queue_fill(b->ctx->queues.steps, b->block->segment, b->block->offset, bytes,
				"", 1);
	for (int i = 0; i < n && !err; i++)
		err = copy(to[i], var[i]->storage);
	return err;
}

static void move_leaf(const struct yk_tensor *t, struct yk_leaf *l, struct yk_storage *to)
{
	struct yk_storage *old = l->storage;
	if (old != t->storage)
		return;
	l->storage = to;
	to->refs++;
	to->leaves++;
	old->leaves--;
	yk_storage_unref(old);
}

// Redirects recorded readers of the variable's version to its new storage.
static void move_leaves(const struct yk_tensor *t, struct yk_storage *to)
{
	struct yoke_context *ctx = t->ctx;
	const uint32_t first = t->leaf_epoch == ctx->history.epoch ? t->chain : YK_NIL,
		       at = yk_leaf_at(t);
	if (at != YK_NIL)
		move_leaf(t, &ctx->leaves.at[at], to);
	for (uint32_t i = first; i != YK_NIL; i = ctx->leaves.at[i].former)
		move_leaf(t, &ctx->leaves.at[i], to);
}

static int pack(struct yoke_context *ctx, struct yk_tensor *const *var, int n,
		struct yk_storage **to)
{
	uint64_t bytes, at = 0;
	struct yk_buffer *b;
	int err = check_variables(var, n);
	if (err || (err = check_size(ctx, var, n, &bytes)) < 0 ||
	    (err = yk_buffer_new(ctx, bytes, false, ctx->queues.steps, &b)) < 0)
		return err;
	for (int i = 0; i < n && !err; i++) {
		err = yk_storage_in(b, at, var[i]->storage->bytes, &to[i]);
		at += aligned(var[i]->storage->bytes);
	}
	bool had = yoke_error_code() != 0;
	char why[400];
	if (!err && (err = fill(b, var, n, bytes, to)) == YOKE_ENOMEM &&
	    yk_pool_make_room(ctx->device)) {
		yk_backend_detail(had, err, why, sizeof why);
		err = fill(b, var, n, bytes, to);
	}
	if (err && to[n - 1]) {
		yk_backend_detail(had, err, why, sizeof why);
		err = yk_fail(err, "pack: %llu bytes could not be copied on %s: %s",
			      (unsigned long long)bytes, ctx->device->id, why);
	}
	for (int i = 0; i < n; i++) {
		if (err) {
			yk_storage_unref(to[i]);
			continue;
		}
		to[i]->home = var[i];
		move_leaves(var[i], to[i]);
		yk_version_set(var[i], to[i]);
	}
	yk_buffer_unref(b);
	return err;
}

int yoke_pack(int n, yoke_tensor *const *variables)
{
	if (n < 1 || !variables)
		return yk_fail(YOKE_EINVAL, "pack: takes at least one variable");
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	struct yk_tensor **var = calloc((size_t)n, sizeof *var);
	struct yk_storage **to = calloc((size_t)n, sizeof *to);
	yk_settle(ctx);
	if (!var || !to)
		err = yk_fail(YOKE_ENOMEM, "pack: no memory for %d variables", n);
	for (int i = 0; i < n && !err; i++)
		err = check(ctx, variables[i], i, &var[i]);
	if (!err)
		err = pack(ctx, var, n, to);
	free(var);
	free(to);
	yk_leave(ctx);
	return err;
}
