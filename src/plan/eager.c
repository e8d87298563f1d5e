// SPDX-License-Identifier: Apache-2.0
// Eager evaluation, for debugging: each operation is launched and waited for as it is recorded, so that
// an error appears at the call that makes it.
//
// The recorded nodes stay, as a tape that gradients are taken of; an evaluation ends it and spends
// interior values just as it otherwise does.  Every result has a storage of its own till then.  A run
// is an ordinary plan of one node: a small graph, of which storages made before are the leaves, takes
// the place of the context's graph while it is marked, keyed and launched.  Views are copied into the
// small graph, not evaluated, so kernels see the strides, and give the bits, that they do otherwise.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

struct yk_eager {
	struct yk_graph g; // the small graph ..
	struct yk_leaf *leaf; // .. and its leaves, whose storages are borrowed
	size_t leaves, leaf_cap;
	struct yk_storage **made; // by value of the tape: its bytes, NULL for views, numbers, leaves
	uint32_t *stamp, *copy;   // by value of the tape: the small graph it is in, and as what
	size_t made_cap, stamp_cap, copy_cap;
	yk_id *view; // scratch: the views of a value
	size_t view_cap;
	size_t values;            // of the tape that made has entries for
	size_t done;              // nodes of the tape that were run
	uint32_t serial;          // of the small graph
	struct yk_tensor *result; // handles of one run's results, whose storages go to made
	size_t result_cap;
};

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "no memory to run eagerly");
}

static struct yk_eager *eager_of(struct yk_planner *pl)
{
	if (!pl->eager && !(pl->eager = calloc(1, sizeof *pl->eager)))
		no_memory();
	return pl->eager;
}

// Forgets what was made of the nodes.
static void drop_made(struct yk_eager *e)
{
	for (size_t i = 0; i < e->values; i++)
		yk_storage_unref(e->made[i]);
	e->values = e->done = 0;
}

void yk_eager_reset(struct yk_planner *pl)
{
	if (pl->eager)
		drop_made(pl->eager);
}

void yk_eager_free(struct yk_planner *pl)
{
	struct yk_eager *e = pl->eager;
	if (!e)
		return;
	drop_made(e);
	yk_graph_fini(&e->g);
	free(e->leaf);
	free(e->made);
	free(e->stamp);
	free(e->copy);
	free(e->view);
	free(e->result);
	free(e);
}

// Entries for all values that the tape has by now.
static int grow_made(struct yk_eager *e, const struct yk_graph *tape)
{
	if (yk_grow(&e->made, &e->made_cap, tape->values + 1, sizeof *e->made) < 0 ||
	    yk_grow(&e->copy, &e->copy_cap, tape->values + 1, sizeof *e->copy) < 0)
		return no_memory();
	size_t had = e->stamp_cap;
	if (yk_grow(&e->stamp, &e->stamp_cap, tape->values + 1, sizeof *e->stamp) < 0)
		return no_memory();
	memset(e->stamp + had, 0, (e->stamp_cap - had) * sizeof *e->stamp);
	for (; e->values < tape->values; e->values++)
		e->made[e->values] = NULL;
	return 0;
}

// ---- the small graph ----

static void clear(struct yk_eager *e, const struct yk_graph *tape)
{
	yk_graph_clear(&e->g);
	e->g.paths = tape->paths;
	e->g.sites = tape->sites;
	e->leaves = 0;
	e->serial++;
}

static void take_origin(struct yk_eager *e, const struct yk_node *n)
{
	e->g.scope = n->scope;
	e->g.site = n->site;
	e->g.back = n->back;
	e->g.call = n->call;
}

static int append(struct yk_eager *e, const struct yk_graph *tape, const struct yk_node *n,
		  const struct yk_call *c, yk_id *out)
{
	take_origin(e, n);
	return yk_append_as(&e->g, c, n->nout, &tape->value[n->out], out);
}

// A leaf for the bytes of value v, or for what leaf or number the tape has there.
static int copy_leaf(struct yk_eager *e, const struct yoke_context *ctx, yk_id v, yk_id *out)
{
	const struct yk_graph *tape = &ctx->graph;
	const struct yk_node *n = yk_maker(tape, v);
	struct yk_leaf leaf = { .kind = YK_LEAF_STORAGE,
				.dtype = tape->value[v].dtype,
				.storage = e->made[v] };
	union yoke_attr at = { .i = (int64_t)e->leaves };
	struct yk_call c = { .op = n->op, .nattr = 1, .attr = &at };
	if (n->op == YK_CONST) {
		c.nattr = n->nattr;
		c.attr = yk_attrs(tape, n);
		return append(e, tape, n, &c, out);
	}
	if (n->op == YK_LEAF || n->op == YK_SCALAR)
		leaf = ctx->leaf[yk_attrs(tape, n)[0].i];
	else
		c.op = YK_LEAF;
	if (leaf.kind == YK_LEAF_STORAGE && (!leaf.storage || leaf.storage->failed))
		return yk_op_fail(tape, n->op, YOKE_EFAILED, "its result was lost when it failed");
	if (yk_grow(&e->leaf, &e->leaf_cap, e->leaves + 1, sizeof *e->leaf) < 0)
		return no_memory();
	take_origin(e, n);
	int err = yk_append_as(&e->g, &c, 1, &tape->value[v], out);
	if (!err) {
		leaf.id = *out;
		e->leaf[e->leaves++] = leaf;
	}
	return err;
}

// Value v of the tape in the small graph: a leaf, with the views between it and v.
static int copy_value(struct yk_eager *e, const struct yoke_context *ctx, yk_id v, yk_id *out)
{
	const struct yk_graph *tape = &ctx->graph;
	yk_id base = v;
	size_t views = 0;
	int err = 0;
	while (e->stamp[base] != e->serial && yk_ops[yk_maker(tape, base)->op].flags & YK_F_VIEW) {
		if (yk_grow(&e->view, &e->view_cap, views + 1, sizeof *e->view) < 0)
			return no_memory();
		e->view[views++] = base;
		base = yk_ins(tape, yk_maker(tape, base))[0];
	}
	if (e->stamp[base] != e->serial)
		err = copy_leaf(e, ctx, base, &e->copy[base]);
	while (!err) {
		e->stamp[base] = e->serial;
		if (!views)
			break;
		yk_id in = e->copy[base];
		base = e->view[--views];
		const struct yk_node *n = yk_maker(tape, base);
		struct yk_call c = { .op = n->op,
				     .nin = 1,
				     .in = &in,
				     .nattr = n->nattr,
				     .attr = yk_attrs(tape, n) };
		err = append(e, tape, n, &c, &e->copy[base]);
	}
	*out = e->copy[v];
	return err;
}

// Evaluates pl->root in the small graph.
static int run(struct yk_planner *pl, bool *started)
{
	struct yoke_context *ctx = pl->ctx;
	struct yk_eager *e = pl->eager;
	struct yk_graph tape = ctx->graph;
	struct yk_leaf *leaf = ctx->leaf;
	size_t leaves = ctx->leaves;
	yk_flight_wait(ctx);
	ctx->graph = e->g;
	ctx->leaf = e->leaf;
	ctx->leaves = e->leaves;
	int err = yk_run_roots(pl, started);
	e->g = ctx->graph;
	ctx->graph = tape;
	ctx->leaf = leaf;
	ctx->leaves = leaves;
	return err;
}

// ---- one node ----

// Has the result no bytes, since the operand that it takes the place of is absent?
static bool absent(const struct yk_graph *g, const struct yk_node *n, uint32_t out)
{
	const struct yk_op_row *row = &yk_ops[n->op];
	if (!n->list)
		return false;
	for (int i = 0; i < row->ninplace; i++)
		if (row->inplace[i].out == out / n->list && row->inplace[i].in < row->lists_in)
			return yk_ins(g, n)[row->inplace[i].in * n->list + out % n->list] == YK_NIL;
	return false;
}

static int copy_node(struct yk_eager *e, const struct yoke_context *ctx, const struct yk_node *n,
		     yk_id *out)
{
	const struct yk_graph *tape = &ctx->graph;
	yk_id *in = malloc((n->nin + (size_t)1) * sizeof *in);
	int err = in ? 0 : no_memory();
	clear(e, tape);
	for (uint32_t i = 0; i < n->nin && !err; i++) {
		yk_id v = yk_ins(tape, n)[i];
		in[i] = YK_NIL;
		if (v != YK_NIL)
			err = copy_value(e, ctx, v, &in[i]);
	}
	struct yk_call c = { .op = n->op,
			     .list = n->list,
			     .nin = n->nin,
			     .in = in,
			     .nattr = n->nattr,
			     .attr = yk_attrs(tape, n) };
	if (!err)
		err = append(e, tape, n, &c, out);
	free(in);
	return err;
}

static int run_node(struct yk_planner *pl, const struct yk_node *n)
{
	struct yoke_context *ctx = pl->ctx;
	struct yk_eager *e = pl->eager;
	yk_id out = YK_NIL;
	bool started = false;
	int err = copy_node(e, ctx, n, &out);
	if (err)
		return err;
	if (yk_grow(&e->result, &e->result_cap, n->nout, sizeof *e->result) < 0)
		return no_memory();
	memset(e->result, 0, n->nout * sizeof *e->result);
	pl->roots = 0;
	for (uint32_t i = 0; i < n->nout && !err; i++) {
		e->result[i].ctx = ctx;
		e->result[i].id = out + i;
		if (!absent(&ctx->graph, n, i))
			err = yk_root_add(pl, &e->result[i]);
	}
	if (!err && pl->roots)
		err = run(pl, &started);
	if (started) {
		yk_queue_drain(ctx->queue);
		if (yk_settle(ctx) && !err)
			err = yk_failure_tell(ctx);
	}
	for (uint32_t i = 0; i < n->nout; i++) {
		struct yk_storage *s = e->result[i].storage;
		if (err)
			yk_storage_unref(s);
		else
			e->made[n->out + i] = s;
	}
	return err;
}

static int run_new(struct yk_planner *pl)
{
	struct yoke_context *ctx = pl->ctx;
	struct yk_eager *e = eager_of(pl);
	if (!e)
		return YOKE_ENOMEM;
	if (ctx->stale) // a number on the host was set since: what was made of it is made anew
		drop_made(e);
	ctx->stale = false;
	int err = grow_made(e, &ctx->graph);
	while (e->done < ctx->graph.nodes && !err) {
		const struct yk_node n = ctx->graph.node[e->done];
		if (!(yk_ops[n.op].flags & (YK_F_VIEW | YK_F_LEAF)))
			err = run_node(pl, &n);
		e->done++;
	}
	e->done = ctx->graph.nodes; // what is behind a failure is not tried
	return err;
}

// ---- entry points ----

int yk_eager_run(struct yoke_context *ctx)
{
	struct yk_planner *pl = yk_planner_of(ctx);
	return pl ? run_new(pl) : yk_error_last();
}

int yk_eager_roots(struct yk_planner *pl, bool *started)
{
	struct yoke_context *ctx = pl->ctx;
	struct yk_root *root = pl->root;
	size_t roots = pl->roots, cap = pl->root_cap;
	struct yk_sources **sources = NULL;
	struct yk_evaluated *seen = NULL;
	*started = false;
	// of the tape: the small graphs know one op each
	int err = yk_mark(pl->ctx, &pl->marks, root, roots);
	if (!err)
		err = yk_sources_find(pl, &sources);
	if (!err)
		err = yk_sources_seen(pl, sources, &seen);
	pl->root = NULL; // runs of single nodes have roots of their own
	pl->roots = pl->root_cap = 0;
	if (!err)
		err = run_new(pl);
	free(pl->root);
	pl->root = root;
	pl->roots = roots;
	pl->root_cap = cap;
	if (!err)
		clear(pl->eager, &ctx->graph);
	for (size_t i = 0; i < roots && !err; i++)
		err = copy_value(pl->eager, ctx, root[i].id, &root[i].id);
	if (!err)
		err = run(pl, started);
	if (err)
		yk_evaluated_unref(seen);
	else
		yk_sources_note(pl, sources, seen);
	yk_sources_free(sources, roots);
	return err;
}
