// SPDX-License-Identifier: Apache-2.0
// Eager evaluation, for debugging: each operation is launched and awaited as it is recorded, so
// that an error appears at the call that causes it.
//
// Each launch is an ordinary plan of one node, whose results stay with the graph for later
// operations and gradients.  Views are not launched: kernels get the same strides, and compute the
// same bits, as without eager evaluation.

#include "config.h"

#include "base/error.h"
#include "plan/eval.h"
#include "plan/planner.h"

static int run_node(struct yk_planner *pl, size_t k)
{
	struct yoke_context *ctx = pl->ctx;
	const struct yk_node *n = &ctx->graph.node[k];
	bool started = false;
	int err = 0;
	pl->roots = 0;
	for (uint32_t i = 0; i < n->nout && !err; i++)
		err = yk_root_add(pl, NULL, n->out + i);
	if (!err && pl->roots) {
		yk_flight_wait(ctx);
		err = yk_run_roots(pl, false, &started);
	}
	if (started) {
		yk_queue_drain(ctx->queues.steps);
		if (yk_settle(ctx) && !err)
			err = yk_failure_report(ctx);
	}
	return err;
}

// A host scalar was set since: forgets the results of nodes that no evaluation has settled.
static void take_back(struct yoke_context *ctx)
{
	struct yk_graph *g = &ctx->graph;
	for (size_t k = g->settled; k < g->nodes; k++) {
		struct yk_node *n = &g->node[k];
		g->owed += n->done && yk_is_ranks(n);
		n->done = false;
		for (uint32_t i = 0; i < n->nout; i++)
			g->value[n->out + i].made = YK_NIL;
		if (n->op == YK_SCALAR)
			ctx->leaves.at[yk_attrs(g, n)[0].i].frozen = false;
	}
	ctx->mode.launched = g->settled;
}

int yk_eager_run(struct yoke_context *ctx)
{
	struct yk_planner *pl = yk_planner_of(ctx);
	int err = pl ? 0 : yk_error_last();
	if (ctx->mode.stale)
		take_back(ctx);
	ctx->mode.stale = false;
	for (; ctx->mode.launched < ctx->graph.nodes && !err; ctx->mode.launched++)
		if (!(yk_op_def(ctx->graph.node[ctx->mode.launched].op)->flags &
		      (YK_F_VIEW | YK_F_LEAF)))
			err = run_node(pl, ctx->mode.launched);
	ctx->mode.launched = ctx->graph.nodes; // operations after a failure are not attempted
	return err;
}

__attribute__((constructor)) static void set_hook(void)
{
	yk_eager_hook = yk_eager_run;
}
