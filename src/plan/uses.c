// SPDX-License-Identifier: Apache-2.0
// What is live, who reads which bytes, and concats without copies.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "conform/selftest.h"
#include "plan/plan.h"

static void mark_live(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	for (size_t i = 0; i < w->roots; i++) {
		yk_id base = w->place[w->root_value[i]].base;
		w->live[g->value[w->root_value[i]].node] = 1;
		w->rooted[base] = 1;
	}
	for (size_t k = g->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		for (uint32_t i = 0; w->live[k] && i < n->nin; i++)
			if (g->arg[n->in + i] != YK_NIL)
				w->live[g->value[g->arg[n->in + i]].node] = 1;
	}
}

static bool computes(const struct yk_work *w, size_t node)
{
	return w->live[node] &&
	       !(yk_op_row(w->g.node[node].op)->flags & (YK_F_VIEW | YK_F_LEAF));
}

// Readers of each base value in creation order, a node once for each operand.  Made before operands
// move into a concat, so these still count as read by it.
static int list_uses(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	size_t total = 0;
	memset(w->use, 0, (g->values + 2) * sizeof *w->use);
	for (size_t k = 0; k < g->nodes; k++)
		for (uint32_t i = 0; computes(w, k) && i < g->node[k].nin; i++) {
			yk_id v = g->arg[g->node[k].in + i];
			if (v != YK_NIL) {
				w->use[w->place[v].base + 2]++;
				total++;
			}
		}
	free(w->uses);
	if (!(w->uses = malloc((total + 1) * sizeof *w->uses)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t v = 2; v < g->values + 2; v++)
		w->use[v] += w->use[v - 1];
	// use[v + 1] is where v's readers begin, and moves to where they end
	for (size_t k = 0; k < g->nodes; k++)
		for (uint32_t i = 0; computes(w, k) && i < g->node[k].nin; i++) {
			yk_id v = g->arg[g->node[k].in + i];
			if (v != YK_NIL)
				w->uses[w->use[w->place[v].base + 1]++] = (uint32_t)k;
		}
	return 0;
}

// Operand k of a concat, computed right into it when its maker can write there and only the concat
// reads it, as a whole.
static void place_in(struct yk_work *w, uint32_t node, uint32_t k)
{
	struct yk_graph *g = &w->g;
	const struct yk_node *concat = &g->node[node];
	yk_id v = yk_ins(g, concat)[k], base = w->place[v].base;
	const struct yk_node *maker = yk_maker(g, base);
	const struct yk_value *x = &g->value[v], *b = &g->value[base];
	const struct yk_place *p = &w->place[v];
	uint16_t flags = yk_op_row(maker->op)->flags;
	if (!(flags & YK_F_STRIDED) || maker->device != concat->device ||
	    w->rooted[base] || w->use[base + 1] - w->use[base] != 1 || p->offset ||
	    yk_count(x) != yk_count(b) || !yk_is_dense(x->rank, x->dims, p->stride))
		return;
	struct yk_place part = yk_part_place(w, node, k), was = w->place[base], in = part;
	if (!yk_restride(x->rank, x->dims, part.stride, b->rank, b->dims, in.stride))
		return;
	w->place[base] = in;
	uint32_t one = b->node;
	struct yk_built built = { 0 };
	int err = flags & YK_F_MAP ? yk_build_group(w, &one, 1, &built) :
				     yk_build_node(w, one, false, &built);
	struct yk_device *d = yk_work_device(w, concat->device);
	bool good = !err && yk_selftest_can(d, &built.op);
	yk_built_fini(&built);
	if (!good) {
		w->place[base] = was;
		return;
	}
	w->place[v] = part;
}

int yk_uses(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	w->live = calloc(g->nodes + 1, 1);
	w->rooted = calloc(g->values + 1, 1);
	w->use = malloc((g->values + 2) * sizeof *w->use);
	if (!w->live || !w->rooted || !w->use)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	mark_live(w);
	int err = list_uses(w);
	for (size_t k = 0; k < g->nodes && !err; k++)
		for (uint32_t i = 0;
		     computes(w, k) && g->node[k].op == YK_CONCAT && i < g->node[k].nin;
		     i++)
			place_in(w, (uint32_t)k, i);
	return err;
}
