// SPDX-License-Identifier: Apache-2.0
// Replay: the launches of a plan that runs on the device only are recorded once as a driver graph
// (a CUDA graph, for example) and later launched as one.
//
// Replays of a graph are identical.  So host scalars are not arguments in such a plan: they are in
// a buffer, which each launch writes first.  A graph is also bound to memory addresses: uploads and
// out-of-place assignments alternate between two versions, so a plan has one graph for each of the
// few combinations of block addresses.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/replay.h"
#include "plan/work.h"

YK_PARAM(replay, "replay", YK_BOOL, "1",
	 "record plans that repeat as graphs of the driver's, where a device has those");

// ---- numbers in memory ----

// Is every step a launch, a copy or a fill on the device?  Collectives have a separate queue,
// wherever their memory is.
static bool is_devices(const struct yk_work *w)
{
	for (size_t i = 0; i < w->schedule.norder; i++) {
		const struct yk_node *n = &w->g.node[w->schedule.group[w->schedule.order[i]].at];
		if (n->slot != YK_SLOT_DEVICE || n->op == YK_TRANSFER || yk_op_def(n->op)->flags & YK_F_RANKS)
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
	return yk_node_add(w, &(struct yk_call){ .op = YK_NUMBERS }, 1, &words, YK_SLOT_DEVICE,
			   NULL, &w->scalars.buffer);
}

// ---- graphs ----

static bool is_of(const struct yk_graph_of *g, const struct yk_spot *spot, size_t n)
{
	return g->spots == n && g->spot && !memcmp(g->spot, spot, n * sizeof *spot);
}

static void forget(struct yk_graph_of *g)
{
	if (g->graph)
		g->ops->graph_free(g->graph);
	free(g->spot);
	*g = (struct yk_graph_of){ 0 };
}

void yk_replay_free(struct yk_replay *r, bool over)
{
	for (int i = 0; r && i < YK_GRAPHS; i++) {
		if (!over)
			r->of[i].graph = NULL;
		forget(&r->of[i]);
	}
	free(r);
}

// At most two launches are in progress, so the least recently used graph is idle and can be
// replaced.
struct yk_graph_of *yk_replay_find(struct yk_replay *r, const struct yk_spot *spot, size_t n)
{
	struct yk_graph_of *oldest = r->of;
	r->launches++;
	for (int i = 0; i < YK_GRAPHS; i++) {
		struct yk_graph_of *g = &r->of[i];
		if (is_of(g, spot, n)) {
			g->used = r->launches;
			g->seen++;
			return g;
		}
		oldest = g->used < oldest->used ? g : oldest;
	}
	forget(oldest);
	if (!(oldest->spot = malloc((n + 1) * sizeof *spot)))
		return NULL; // run without a graph
	memcpy(oldest->spot, spot, n * sizeof *spot);
	oldest->spots = n;
	oldest->used = r->launches;
	return oldest;
}

int yk_replay_record(struct yk_graph_of *g, struct yk_queue *q, int (*steps)(void *), void *arg)
{
	const struct yoke_backend *ops = q->device->ops;
	void *graph = NULL;
	int err = ops->graph_begin(q->handle);
	if (err)
		return err;
	err = steps(arg);
	int ended = ops->graph_end(q->handle, &graph);
	err = err ? err : ended;
	if (err && graph)
		ops->graph_free(graph);
	if (!err) {
		g->graph = graph;
		g->ops = ops;
	}
	return err;
}
