// SPDX-License-Identifier: Apache-2.0
// History: the nodes that stay in the graph after an evaluation.
//
// Nodes stay as long as a handle refers to one of them, so that a value that was not kept can be
// recomputed, and gradients pass through values that were read.  When no handle refers to the graph
// it is emptied, at the latest when the step's scope ends.  If handles outlive their steps the
// graph is collected: nodes that no handle reaches are dropped.  If that is not enough, values that
// have bytes become leaves.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"
#include "graph/handle.h"

// The graph is collected when it has twice the nodes it had after the last collection or before it
// was last emptied (a step whose scope will empty it is not collected in vain), or when the bytes
// that only it came to hold since then exceed LOOSE and those it held alone then.
enum { LOOSE = 1 << 20 };
// Values that have bytes become leaves when the graph exceeds LONG nodes and TIMES the nodes that
// were new to the last evaluation; or when bytes that only leaves hold exceed 1/HELD_PART of the
// device's memory.
enum { LONG = 65536, TIMES = 4, HELD_PART = 16 };

static void leaf_drop(struct yoke_context *ctx, struct yk_leaf *l)
{
	ctx->leaves.copies -= l->moved != NULL;
	if (l->storage)
		l->storage->leaves--;
	yk_storage_unref(l->storage);
	yk_past_unref(l->past);
	yk_moved_unref(l->moved);
}

void yk_history_drop(struct yoke_context *ctx)
{
	for (size_t i = 0; i < ctx->leaves.n; i++)
		leaf_drop(ctx, &ctx->leaves.at[i]);
	ctx->leaves.n = ctx->history.formers = 0;
	const size_t less = ctx->history.emptied - ctx->history.emptied / 8;
	ctx->history.emptied = ctx->graph.nodes > less ? ctx->graph.nodes : less;
	yk_graph_clear(&ctx->graph);
	ctx->history.collected = ctx->history.leftover = ctx->mode.launched = 0;
	ctx->history.loose = 0;
	ctx->history.bound = LOOSE;
	ctx->history.epoch++;
}

// ---- the nodes to keep ----

struct collection {
	struct yoke_context *ctx;
	uint32_t *need; // by node: which results are needed, as yk_result_bit; 0: dropped
	uint8_t *leads; // by node: enum leads
	bool cut;       // values with bytes become leaves, whatever gradients they block
	yk_id *map;     // by value: its new index
	uint32_t *leaf; // by leaf: its new index
	struct yk_graph g;
	struct yk_leaf *leaves;
	size_t nleaves, leaf_cap;
	size_t settled;
};

typedef void visit_fn(struct collection *, struct yk_tensor *);

static void each_of(struct collection *c, struct yk_tensor *t, visit_fn *fn)
{
	for (; t; t = t->next)
		fn(c, t);
}

static void each_handle(struct collection *c, visit_fn *fn)
{
	each_of(c, c->ctx->handles.list, fn);
	for (const struct yk_scope *s = c->ctx->scopes.innermost; s; s = s->parent)
		each_of(c, s->handles, fn);
}

static void need(struct collection *c, yk_id v)
{
	const struct yk_graph *g = &c->ctx->graph;
	if (v != YK_NIL)
		c->need[g->value[v].node] |= yk_result_bit(g, v);
}

static void need_value(struct collection *c, struct yk_tensor *t)
{
	need(c, t->id);
}

// Can a gradient be requested through a node?  A variable's assigned values count only if they have
// a handle, and not through operations made by yoke_grad, so that training steps leave no chain of
// versions.
enum leads {
	LEADS_TARGET = 1,        // a handle refers to the node
	LEADS_THROUGH = 2,       // its gradient by a LEADS_TARGET can be computed
	LEADS_NAMED = 4,         // like LEADS_TARGET, without earlier versions of variables
	LEADS_THROUGH_NAMED = 8, // like LEADS_THROUGH, but not through operations of yoke_grad
	LEADS_VERSION = 16,      // a variable was assigned one of its results
	LEADS_PAST = 32,         // it depends on a LEADS_TARGET, with a gradient or without
	LEADS_LOST = 64          // its results cannot be recomputed: operands were overwritten
};

static void find_leads(struct collection *c, struct yk_tensor *t)
{
	const yk_id v = yk_version_of(t);
	if (v != YK_NIL && yk_is_float(c->ctx->graph.value[v].dtype))
		c->leads[c->ctx->graph.value[v].node] |=
			LEADS_TARGET | LEADS_NAMED | (t->kind == YK_VARIABLE ? LEADS_VERSION : 0);
}

// Does the value have no bytes, and can it not be recomputed?
static bool is_lost(const struct collection *c, yk_id v)
{
	const struct yk_value *x = &c->ctx->graph.value[v];
	return x->made == YK_NIL && c->leads[x->node] & LEADS_LOST;
}

static bool loses(const struct collection *c, uint32_t k)
{
	const struct yk_graph *g = &c->ctx->graph;
	const struct yk_node *n = &g->node[k];
	if (n->op == YK_LEAF) {
		const struct yk_storage *s = c->ctx->leaves.at[yk_attrs(g, n)[0].i].storage;
		return s && !s->buffer && !s->failed;
	}
	bool lost = n->done && yk_is_ranks(n);
	for (uint32_t i = 0; i < n->nin && !lost; i++)
		lost = yk_ins(g, n)[i] != YK_NIL && is_lost(c, yk_ins(g, n)[i]);
	return lost;
}

// Are all floating-point operands lost, and does no result have bytes?
static bool is_all_lost(const struct collection *c, const struct yk_node *n)
{
	const struct yk_graph *g = &c->ctx->graph;
	bool lost = true;
	for (uint32_t i = 0; i < n->nin && lost; i++) {
		const yk_id v = yk_ins(g, n)[i];
		lost = v == YK_NIL || !yk_is_float(g->value[v].dtype) || is_lost(c, v);
	}
	for (uint32_t i = 0; i < n->nout && lost; i++)
		lost = g->value[n->out + i].made == YK_NIL;
	return lost;
}

// Does the gradient by operand i need lost values?  False if the op alone does not decide that.
static bool is_blocked(const struct collection *c, const struct yk_node *n, uint32_t i)
{
	const struct yk_graph *g = &c->ctx->graph;
	const yk_id *in = yk_ins(g, n);
	switch (n->op) {
	case YK_MUL:
	case YK_MATMUL:
	case YK_CONV: return is_lost(c, in[1 - i]);
	case YK_DIV: return is_lost(c, in[1]);
	case YK_SELECT:
	case YK_MOD: return false;
	case YK_SOFTMAX:
	case YK_RMS_NORM:
	case YK_CROSS_ENTROPY:
	case YK_ATTENTION: return is_all_lost(c, n);
	}
	return yk_op_def(n->op)->flags & YK_F_MAP && !yk_is_linear(n) && is_all_lost(c, n);
}

static void spread_leads(struct collection *c)
{
	const struct yk_graph *g = &c->ctx->graph;
	each_handle(c, find_leads);
	for (size_t i = 0; i < c->ctx->history.formers; i++)
		if (yk_is_alive(c->ctx->history.former[i].variable))
			c->leads[g->value[c->ctx->history.former[i].value].node] |=
				LEADS_TARGET | LEADS_VERSION;
	for (size_t k = 0; k < g->nodes; k++) {
		const struct yk_node *n = &g->node[k];
		const struct yk_leaf *l =
			n->op == YK_LEAF ? &c->ctx->leaves.at[yk_attrs(g, n)[0].i] : NULL;
		uint8_t *to = &c->leads[k];
		if (loses(c, (uint32_t)k))
			*to |= LEADS_LOST;
		if (l && l->past)
			*to |= LEADS_PAST;
		if (l && (yk_moved_lives(l->moved) || (l->handle && yk_is_alive(l->handle))))
			*to |= yk_leaf_is_named(c->ctx, l) ? LEADS_TARGET | LEADS_NAMED :
							     LEADS_TARGET;
		for (uint32_t i = 0; i < n->nin && yk_differentiable(g, n); i++) {
			const yk_id v = yk_ins(g, n)[i];
			if (v == YK_NIL || !yk_is_float(g->value[v].dtype))
				continue;
			const uint8_t from = c->leads[g->value[v].node];
			if (from & (LEADS_TARGET | LEADS_PAST))
				*to |= LEADS_PAST;
			if (!(from & (LEADS_TARGET | LEADS_THROUGH)) || is_blocked(c, n, i))
				continue;
			*to |= LEADS_THROUGH;
			if (from & (LEADS_NAMED | LEADS_THROUGH_NAMED) && !n->back)
				*to |= LEADS_THROUGH_NAMED;
		}
	}
}

// Do the node's results become leaves?  They do where no gradient can be requested through them:
// results that have bytes, and lost versions of variables, which would otherwise keep ever older
// versions.
static bool becomes_leaf(const struct collection *c, uint32_t k)
{
	const struct yk_graph *g = &c->ctx->graph;
	const struct yk_node *n = &g->node[k];
	const uint8_t leads = c->leads[k],
		      through = leads & LEADS_VERSION ? LEADS_THROUGH_NAMED : LEADS_THROUGH;
	const bool lost = leads & LEADS_VERSION && leads & LEADS_LOST;
	return n->op != YK_LEAF && (lost || yk_is_made(g, n, c->need[k])) &&
	       (c->cut || !(leads & through));
}

static void find_needed(struct collection *c)
{
	const struct yk_graph *g = &c->ctx->graph;
	spread_leads(c);
	each_handle(c, need_value);
	for (size_t k = g->settled; g->owed && k < g->nodes; k++)
		if (yk_is_ranks(&g->node[k]) && !g->node[k].done)
			need(c, g->node[k].out);
	for (uint32_t k = (uint32_t)g->nodes; k-- > 0;) {
		const bool goes_on = c->need[k] && !becomes_leaf(c, k);
		for (uint32_t i = 0; goes_on && i < g->node[k].nin; i++)
			need(c, yk_ins(g, &g->node[k])[i]);
	}
}

// ---- the collected graph ----

static int keep_leaf(struct collection *c, uint32_t i)
{
	if (i == YK_NIL || c->leaf[i] != YK_NIL)
		return 0;
	if (yk_grow(&c->leaves, &c->leaf_cap, c->nleaves + 1, sizeof *c->leaves) < 0)
		return YOKE_ENOMEM;
	c->leaves[c->nleaves] = c->ctx->leaves.at[i];
	c->leaf[i] = (uint32_t)c->nleaves++;
	return 0;
}

// Turns each of the node's results that has bytes into a leaf.
static int copy_made(struct collection *c, const struct yk_node *n)
{
	const struct yk_graph *g = &c->ctx->graph;
	for (uint32_t i = 0; i < n->nout; i++) {
		const struct yk_value *v = &g->value[n->out + i];
		if (v->made == YK_NIL)
			continue;
		if (keep_leaf(c, v->made) < 0)
			return YOKE_ENOMEM;
		struct yk_call call = { .op = YK_LEAF,
					.nattr = 1,
					.attr = &(union yoke_attr){ .i = c->leaf[v->made] } };
		if (yk_append_as(&c->g, &call, 1, v, &c->map[n->out + i]) < 0)
			return YOKE_ENOMEM;
		c->leaves[c->leaf[v->made]].id = c->map[n->out + i];
		c->g.node[c->g.nodes - 1].done = true;
	}
	return 0;
}

static int copy_node(struct collection *c, const struct yk_node *n, yk_id *in)
{
	const struct yk_graph *g = &c->ctx->graph;
	union yoke_attr at = { .i = 0 };
	struct yk_call call = { .op = n->op, .list = n->list, .nin = n->nin, .in = in,
				.nattr = n->nattr, .attr = yk_attrs(g, n) };
	bool leaf = n->op == YK_LEAF || n->op == YK_SCALAR;
	for (uint32_t i = 0; i < n->nin; i++) {
		yk_id v = yk_ins(g, n)[i];
		in[i] = v == YK_NIL ? YK_NIL : c->map[v];
	}
	if (leaf) {
		if (keep_leaf(c, (uint32_t)yk_attrs(g, n)[0].i) < 0)
			return YOKE_ENOMEM;
		at.i = c->leaf[yk_attrs(g, n)[0].i];
		call.attr = &at;
	}
	yk_id out;
	if (yk_append_as(&c->g, &call, n->nout, &g->value[n->out], &out) < 0)
		return YOKE_ENOMEM;
	struct yk_node *to = &c->g.node[c->g.nodes - 1];
	to->done = n->done;
	for (uint32_t i = 0; i < n->nout; i++) {
		uint32_t made = g->value[n->out + i].made;
		if (keep_leaf(c, made) < 0)
			return YOKE_ENOMEM;
		c->map[n->out + i] = out + i;
		c->g.value[out + i].made = made == YK_NIL ? YK_NIL : c->leaf[made];
		if (made != YK_NIL)
			c->leaves[c->leaf[made]].id = out + i;
	}
	if (leaf)
		c->leaves[at.i].id = out;
	return 0;
}

static int copy_needed(struct collection *c)
{
	const struct yk_graph *g = &c->ctx->graph;
	yk_id *in = malloc((g->args + 1) * sizeof *in);
	int err = in ? 0 : YOKE_ENOMEM;
	for (uint32_t k = 0; k < g->nodes && !err; k++) {
		const struct yk_node *n = &g->node[k];
		if (k == g->settled)
			c->settled = c->g.nodes;
		if (!c->need[k])
			continue;
		c->g.scope = n->scope;
		c->g.site = n->site;
		c->g.range = n->range;
		c->g.back = n->back;
		c->g.call = n->call;
		err = becomes_leaf(c, k) ? copy_made(c, n) : copy_node(c, n, in);
	}
	free(in);
	return err;
}

// Updates a tensor's indices into the graph; dropped leaves are remade when needed.
static void renumber(struct collection *c, struct yk_tensor *t)
{
	if (t->id != YK_NIL)
		t->id = c->map[t->id];
	if (t->leaf_epoch != c->ctx->history.epoch)
		return;
	if (t->leaf != YK_NIL)
		t->leaf = c->map[t->leaf];
	while (t->chain != YK_NIL && c->leaf[t->chain] == YK_NIL)
		t->chain = c->ctx->leaves.at[t->chain].former;
	if (t->chain != YK_NIL)
		t->chain = c->leaf[t->chain];
}

static void take_over(struct collection *c)
{
	struct yoke_context *ctx = c->ctx;
	struct yk_graph *g = &ctx->graph;
	each_handle(c, renumber);
	size_t formers = 0;
	for (size_t i = 0; i < ctx->history.formers; i++)
		if (c->map[ctx->history.former[i].value] != YK_NIL)
			ctx->history.former[formers++] =
				(struct yk_former){ c->map[ctx->history.former[i].value],
						    ctx->history.former[i].variable };
	ctx->history.formers = formers;
	for (size_t i = 0; i < c->nleaves; i++) {
		uint32_t *former = &c->leaves[i].former;
		while (*former != YK_NIL && c->leaf[*former] == YK_NIL)
			*former = ctx->leaves.at[*former].former;
		if (*former != YK_NIL)
			*former = c->leaf[*former];
	}
	for (size_t i = 0; i < ctx->leaves.n; i++)
		if (c->leaf[i] == YK_NIL)
			leaf_drop(ctx, &ctx->leaves.at[i]);
	free(ctx->leaves.at);
	ctx->leaves.at = c->leaves;
	ctx->leaves.n = c->nleaves;
	ctx->leaves.cap = c->leaf_cap;
	ctx->random.step_epoch = 0; // its leaf may have been dropped
	c->g.max = g->max;
	c->g.owed = g->owed;
	c->g.settled = g->settled < g->nodes ? c->settled : c->g.nodes;
	c->g.scope = g->scope;
	c->g.site = g->site;
	c->g.range = g->range;
	c->g.back = g->back;
	c->g.call = g->call;
	yk_graph_fini(g);
	*g = c->g;
	ctx->history.collected = ctx->mode.launched = g->nodes;
	ctx->history.emptied /= 2; // handles outlive their steps
}

// Adds leaves without bytes for the node's lost results.
static int keep_lost(struct yoke_context *ctx, const struct yk_node *n, uint32_t need)
{
	struct yk_graph *g = &ctx->graph;
	for (yk_id v = n->out; v < n->out + n->nout; v++) {
		if (g->value[v].made != YK_NIL || !(need & yk_result_bit(g, v)))
			continue;
		struct yk_storage *s = calloc(1, sizeof *s);
		if (!s || yk_grow(&ctx->leaves.at, &ctx->leaves.cap, ctx->leaves.n + 1,
				  sizeof *ctx->leaves.at) < 0) {
			free(s);
			return YOKE_ENOMEM;
		}
		*s = (struct yk_storage){ .refs = 1, .leaves = 1, .ctx = ctx };
		g->value[v].made = (uint32_t)ctx->leaves.n;
		ctx->leaves.at[ctx->leaves.n++] = (struct yk_leaf){ .kind = YK_LEAF_STORAGE,
								    .dtype = g->value[v].dtype,
								    .id = v,
								    .storage = s,
								    .op = n->op,
								    .path = n->scope,
								    .former = YK_NIL };
	}
	return 0;
}

// Records with the nodes that become leaves the tensors they were computed from.
static int keep_past(struct collection *c)
{
	struct yoke_context *ctx = c->ctx;
	uint32_t *node = malloc((ctx->graph.nodes + 1) * sizeof *node);
	size_t n = 0;
	int err = node ? 0 : YOKE_ENOMEM;
	for (uint32_t k = 0; k < ctx->graph.nodes && !err; k++) {
		if (!c->need[k] || !becomes_leaf(c, k))
			continue;
		if (c->leads[k] & LEADS_LOST)
			err = keep_lost(ctx, &ctx->graph.node[k], c->need[k]);
		if (c->leads[k] & LEADS_PAST)
			node[n++] = k;
	}
	if (!err)
		err = yk_past_note(ctx, n, node);
	free(node);
	return err;
}

static void collect(struct yoke_context *ctx, bool cut)
{
	struct yk_graph *g = &ctx->graph;
	struct collection c = { .ctx = ctx, .cut = cut,
				.g = { .paths = g->paths, .sites = g->sites },
				.need = calloc(g->nodes, sizeof *c.need),
				.leads = calloc(g->nodes, sizeof *c.leads),
				.map = malloc((g->values + 1) * sizeof *c.map) };
	bool had = yoke_error_code() != 0;
	int err = c.need && c.leads && c.map ? 0 : YOKE_ENOMEM;
	if (!err) {
		memset(c.map, 0xff, g->values * sizeof *c.map);
		find_needed(&c);
		err = keep_past(&c);
	}
	if (!err && !(c.leaf = malloc((ctx->leaves.n + 1) * sizeof *c.leaf)))
		err = YOKE_ENOMEM;
	if (!err) {
		memset(c.leaf, 0xff, ctx->leaves.n * sizeof *c.leaf);
		err = copy_needed(&c);
	}
	if (!err) {
		take_over(&c);
	} else { // no memory: the graph stays as it is
		yk_graph_fini(&c.g);
		free(c.leaves);
		if (!had)
			yoke_error_clear();
	}
	free(c.need);
	free(c.leads);
	free(c.map);
	free(c.leaf);
}

// Bytes that only the graph holds.
static uint64_t held_alone(const struct yoke_context *ctx)
{
	uint64_t held = 0;
	for (size_t i = 0; i < ctx->leaves.n; i++) {
		const struct yk_storage *s = ctx->leaves.at[i].storage;
		held += s && s->buffer && s->refs == s->leaves ? s->bytes / s->leaves : 0;
	}
	return held;
}

void yk_history_collect(struct yoke_context *ctx)
{
	size_t max = TIMES * ctx->history.grown > LONG ? TIMES * ctx->history.grown : LONG;
	collect(ctx, false);
	uint64_t held = held_alone(ctx);
	if (ctx->graph.nodes > max || held > yk_pool_capacity(ctx->device->pool) / HELD_PART) {
		collect(ctx, true);
		held = held_alone(ctx);
	}
	ctx->history.loose = 0;
	ctx->history.bound = held > LOOSE ? held : LOOSE;
}
