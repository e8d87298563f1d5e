// SPDX-License-Identifier: Apache-2.0
// Gathers of sharded parameters (ZeRO stage 3): a gathered parameter exists only while a pass reads
// it.  It is gathered one block before its first reader, and again for the backward pass, so that
// two blocks exist at a time.
//
// Such a gather has one operand, the rank's own shard, and depends on nothing else, so it can run
// anywhere, at the same position of the order on all ranks.  A gather recorded after the backward
// pass reads an updated shard and runs no earlier than recorded.  Reductions to shards run as soon
// as their operands exist: collectives are ordered, and the second gathers would delay them.
//
// If device memory is not host memory, shards are copied to the host before a gather and its
// results copied up after it; these copies are cloned with it, and copies for reductions come right
// after the maker of their operand.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/work.h"

struct reading { // the use of a gather's results by one pass
	uint32_t gather, at; // time of the first reader
	yk_id made;          // the first result for this pass
	yk_id *up;           // by result: its copy on the device for this pass
};

struct regathering {
	struct yk_work *w;
	uint32_t *order, *place; // nodes in time; position by node
	size_t n;
	size_t backward;         // where the backward pass begins
	struct reading *reading; // in the order of their first readers
	size_t readings, cap;
	uint32_t *number[2];     // by node and pass: 1 + index of its reading, 0: none
	uint32_t *up;            // by gathered value: its copy on the device; YK_NIL: none
	uint32_t *again;         // nodes in their new order
	size_t nagain, again_cap;
};

static bool gathers(const struct yk_work *w, uint32_t node)
{
	const struct yk_node *n = &w->g.node[node];
	return n->op == YK_RANKS_GATHER_SHARDS && yk_ranked(yk_attrs(&w->g, n)).whole;
}

static bool is_back(const struct yk_work *w, uint32_t node)
{
	return w->ctx->graph.node[w->marks->node[w->node[node].from]].back;
}

static uint32_t maker_of(const struct yk_work *w, uint32_t arg)
{
	return w->use[arg].base == YK_NIL ? YK_NIL : w->g.value[w->use[arg].base].node;
}

static bool is_copy(const struct yk_work *w, uint32_t node)
{
	return w->g.node[node].op == YK_TRANSFER;
}

// The gather that produces the operand, and which of its results it is; YK_NIL: it is not gathered.
static uint32_t gather_of(const struct yk_work *w, uint32_t arg, yk_id *result)
{
	uint32_t by = maker_of(w, arg);
	*result = w->use[arg].base;
	if (by != YK_NIL && is_copy(w, by)) {
		const uint32_t in = w->g.node[by].in;
		by = maker_of(w, in);
		*result = w->use[in].base;
	}
	return by != YK_NIL && gathers(w, by) ? by : YK_NIL;
}

static void find_copies(struct regathering *r)
{
	const struct yk_work *w = r->w;
	yk_id result;
	for (uint32_t k = 0; k < r->n; k++)
		if (is_copy(w, k) && w->node[k].live &&
		    gather_of(w, w->g.node[k].in, &result) != YK_NIL)
			r->up[result] = k;
}

static int find_readings(struct regathering *r)
{
	const struct yk_work *w = r->w;
	for (size_t i = 0; i < r->n; i++) {
		const uint32_t k = r->order[i];
		r->place[k] = (uint32_t)i;
		if (r->backward == r->n && is_back(w, k))
			r->backward = i;
		for (uint32_t a = 0; yk_computes(w, k) && !is_copy(w, k) && a < w->g.node[k].nin;
		     a++) {
			yk_id result;
			const uint32_t by = gather_of(w, w->g.node[k].in + a, &result);
			uint32_t *number = by == YK_NIL ? NULL : &r->number[i >= r->backward][by];
			if (!number || *number)
				continue;
			if (yk_grow(&r->reading, &r->cap, r->readings + 1, sizeof *r->reading) < 0)
				return yk_fail(YOKE_ENOMEM, "no memory to plan");
			r->reading[r->readings++] =
				(struct reading){ by, (uint32_t)i, YK_NIL, NULL };
			*number = (uint32_t)r->readings;
		}
	}
	return 0;
}

// ---- the new order ----

static int put(struct regathering *r, uint32_t node)
{
	if (yk_grow(&r->again, &r->again_cap, r->nagain + 1, sizeof *r->again) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	r->again[r->nagain++] = node;
	return 0;
}

// May the gather of the next reading run here?  The reading before must have begun.
static bool may_gather(const struct regathering *r, size_t next, size_t at)
{
	const size_t recorded = r->place[r->reading[next].gather];
	return r->reading[next ? next - 1 : 0].at <= at &&
	       (recorded < r->backward || recorded <= at);
}

// A clone of the node with its first operand replaced: the view `was` applied to `base`.
static int clone_on(struct yk_work *w, uint32_t node, yk_id was, yk_id base, yk_id *out)
{
	yk_id in;
	const int err = yk_edit_view(w, was, base, &in);
	return err ? err : yk_edit_clone(w, node, &in, out);
}

// A clone of the node that joins the operand's parts, which would otherwise exist from the
// beginning; other operands are unchanged.
static int join_again(struct yk_work *w, yk_id v, yk_id *out)
{
	const yk_id base = w->value[v].place.base;
	const struct yk_node n = w->g.node[w->g.value[base].node];
	*out = base;
	if (n.op == YK_TRANSFER) {
		const yk_id own = w->g.arg[n.in];
		const int err = join_again(w, own, out);
		return err ? err :
		       *out == w->value[own].place.base ?
			     (*out = base, 0) :
			     clone_on(w, w->g.value[base].node, own, *out, out);
	}
	if (n.op != YK_CONCAT)
		return 0;
	yk_id *in = malloc((n.nin + (size_t)1) * sizeof *in);
	for (uint32_t i = 0; i < n.nin && in; i++)
		in[i] = w->g.arg[n.in + i];
	const int err = in ? yk_edit_clone(w, w->g.value[base].node, in, out) :
			     yk_fail(YOKE_ENOMEM, "no memory to plan");
	free(in);
	return err;
}

// Clones the gather and the copies to and from it.
static int gather(struct regathering *r, struct reading *x)
{
	struct yk_work *w = r->w;
	size_t had = w->g.nodes;
	const struct yk_node n = w->g.node[x->gather];
	yk_id mine;
	int err = join_again(w, w->g.arg[n.in], &mine);
	if (!err)
		err = clone_on(w, x->gather, w->g.arg[n.in], mine, &x->made);
	if (!err && !(x->up = malloc((n.nout + (size_t)1) * sizeof *x->up)))
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t o = 0; o < n.nout && !err; o++) {
		const uint32_t copy = r->up[n.out + o];
		x->up[o] = x->made + o;
		if (copy != YK_NIL)
			err = clone_on(w, copy, w->g.arg[w->g.node[copy].in], x->made + o,
				       &x->up[o]);
	}
	for (; had < w->g.nodes && !err; had++)
		err = put(r, (uint32_t)had);
	return err;
}

// Makes the node read the values gathered for its pass.
static int read_again(struct regathering *r, uint32_t node, bool back)
{
	struct yk_work *w = r->w;
	const struct yk_node n = w->g.node[node];
	int err = 0;
	for (uint32_t a = 0; a < n.nin && !err && !is_copy(w, node); a++) {
		yk_id result, to;
		const uint32_t by = gather_of(w, n.in + a, &result),
			       number = by == YK_NIL || by >= r->n ? 0 : r->number[back][by];
		if (!number || w->value[w->g.arg[n.in + a]].place.gate)
			continue;
		const struct reading *x = &r->reading[number - 1];
		const yk_id at = result - w->g.node[by].out;
		const size_t had = w->g.nodes;
		err = yk_edit_view(w, w->g.arg[n.in + a],
				   w->use[n.in + a].base == result ? x->made + at : x->up[at], &to);
		if (!err && w->g.nodes > had)
			err = put(r, (uint32_t)had);
		if (!err)
			err = yk_edit_replace(w, n.in + a, to);
	}
	return err;
}

static bool reduces(const struct yk_work *w, uint32_t node)
{
	return w->g.node[node].op == YK_RANKS_REDUCE_SHARDS;
}

// Is it a copy that only reductions read?
static bool feeds(const struct yk_work *w, uint32_t node)
{
	bool feeds = is_copy(w, node) && w->value[w->g.node[node].out].use != YK_NIL;
	for (uint32_t u = w->value[w->g.node[node].out].use; feeds && u != YK_NIL;
	     u = w->use[u].next)
		feeds = reduces(w, w->use[u].node);
	return feeds;
}

// The time of the maker of the node's last operand, looking through a copy.
static uint32_t ready_at(const struct regathering *r, uint32_t node)
{
	const struct yk_work *w = r->w;
	const struct yk_node *n = &w->g.node[node];
	uint32_t last = 0;
	for (uint32_t a = 0; a < n->nin; a++) {
		uint32_t by = maker_of(w, n->in + a);
		if (by != YK_NIL && by < r->n && feeds(w, by))
			by = maker_of(w, w->g.node[by].in);
		last = by != YK_NIL && by < r->n && r->place[by] > last ? r->place[by] : last;
	}
	return last;
}

// Emits reductions, and copies for them, that are ready here.
static int reduce_now(struct regathering *r, const uint32_t *late, size_t n, uint32_t at)
{
	int err = 0;
	for (int copies = 1; copies >= 0; copies--)
		for (size_t k = 0; k < n && !err; k++)
			if (is_copy(r->w, late[k]) == copies && ready_at(r, late[k]) == at)
				err = put(r, late[k]);
	return err;
}

static int reorder(struct regathering *r, uint32_t *late)
{
	const struct yk_work *w = r->w;
	size_t next = 0, n = 0;
	int err = 0;
	for (size_t i = 0; i < r->n; i++)
		if (reduces(w, r->order[i]) || feeds(w, r->order[i]))
			late[n++] = r->order[i];
	for (size_t i = 0, at = 0; i < r->n && !err; i++) {
		const uint32_t k = r->order[i];
		const bool moves = at < n && late[at] == k;
		at += moves;
		while (next < r->readings && may_gather(r, next, i) && !err)
			err = gather(r, &r->reading[next++]);
		if (!err && yk_computes(w, k))
			err = read_again(r, k, i >= r->backward);
		if (!err && !moves)
			err = put(r, k);
		if (!err)
			err = reduce_now(r, late, n, (uint32_t)i);
	}
	for (size_t i = 0; i < r->nagain && !err; i++)
		r->w->node[r->again[i]].time = (uint32_t)i;
	return err;
}

static int drop(struct regathering *r)
{
	struct yk_work *w = r->w;
	const int err = yk_edit_sweep(w); // drops the original copies
	for (size_t k = 0; k < r->n; k++) {
		const struct yk_node *n = &w->g.node[k];
		bool read = !gathers(w, (uint32_t)k) || !w->node[k].live;
		for (uint32_t o = 0; o < n->nout && !read; o++)
			read = w->value[n->out + o].use != YK_NIL || w->value[n->out + o].rooted;
		if (!read)
			yk_edit_drop(w, (uint32_t)k);
	}
	return err ? err : yk_edit_sweep(w);
}

int yk_regather(struct yk_work *w)
{
	struct regathering r = { .w = w, .n = w->g.nodes, .backward = w->g.nodes };
	bool any = false;
	for (uint32_t k = 0; k < r.n && !any; k++)
		any = gathers(w, k);
	if (!any)
		return 0;
	uint32_t *late = malloc((r.n + 1) * sizeof *late);
	r.order = yk_in_time(w);
	r.place = malloc((r.n + 1) * sizeof *r.place);
	r.up = malloc((w->g.values + 1) * sizeof *r.up);
	for (int pass = 0; pass < 2; pass++)
		r.number[pass] = calloc(r.n + 1, sizeof *r.number[pass]);
	int err = r.order && late && r.place && r.up && r.number[0] && r.number[1] ?
			  0 :
			  yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err) {
		memset(r.up, 0xff, (w->g.values + 1) * sizeof *r.up);
		find_copies(&r);
		err = find_readings(&r);
	}
	yk_edit_begin(w);
	if (!err)
		err = reorder(&r, late);
	if (!err)
		err = drop(&r);
	free(late);
	free(r.order);
	free(r.place);
	for (size_t i = 0; i < r.readings; i++)
		free(r.reading[i].up);
	free(r.up);
	free(r.number[0]);
	free(r.number[1]);
	free(r.reading);
	free(r.again);
	return err;
}
