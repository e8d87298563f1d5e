// SPDX-License-Identifier: Apache-2.0
// Attribution for profiles: the nodes that each step computes, and the reason why a node has no
// step. Every node of the lowered graph is in the steps of one group, or in the plan's list `gone`.

#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/work.h"

static struct yk_step_node part_of(const struct yk_work *w, uint32_t node, const char *gone)
{
	const struct yk_node *n = &w->g.node[node];
	return (struct yk_step_node){
		.node = node,
		.scope = n->scope,
		.recorded = w->node[node].from,
		.opcode = n->op,
		.gone = gone,
	};
}

int yk_parts(struct yk_work *w, const struct yk_group *m, size_t first)
{
	struct yk_plan *p = w->plan;
	if (first == p->steps)
		return 0;
	struct yk_step_node *part = yk_arena_alloc(&p->memory, m->n * sizeof *part);
	uint32_t n = 0;
	if (!part)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t i = 0; i < m->n; i++)
		part[n++] = part_of(w, m->member[i], NULL);
	for (size_t i = first; i < p->steps; i++) {
		p->step[i].part = part;
		p->step[i].nodes = n;
	}
	return 0;
}

// Why no step computes the node; NULL if one does.
static const char *why_gone(const struct yk_work *w, uint32_t node, const uint8_t *done)
{
	const struct yk_node *n = &w->g.node[node];
	if (done[node])
		return NULL;
	if (yk_op_def(n->op)->flags & YK_F_LEAF)
		return "leaf";
	if (!w->node[node].live)
		return "not needed";
	if (yk_op_def(n->op)->flags & YK_F_VIEW)
		return "view";
	if (n->op == YK_BARRIER)
		return "barrier";
	for (uint32_t k = 0; k < n->nout; k++)
		if (yk_count(&w->g.value[n->out + k]))
			return "in place"; // a concat whose operands are computed in it
	return "empty";
}

int yk_omitted_nodes(struct yk_work *w)
{
	struct yk_plan *p = w->plan;
	uint8_t *done = calloc(w->g.nodes + 1, 1);
	if (!done)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	size_t n = 0;
	for (size_t i = 0; i < p->steps; i++)
		for (uint32_t k = 0; k < p->step[i].nodes; k++)
			done[p->step[i].part[k].node] = 1;
	if (w->scalars.buffer != YK_NIL) // not from a recorded node
		done[w->g.value[w->scalars.buffer].node] = 1;
	for (uint32_t k = 0; k < w->g.nodes; k++)
		n += !done[k];
	struct yk_step_node *gone = yk_arena_alloc(&p->memory, (n + 1) * sizeof *gone);
	for (uint32_t k = 0; k < w->g.nodes && gone; k++) {
		const char *why = why_gone(w, k, done);
		if (why)
			gone[p->nodes.absents++] = part_of(w, k, why);
	}
	free(done);
	p->nodes.absent = gone;
	p->nodes.lowered = w->g.nodes;
	return gone ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
}
