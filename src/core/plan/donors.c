// SPDX-License-Identifier: Apache-2.0
// Donors: which old versions of variables an evaluation may overwrite with the new ones.
//
// An old version is kept if its bytes are read later: by a pending operation, or by a gradient
// through the variable's own new version.  The decision is conservative, except for optimizer steps
// and for operations recorded by yoke_grad: a gradient of an update that was itself made of
// gradients fails with YOKE_ERELEASED if it needs overwritten bytes.  This lets training steps
// update in place.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/key.h"
#include "plan/planner.h"

// ---- bytes needed by gradients through assignments ----

// By node: i + 1 if the node lies on the gradient's path through the new version of root i (path),
// or if that gradient needs its bytes (needed).
struct needs {
	const struct yoke_context *ctx;
	uint8_t *named; // a gradient may be requested with respect to it, or to something before it
	uint8_t *made;  // its bytes exist after this evaluation
	uint32_t *path, *needed;
};

static uint32_t node_of(const struct needs *s, yk_id v)
{
	return s->ctx->graph.value[v].node;
}

static bool is_named(const struct needs *s, yk_id v)
{
	return v != YK_NIL && s->named[node_of(s, v)];
}

static void name(struct needs *s, const struct yk_tensor *t)
{
	for (; t; t = t->next)
		if (yk_version_of(t) != YK_NIL && (t->id != YK_NIL || t->kind == YK_VARIABLE))
			s->named[node_of(s, yk_version_of(t))] = 1;
}

// Does a gradient pass through the node to an operand?  Nodes of optimizers and of yoke_grad do not
// count.
static bool passes(const struct yk_graph *g, uint32_t k)
{
	return !g->node[k].back && !g->node[k].list && yk_differentiable(g, &g->node[k]);
}

static void find_named(struct needs *s)
{
	const struct yoke_context *ctx = s->ctx;
	const struct yk_graph *g = &ctx->graph;
	name(s, ctx->handles.list);
	for (const struct yk_scope *scope = ctx->scopes.innermost; scope; scope = scope->parent)
		name(s, scope->handles);
	for (uint32_t k = 0; k < g->nodes; k++) {
		const struct yk_node *n = &g->node[k];
		s->named[k] &= !n->back;
		if (n->op == YK_LEAF && yk_leaf_is_named(ctx, &ctx->leaves.at[yk_attrs(g, n)[0].i]))
			s->named[k] = 1;
		for (uint32_t i = 0; i < n->nin && !s->named[k] && passes(g, k); i++)
			s->named[k] = is_named(s, yk_ins(g, n)[i]);
	}
}

// Marks the operands whose bytes the gradient with respect to the others needs.
static void need_operands(struct needs *s, uint32_t k)
{
	const struct yk_graph *g = &s->ctx->graph;
	const struct yk_node *n = &g->node[k];
	const yk_id *in = yk_ins(g, n);
	bool any = false;
	for (uint32_t i = 0; i < n->nin; i++)
		any |= is_named(s, in[i]);
	if (!any || yk_is_linear(n))
		return;
	for (uint32_t i = 0; i < n->nin; i++)
		if (in[i] != YK_NIL && (n->op != YK_MUL || is_named(s, in[1 - i])))
			s->needed[node_of(s, in[i])] = s->path[k];
}

static void spread_needs(struct needs *s)
{
	const struct yk_graph *g = &s->ctx->graph;
	for (uint32_t k = (uint32_t)g->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		const yk_id *in = yk_ins(g, n);
		if (s->path[k] && passes(g, k)) {
			need_operands(s, k);
			for (uint32_t i = 0; i < n->nin; i++)
				if (is_named(s, in[i]))
					s->path[node_of(s, in[i])] = s->path[k];
		}
		bool made = n->back || s->made[k];
		for (uint32_t i = 0; i < n->nout; i++)
			made |= g->value[n->out + i].made != YK_NIL;
		for (uint32_t i = 0; s->needed[k] && !made && i < n->nin; i++)
			if (in[i] != YK_NIL)
				s->needed[node_of(s, in[i])] = s->needed[k];
	}
}

// By node: one more than the root whose gradient needs its bytes, or 0.  NULL: no gradient passes
// through a new version.  A gradient through another variable does not count: a running mean of
// losses in a variable does not keep the parameters.  *err: no memory.
static uint32_t *find_needs(const struct yk_planner *pl, int *err)
{
	const struct yk_graph *g = &pl->ctx->graph;
	bool any = false;
	for (size_t i = 0; i < pl->roots && !any; i++) {
		const struct yk_tensor *t = pl->root[i].handle;
		const yk_id v = pl->root[i].id;
		any = t && t->kind == YK_VARIABLE && yk_maker(g, v)->nin &&
		      passes(g, g->value[v].node);
	}
	if (!any)
		return NULL;
	struct needs s = { .ctx = pl->ctx,
			   .named = calloc(g->nodes, 1),
			   .made = calloc(g->nodes, 1),
			   .path = calloc(g->nodes, sizeof *s.path),
			   .needed = calloc(g->nodes, sizeof *s.needed) };
	if (s.named && s.made && s.path && s.needed) {
		find_named(&s);
		for (size_t i = 0; i < pl->roots; i++) {
			const struct yk_tensor *t = pl->root[i].handle;
			s.made[node_of(&s, pl->root[i].id)] = 1;
			if (t && t->kind == YK_VARIABLE)
				s.path[node_of(&s, pl->root[i].id)] = (uint32_t)i + 1;
		}
		spread_needs(&s);
	} else {
		*err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	}
	free(s.named);
	free(s.made);
	free(s.path);
	return s.needed;
}

// ---- donors ----

// Is the leaf read after this evaluation?  root: the root whose old version it is, by index.
static bool is_read_later(const struct yk_planner *pl, const uint32_t *needs, size_t root,
			  uint32_t leaf)
{
	const struct yoke_context *ctx = pl->ctx;
	const uint32_t k = ctx->graph.value[ctx->leaves.at[leaf].id].node;
	return ctx->leaves.at[leaf].shared ||
	       (ctx->history.leftover && pl->left[k] == YK_LEFT_READ) ||
	       (needs && needs[k] == root + 1);
}

// Is the old version held only by the variable and by leaves that nothing reads later?  This
// evaluation may read it only through the leaf that layout knows as the donor.
static bool is_idle(const struct yk_planner *pl, const uint32_t *needs, size_t root)
{
	const struct yk_tensor *t = pl->root[root].handle;
	const struct yk_storage *s = t->storage;
	const struct yoke_context *ctx = pl->ctx;
	const uint32_t at = yk_leaf_at(t);
	// memory lent by the caller is never overwritten
	if (s->refs != s->leaves + 1 || yk_is_wrapped(s))
		return false;
	if (at != YK_NIL && is_read_later(pl, needs, root, at))
		return false;
	uint32_t left = s->leaves - (at != YK_NIL);
	for (uint32_t i = (uint32_t)ctx->leaves.n; left && i-- > 0;)
		if (i != at && ctx->leaves.at[i].storage == s) {
			if (pl->marks.leaf_index[i] != YK_NIL || is_read_later(pl, needs, root, i))
				return false;
			left--;
		}
	return true;
}

int yk_find_donors(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	bool any = false;
	for (size_t i = 0; i < pl->roots; i++) {
		struct yk_root *r = &pl->root[i];
		const struct yk_tensor *t = r->handle;
		if (!t || t->kind != YK_VARIABLE)
			continue;
		const uint32_t at = yk_leaf_at(t), given = yk_leaf_of_value(ctx, r->id);
		if (given != YK_NIL && given != at)
			ctx->leaves.at[given].shared = true;
		if (at != YK_NIL)
			r->donor = pl->marks.leaf_index[at];
		any |= r->donor != YK_NIL || yk_is_packed(t);
	}
	int err = 0;
	uint32_t *needs = any ? find_needs(pl, &err) : NULL;
	for (size_t i = 0; i < pl->roots && any && !err; i++) {
		struct yk_root *r = &pl->root[i];
		const struct yk_tensor *t = r->handle;
		r->idle = t && t->kind == YK_VARIABLE && (r->donor != YK_NIL || yk_is_packed(t)) &&
			  is_idle(pl, needs, i);
	}
	free(needs);
	return err;
}
