// SPDX-License-Identifier: Apache-2.0
// Evaluation: yoke_eval collects the roots and runs a plan for them.

#include "config.h"

#include "base/error.h"
#include "plan/eval.h"
#include "graph/handle.h"
#include "plan/planner.h"

// Removes the roots added by a call that failed before it began.
static void unroot(struct yoke_context *ctx, size_t from)
{
	for (size_t i = from; i < ctx->pending.roots; i++)
		if (ctx->pending.root[i])
			ctx->pending.root[i]->root = YK_NIL;
	ctx->pending.roots = from;
}

// Makes a requested tensor a root; reports a released, failed or foreign one.
static int add_root(struct yoke_context *ctx, const yoke_tensor *handle)
{
	struct yk_tensor *t = handle && handle != YOKE_NONE ? yk_tensor(handle, "eval") : NULL;
	if (t && t->kind >= YK_HOST_SCALAR)
		return 0;
	if (yk_operand(ctx, handle, yoke_f32) == YK_BAD)
		return yk_error_last();
	return t ? yk_root(t) : 0;
}

// After a failed evaluation, drops the pending collectives that it did not reach.
static void drop_collectives(struct yoke_context *ctx)
{
	struct yk_graph *g = &ctx->graph;
	for (size_t k = g->settled; g->owed && k < g->nodes; k++)
		g->node[k].done |= yk_is_ranks(&g->node[k]);
	g->owed = 0;
}

// brief: only if that is brief; otherwise returns 1, and everything stays pending.
static int evaluate(struct yoke_context *ctx, int n, yoke_tensor *const *t, bool brief)
{
	struct yk_planner *pl = yk_planner_of(ctx);
	size_t roots = ctx->pending.roots;
	int err = 0;
	if (!pl)
		return yk_error_last();
	if (ctx->access.callbacks)
		return yk_fail(
			YOKE_EINVAL,
			"eval: decompositions and gradients of ops record, they do not evaluate");
	yk_work_begin(ctx, ctx->queues.steps);
	yk_flight_wait(ctx);
	yk_work_end(ctx, ctx->queues.steps, YK_WORK_WAIT, NULL, 0);
	if (ctx->mode.eager)
		err = yk_eager_run(ctx);
	ctx->graph.call = "eval"; // for error messages
	for (int i = 0; i < n && !err; i++)
		err = add_root(ctx, t[i]);
	pl->roots = 0;
	for (size_t i = 0; i < ctx->pending.roots && !err; i++)
		if (ctx->pending.root[i])
			err = yk_root_add(pl, ctx->pending.root[i], ctx->pending.root[i]->id);
	const bool any = pl->roots || ctx->graph.owed;
	bool started = !err && !any;
	if (!err) {
		ctx->stats.evals++;
		if (any)
			err = yk_run_roots(pl, brief, &started);
	}
	if (!err && yk_settle(ctx)) // reports a failure of this run, or one found meanwhile
		err = yk_failure_report(ctx);
	if (err && !started) {
		ctx->stats.evals -= err > 0;
		unroot(ctx, roots);
		return err;
	}
	unroot(ctx, 0);
	drop_collectives(ctx);
	ctx->history.grown = ctx->graph.nodes - ctx->graph.settled;
	ctx->graph.settled = ctx->graph.nodes;
	ctx->warn.held_bytes = 0;
	ctx->mode.stale = false;
	if (yk_history_is_long(ctx))
		yk_history_collect(ctx);
	return err;
}

int yk_evaluate(struct yoke_context *ctx, int n, yoke_tensor *const *t)
{
	return evaluate(ctx, n, t, false);
}

// The context of the values, entered; the current one if there are none.
static int enter(int n, yoke_tensor *const *t, struct yoke_context **to)
{
	struct yoke_context *ctx = NULL;
	if (n < 0)
		return yk_fail(YOKE_EINVAL, "eval: %d values", n);
	const int given = n ? yk_require(t, "list of values") : 0;
	if (given)
		return given;
	for (int i = 0; i < n && !ctx; i++) {
		if (!t[i] || t[i] == YOKE_NONE)
			continue;
		const struct yk_tensor *h = yk_tensor(t[i], "eval");
		if (!h)
			return yk_error_last();
		ctx = h->ctx;
	}
	if (!ctx && !(ctx = yk_current()))
		return yk_error_last();
	*to = ctx;
	return yk_enter(ctx);
}

int yoke_eval(int n, yoke_tensor *const *t)
{
	struct yoke_context *ctx;
	int err = enter(n, t, &ctx);
	if (err)
		return err;
	err = evaluate(ctx, n, t, false);
	yk_leave(ctx);
	return err;
}

// Has any of the tensors no value yet, or lost it?
static bool any_pending(int n, yoke_tensor *const *handle)
{
	for (int i = 0; i < n; i++) {
		if (!handle[i] || handle[i] == YOKE_NONE)
			continue;
		const struct yk_tensor *t = yk_tensor(handle[i], "eval");
		if (!t || (t->kind < YK_HOST_SCALAR && (yk_is_pending(t) || t->storage->failed)))
			return true;
	}
	return false;
}

int yoke_eval_brief(int n, yoke_tensor *const *t, int all)
{
	struct yoke_context *ctx;
	int err = enter(n, t, &ctx);
	if (err)
		return err;
	int late = ctx->device != ctx->cpu || ctx->mode.eager;
	if (!late && (all || any_pending(n, t)))
		late = evaluate(ctx, n, t, true);
	yk_leave(ctx);
	return late < 0 ? late : !late;
}
