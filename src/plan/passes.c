// SPDX-License-Identifier: Apache-2.0
// The passes in turn: what is marked becomes a plan.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "conform/selftest.h"
#include "plan/plan.h"

void yk_plan_free(struct yk_plan *p)
{
	if (!p)
		return;
	free(p->key.word);
	// of a device that does not answer any more, handles are never given back
	bool over = yk_event_sync(p->last) >= 0 || yk_event_done(p->last);
	for (size_t i = 0; i < p->steps && over; i++)
		if (p->step[i].handle)
			p->step[i].ops->release(p->step[i].handle);
	yk_event_unref(p->last);
	free(p->step);
	free(p->view);
	free(p->ref);
	free(p->block);
	free(p->root_block);
	for (int k = 0; k < YK_SLOTS; k++)
		free(p->arena[k].chunk);
	free(p->wait);
	yk_arena_fini(&p->memory);
	free(p);
}

void yk_work_fini(struct yk_work *w)
{
	yk_graph_fini(&w->g);
	for (uint32_t i = 0; i < w->groups; i++)
		free(w->group[i].member);
	free(w->group);
	free(w->joined);
	free(w->node);
	free(w->value);
	free(w->replaced);
	free(w->table);
	free(w->root_value);
	free(w->use);
	free(w->order);
	free(w->clock);
}

static uint32_t guaranteed(const struct yoke_context *ctx)
{
	uint32_t a = ctx->device->info.align, b = ctx->cpu->info.align, least = a < b ? a : b;
	return least < YK_ALIGN ? least : YK_ALIGN;
}

// *again: make it once more, for a device that offers less now.
static struct yk_plan *try_plan(struct yk_planner *pl, bool *again)
{
	struct yk_plan *p = calloc(1, sizeof *p);
	struct yk_work w = { .ctx = pl->ctx,
			     .marks = &pl->marks,
			     .root = pl->root,
			     .roots = pl->roots,
			     .align = guaranteed(pl->ctx),
			     .plan = p };
	int err = p ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err)
		err = yk_lower(&w);
	if (!err)
		err = yk_uses(&w);
	if (!err)
		err = yk_fuse(&w);
	if (!err)
		err = yk_order(&w);
	if (!err)
		err = yk_emit(&w);
	if (!err) // all of it is on the CPU then
		err = yk_selftest_verdict(w.ctx->device);
	if (!err)
		err = yk_fallbacks_note(&w);
	if (!err)
		err = yk_waits(&w);
	if (!err)
		err = yk_layout(&w);
	if (!err)
		err = yk_parts_gone(&w);
	if (!err && yk_log_on(YOKE_LOG_DEBUG, "plan"))
		yk_plan_print(&w, p);
	if (!err) { // the plan keeps the key
		p->key = pl->key;
		pl->key = (struct yk_key){ 0 };
	}
	*again = w.replan;
	yk_work_fini(&w);
	if (!err)
		return p;
	if (!*again)
		yk_fail(err, "no plan could be made");
	yk_plan_free(p);
	return NULL;
}

struct yk_plan *yk_plan_make(struct yk_planner *pl)
{
	struct yk_plan *p;
	bool again;
	if (yk_grow(&pl->large, &pl->large_cap, pl->marks.nodes + 1, sizeof *pl->large) < 0) {
		yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	memset(pl->large, 0, pl->marks.nodes * sizeof *pl->large);
	do
		p = try_plan(pl, &again);
	while (again); // ends: each time some device offers less, or some node more is cut
	return p;
}
