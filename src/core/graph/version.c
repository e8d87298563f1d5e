// SPDX-License-Identifier: Apache-2.0
// Versions of variables: the value of the graph that a variable refers to.
//
// An assigned variable refers to the assigned value of the graph, before and after its evaluation,
// so reading it changes no gradient.  When the outermost scope with an assignment closes, the
// version becomes a leaf: later gradients do not pass through the assignment, whether or not it was
// evaluated.

#include "config.h"

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"
#include "graph/handle.h"

// Sets the value of the graph that has the bytes of the tensor's storage; YK_NIL: none is known.
static void set_leaf(struct yk_tensor *t, yk_id leaf)
{
	if (leaf != YK_NIL && t->leaf_epoch != t->ctx->history.epoch) {
		t->leaf_epoch = t->ctx->history.epoch;
		t->chain = YK_NIL; // belongs to an earlier graph
	}
	t->leaf = leaf;
}

uint32_t yk_leaf_of_value(const struct yoke_context *ctx, yk_id v)
{
	const struct yk_node *n = yk_maker(&ctx->graph, v);
	return n->op == YK_LEAF ? (uint32_t)yk_attrs(&ctx->graph, n)[0].i :
				  ctx->graph.value[v].made;
}

uint32_t yk_leaf_at(const struct yk_tensor *t)
{
	const struct yoke_context *ctx = t->ctx;
	if (t->leaf == YK_NIL || t->leaf_epoch != ctx->history.epoch)
		return YK_NIL;
	const uint32_t at = yk_leaf_of_value(ctx, t->leaf);
	return at != YK_NIL && ctx->leaves.at[at].storage == t->storage ? at : YK_NIL;
}

static void forget(struct yoke_context *ctx, uint32_t at)
{
	struct yk_value *v = &ctx->graph.value[ctx->leaves.at[at].id];
	if (v->made == at)
		v->made = YK_NIL;
}

void yk_leaves_forget(const struct yk_storage *s, uint32_t at)
{
	struct yoke_context *ctx = s->ctx;
	uint32_t left = s->leaves;
	if (at != YK_NIL && ctx->leaves.at[at].storage == s) {
		forget(ctx, at);
		left--;
	}
	for (uint32_t i = (uint32_t)ctx->leaves.n; left && i-- > 0;)
		if (i != at && ctx->leaves.at[i].storage == s) {
			forget(ctx, i);
			left--;
		}
}

bool yk_leaf_is_named(const struct yoke_context *ctx, const struct yk_leaf *l)
{
	const struct yk_tensor *t = l->handle ? yk_tensor_in(ctx, l->handle) : NULL;
	if (yk_moved_lives(l->moved))
		return true;
	if (!t || t->kind != YK_VARIABLE)
		return t != NULL;
	return !yk_is_pending(t) && t->leaf == l->id && t->leaf_epoch == ctx->history.epoch;
}

// ---- assignments ----

// Notes that the variable was assigned in the open outermost scope.
static int note(struct yk_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	if (!ctx->scopes.innermost || t->outermost == ctx->scopes.outermost)
		return 0;
	if (yk_grow(&ctx->pending.assigned, &ctx->pending.assigned_cap, ctx->pending.nassigned + 1,
		    sizeof *ctx->pending.assigned) < 0)
		return yk_fail(YOKE_ENOMEM, "assign: no memory");
	ctx->pending.assigned[ctx->pending.nassigned++] = yk_handle(t);
	t->outermost = ctx->scopes.outermost;
	return 0;
}

void yk_version_end(struct yk_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	t->version++;
	t->origin = (struct yk_origin){ 0 };
	const yk_id v = yk_version_of(t);
	if (v == YK_NIL)
		return;
	const bool is_leaf = yk_maker(&ctx->graph, v)->op == YK_LEAF;
	const struct yk_leaf *l = is_leaf ? &ctx->leaves.at[yk_leaf_of_value(ctx, v)] : NULL;
	if (l && l->variable) // the leaf itself refers to its variable
		return;
	if (yk_grow(&ctx->history.former, &ctx->history.former_cap, ctx->history.formers + 1,
		    sizeof *ctx->history.former) == 0)
		ctx->history.former[ctx->history.formers++] = (struct yk_former){ v, yk_handle(t) };
}

int yk_assign(struct yk_tensor *t, yk_id id)
{
	struct yk_graph *g = &t->ctx->graph;
	int err = note(t);
	// no gradient passes through an optimizer step; STOP_GRAD also gives each variable its own
	// node
	if (!err && yk_maker(g, id)->list && (id = yk_un(g, YK_STOP_GRAD, id)) == YK_BAD)
		err = yk_error_last();
	if (err)
		return err;
	if (yk_version_of(t) != id)
		yk_version_end(t);
	yk_take_id(t, id);
	if (t->root != YK_NIL && !yk_is_pending(t)) { // it was assigned its current version
		t->ctx->pending.root[t->root] = NULL;
		t->root = YK_NIL;
	}
	return yk_root(t);
}

int yk_assign_of(struct yk_tensor *t, yk_id id, const struct yk_tensor *value)
{
	const bool same = yk_version_of(t) == id;
	const int err = yk_assign(t, id);
	if (!err && !same && value && value->kind <= YK_VARIABLE && t->id == yk_version_of(value))
		t->origin = yk_origin_of(value);
	return err;
}

void yk_assign_undo(struct yoke_context *ctx)
{
	for (size_t i = 0; i < ctx->pending.roots; i++) {
		struct yk_tensor *t = ctx->pending.root[i];
		if (!t || t->kind != YK_VARIABLE)
			continue;
		ctx->pending.root[i] = NULL;
		t->root = YK_NIL;
		yk_take_id(t, YK_NIL);
		t->leaf = YK_NIL;
	}
}

void yk_version_made(struct yk_tensor *t)
{
	struct yoke_context *ctx = t->ctx;
	const struct yk_graph *g = &ctx->graph;
	set_leaf(t, t->id);
	if (t->id == YK_NIL)
		return;
	struct yk_leaf *l = &ctx->leaves.at[yk_leaf_of_value(ctx, t->id)];
	// a different storage: a copy in a pack
	l->shared |= l->handle != yk_handle(t) || l->storage != t->storage;
	if (!yk_differentiable(g, yk_maker(g, t->id))) // equivalent to a leaf
		yk_take_id(t, YK_NIL);
}

// An evaluated version becomes a leaf.  A pending one stays the same root, but stops gradients.
static void close_version(struct yk_tensor *t)
{
	const uint32_t at = yk_leaf_at(t);
	yk_id stopped = YK_NIL;
	if (yk_is_pending(t) && (stopped = yk_un(&t->ctx->graph, YK_STOP_GRAD, t->id)) == YK_BAD)
		return;
	if (t->id == YK_NIL && (at == YK_NIL || t->ctx->leaves.at[at].variable == t))
		return;
	yk_version_end(t);
	if (stopped == YK_NIL)
		t->leaf = YK_NIL;
	yk_take_id(t, stopped);
}

void yk_versions_close(struct yoke_context *ctx)
{
	for (size_t i = 0; i < ctx->pending.nassigned; i++) {
		struct yk_tensor *t = yk_tensor_in(ctx, ctx->pending.assigned[i]);
		if (t)
			close_version(t);
	}
	ctx->pending.nassigned = 0;
}
