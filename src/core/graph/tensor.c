// SPDX-License-Identifier: Apache-2.0
// Tensors as the application sees them: ownership by scopes, keeping and freeing, shape and dtype.

#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/context.h"
#include "graph/handle.h"

// Warns when pending operations alone hold more than 1/HELD_PART of the device's memory.
enum { HELD_PART = 4 };

static struct yk_tensor **list_of(struct yk_tensor *t)
{
	return t->scope ? &t->scope->handles : &t->ctx->handles.list;
}

// Handles outside scopes are not freed at the end of a step, and each evaluation visits all of
// them.
static void warn_of_handles(struct yk_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	ctx->warn.handles_logged = true;
	yk_warn("graph",
		"%llu handles are in no scope, the last one %s%s: they stay until they are freed, and slow each "
		"evaluation.  Put what a loop does between yoke_scope_begin and yoke_scope_end, or yoke_free what is not "
		"needed (graph.handles sets the number)",
		(unsigned long long)ctx->warn.unscoped,
		t->kind == YK_VALUE ? "a result of " : "a number",
		t->kind == YK_VALUE ? yk_op_def(t->op)->name : "");
}

static bool is_stray(const struct yk_tensor *t)
{
	return !t->scope && t->kind != YK_VARIABLE;
}

static void link_handle(struct yk_tensor *t)
{
	struct yk_tensor **list = list_of(t);
	if (is_stray(t) && ++t->ctx->warn.unscoped > t->ctx->warn.max_unscoped &&
	    t->ctx->warn.max_unscoped && !t->ctx->warn.handles_logged)
		warn_of_handles(t);
	t->prev = NULL;
	t->next = *list;
	if (*list)
		(*list)->prev = t;
	*list = t;
}

static void unlink_handle(struct yk_tensor *t)
{
	t->ctx->warn.unscoped -= is_stray(t);
	if (t->prev)
		t->prev->next = t->next;
	else
		*list_of(t) = t->next;
	if (t->next)
		t->next->prev = t->prev;
}

struct yk_tensor *yk_tensor_new(struct yoke_context *ctx, int kind, int op)
{
	struct yk_tensor *t = yk_slot_alloc(ctx, kind, op);
	if (!t)
		return NULL;
	t->scope = ctx->scopes.innermost;
	t->path = ctx->graph.scope;
	link_handle(t);
	return t;
}

static void warn_of_growth(struct yoke_context *ctx)
{
	if (ctx->graph.nodes - ctx->graph.settled <= ctx->warn.max_nodes &&
	    (!ctx->warn.held_bytes ||
	     ctx->warn.held_bytes <= yk_pool_capacity(ctx->device->pool) / HELD_PART))
		return;
	ctx->warn.nodes_logged = true;
	yk_warn("graph",
		"%zu operations are pending, and hold %llu bytes that nothing else does; "
		"the oldest is from scope \"%s\": evaluate them (yoke_eval, yoke_read)",
		ctx->graph.nodes - ctx->graph.settled, (unsigned long long)ctx->warn.held_bytes,
		yk_path_name(&ctx->scopes.paths, ctx->graph.node[ctx->graph.settled].scope));
}

yoke_tensor *yk_handle_of(struct yoke_context *ctx, yk_id id)
{
	const struct yk_value *v = &ctx->graph.value[id];
	struct yk_tensor *t = yk_tensor_new(ctx, YK_VALUE, ctx->graph.node[v->node].op);
	if (!t)
		return NULL;
	t->id = id;
	ctx->history.holders++;
	t->dtype = v->dtype;
	t->rank = v->rank;
	memcpy(t->dims, v->dims, sizeof t->dims);
	if (!ctx->warn.nodes_logged)
		warn_of_growth(ctx);
	return yk_handle(t);
}

// Detaches the leaves of a variable or scalar that is freed; a scalar's last number stays.
static void leave_leaves(struct yk_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	if (t->leaf_epoch != ctx->history.epoch)
		return;
	for (uint32_t i = t->chain; i != YK_NIL; i = ctx->leaves.at[i].former) {
		struct yk_leaf *l = &ctx->leaves.at[i];
		if (l->scalar && !l->frozen)
			l->bits = yk_bits(l->dtype, t->scalar);
		l->scalar = NULL;
		l->variable = NULL;
	}
}

// Releases a tensor that is already out of its list.
static void release(struct yk_tensor *t, enum yk_end end)
{
	if (t->root != YK_NIL)
		t->ctx->pending.root[t->root] = NULL;
	leave_leaves(t);
	if (t->kind == YK_VALUE)
		yk_moved_unref(t->moved);
	if (yk_is_packed(t))
		t->storage->home = NULL;
	if (t->storage)
		yk_storage_unref(t->storage);
	yk_take_id(t, YK_NIL);
	yk_slot_leave(t, end);
}

void yk_tensor_free(struct yk_tensor *t, enum yk_end end)
{
	unlink_handle(t);
	release(t, end);
}

void yk_tensors_free(struct yk_tensor **list, enum yk_end end)
{
	struct yk_tensor *t = *list;
	*list = NULL;
	for (struct yk_tensor *next; t; t = next) {
		next = t->next;
		release(t, end);
	}
}

struct yk_tensor *yk_enter_of(const yoke_tensor *t, const char *call)
{
	struct yk_tensor *s = yk_tensor(t, call);
	struct yoke_context *ctx = s ? s->ctx : NULL;
	if (!ctx || yk_enter(ctx) < 0)
		return NULL;
	if (!(s = yk_tensor(t, call))) // another thread requested its release
		yk_leave(ctx);
	return s;
}

void yoke_free(yoke_tensor *t)
{
	if (!t || t == YOKE_NONE)
		return;
	if (yk_fork_check() < 0)
		return;
	struct yoke_context *ctx = yk_current_or_null();
	if (!ctx || !yk_tensor_in(ctx, t) || yk_try_enter(ctx)) {
		yk_free_later(t);
		return;
	}
	struct yk_tensor *s = yk_tensor_in(ctx, t); // another thread may have requested its release
	if (s)
		yk_tensor_free(s, YK_END_FREED);
	yk_leave(ctx);
}

int yk_roots_reserve(struct yoke_context *ctx, size_t more)
{
	if (yk_grow(&ctx->pending.root, &ctx->pending.root_cap, ctx->pending.roots + more,
		    sizeof *ctx->pending.root) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory for a root");
	return 0;
}

int yk_root(struct yk_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	if (t->root != YK_NIL || !yk_is_pending(t))
		return 0;
	int err = yk_roots_reserve(ctx, 1);
	if (err)
		return err;
	t->root = (uint32_t)ctx->pending.roots;
	ctx->pending.root[ctx->pending.roots++] = t;
	return 0;
}

// Removes the gaps that freed roots left, when the array is full.
static void close_gaps(struct yoke_context *ctx)
{
	size_t n = 0;
	if (ctx->pending.roots < ctx->pending.root_cap)
		return;
	for (size_t i = 0; i < ctx->pending.roots; i++)
		if (ctx->pending.root[i]) {
			ctx->pending.root[i]->root = (uint32_t)n;
			ctx->pending.root[n++] = ctx->pending.root[i];
		}
	ctx->pending.roots = n;
}

static void move_handle(struct yk_tensor *t, struct yk_scope *to)
{
	unlink_handle(t);
	t->scope = to;
	link_handle(t);
}

int yk_scope_close_lifting(struct yoke_context *ctx, uintptr_t serial, int n,
			   yoke_tensor *const *of)
{
	int err = 0;
	for (int i = 0; i < n && !err; i++) {
		struct yk_tensor *t = of[i] && of[i] != YOKE_NONE ? yk_tensor(of[i], "lift") : NULL;
		if (t && t->scope && t->scope->serial == serial)
			move_handle(t, t->scope->parent);
		else if (!t && of[i] && of[i] != YOKE_NONE)
			err = yoke_error_code();
	}
	const int ended = yk_scope_close(ctx, serial);
	return err ? err : ended;
}

yoke_tensor *yoke_lift(yoke_tensor *handle)
{
	struct yk_tensor *t;
	if (yk_require(handle, "tensor") || handle == YOKE_NONE)
		return handle;
	if (!(t = yk_enter_of(handle, "lift")))
		return NULL;
	if (t->scope)
		move_handle(t, t->scope->parent);
	yk_leave(t->ctx);
	return handle;
}

yoke_tensor *yoke_keep(yoke_tensor *handle)
{
	struct yk_tensor *t;
	if (yk_require(handle, "tensor") || handle == YOKE_NONE)
		return handle;
	if (!(t = yk_enter_of(handle, "keep")))
		return NULL;
	close_gaps(t->ctx);
	if (yk_root(t) < 0)
		handle = NULL;
	else
		move_handle(t, NULL);
	yk_leave(t->ctx);
	return handle;
}

// ---- facts about a handle ----

static int64_t count_of(const struct yk_tensor *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->dims[i];
	return n;
}

static const struct yk_tensor *fact(const yoke_tensor *t, const char *call)
{
	if (t == YOKE_NONE)
		yk_fail(YOKE_EINVAL, "%s: YOKE_NONE is no tensor", call);
	return t == YOKE_NONE || yk_require_as(t, call, "tensor") ? NULL : yk_tensor(t, call);
}

size_t yk_bytes_of(const struct yk_tensor *t)
{
	return (size_t)count_of(t) * yoke_dtype_size(t->dtype);
}

int yoke_rank(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "rank");
	return t ? t->rank : yk_error_last();
}

int yoke_dtype(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "dtype");
	return t ? t->dtype : yk_error_last();
}

int yoke_is_variable(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "is_variable");
	return t ? t->kind == YK_VARIABLE : YOKE_EINVAL;
}

const char *yoke_device_of(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "device_of");
	return t ? t->ctx->device->id : NULL;
}

yoke_context *yoke_context_of(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "context_of");
	return t ? t->ctx : NULL;
}

int64_t yoke_dim(const yoke_tensor *handle, int axis)
{
	const struct yk_tensor *t = fact(handle, "dim");
	if (!t)
		return yk_error_last();
	if (axis < 0)
		axis += t->rank;
	return axis >= 0 && axis < t->rank ? t->dims[axis] : YOKE_ERANGE;
}

int64_t yoke_count(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "count");
	return t ? count_of(t) : yk_error_last();
}

size_t yoke_bytes(const yoke_tensor *handle)
{
	const struct yk_tensor *t = fact(handle, "bytes");
	return t ? yk_bytes_of(t) : 0;
}
