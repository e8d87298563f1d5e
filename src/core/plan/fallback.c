// SPDX-License-Identifier: Apache-2.0
// Statistics of operations that fell back on the CPU, by op, dtype and shape.  The entry of each
// step is determined when the plan is made, so that a launch only adds.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sized.h"
#include "plan/eval.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/work.h"

enum { MAX_KINDS = 512 }; // limit of entries by shape; later ones count by op and dtype only

static bool same(const struct yk_fallback *f, int op, const struct yk_value *v)
{
	return f->op == op && f->dtype == v->dtype && f->rank == v->rank &&
	       (v->rank == YK_ANY_RANK || !memcmp(f->dims, v->dims, v->rank * sizeof *v->dims));
}

// The kind's number, from 1 on; 0: no memory.
static uint32_t kind_of(struct yk_planner *pl, int op, const struct yk_value *value)
{
	struct yk_value v = *value;
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < pl->fallbacks.n; k++)
			if (same(&pl->fallbacks.kind[k], op, &v))
				return (uint32_t)k + 1;
		if (pl->fallbacks.n < MAX_KINDS)
			break;
		v.rank = YK_ANY_RANK;
	}
	if (yk_grow(&pl->fallbacks.kind, &pl->fallbacks.cap, pl->fallbacks.n + 1,
		    sizeof *pl->fallbacks.kind) < 0)
		return 0;
	struct yk_fallback *f = &pl->fallbacks.kind[pl->fallbacks.n++];
	*f = (struct yk_fallback){ .op = (uint16_t)op, .dtype = v.dtype, .rank = v.rank };
	memcpy(f->dims, v.dims, sizeof f->dims);
	return (uint32_t)pl->fallbacks.n;
}

// The CPU's node for which a copy between the devices is made.
static uint32_t served(const struct yk_work *w, const struct yk_step *s)
{
	const struct yk_node *n = &w->g.node[s->node];
	if (s->kind == YK_STEP_UP) // a result of the CPU
		return w->g.value[w->value[w->g.arg[n->in]].place.base].node;
	for (uint32_t u = w->value[n->out].use; u != YK_NIL; u = w->use[u].next)
		if (w->g.node[w->use[u].node].stream == YK_STREAM_CPU)
			return w->use[u].node;
	return s->node;
}

int yk_fallbacks_note(struct yk_work *w)
{
	const struct yk_plan *p = w->plan;
	// by node: the node that names its step
	uint32_t *at = malloc((w->g.nodes + 1) * sizeof *at);
	if (!at)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t k = 0; k < w->g.nodes; k++)
		at[k] = k;
	for (size_t i = 0; i < p->steps; i++)
		for (uint32_t k = 0; k < p->step[i].nodes; k++)
			at[p->step[i].part[k].node] = p->step[i].node;
	int err = 0;
	for (size_t i = 0; i < p->steps && !err; i++) {
		struct yk_step *s = &p->step[i];
		bool copies = s->kind == YK_STEP_UP || s->kind == YK_STEP_DOWN;
		if (!copies && s->stream != YK_STREAM_CPU)
			continue;
		uint32_t node = copies ? at[served(w, s)] : s->node;
		const struct yk_node *n = &w->g.node[node];
		// not due to a missing kernel
		if (w->node[node].cause == yk_placed || w->node[s->node].cause == yk_spilled)
			continue;
		s->fallback = kind_of(w->ctx->planner, n->op, &w->g.value[n->out]);
		if (!s->fallback)
			err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	}
	free(at);
	return err;
}

static int by_bytes(const void *a, const void *b)
{
	const struct yoke_fallback *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->count < y->count) - (x->count > y->count);
}

size_t yk_fallback_list(const struct yoke_context *ctx, const uint64_t (*before)[2], size_t nbefore,
			struct yoke_fallback *to)
{
	const struct yk_planner *pl = ctx->planner;
	size_t n = 0;
	for (size_t k = 0; pl && k < pl->fallbacks.n; k++) {
		const struct yk_fallback *f = &pl->fallbacks.kind[k];
		uint64_t count = f->count, bytes = f->bytes;
		if (k < nbefore) {
			count -= before[k][0];
			bytes -= before[k][1];
		}
		if (!count && !bytes)
			continue;
		to[n] = (struct yoke_fallback){
			.size = sizeof *to,
			.op = yk_op_def(f->op)->name,
			.dtype = f->dtype,
			.rank = f->rank == YK_ANY_RANK ? -1 : f->rank,
			.count = count,
			.bytes = bytes,
		};
		memcpy(to[n++].dims, f->dims, sizeof to->dims);
	}
	qsort(to, n, sizeof *to, by_bytes);
	return n;
}

size_t yk_fallback_kinds(const struct yoke_context *ctx)
{
	return ctx->planner ? ctx->planner->fallbacks.n : 0;
}

void yk_fallback_counts(const struct yoke_context *ctx, uint64_t (*to)[2])
{
	for (size_t k = 0; k < yk_fallback_kinds(ctx); k++) {
		to[k][0] = ctx->planner->fallbacks.kind[k].count;
		to[k][1] = ctx->planner->fallbacks.kind[k].bytes;
	}
}

int yoke_fallbacks(int max, struct yoke_fallback *to)
{
	struct yoke_context *ctx = yk_current();
	int err = yk_sized_array(to, max, "fallbacks", "yoke_fallback");
	if (!err)
		err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	struct yoke_fallback *all = malloc((yk_fallback_kinds(ctx) + 1) * sizeof *all);
	size_t n = all ? yk_fallback_list(ctx, NULL, 0, all) : 0;
	if (!all)
		err = yk_fail(YOKE_ENOMEM, "fallbacks: no memory for a list");
	for (size_t i = 0; i < n && to && (int)i < max && !err; i++)
		err = yk_sized_write_at(to, (int)i, sizeof *all, &all[i], "fallbacks",
					"yoke_fallback");
	free(all);
	yk_leave(ctx);
	return err ? err : (int)n;
}
