// SPDX-License-Identifier: Apache-2.0
// Order: creation order, or, when that lowers the peak, with each update of a variable right behind what
// it needs.
//
// A barrier is a group of its own that is never launched and never moves.  It reads all its operands, so
// that what makes them is not joined to a later group; what comes through it remembers it.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan.h"

static bool in_arena(const struct yk_work *w, yk_id v)
{
	return !w->rooted[v] && !w->again[v];
}

// Bytes of what a group makes and others read: a model of the peak good enough to compare two orders.
static uint64_t peak(const struct yk_work *w, const uint32_t *order, size_t n,
		     uint32_t *last)
{
	const struct yk_graph *g = &w->g;
	uint64_t now = 0, most = 0;
	memset(last, 0, g->values * sizeof *last);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < w->group[order[i]].n; k++) {
			const struct yk_node *m = &g->node[w->group[order[i]].member[k]];
			for (uint32_t a = 0; a < m->nin; a++)
				if (g->arg[m->in + a] != YK_NIL)
					last[w->place[g->arg[m->in + a]].base] =
						(uint32_t)i + 1;
		}
	for (size_t i = 0; i < n; i++) {
		const struct yk_group *q = &w->group[order[i]];
		for (uint32_t k = 0; k < q->n; k++) {
			const struct yk_node *m = &g->node[q->member[k]];
			for (uint32_t o = 0; o < m->nout; o++) {
				const struct yk_value *v = &g->value[m->out + o];
				bool kept = last[m->out + o] > i + 1 &&
					    in_arena(w, m->out + o);
				now += kept ? (uint64_t)yk_count(v) *
						       yoke_dtype_size(v->dtype) :
					      0;
			}
		}
		if (now > most)
			most = now;
		for (uint32_t k = 0; k < q->n; k++) {
			const struct yk_node *m = &g->node[q->member[k]];
			for (uint32_t a = 0; a < m->nin; a++) {
				yk_id v = g->arg[m->in + a] == YK_NIL ?
						  YK_NIL :
						  w->place[g->arg[m->in + a]].base;
				if (v == YK_NIL || last[v] != i + 1 || !in_arena(w, v) ||
				    yk_maker(g, v)->op <= YK_CONST)
					continue;
				now -= (uint64_t)yk_count(&g->value[v]) *
				       yoke_dtype_size(g->value[v].dtype);
				last[v] = 0; // once
			}
		}
	}
	return most;
}

// Does everything the group makes go to roots alone?
static bool is_update(const struct yk_work *w, const struct yk_group *q)
{
	const struct yk_node *m = &w->g.node[q->at];
	for (uint32_t o = 0; o < m->nout; o++)
		if (!w->rooted[m->out + o] ||
		    w->use[m->out + o] != w->use[m->out + o + 1])
			return false;
	return true;
}

// Position of the last group that an update must stay behind: makers of its operands, barriers they came
// through, and other readers of them, lest it could not overwrite them.  An operand that is computed in its place in a concat has
// the concat for its base, and only the concat reads it: that update is the concat itself, which makes
// no step for this operand, so its maker may as well come later.
static uint32_t behind(const struct yk_work *w, const uint32_t *pos, uint32_t group)
{
	const struct yk_graph *g = &w->g;
	const struct yk_group *q = &w->group[group];
	uint32_t after = 0, mine = pos[group];
	for (uint32_t k = 0; k < q->n; k++) {
		const struct yk_node *m = &g->node[q->member[k]];
		for (uint32_t a = 0; a < m->nin; a++) {
			if (g->arg[m->in + a] == YK_NIL)
				continue;
			const struct yk_place *p = &w->place[g->arg[m->in + a]];
			yk_id base = p->base;
			uint32_t other = p->gate ? w->group_of[p->gate - 1] : YK_NIL;
			if (other != YK_NIL && pos[other] > after)
				after = pos[other];
			other = w->group_of[g->value[base].node];
			if (other != YK_NIL && other != group && pos[other] > after)
				after = pos[other];
			for (uint32_t u = w->use[base]; u < w->use[base + 1]; u++) {
				other = w->group_of[w->uses[u]];
				if (pos[other] < mine && pos[other] > after)
					after = pos[other];
			}
		}
	}
	return after;
}

// The groups with each update right behind what it needs.  scratch: three words a group.
static void early_updates(const struct yk_work *w, const uint32_t *order, uint32_t n,
			  uint32_t *to, uint32_t *scratch)
{
	uint32_t *pos = scratch, *first = pos + w->groups, *next = first + w->groups;
	for (uint32_t i = 0; i < n; i++) {
		pos[order[i]] = i;
		first[i] = YK_NIL; // updates that go behind position i
	}
	uint32_t k = 0;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t after =
			is_update(w, &w->group[order[i]]) ? behind(w, pos, order[i]) : i;
		next[i] = YK_NIL;
		if (after < i) {
			next[i] = first[after];
			first[after] = i;
			pos[order[i]] = YK_NIL; // its place is in a list now
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (pos[order[i]] != YK_NIL)
			to[k++] = order[i];
		for (uint32_t j = first[i]; j != YK_NIL; j = next[j])
			to[k++] = order[j];
	}
}

int yk_order(struct yk_work *w)
{
	size_t n = 0, groups = w->groups + (size_t)1;
	uint32_t *at = malloc((w->g.nodes + 1) * sizeof *at);
	uint32_t *other = malloc(groups * sizeof *other),
		 *scratch = malloc(3 * groups * sizeof *scratch);
	uint32_t *last = malloc((w->g.values + 1) * sizeof *last);
	w->order = malloc(groups * sizeof *w->order);
	int err = 0;
	if (!at || !w->order || !other || !last || !scratch) {
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
		goto out;
	}
	memset(at, 0xff, (w->g.nodes + 1) * sizeof *at);
	for (uint32_t i = 0; i < w->groups; i++)
		if (!w->group[i].dead)
			at[w->group[i].at] = i;
	for (size_t k = 0; k < w->g.nodes; k++)
		if (at[k] != YK_NIL)
			w->order[n++] = at[k];
	w->norder = n;
	early_updates(w, w->order, (uint32_t)n, other, scratch);
	if (peak(w, other, n, last) < peak(w, w->order, n, last))
		memcpy(w->order, other, n * sizeof *other);
out:
	free(at);
	free(other);
	free(last);
	free(scratch);
	return err;
}
