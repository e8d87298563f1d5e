// SPDX-License-Identifier: Apache-2.0
// Edits of the plan's graph: adding and cloning nodes, replacing operands, and undoing all of it
// back to a mark, so that a pass can try a change and evaluate the result.
//
// New nodes are always appended to the arrays; their position in time is stored in their facts.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/edit.h"
#include "plan/strides.h"
#include "plan/work.h"

// ---- readers ----

static void link_use(struct yk_work *w, uint32_t arg, uint32_t node)
{
	yk_id v = w->g.arg[arg];
	struct yk_use *u = &w->use[arg];
	*u = (struct yk_use){ .node = node, .base = YK_NIL };
	if (v == YK_NIL)
		return;
	u->base = w->value[v].place.base;
	u->next = w->value[u->base].use;
	w->value[u->base].use = arg;
}

static void unlink_use(struct yk_work *w, uint32_t arg)
{
	if (w->use[arg].base == YK_NIL)
		return;
	uint32_t *at = &w->value[w->use[arg].base].use;
	while (*at != arg)
		at = &w->use[*at].next;
	*at = w->use[arg].next;
	w->use[arg].base = YK_NIL;
}

int yk_uses_list(struct yk_work *w)
{
	const struct yk_graph *g = &w->g;
	if (yk_grow(&w->use, &w->edit.use_cap, g->args + 1, sizeof *w->use) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t v = 0; v < g->values; v++)
		w->value[v].use = YK_NIL;
	for (size_t a = 0; a < g->args; a++)
		w->use[a].base = YK_NIL;
	// backwards, so that each list begins with the first reader
	for (uint32_t k = (uint32_t)g->nodes; k-- > 0;)
		for (uint32_t i = g->node[k].nin; yk_computes(w, k) && i-- > 0;)
			link_use(w, g->node[k].in + i, k);
	return 0;
}

// ---- edits ----

int yk_node_add(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		const struct yk_value *outs, int stream, const char *cause, yk_id *out)
{
	struct yk_graph *g = &w->g;
	int err = yk_append_as(g, c, nout, outs, out);
	if (err)
		return err;
	if (yk_grow(&w->value, &w->edit.value_cap, g->values, sizeof *w->value) < 0 ||
	    yk_grow(&w->node, &w->edit.node_cap, g->nodes, sizeof *w->node) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	uint32_t node = (uint32_t)g->nodes - 1;
	g->node[node].stream = (uint8_t)stream;
	w->node[node] = (struct yk_node_facts){ .cause = cause,
						.from = w->lowering.recorded,
						.time = node,
						.of = node,
						.group = YK_NIL };
	for (uint32_t i = 0; i < nout; i++) {
		struct yk_value_facts *v = &w->value[*out + i];
		*v = (struct yk_value_facts){ .place = { .base = *out + i }, .use = YK_NIL };
		yk_strides(outs[i].rank, outs[i].dims, v->place.stride);
	}
	return 0;
}

void yk_edit_begin(struct yk_work *w)
{
	w->edit.began = (struct yk_edited){ w->g.nodes, w->g.values, w->g.args, w->g.nattrs };
	w->edit.nreplaced = 0;
}

int yk_edit_replace(struct yk_work *w, uint32_t arg, yk_id v)
{
	if (yk_grow(&w->edit.replaced, &w->edit.replaced_cap, w->edit.nreplaced + 1,
		    sizeof *w->edit.replaced) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	w->edit.replaced[w->edit.nreplaced++] = (struct yk_replaced){ arg, w->g.arg[arg] };
	unlink_use(w, arg);
	w->g.arg[arg] = v;
	link_use(w, arg, w->use[arg].node);
	return 0;
}

// Makes the last node live, registers its reads, and gives it the time and facts of an older node.
static int settle_last(struct yk_work *w, uint32_t like)
{
	uint32_t node = (uint32_t)w->g.nodes - 1;
	const struct yk_node *n = &w->g.node[node];
	if (yk_grow(&w->use, &w->edit.use_cap, w->g.args + 1, sizeof *w->use) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	w->node[node].time = w->node[like].time;
	w->node[node].from = w->node[like].from;
	w->node[node].live = true;
	for (uint32_t i = 0; i < n->nin; i++) {
		w->use[n->in + i].base = YK_NIL;
		if (yk_computes(w, node))
			link_use(w, n->in + i, node);
	}
	return 0;
}

int yk_edit_add(struct yk_work *w, const struct yk_call *c, const struct yk_value *v, int stream,
		const char *cause, uint32_t like, yk_id *out)
{
	w->g.scope = w->g.node[like].scope;
	w->g.site = w->g.node[like].site;
	int err = yk_node_add(w, c, 1, v, stream, cause, out);
	return err ? err : settle_last(w, like);
}

int yk_edit_clone(struct yk_work *w, uint32_t node, const yk_id *in, yk_id *out)
{
	const struct yk_node n = w->g.node[node];
	struct yk_call c = { .op = n.op, .list = n.list, .nin = n.nin, .in = in, .nattr = n.nattr };
	// a copy: the graph's array may be reallocated
	union yoke_attr *attr = malloc((n.nattr + 1) * sizeof *attr);
	struct yk_value *outs = malloc((n.nout + 1) * sizeof *outs);
	int err = attr && outs ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err) {
		memcpy(attr, yk_attrs(&w->g, &n), n.nattr * sizeof *attr);
		memcpy(outs, &w->g.value[n.out], n.nout * sizeof *outs);
		c.attr = attr;
		w->g.scope = n.scope;
		w->g.site = n.site;
		err = yk_node_add(w, &c, n.nout, outs, n.stream, "computed again", out);
	}
	if (!err) {
		w->node[w->g.nodes - 1].of = w->node[node].of;
		err = settle_last(w, node);
	}
	free(attr);
	free(outs);
	return err;
}

int yk_edit_view(struct yk_work *w, yk_id v, yk_id base, yk_id *out)
{
	struct yk_location p = w->value[v].place;
	struct yk_value like = w->g.value[v];
	struct yk_call c = { .op = YK_STOP_GRAD, .nin = 1, .in = &base };
	*out = base;
	if (v == p.base)
		return 0;
	int err = yk_node_add(w, &c, 1, &like, yk_maker(&w->g, base)->stream, NULL, out);
	if (err)
		return err;
	p.base = base;
	w->value[*out].place = p;
	return settle_last(w, w->g.value[base].node);
}

void yk_edit_drop(struct yk_work *w, uint32_t node)
{
	const struct yk_node *n = &w->g.node[node];
	for (uint32_t i = 0; i < n->nin; i++)
		unlink_use(w, n->in + i);
	w->node[node].live = false;
	w->node[node].group = YK_NIL;
}

uint32_t *yk_in_time(const struct yk_work *w)
{
	uint32_t n = (uint32_t)w->g.nodes, k = 0;
	uint32_t *order = malloc((n + 1) * sizeof *order),
		 *words = malloc((2 * (size_t)n + 1) * sizeof *words);
	// first[t]: first node of time t; next[i]: the one after i
	uint32_t *first = words, *next = words + n;
	if (!order || !words) {
		free(order);
		free(words);
		yk_fail(YOKE_ENOMEM, "no memory to plan");
		return NULL;
	}
	memset(first, 0xff, n * sizeof *first);
	for (uint32_t i = n; i-- > 0;) {
		next[i] = first[w->node[i].time];
		first[w->node[i].time] = i;
	}
	for (uint32_t t = 0; t < n; t++)
		for (uint32_t i = first[t]; i != YK_NIL; i = next[i])
			order[k++] = i;
	free(words);
	return order;
}

int yk_edit_sweep(struct yk_work *w)
{
	uint32_t *order = yk_in_time(w);
	for (size_t i = w->g.nodes; i-- > 0 && order;) {
		const struct yk_node *n = &w->g.node[order[i]];
		bool needed = !yk_computes(w, order[i]) || n->op == YK_BARRIER || yk_is_ranks(n);
		for (uint32_t k = 0; k < n->nout && !needed; k++)
			needed = w->value[n->out + k].rooted || w->value[n->out + k].use != YK_NIL;
		if (!needed)
			yk_edit_drop(w, order[i]);
	}
	free(order);
	return order ? 0 : YOKE_ENOMEM;
}

void yk_edit_undo(struct yk_work *w)
{
	struct yk_graph *g = &w->g;
	while (w->edit.nreplaced) {
		const struct yk_replaced *r = &w->edit.replaced[--w->edit.nreplaced];
		unlink_use(w, r->arg);
		g->arg[r->arg] = r->was;
		link_use(w, r->arg, w->use[r->arg].node);
	}
	for (size_t a = g->args; a-- > w->edit.began.args;)
		unlink_use(w, (uint32_t)a);
	g->nodes = w->edit.began.nodes;
	g->values = w->edit.began.values;
	g->args = w->edit.began.args;
	g->nattrs = w->edit.began.nattrs;
}
