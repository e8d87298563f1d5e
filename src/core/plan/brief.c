// SPDX-License-Identifier: Apache-2.0
// Decides whether a plan is brief: launching it neither waits for a device or for other ranks nor
// computes for long.  The decision follows from the plan's ops and shapes alone.

#include "config.h"

#include <math.h>

#include "plan/planner.h"

// Estimates are upper bounds for a slow core.  A launch of this length is as long as an interrupted
// caller may have to wait.
static const double LIMIT_NS = 50e6, NS_PER_BYTE = 0.5, NS_PER_INSTRUCTION = 2,
		    NS_PER_PRODUCT = 0.06;

enum { MAX_NODES = 128 }; // of graphs that are planned to find out

// Elements of the results and of the operands.
static double elements(const struct yk_plan *p, const struct yk_step *s)
{
	double sum = 0;
	for (uint32_t i = 0; i < s->views; i++) {
		const struct yoke_view *v = &p->view[s->view + i];
		double n = v->kind == YOKE_VIEW_BUFFER;
		for (int k = 0; k < v->rank; k++)
			n *= (double)v->dims[k];
		sum += n;
	}
	return sum;
}

// Products of matrices, and everything made of them, take at most as many operations as the power
// 1.5 of the elements of the operands and results.
static double estimate(const struct yk_plan *p, const struct yk_step *s)
{
	const struct yoke_map *m = s->op.map;
	const double n = elements(p, s), linear = NS_PER_BYTE * (double)s->bytes;
	switch (s->kind == YK_STEP_RUN ? s->op.code : (int)YOKE_OP_MOVE) {
	case YOKE_OP_MAP:
	case YOKE_OP_REDUCE: return linear + NS_PER_INSTRUCTION * m->ninsn * n;
	case YOKE_OP_MOVE:
	case YOKE_OP_GATHER:
	case YOKE_OP_GATHER_ALONG:
	case YOKE_OP_SCATTER_ADD:
	case YOKE_OP_SCATTER_ADD_ALONG:
	case YOKE_OP_SLICE_AT:
	case YOKE_OP_SLICE_UPDATE_AT: return linear;
	case YOKE_OP_SOURCE: return INFINITY; // not known
	}
	return linear + NS_PER_PRODUCT * n * sqrt(n);
}

bool yk_may_be_brief(const struct yk_planner *pl)
{
	const struct yoke_context *ctx = pl->ctx;
	return ctx->device == ctx->cpu && !ctx->mode.eager && !ctx->graph.owed &&
	       pl->marks.nodes <= MAX_NODES && !pl->marks.failed;
}

bool yk_plan_is_brief(const struct yk_plan *p)
{
	double sum = 0;
	for (size_t i = 0; i < p->steps && sum <= LIMIT_NS; i++)
		sum += p->step[i].kind == YK_STEP_RUN || p->step[i].kind == YK_STEP_FILL ?
			       estimate(p, &p->step[i]) :
			       INFINITY;
	return sum <= LIMIT_NS;
}
