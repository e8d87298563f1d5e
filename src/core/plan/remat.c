// SPDX-License-Identifier: Apache-2.0
// Rematerialization: cheap elementwise values are not stored; each group that reads one recomputes
// it with clones of its makers, from operands that the group reads anyway.
//
// A value is cloned for all groups that read it outside its own, or for none, so a cloned value is
// never in memory.  No group gets a new input, so no lifetime grows, with one exception: a half
// that was cast to f32 may replace the f32 value in memory and in its readers, at half of the bytes
// for the same time.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "device/usable.h"
#include "plan/build.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/work.h"

// The number of additions that one byte of saved memory traffic is worth.
enum { WORTH = 3, READERS = 4 };

struct trial { // for one value
	struct yk_work *w;
	struct yk_built built;
	uint32_t reader[READERS]; // groups
	uint32_t readers;
	uint32_t all[READERS][YOKE_MAP_MAX_INSNS]; // their members, if it is cloned for them
	uint32_t n[READERS];
	bool widened; // a half replaces the value in memory
};

// Cost per element, in additions.
static int cost(const struct yk_node *n)
{
	switch (n->op) {
	case YK_RAND_BITS: return 16;
	case YK_POW:
	case YK_NORMAL:
	case YK_EXP:
	case YK_LOG:
	case YK_LOG1P:
	case YK_EXPM1:
	case YK_SIN:
	case YK_COS:
	case YK_TANH:
	case YK_SIGMOID:
	case YK_ERF: return 8;
	default: return 1;
	}
}

// The member that is this node or a clone of it; YK_NIL: none.
static uint32_t member_for(const struct yk_work *w, const uint32_t *member, uint32_t n,
			   uint32_t node)
{
	for (uint32_t i = 0; i < n; i++)
		if (w->node[member[i]].of == w->node[node].of)
			return member[i];
	return YK_NIL;
}

static bool reads(const struct yk_work *w, const struct yk_group *q, yk_id base)
{
	for (uint32_t i = 0; i < q->n; i++) { // members are few, readers may be many
		const struct yk_node *n = &w->g.node[q->member[i]];
		for (uint32_t k = 0; k < n->nin; k++)
			if (w->use[n->in + k].base == base)
				return true;
	}
	return false;
}

// Lists the groups that read v outside its own; false if there are none, or if one cannot compute
// it.
static bool find_readers(struct trial *t, yk_id v)
{
	const struct yk_work *w = t->w;
	uint32_t home = w->node[w->g.value[v].node].group;
	t->readers = 0;
	for (uint32_t u = w->value[v].use; u != YK_NIL; u = w->use[u].next) {
		uint32_t node = w->use[u].node, q = w->node[node].group;
		if (q == home || yk_is_among(t->reader, t->readers, q))
			continue;
		if (q == YK_NIL || t->readers == READERS ||
		    !(yk_op_def(w->g.node[node].op)->flags & (YK_F_MAP | YK_F_REDUCE)))
			return false;
		t->reader[t->readers++] = q;
	}
	return t->readers > 0;
}

// Is it in memory whatever is decided for the current value?
static bool is_stored(const struct yk_work *w, yk_id v)
{
	uint32_t home = w->node[w->g.value[v].node].group;
	if (w->value[v].rooted)
		return true;
	for (uint32_t u = w->value[v].use; u != YK_NIL; u = w->use[u].next)
		if (w->node[w->use[u].node].group != home)
			return true;
	return false;
}

// Is the node a cast to a wider dtype of this half, which its own group computes?
static bool widens(const struct yk_work *w, uint32_t node, yk_id half)
{
	const struct yk_graph *g = &w->g;
	const struct yk_node *n = &g->node[node];
	const struct yk_value *from = &g->value[half], *to = &g->value[n->out];
	return n->op == YK_CAST && yk_is_float(from->dtype) && yk_is_float(to->dtype) &&
	       yoke_dtype_size(from->dtype) < yoke_dtype_size(to->dtype) &&
	       yk_same_shape(from, to) && w->node[from->node].group == w->node[node].group;
}

// The members of reader r, followed by the nodes to clone so that it has `node`; false if these are
// too many.
static bool gather(struct trial *t, uint32_t r, uint32_t node)
{
	const struct yk_work *w = t->w;
	const struct yk_graph *g = &w->g;
	const struct yk_group *q = &w->schedule.group[t->reader[r]];
	uint32_t *all = t->all[r], n = q->n;
	int left = WORTH * (int)yoke_dtype_size(g->value[g->node[node].out].dtype);
	if (n == YOKE_MAP_MAX_INSNS)
		return false;
	memcpy(all, q->member, n * sizeof *all);
	all[n++] = node;
	for (uint32_t i = q->n; i < n; i++) { // appended nodes are examined in turn
		const struct yk_node *m = &g->node[all[i]];
		if ((left -= cost(m)) < 0)
			return false;
		for (uint32_t k = 0; k < m->nin; k++) {
			const struct yk_location *p;
			uint32_t maker;
			if (g->arg[m->in + k] == YK_NIL)
				return false;
			p = &w->value[g->arg[m->in + k]].place;
			maker = g->value[p->base].node;
			if (p->gate)
				return false;
			if (yk_is_number(w, p->base) || member_for(w, all, n, maker) != YK_NIL ||
			    reads(w, q, p->base))
				continue;
			if (i == q->n && widens(w, node, p->base)) {
				t->widened = true;
				continue;
			}
			if (n == YOKE_MAP_MAX_INSNS || is_stored(w, p->base) ||
			    !(yk_op_def(g->node[maker].op)->flags & YK_F_MAP))
				return false;
			all[n++] = maker;
		}
	}
	t->n[r] = n;
	return true;
}

// Sorts by creation order.
static void sort_members(const struct yk_work *w, uint32_t *member, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t x = member[i], k = i;
		for (; k && yk_is_before(w, x, member[k - 1]); k--)
			member[k] = member[k - 1];
		member[k] = x;
	}
}

// The value that replaces v if `from` is cloned as `to`.
static int instead(struct yk_work *w, yk_id v, uint32_t from, uint32_t to, yk_id *out)
{
	yk_id base = w->g.node[from].out, clone = w->g.node[to].out;
	*out = v;
	if (v == YK_NIL || w->value[v].place.base != base)
		return 0;
	return yk_edit_view(w, v, clone, out);
}

// Clones a node for a group with these members, whose clones it reads.
static int clone_for(struct trial *t, uint32_t node, const uint32_t *member, uint32_t n,
		     uint32_t *clone)
{
	struct yk_work *w = t->w;
	const uint32_t nin = w->g.node[node].nin;
	yk_id in[3], out;
	int err = 0;
	for (uint32_t k = 0; k < nin && !err; k++) { // a map has at most three operands
		in[k] = w->g.arg[w->g.node[node].in + k];
		uint32_t maker = w->g.value[w->value[in[k]].place.base].node,
			 to = member_for(w, member, n, maker);
		if (to != YK_NIL && to != maker)
			err = instead(w, in[k], maker, to, &in[k]);
	}
	if (!err)
		err = yk_edit_clone(w, node, in, &out);
	*clone = (uint32_t)w->g.nodes - 1;
	return err;
}

// Makes the group's own members read the clone.
static int read_clone(struct yk_work *w, const struct yk_group *q, uint32_t node, uint32_t clone)
{
	int err = 0;
	for (uint32_t i = 0; i < q->n && !err; i++) {
		const struct yk_node n = w->g.node[q->member[i]];
		for (uint32_t k = 0; k < n.nin && !err; k++) {
			yk_id was = w->g.arg[n.in + k], v;
			err = instead(w, was, node, clone, &v);
			if (!err && v != was)
				err = yk_edit_replace(w, n.in + k, v);
		}
	}
	return err;
}

// Clones the nodes that gather() appended to the members of reader r.
static int clone_all(struct trial *t, uint32_t r)
{
	struct yk_work *w = t->w;
	uint32_t group = t->reader[r], own = w->schedule.group[group].n, *all = t->all[r];
	int err = 0;
	sort_members(w, all + own, t->n[r] - own);
	for (uint32_t i = own; i < t->n[r] && !err; i++) {
		uint32_t node = all[i];
		err = clone_for(t, node, all, i, &all[i]);
		if (!err)
			err = read_clone(w, &w->schedule.group[group], node, all[i]);
	}
	sort_members(w, all, t->n[r]);
	return err;
}

// Does the group's device support it with these members?  1, 0, or an error.
static int is_taken(struct trial *t, uint32_t group, const uint32_t *member, uint32_t n)
{
	const struct yk_node *at = &t->w->g.node[t->w->schedule.group[group].at];
	struct yk_device *d = yk_work_device(t->w, at->stream);
	int err = yk_build_group(t->w, member, n, &t->built);
	if (err)
		return err == YOKE_EUNSUPPORTED ? 0 : err;
	return yk_device_usable(d, &t->built.op) != 0;
}

static int take(struct trial *t, uint32_t r)
{
	struct yk_work *w = t->w;
	struct yk_group *q = &w->schedule.group[t->reader[r]];
	size_t cap = q->cap;
	if (yk_grow(&q->member, &cap, t->n[r], sizeof *q->member) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	q->cap = (uint32_t)cap;
	q->n = t->n[r];
	memcpy(q->member, t->all[r], q->n * sizeof *q->member);
	for (uint32_t i = 0; i < q->n; i++)
		w->node[q->member[i]].group = t->reader[r];
	return 0;
}

// Removes a group whose results have no readers left.
static void retire(struct yk_work *w, uint32_t home)
{
	struct yk_group *q = &w->schedule.group[home];
	for (uint32_t i = 0; i < q->n; i++)
		if (is_stored(w, w->g.node[q->member[i]].out))
			return;
	for (uint32_t i = 0; i < q->n; i++)
		yk_edit_drop(w, q->member[i]);
	q->dead = true;
}

static int attempt(struct trial *t, uint32_t node)
{
	struct yk_work *w = t->w;
	uint32_t home = w->node[node].group;
	int good = 1, err = 0;
	t->widened = false;
	if (!find_readers(t, w->g.node[node].out))
		return 0;
	for (uint32_t r = 0; r < t->readers; r++)
		if (!gather(t, r, node))
			return 0;
	yk_edit_begin(w);
	for (uint32_t r = 0; r < t->readers && !err; r++)
		err = clone_all(t, r);
	for (uint32_t r = 0; r < t->readers && good > 0 && !err; r++)
		good = is_taken(t, t->reader[r], t->all[r], t->n[r]);
	if (t->widened && !err && good > 0) // the group now stores another value
		good = is_taken(t, home, w->schedule.group[home].member, w->schedule.group[home].n);
	if (err || good < 0)
		return err ? err : good;
	if (!good) {
		yk_edit_undo(w);
		return 0;
	}
	for (uint32_t r = 0; r < t->readers && !err; r++)
		err = take(t, r);
	retire(w, home);
	return err;
}

int yk_remat(struct yk_work *w)
{
	if (!yk_fuse_enabled())
		return 0;
	struct trial *t = calloc(1, sizeof *t);
	uint32_t nodes = (uint32_t)w->g.nodes; // excludes clones made below
	int err = 0;
	if (!t)
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t k = 0; k < nodes && !err; k++) {
		const struct yk_node *n = &w->g.node[k];
		t->w = w;
		if (w->node[k].group != YK_NIL && yk_op_def(n->op)->flags & YK_F_MAP &&
		    !w->value[n->out].rooted)
			err = attempt(t, k);
	}
	if (t)
		yk_built_fini(&t->built);
	free(t);
	return err;
}
