// SPDX-License-Identifier: Apache-2.0
// Cheap elementwise values that no launch stores: whoever reads them computes them again, from what it
// reads anyway.
//
// A value is repeated by all groups that read it outside its own, or by none; so what is repeated is
// never in memory.  No group gets a new input, so nothing lives longer than without this.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "conform/selftest.h"
#include "plan/plan.h"

// A byte that is neither written nor read again is worth so many additions.
enum { WORTH = 3, READERS = 4 };

enum { TRIED = 1, SETTLED }; // of yk_work.again

struct trial { // of one value
	struct yk_work *w;
	struct yk_built built;
	uint32_t reader[READERS]; // groups
	uint32_t readers;
	uint32_t all[READERS][YOKE_MAP_MAX_INSNS]; // their members when they repeat it
	uint32_t n[READERS];
};

// Of one element, in additions.
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

static bool has(const uint32_t *list, uint32_t n, uint32_t node)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == node)
			return true;
	return false;
}

static bool reads(const struct yk_work *w, const struct yk_group *q, yk_id base)
{
	for (uint32_t i = 0; i < q->n; i++) {
		const struct yk_node *n = &w->g.node[q->member[i]];
		for (uint32_t k = 0; k < n->nin; k++) {
			yk_id v = w->g.arg[n->in + k];
			if (v != YK_NIL && w->place[v].base == base)
				return true;
		}
	}
	return false;
}

// Notes the groups that read v outside its own; false when there are none, or when one may not repeat it.
static bool find_readers(struct trial *t, yk_id v)
{
	const struct yk_work *w = t->w;
	uint32_t home = w->group_of[w->g.value[v].node];
	t->readers = 0;
	for (uint32_t k = w->use[v]; k < w->use[v + 1]; k++) {
		uint32_t q = w->group_of[w->uses[k]];
		if (q == home || has(t->reader, t->readers, q))
			continue;
		if (q == YK_NIL || t->readers == READERS ||
		    !(yk_op_row(w->g.node[w->uses[k]].op)->flags & (YK_F_MAP | YK_F_REDUCE)))
			return false;
		t->reader[t->readers++] = q;
	}
	return t->readers > 0;
}

// Is it in memory whatever becomes of the value at hand?
static bool stored(const struct yk_work *w, yk_id v)
{
	uint32_t home = w->group_of[w->g.value[v].node];
	if (w->rooted[v])
		return true;
	for (uint32_t k = w->use[v]; k < w->use[v + 1] && w->again[v] != SETTLED; k++)
		if (w->group_of[w->uses[k]] != home)
			return true;
	return false;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

// The members of reader r with what it has to repeat for `node`; false when that is too much.
static bool gather(struct trial *t, uint32_t r, uint32_t node)
{
	const struct yk_work *w = t->w;
	const struct yk_graph *g = &w->g;
	const struct yk_group *q = &w->group[t->reader[r]];
	uint32_t *all = t->all[r], n = q->n;
	int left = WORTH * (int)yoke_dtype_size(g->value[g->node[node].out].dtype);
	if (n == YOKE_MAP_MAX_INSNS)
		return false;
	memcpy(all, q->member, n * sizeof *all);
	all[n++] = node;
	for (uint32_t i = q->n; i < n; i++) { // what is appended is looked at in turn
		const struct yk_node *m = &g->node[all[i]];
		if ((left -= cost(m)) < 0)
			return false;
		for (uint32_t k = 0; k < m->nin; k++) {
			const struct yk_place *p;
			uint32_t maker;
			if (g->arg[m->in + k] == YK_NIL)
				return false;
			p = &w->place[g->arg[m->in + k]];
			maker = g->value[p->base].node;
			if (p->gate)
				return false;
			if (yk_is_number(w, p->base) || has(all, n, maker) ||
			    reads(w, q, p->base))
				continue;
			if (n == YOKE_MAP_MAX_INSNS || stored(w, p->base) ||
			    !(yk_op_row(g->node[maker].op)->flags & YK_F_MAP))
				return false;
			all[n++] = maker;
		}
	}
	qsort(all, n, sizeof *all, by_number);
	t->n[r] = n;
	return true;
}

// What reader r repeats is marked as stored nowhere, so that it is no result of the reader's.
static void mark(struct trial *t, uint32_t r, uint8_t from, uint8_t to)
{
	struct yk_work *w = t->w;
	const struct yk_group *q = &w->group[t->reader[r]];
	for (uint32_t i = 0; i < t->n[r]; i++) {
		uint8_t *again = &w->again[w->g.node[t->all[r][i]].out];
		if (*again == from && !has(q->member, q->n, t->all[r][i]))
			*again = to;
	}
}

// Does the reader's device take it so?  1, 0, or an error.
static int taken(struct trial *t, uint32_t r)
{
	const struct yk_node *at = &t->w->g.node[t->w->group[t->reader[r]].at];
	struct yk_device *d = yk_work_device(t->w, at->device);
	int err = yk_build_group(t->w, t->all[r], t->n[r], &t->built);
	if (err)
		return err == YOKE_EUNSUPPORTED ? 0 : err;
	return yk_selftest_can(d, &t->built.op) != 0;
}

// A group that makes nothing any more: its nodes belong to who repeats them first.
static void retire(struct yk_work *w, uint32_t home, uint32_t heir)
{
	struct yk_group *q = &w->group[home];
	for (uint32_t i = 0; i < q->n; i++)
		if (!w->again[w->g.node[q->member[i]].out])
			return;
	for (uint32_t i = 0; i < q->n; i++)
		w->group_of[q->member[i]] = heir;
	q->dead = true;
}

static int repeat(struct trial *t, uint32_t r)
{
	struct yk_group *q = &t->w->group[t->reader[r]];
	size_t cap = q->cap;
	if (yk_grow(&q->member, &cap, t->n[r], sizeof *q->member) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	q->cap = (uint32_t)cap;
	q->n = t->n[r];
	memcpy(q->member, t->all[r], q->n * sizeof *q->member);
	return 0;
}

static int attempt(struct trial *t, uint32_t node)
{
	struct yk_work *w = t->w;
	int good = 1, err = 0;
	if (!find_readers(t, w->g.node[node].out))
		return 0;
	for (uint32_t r = 0; r < t->readers; r++)
		if (!gather(t, r, node))
			return 0;
	for (uint32_t r = 0; r < t->readers; r++)
		mark(t, r, 0, TRIED);
	for (uint32_t r = 0; r < t->readers && good > 0; r++)
		good = taken(t, r);
	for (uint32_t r = 0; r < t->readers; r++)
		mark(t, r, TRIED, good > 0 ? SETTLED : 0);
	if (good <= 0)
		return good;
	for (uint32_t r = 0; r < t->readers && !err; r++)
		err = repeat(t, r);
	retire(w, w->group_of[node], t->reader[0]);
	return err;
}

int yk_again(struct yk_work *w)
{
	struct trial *t = calloc(1, sizeof *t);
	int err = 0;
	if (!t)
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t k = 0; k < w->g.nodes && !err; k++) {
		const struct yk_node *n = &w->g.node[k];
		t->w = w;
		if (w->group_of[k] != YK_NIL && yk_op_row(n->op)->flags & YK_F_MAP &&
		    !w->rooted[n->out])
			err = attempt(t, k);
	}
	if (t)
		yk_built_fini(&t->built);
	free(t);
	return err;
}
