// SPDX-License-Identifier: Apache-2.0
// Replay: a plan that runs on the device only can be recorded as a driver graph (a CUDA graph, for
// example), which is launched as a whole (replay.c).  Replays of a graph are identical.  So host
// scalars are not arguments of such a plan: they are in a buffer, which each launch writes first.

#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/replay.h"
#include "plan/work.h"

YK_PARAM(replay, "replay", YK_BOOL, "1",
	 "record repeated plans as driver graphs, where the device supports them");

// Is every step a launch, a copy or a fill on the device?  Collectives have a separate queue,
// wherever their memory is.
static bool is_devices(const struct yk_work *w)
{
	for (size_t i = 0; i < w->schedule.norder; i++) {
		const struct yk_node *n = &w->g.node[w->schedule.group[w->schedule.order[i]].at];
		if (n->stream != YK_STREAM_DEVICE || n->op == YK_TRANSFER ||
		    yk_op_def(n->op)->flags & YK_F_RANKS)
			return false;
	}
	return true;
}

// Lists the scalars that are read, each once.
static int find_numbers(struct yk_work *w)
{
	struct yk_plan *p = w->plan;
	const size_t leaves = w->marks->leaves;
	w->scalars.index = calloc(leaves + 1, sizeof *w->scalars.index);
	p->replay.scalar = yk_arena_alloc(&p->memory, (leaves + 1) * sizeof *p->replay.scalar);
	if (!w->scalars.index || !p->replay.scalar)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t k = 0; k < w->g.nodes; k++) {
		const struct yk_node *n = &w->g.node[k];
		if (n->op != YK_SCALAR || !w->node[k].live)
			continue;
		const uint32_t leaf = (uint32_t)yk_attrs(&w->g, n)[0].i;
		if (w->scalars.index[leaf])
			continue;
		p->replay.scalar[p->replay.scalars++] = leaf;
		w->scalars.index[leaf] = p->replay.scalars;
	}
	return 0;
}

int yk_replay_prepare(struct yk_work *w)
{
	struct yk_plan *p = w->plan;
	struct yoke_context *ctx = w->ctx;
	if (!yk_param_bool(&replay) || !yk_device_real(ctx->device)->backend->graphs ||
	    ctx->mode.eager || ctx->planner->attempt.by_value || ctx->planner->check.nan ||
	    !is_devices(w))
		return 0;
	if (!(p->replay.graphs = calloc(1, sizeof *p->replay.graphs)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	int err = find_numbers(w);
	if (err || !p->replay.scalars)
		return err;
	const struct yk_value words = { .dtype = yoke_u8,
					.rank = 1,
					.dims = { 8 * (int64_t)p->replay.scalars } };
	return yk_node_add(w, &(struct yk_call){ .op = YK_NUMBERS }, 1, &words, YK_STREAM_DEVICE,
			   NULL, &w->scalars.buffer);
}
