// SPDX-License-Identifier: Apache-2.0
// Fusion: chains of maps become one program; a map is fused into the reduction after it, or becomes
// the epilogue of the contraction before it.
//
// A group runs at the position of its last member.  So a member may be fused only if all its
// readers are in the group or after it: then nothing that the group needs can depend on the group.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "device/usable.h"
#include "plan/build.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/planner.h"
#include "plan/work.h"

YK_PARAM(fuse, "fuse", YK_BOOL, "1", "run chains of elementwise ops as one kernel", .debug = true);

static bool fusable(const struct yk_node *n)
{
	return yk_op_def(n->op)->flags & (YK_F_MAP | YK_F_REDUCE);
}

// Can it be fused into a map or reduction that reads it?
static bool joins(const struct yk_op_def *row)
{
	return row->flags & YK_F_MAP || row->code == YOKE_OP_CONTRACT;
}

// Merges two sorted lists.
static uint32_t merge(const struct yk_work *w, const struct yk_group *a, const struct yk_group *b,
		      uint32_t *to)
{
	uint32_t i = 0, k = 0, n = 0;
	while (i < a->n || k < b->n)
		to[n++] = k == b->n || (i < a->n && yk_is_before(w, a->member[i], b->member[k])) ?
				  a->member[i++] :
				  b->member[k++];
	return n;
}

// Can all nodes of the merged list run at the position `at`?
static bool may_move(const struct yk_work *w, const struct yk_group *p,
		     const uint32_t *all, uint32_t n, uint32_t at, bool reduces)
{
	for (uint32_t i = 0; i < p->n; i++) {
		yk_id v = w->g.node[p->member[i]].out;
		if (reduces && w->value[v].rooted)
			return false;
		for (uint32_t u = w->value[v].use; u != YK_NIL; u = w->use[u].next)
			if (!yk_is_among(all, n, w->use[u].node) &&
			    (yk_is_before(w, w->use[u].node, at) || reduces))
				return false;
	}
	return true;
}

static int join(struct yk_work *w, uint32_t from, uint32_t into, struct yk_built *b)
{
	struct yk_group *p = &w->schedule.group[from], *m = &w->schedule.group[into];
	uint32_t all[YOKE_MAP_MAX_INSNS];
	const struct yk_node *last = &w->g.node[m->at];
	bool reduces = yk_op_def(last->op)->flags & YK_F_REDUCE;
	if (p->n + m->n > YOKE_MAP_MAX_INSNS || w->g.node[p->at].stream != last->stream)
		return 0;
	uint32_t n = merge(w, p, m, all);
	if (!may_move(w, p, all, n, m->at, reduces))
		return 0;
	int err = yk_build_group(w, all, n, b);
	if (err == YOKE_EUNSUPPORTED)
		return 0;
	if (err)
		return err;
	struct yk_device *d = yk_work_device(w, last->stream);
	if (!yk_device_usable(d, &b->op))
		return 0;
	size_t cap = m->cap;
	if (yk_grow(&m->member, &cap, n, sizeof *m->member) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	m->cap = (uint32_t)cap;
	memcpy(m->member, all, n * sizeof *all);
	m->n = n;
	p->dead = true;
	for (uint32_t i = 0; i < n; i++)
		w->node[all[i]].group = into;
	return 0;
}

bool yk_fuse_enabled(void)
{
	return yk_param_bool(&fuse);
}

int yk_fuse(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	struct yk_built b = { 0 };
	int err = 0;
	w->schedule.group = calloc(g->nodes + 1, sizeof *w->schedule.group);
	if (!w->schedule.group)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	uint32_t *order = yk_in_time(w);
	if (!order)
		return YOKE_ENOMEM;
	for (size_t at = 0; at < g->nodes && !err; at++) {
		uint32_t k = order[at];
		const struct yk_node *n = &g->node[k];
		w->node[k].group = YK_NIL;
		if (!w->node[k].live || yk_op_def(n->op)->flags & (YK_F_VIEW | YK_F_LEAF))
			continue;
		uint32_t mine = w->schedule.groups++;
		struct yk_group *m = &w->schedule.group[mine];
		if (!(m->member = malloc(4 * sizeof *m->member))) {
			err = yk_fail(YOKE_ENOMEM, "no memory to plan");
			break;
		}
		m->cap = 4;
		m->n = 1;
		m->member[0] = m->at = k;
		w->node[k].group = mine;
		if (!fusable(n) || !yk_param_bool(&fuse) || w->ctx->planner->check.nan ||
		    w->ctx->planner->attempt.unfused)
			continue;
		for (uint32_t i = 0; i < n->nin && !err; i++) {
			yk_id base = w->value[g->arg[n->in + i]].place.base;
			uint32_t maker = g->value[base].node, from = w->node[maker].group;
			if (from == YK_NIL || from == mine ||
			    !joins(yk_op_def(g->node[maker].op)) ||
			    yk_op_def(g->node[w->schedule.group[from].at].op)->flags & YK_F_REDUCE)
				continue;
			err = join(w, from, mine, &b);
		}
	}
	yk_built_fini(&b);
	free(order);
	return err;
}
