// SPDX-License-Identifier: Apache-2.0
// Donors: which old versions of variables an evaluation may overwrite with the new ones.
//
// An old version is kept while something reads its bytes later: a pending operation, or a gradient that goes through
// an assignment.  The latter is decided conservatively, but for steps of optimizers and for operations that yoke_grad
// recorded: gradients of updates made of gradients are YOKE_ESPENT where they need bytes that the update overwrote, so
// that training steps update in place.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan.h"

// ---- what gradients through assignments need ----

enum {
	NAMED = 1, // a gradient by it, or through it by something before it, may be requested
	PATH = 2,  // a gradient through an assignment passes here
	NEEDED = 4, // its bytes are needed for that
	ROOT = 8   // this evaluation leaves them
};

struct needs {
	const struct yoke_context *ctx;
	uint8_t *node; // flags by node
};

static bool is_flagged(const struct needs *s, yk_id v, uint8_t flag)
{
	return v != YK_NIL && s->node[s->ctx->graph.value[v].node] & flag;
}

static void flag(struct needs *s, yk_id v, uint8_t flag)
{
	if (v != YK_NIL)
		s->node[s->ctx->graph.value[v].node] |= flag;
}

static void name(struct needs *s, const struct yk_tensor *t)
{
	for (; t; t = t->next)
		flag(s, t->id, NAMED);
}

// Does a gradient go through the node to an operand of it?  Those of optimizers and of yoke_grad are left out.
static bool passes(const struct needs *s, uint32_t k)
{
	const struct yk_graph *g = &s->ctx->graph;
	return !g->node[k].back && !g->node[k].list && yk_differentiable(g, &g->node[k]);
}

static void find_named(struct needs *s)
{
	const struct yoke_context *ctx = s->ctx;
	const struct yk_graph *g = &ctx->graph;
	name(s, ctx->handles);
	for (const struct yk_scope *scope = ctx->scope; scope; scope = scope->parent)
		name(s, scope->handles);
	for (uint32_t k = 0; k < g->nodes; k++) {
		const struct yk_node *n = &g->node[k];
		if (n->back)
			s->node[k] &= (uint8_t)~NAMED;
		if (n->op == YK_LEAF && yk_leaf_is_named(ctx, &ctx->leaf[yk_attrs(g, n)[0].i]))
			s->node[k] |= NAMED;
		for (uint32_t i = 0; i < n->nin && passes(s, k); i++)
			if (is_flagged(s, yk_ins(g, n)[i], NAMED))
				s->node[k] |= NAMED;
	}
}

// Is the gradient by the operands a function of the cotangent alone?
static bool is_linear(const struct yk_node *n)
{
	const struct yk_op_row *row = yk_op_row(n->op);
	return n->op == YK_ADD || n->op == YK_SUB || n->op == YK_NEG || n->op == YK_SUM || n->op == YK_CAST ||
	       n->op == YK_SLICE_UPDATE_AT || n->op == YK_BARRIER || row->flags & YK_F_VIEW || row->code == YOKE_OP_MOVE;
}

// Which operands' bytes the gradient by the others needs.
static void need_operands(struct needs *s, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&s->ctx->graph, n);
	bool any = false;
	for (uint32_t i = 0; i < n->nin; i++)
		any |= is_flagged(s, in[i], NAMED);
	if (!any || is_linear(n))
		return;
	for (uint32_t i = 0; i < n->nin; i++)
		if (n->op != YK_MUL || is_flagged(s, in[1 - i], NAMED))
			flag(s, in[i], NEEDED);
}

static void spread_needs(struct needs *s)
{
	const struct yk_graph *g = &s->ctx->graph;
	for (uint32_t k = (uint32_t)g->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		if (s->node[k] & PATH && passes(s, k)) {
			need_operands(s, n);
			for (uint32_t i = 0; i < n->nin; i++)
				if (is_flagged(s, yk_ins(g, n)[i], NAMED))
					flag(s, yk_ins(g, n)[i], PATH);
		}
		bool made = n->back || s->node[k] & ROOT;
		for (uint32_t i = 0; i < n->nout; i++)
			made |= g->value[n->out + i].made != YK_NIL;
		for (uint32_t i = 0; s->node[k] & NEEDED && !made && i < n->nin; i++)
			flag(s, yk_ins(g, n)[i], NEEDED);
	}
}

// The flags of all nodes; NULL: no version has a gradient that goes through it.  *err: no memory.
static uint8_t *find_needs(const struct yk_planner *pl, int *err)
{
	const struct yoke_context *ctx = pl->ctx;
	const struct yk_graph *g = &ctx->graph;
	struct needs s = { .ctx = ctx };
	bool any = false;
	*err = 0;
	for (const struct yk_tensor *t = ctx->versions ? ctx->handles : NULL; t && !any; t = t->next)
		any = t->kind == YK_VARIABLE && t->id != YK_NIL && yk_maker(g, t->id)->nin &&
		      passes(&s, g->value[t->id].node);
	if (!any)
		return NULL;
	if (!(s.node = calloc(g->nodes, 1))) {
		*err = yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	find_named(&s);
	for (size_t i = 0; i < pl->roots; i++)
		flag(&s, pl->root[i].id, ROOT);
	for (const struct yk_tensor *t = ctx->handles; t; t = t->next)
		if (t->kind == YK_VARIABLE && t->id != YK_NIL)
			flag(&s, t->id, PATH);
	spread_needs(&s);
	return s.node;
}

// ---- donors ----

static bool is_read_later(const struct yk_planner *pl, const uint8_t *needs, uint32_t leaf)
{
	const struct yoke_context *ctx = pl->ctx;
	const uint32_t k = ctx->graph.value[ctx->leaf[leaf].id].node;
	return ctx->leaf[leaf].shared || (ctx->leftover && pl->left[k] == YK_LEFT_READ) || (needs && needs[k] & NEEDED);
}

// Is the old version the variable's alone, but for leaves that nothing reads later?  Only leaf `at`, which the layout
// knows as the donor, may be read by this evaluation.
static bool is_idle(const struct yk_planner *pl, const uint8_t *needs, const struct yk_tensor *t, uint32_t at)
{
	const struct yk_storage *s = t->storage;
	const struct yoke_context *ctx = pl->ctx;
	if (s->refs != s->leaves + 1 || yk_is_wrapped(s)) // memory lent by the caller stays as it is
		return false;
	if (at != YK_NIL && is_read_later(pl, needs, at))
		return false;
	uint32_t left = s->leaves - (at != YK_NIL);
	for (uint32_t i = (uint32_t)ctx->leaves; left && i-- > 0;)
		if (i != at && ctx->leaf[i].storage == s) {
			if (pl->marks.place[i] != YK_NIL || is_read_later(pl, needs, i))
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
			ctx->leaf[given].shared = true;
		if (at != YK_NIL)
			r->donor = pl->marks.place[at];
		any |= r->donor != YK_NIL || yk_is_packed(t);
	}
	int err = 0;
	uint8_t *needs = any ? find_needs(pl, &err) : NULL;
	for (size_t i = 0; i < pl->roots && any && !err; i++) {
		struct yk_root *r = &pl->root[i];
		const struct yk_tensor *t = r->handle;
		r->idle = t && t->kind == YK_VARIABLE && (r->donor != YK_NIL || yk_is_packed(t)) &&
			  is_idle(pl, needs, t, yk_leaf_at(t));
	}
	free(needs);
	return err;
}
