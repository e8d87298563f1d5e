// SPDX-License-Identifier: Apache-2.0
// Two passes: liveness, with lists of readers; and concatenation in place, where operands are
// computed directly in the result.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/usable.h"
#include "plan/build.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/strides.h"
#include "plan/work.h"

static void mark_live(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	for (size_t i = 0; i < w->roots; i++) {
		yk_id base = w->value[w->root_value[i]].place.base;
		w->node[g->value[w->root_value[i]].node].live = 1;
		w->value[base].rooted = 1;
	}
	for (size_t k = g->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		w->node[k].live |= yk_is_ranks(n);
		for (uint32_t i = 0; w->node[k].live && i < n->nin; i++)
			if (g->arg[n->in + i] != YK_NIL)
				w->node[g->value[g->arg[n->in + i]].node].live = 1;
	}
}

static bool read_once(const struct yk_work *w, yk_id base)
{
	uint32_t u = w->value[base].use;
	return u != YK_NIL && w->use[u].next == YK_NIL;
}

// Computes operand k of a concat in the result, if its maker can write there and only the concat
// reads it, as a whole.
static void place_in(struct yk_work *w, uint32_t node, uint32_t k)
{
	struct yk_graph *g = &w->g;
	const struct yk_node *concat = &g->node[node];
	yk_id v = yk_ins(g, concat)[k], base = w->value[v].place.base;
	const struct yk_node *maker = yk_maker(g, base);
	const struct yk_value *x = &g->value[v], *b = &g->value[base];
	const struct yk_location *p = &w->value[v].place;
	uint16_t flags = yk_op_def(maker->op)->flags;
	if (!(flags & YK_F_STRIDED) || maker->stream != concat->stream ||
	    w->value[base].rooted || !read_once(w, base) || p->offset ||
	    yk_count(x) != yk_count(b) || !yk_is_dense(x->rank, x->dims, p->stride))
		return;
	struct yk_location part = yk_operand_region(w, node, k), was = w->value[base].place,
			   in = part;
	if (!yk_restride(x->rank, x->dims, part.stride, b->rank, b->dims, in.stride))
		return;
	w->value[base].place = in;
	uint32_t one = b->node;
	struct yk_built built = { 0 };
	int err = flags & YK_F_MAP ? yk_build_group(w, &one, 1, &built) :
				     yk_build_node(w, one, false, &built);
	struct yk_device *d = yk_work_device(w, concat->stream);
	bool good = !err && yk_device_usable(d, &built.op);
	yk_built_fini(&built);
	if (!good) {
		w->value[base].place = was;
		return;
	}
	w->value[v].place = part;
}

int yk_live(struct yk_work *w)
{
	mark_live(w);
	return yk_uses_list(w);
}

int yk_concat_in_place(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	for (size_t k = 0; k < g->nodes; k++)
		for (uint32_t i = 0;
		     yk_computes(w, k) && g->node[k].op == YK_CONCAT && i < g->node[k].nin; i++)
			place_in(w, (uint32_t)k, i);
	return 0;
}
