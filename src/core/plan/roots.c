// SPDX-License-Identifier: Apache-2.0
// Roots: the values that an evaluation computes, and the nodes that it leaves pending.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/key.h"
#include "plan/launch.h"
#include "plan/plan.h"
#include "plan/planner.h"

int yk_root_add(struct yk_planner *pl, struct yk_tensor *t, yk_id id)
{
	if (yk_grow(&pl->root, &pl->root_cap, pl->roots + 1, sizeof *pl->root) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	pl->root[pl->roots++] = (struct yk_root){ .id = id, .handle = t, .donor = YK_NIL };
	return 0;
}

// ---- nodes that stay pending ----

// Marks the values of a list of tensors that stay pending, or, with `to` NULL, only reports whether
// there are any.
static bool mark_pending(const struct yk_planner *pl, const struct yk_tensor *t, uint8_t *to)
{
	const struct yk_graph *g = &pl->ctx->graph;
	bool any = false;
	for (; t && (to || !any); t = t->next) {
		uint32_t k = t->id == YK_NIL ? 0 : g->value[t->id].node;
		if (t->id == YK_NIL || pl->marks.mark[k].index != YK_NIL || g->node[k].done)
			continue;
		any = true;
		if (to)
			to[k] = YK_LEFT_LATER;
	}
	return any;
}

static bool any_stay(const struct yk_planner *pl, uint8_t *to)
{
	bool any = mark_pending(pl, pl->ctx->handles.list, to);
	for (const struct yk_scope *s = pl->ctx->scopes.innermost; s && (to || !any); s = s->parent)
		any |= mark_pending(pl, s->handles, to);
	return any;
}

// Makes roots of the values computed by this evaluation that pending nodes read.
static int keep_operands(struct yk_planner *pl)
{
	const struct yk_graph *g = &pl->ctx->graph;
	const struct yk_marks *m = &pl->marks;
	int err = 0;
	for (size_t k = g->nodes; k-- > 0 && !err;) {
		const struct yk_node *n = &g->node[k];
		if (pl->left[k] != YK_LEFT_LATER)
			continue;
		pl->ctx->history.leftover += !n->done && m->mark[k].index == YK_NIL;
		for (uint32_t i = 0; i < n->nin && !err; i++) {
			yk_id v = yk_ins(g, n)[i];
			uint32_t by = v == YK_NIL ? 0 : g->value[v].node;
			if (v == YK_NIL || pl->left[by] == YK_LEFT_LATER)
				continue;
			const uint32_t flags = yk_op_def(g->node[by].op)->flags;
			bool there = flags & YK_F_LEAF || g->value[v].made != YK_NIL;
			// a view is recorded again: readers of a copy may round differently
			bool computed = !there && !(flags & YK_F_VIEW) &&
					m->mark[by].index != YK_NIL && !m->made[m->mark[by].index];
			pl->left[by] = there || computed ? YK_LEFT_READ : YK_LEFT_LATER;
			if (computed)
				err = yk_root_add(pl, NULL, v);
		}
	}
	return err;
}

// Finds pending nodes, and the leaves they read, which must not be overwritten.
static int find_leftover(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	size_t nodes = ctx->graph.nodes;
	ctx->history.leftover = 0;
	if (pl->marks.nodes == nodes || !any_stay(pl, NULL))
		return 0;
	if (yk_grow(&pl->left, &pl->left_cap, nodes, sizeof *pl->left) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	memset(pl->left, 0, nodes);
	any_stay(pl, pl->left);
	return keep_operands(pl);
}

// Fails and removes roots that need a value which failed after it was recorded; the rest is
// evaluated.
static int drop_lost(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	const struct yk_graph *g = &ctx->graph;
	const struct yk_marks *m = &pl->marks;
	if (!m->failed)
		return 0;
	// by node: the storage whose failure it inherits
	struct yk_storage **lost = calloc(g->nodes, sizeof *lost);
	if (!lost)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t i = 0; i < m->nodes; i++) {
		uint32_t k = m->node[i];
		const struct yk_node *n = &g->node[k];
		struct yk_storage *s =
			n->op == YK_LEAF ? ctx->leaves.at[g->attrs[n->attr].i].storage : NULL;
		for (uint32_t j = 0; j < n->nout && m->made[i] && !(s && s->failed); j++)
			if (m->made[i] & yk_result_bit(g, n->out + j))
				s = ctx->leaves.at[g->value[n->out + j].made].storage;
		lost[k] = s && s->failed ? s : NULL;
		for (uint32_t j = 0; j < n->nin && !lost[k] && !m->made[i]; j++) {
			yk_id v = g->arg[n->in + j];
			lost[k] = v == YK_NIL ? NULL : lost[g->value[v].node];
		}
	}
	size_t kept = 0;
	for (size_t i = 0; i < pl->roots; i++) {
		struct yk_tensor *t = pl->root[i].handle;
		struct yk_storage *s = lost[g->value[pl->root[i].id].node];
		if (!s) {
			pl->root[kept++] = pl->root[i];
			continue;
		}
		s->refs++;
		yk_version_set(t, s);
		ctx->pending.root[t->root] = NULL;
		t->root = t->leaf = YK_NIL;
		yk_take_id(t, YK_NIL);
		yk_failure_of(t);
	}
	pl->roots = kept;
	free(lost);
	return YOKE_EFAILED;
}

int yk_run_roots(struct yk_planner *pl, bool brief, bool *started)
{
	struct yoke_context *ctx = pl->ctx;
	*started = false;
	int err = yk_mark(ctx, &pl->marks, pl->root, pl->roots);
	if (!err && brief && !yk_may_be_brief(pl))
		return 1;
	int lost = err ? 0 : drop_lost(pl);
	if (lost == YOKE_ENOMEM)
		return lost;
	if (lost && pl->roots)
		err = yk_mark(ctx, &pl->marks, pl->root, pl->roots);
	if (lost && !pl->roots && !ctx->graph.owed) {
		*started = true;
		return lost;
	}
	if (!err)
		err = find_leftover(pl);
	if (!err && !ctx->mode.eager) // eager: old versions are kept for gradients
		err = yk_find_donors(pl);
	if (!err)
		err = yk_key_make(ctx, &pl->marks, pl->root, pl->roots, yk_param_epoch(), &pl->key);
	if (err)
		return err;
	struct yk_plan *p = yk_plan_for(pl);
	if (!p)
		return yk_error_last();
	if (brief && !p->brief)
		return 1;
	p->cached.used = ++pl->evaluations;
	err = yk_launch(pl, p, started);
	return err ? err : lost;
}
