// SPDX-License-Identifier: Apache-2.0
// What ranks gather of parameters that are shared out (ZeRO, stage 3) is there while a pass reads it: it is gathered one
// block before its first reader, and again for the backward pass.  So two blocks are there at a time.
//
// Such a gather has one operand, the rank's own share, and results from nothing else, so that it can be made anywhere, at
// the same place of the order on all ranks; one that is recorded behind the backward pass is of what an update made of that,
// and is made no sooner than it is recorded.  Reductions to shares go on as soon as what they reduce is there, since ranks
// do things in one order, and the second gathers would hold them up.

#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

struct reading { // of a gather's results, by a pass
	uint32_t gather, at; // place in time of the first reader
	yk_id made;          // the first result for this pass
};

struct regathering {
	struct yk_work *w;
	uint32_t *order, *place; // nodes in time; by node
	size_t n;
	size_t backward;         // where the backward pass begins
	struct reading *reading; // in the order of their first readers
	size_t readings, cap;
	uint32_t *number[2];     // by node and pass: 1 + that of its reading, 0: none
	uint32_t *again;         // nodes in their new order
	size_t nagain, again_cap;
};

static bool gathers(const struct yk_work *w, uint32_t node)
{
	const struct yk_node *n = &w->g.node[node];
	return n->op == YK_RANKS_SHARES && yk_ranked(yk_attrs(&w->g, n)).whole;
}

static bool is_back(const struct yk_work *w, uint32_t node)
{
	return w->ctx->graph.node[w->marks->node[w->node[node].from]].back;
}

static uint32_t maker_of(const struct yk_work *w, uint32_t arg)
{
	return w->use[arg].base == YK_NIL ? YK_NIL : w->g.value[w->use[arg].base].node;
}

static int find_readings(struct regathering *r)
{
	const struct yk_work *w = r->w;
	for (size_t i = 0; i < r->n; i++) {
		const uint32_t k = r->order[i];
		r->place[k] = (uint32_t)i;
		if (r->backward == r->n && is_back(w, k))
			r->backward = i;
		for (uint32_t a = 0; yk_computes(w, k) && a < w->g.node[k].nin; a++) {
			const uint32_t by = maker_of(w, w->g.node[k].in + a);
			uint32_t *number = by == YK_NIL ? NULL : &r->number[i >= r->backward][by];
			if (!number || *number || !gathers(w, by))
				continue;
			if (yk_grow(&r->reading, &r->cap, r->readings + 1, sizeof *r->reading) < 0)
				return yk_fail(YOKE_ENOMEM, "no memory to plan");
			r->reading[r->readings++] = (struct reading){ by, (uint32_t)i, YK_NIL };
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

// May the next reading's gather be made at this place, as the reading before has begun?
static bool is_time(const struct regathering *r, size_t next, size_t at)
{
	const size_t recorded = r->place[r->reading[next].gather];
	return r->reading[next ? next - 1 : 0].at <= at && (recorded < r->backward || recorded <= at);
}

// A clone of the gather, and of what joins its operand, which else would lie there from the beginning.
static int gather(struct regathering *r, struct reading *x)
{
	struct yk_work *w = r->w;
	size_t had = w->g.nodes;
	const yk_id own = w->g.arg[w->g.node[x->gather].in];
	const uint32_t joins = w->g.value[w->value[own].place.base].node;
	yk_id mine = own;
	int err = 0;
	if (w->g.node[joins].op == YK_CONCAT) {
		const struct yk_node n = w->g.node[joins];
		yk_id *in = malloc((n.nin + (size_t)1) * sizeof *in);
		for (uint32_t i = 0; i < n.nin && in; i++)
			in[i] = w->g.arg[n.in + i];
		err = in ? yk_edit_clone(w, joins, in, &mine) : yk_fail(YOKE_ENOMEM, "no memory to plan");
		free(in);
		if (!err)
			err = yk_edit_view(w, own, mine, &mine);
	}
	if (!err)
		err = yk_edit_clone(w, x->gather, &mine, &x->made);
	for (; had < w->g.nodes && !err; had++)
		err = put(r, (uint32_t)had);
	return err;
}

// The node reads what was gathered for its pass.
static int read_again(struct regathering *r, uint32_t node, bool back)
{
	struct yk_work *w = r->w;
	const struct yk_node n = w->g.node[node];
	int err = 0;
	for (uint32_t a = 0; a < n.nin && !err; a++) {
		const uint32_t by = maker_of(w, n.in + a), number = by == YK_NIL || by >= r->n ? 0 : r->number[back][by];
		yk_id to;
		if (!number || w->value[w->g.arg[n.in + a]].place.gate)
			continue;
		const yk_id base = w->use[n.in + a].base;
		const size_t had = w->g.nodes;
		err = yk_edit_view(w, w->g.arg[n.in + a], r->reading[number - 1].made + (base - w->g.node[by].out), &to);
		if (!err && w->g.nodes > had)
			err = put(r, (uint32_t)had);
		if (!err)
			err = yk_edit_replace(w, n.in + a, to);
	}
	return err;
}

static bool reduces(const struct yk_work *w, uint32_t node)
{
	return w->g.node[node].op == YK_RANKS_REDUCE_SHARES;
}

// Reductions whose last operand is made at this place.
static int reduce_now(struct regathering *r, const uint32_t *reduction, size_t n, uint32_t at)
{
	const struct yk_work *w = r->w;
	int err = 0;
	for (size_t k = 0; k < n && !err; k++) {
		const struct yk_node *x = &w->g.node[reduction[k]];
		uint32_t last = 0;
		for (uint32_t a = 0; a < x->nin; a++) {
			const uint32_t by = maker_of(w, x->in + a);
			last = by != YK_NIL && by < r->n && r->place[by] > last ? r->place[by] : last;
		}
		if (last == at)
			err = put(r, reduction[k]);
	}
	return err;
}

static int reorder(struct regathering *r, uint32_t *reduction)
{
	const struct yk_work *w = r->w;
	size_t next = 0, reductions = 0;
	int err = 0;
	for (size_t i = 0; i < r->n; i++)
		if (reduces(w, r->order[i]))
			reduction[reductions++] = r->order[i];
	for (size_t i = 0; i < r->n && !err; i++) {
		const uint32_t k = r->order[i];
		while (next < r->readings && is_time(r, next, i) && !err)
			err = gather(r, &r->reading[next++]);
		if (!err && yk_computes(w, k))
			err = read_again(r, k, i >= r->backward);
		if (!err && !reduces(w, k))
			err = put(r, k);
		if (!err)
			err = reduce_now(r, reduction, reductions, (uint32_t)i);
	}
	for (size_t i = 0; i < r->nagain && !err; i++)
		r->w->node[r->again[i]].time = (uint32_t)i;
	return err;
}

static int drop(struct regathering *r)
{
	struct yk_work *w = r->w;
	for (size_t k = 0; k < r->n; k++) {
		const struct yk_node *n = &w->g.node[k];
		bool read = !gathers(w, (uint32_t)k) || !w->node[k].live;
		for (uint32_t o = 0; o < n->nout && !read; o++)
			read = w->value[n->out + o].use != YK_NIL || w->value[n->out + o].rooted;
		if (!read)
			yk_edit_drop(w, (uint32_t)k);
	}
	return yk_edit_sweep(w);
}

int yk_regather(struct yk_work *w)
{
	struct regathering r = { .w = w, .n = w->g.nodes, .backward = w->g.nodes };
	bool any = false;
	for (uint32_t k = 0; k < r.n && !any; k++)
		any = gathers(w, k);
	if (!any)
		return 0;
	uint32_t *reduction = malloc((r.n + 1) * sizeof *reduction);
	r.order = yk_in_time(w);
	r.place = malloc((r.n + 1) * sizeof *r.place);
	for (int pass = 0; pass < 2; pass++)
		r.number[pass] = calloc(r.n + 1, sizeof *r.number[pass]);
	int err = r.order && reduction && r.place && r.number[0] && r.number[1] ? find_readings(&r) :
									     yk_fail(YOKE_ENOMEM, "no memory to plan");
	yk_edit_begin(w);
	if (!err)
		err = reorder(&r, reduction);
	if (!err)
		err = drop(&r);
	free(reduction);
	free(r.order);
	free(r.place);
	free(r.number[0]);
	free(r.number[1]);
	free(r.reading);
	free(r.again);
	return err;
}
