// SPDX-License-Identifier: Apache-2.0
// Order of launches: a list scheduler (Graham 1966) repeatedly takes, among the groups whose
// operands are ready, the one of the lowest rank.  Ranks follow creation order, or, if that lowers
// the peak, an order with each update of a variable right after the last value it needs.
// Collectives overlap with the device's steps: they begin as soon as their operands are ready, and
// an update that reads their result stays where it was recorded.  Groups on the CPU, for which the
// host waits, let independent device groups go first, unless that takes much more memory.
//
// A barrier is a group of its own that is never launched and never moves.  It reads all its
// operands, so that their makers are not fused into a later group; values that pass through it
// record it.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/work.h"

static bool in_arena(const struct yk_work *w, yk_id v)
{
	return !w->value[v].rooted;
}

// Peak of the bytes that groups produce for others: a model that is good enough to compare two
// orders.
static uint64_t peak(const struct yk_work *w, const uint32_t *order, size_t n,
		     uint32_t *last)
{
	const struct yk_graph *g = &w->g;
	uint64_t now = 0, max = 0;
	memset(last, 0, g->values * sizeof *last);
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < w->schedule.group[order[i]].n; k++) {
			const struct yk_node *m = &g->node[w->schedule.group[order[i]].member[k]];
			for (uint32_t a = 0; a < m->nin; a++)
				if (g->arg[m->in + a] != YK_NIL)
					last[w->value[g->arg[m->in + a]].place.base] =
						(uint32_t)i + 1;
		}
	for (size_t i = 0; i < n; i++) {
		const struct yk_group *q = &w->schedule.group[order[i]];
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
		if (now > max)
			max = now;
		for (uint32_t k = 0; k < q->n; k++) {
			const struct yk_node *m = &g->node[q->member[k]];
			for (uint32_t a = 0; a < m->nin; a++) {
				yk_id v = g->arg[m->in + a] == YK_NIL ?
						  YK_NIL :
						  w->value[g->arg[m->in + a]].place.base;
				if (v == YK_NIL || last[v] != i + 1 || !in_arena(w, v) ||
				    yk_maker(g, v)->op <= YK_CONST)
					continue;
				now -= (uint64_t)yk_count(&g->value[v]) *
				       yoke_dtype_size(g->value[v].dtype);
				last[v] = 0; // count it once
			}
		}
	}
	return max;
}

// Is an operand of the group the result of a collective, or a copy of one?
static bool reads_ranks(const struct yk_work *w, const struct yk_group *q)
{
	const struct yk_graph *g = &w->g;
	bool any = false;
	for (uint32_t k = 0; k < q->n && !any; k++) {
		const struct yk_node *m = &g->node[q->member[k]];
		for (uint32_t a = 0; a < m->nin && !any; a++) {
			if (g->arg[m->in + a] == YK_NIL)
				continue;
			const struct yk_node *by =
				yk_maker(g, w->value[g->arg[m->in + a]].place.base);
			if (by->op == YK_TRANSFER)
				by = yk_maker(g, w->value[g->arg[by->in]].place.base);
			any = yk_is_ranks(by);
		}
	}
	return any;
}

// Are all results of the group roots, without waiting for other ranks?
static bool is_update(const struct yk_work *w, const struct yk_group *q)
{
	const struct yk_node *m = &w->g.node[q->at];
	if (yk_is_ranks(m) || reads_ranks(w, q))
		return false;
	for (uint32_t o = 0; o < m->nout; o++)
		if (!w->value[m->out + o].rooted ||
		    w->value[m->out + o].use != YK_NIL)
			return false;
	return true;
}

// Position of the last group that an update must follow: makers of its operands, barriers that
// these passed, and other readers of a leaf, which must come before the update can overwrite it. An
// operand computed in place in a concat has the concat as base, and only the concat reads it: the
// update is then the concat itself, which has no step for this operand, so its maker may come
// later.
static uint32_t last_required(const struct yk_work *w, const uint32_t *pos, uint32_t group)
{
	const struct yk_graph *g = &w->g;
	const struct yk_group *q = &w->schedule.group[group];
	uint32_t after = 0, mine = pos[group];
	for (uint32_t k = 0; k < q->n; k++) {
		const struct yk_node *m = &g->node[q->member[k]];
		for (uint32_t a = 0; a < m->nin; a++) {
			if (g->arg[m->in + a] == YK_NIL)
				continue;
			const struct yk_location *p = &w->value[g->arg[m->in + a]].place;
			yk_id base = p->base;
			uint32_t other = p->gate ? w->node[p->gate - 1].group : YK_NIL;
			if (other != YK_NIL && pos[other] > after)
				after = pos[other];
			other = w->node[g->value[base].node].group;
			if (other != YK_NIL && other != group && pos[other] > after)
				after = pos[other];
			if (yk_maker(g, base)->op != YK_LEAF)
				continue;
			for (uint32_t u = w->value[base].use; u != YK_NIL; u = w->use[u].next) {
				other = w->node[w->use[u].node].group;
				if (pos[other] < mine && pos[other] > after)
					after = pos[other];
			}
		}
	}
	return after;
}

// Moves each update right after the groups it must follow.  scratch: three words per group.
static void early_updates(const struct yk_work *w, const uint32_t *order, uint32_t n,
			  uint32_t *to, uint32_t *scratch)
{
	uint32_t *pos = scratch, *first = pos + w->schedule.groups,
		 *next = first + w->schedule.groups;
	for (uint32_t i = 0; i < n; i++) {
		pos[order[i]] = i;
		first[i] = YK_NIL; // updates to be inserted after position i
	}
	uint32_t k = 0;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t after = is_update(w, &w->schedule.group[order[i]]) ?
					 last_required(w, pos, order[i]) :
					 i;
		next[i] = YK_NIL;
		if (after < i) {
			next[i] = first[after];
			first[after] = i;
			pos[order[i]] = YK_NIL; // it is in a list now
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		if (pos[order[i]] != YK_NIL)
			to[k++] = order[i];
		for (uint32_t j = first[i]; j != YK_NIL; j = next[j])
			to[k++] = order[j];
	}
}

// ---- dependencies ----

struct schedule {
	struct yk_work *w;
	uint32_t n;      // launched groups, numbered in creation order
	uint32_t *group; // by number
	uint32_t *number; // by group
	uint32_t *first; // by number: start of its successors in `follower`; one more at the end
	uint32_t *needs; // by number: how many predecessors it has
	uint32_t *rank;  // by number
	uint32_t *heap;  // ready groups, lowest rank first
	uint32_t ready;
	struct edge {
		uint32_t from, to;
	} *edge;
	uint32_t *follower;
	size_t edges, edge_cap;
};

// The node that computes v's elements; v may be a view.
static uint32_t maker_of(const struct yk_graph *g, yk_id v)
{
	while (yk_op_def(yk_maker(g, v)->op)->flags & YK_F_VIEW)
		v = g->arg[yk_maker(g, v)->in];
	return g->value[v].node;
}

// Adds a dependency of number `to` on the group of a node.
static int follow(struct schedule *s, uint32_t node, uint32_t to)
{
	uint32_t group = s->w->node[node].group;
	const struct yk_group *mine = &s->w->schedule.group[s->group[to]];
	if (group == YK_NIL || yk_is_among(mine->member, mine->n, node))
		return 0;
	if (yk_grow(&s->edge, &s->edge_cap, s->edges + 1, sizeof *s->edge) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	s->edge[s->edges++] = (struct edge){ s->number[group], to };
	s->needs[to]++;
	return 0;
}

// Adds dependencies on the makers of its operands and of values in which its results lie, and on
// barriers.
static int find_needs(struct schedule *s, uint32_t to)
{
	const struct yk_work *w = s->w;
	const struct yk_graph *g = &w->g;
	const struct yk_group *q = &w->schedule.group[s->group[to]];
	int err = 0;
	for (uint32_t k = 0; k < q->n; k++) {
		const struct yk_node *m = &g->node[q->member[k]];
		for (uint32_t a = 0; a < m->nin && !err; a++) {
			yk_id v = g->arg[m->in + a];
			if (v == YK_NIL)
				continue;
			uint32_t maker = maker_of(g, v),
				 base = g->value[w->value[v].place.base].node;
			err = follow(s, maker, to);
			if (!err && base != maker)
				err = follow(s, base, to);
			if (!err && w->value[v].place.gate)
				err = follow(s, w->value[v].place.gate - 1, to);
		}
	}
	return err;
}

// Collectives depend on each other in recorded order, the same on all ranks.
static int follow_ranks(struct schedule *s)
{
	uint32_t last = YK_NIL;
	int err = 0;
	for (uint32_t i = 0; i < s->n && !err; i++) {
		const uint32_t at = s->w->schedule.group[s->group[i]].at;
		if (!yk_is_ranks(&s->w->g.node[at]))
			continue;
		err = last == YK_NIL ? 0 : follow(s, last, i);
		last = at;
	}
	return err;
}

static int find_edges(struct schedule *s)
{
	int err = 0;
	for (uint32_t i = 0; i < s->n && !err; i++)
		err = find_needs(s, i);
	if (!err)
		err = follow_ranks(s);
	if (err)
		return err;
	if (!(s->follower = malloc((s->edges + 1) * sizeof *s->follower)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t e = 0; e < s->edges; e++)
		s->first[s->edge[e].from + 2]++;
	for (uint32_t i = 2; i < s->n + 2; i++)
		s->first[i] += s->first[i - 1];
	// first[i + 1] is where i's successors begin, and is advanced to their end
	for (size_t e = 0; e < s->edges; e++)
		s->follower[s->first[s->edge[e].from + 1]++] = s->edge[e].to;
	return 0;
}

// ---- scheduling ----

static bool sooner(const struct schedule *s, uint32_t a, uint32_t b)
{
	return s->rank[a] != s->rank[b] ? s->rank[a] < s->rank[b] : a < b;
}

static void push(struct schedule *s, uint32_t x)
{
	uint32_t i = s->ready++;
	for (; i && sooner(s, x, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = x;
}

static uint32_t pop(struct schedule *s)
{
	uint32_t top = s->heap[0], x = s->heap[--s->ready], i = 0;
	for (uint32_t k; (k = 2 * i + 1) < s->ready; i = k) {
		k += k + 1 < s->ready && sooner(s, s->heap[k + 1], s->heap[k]);
		if (!sooner(s, s->heap[k], x))
			break;
		s->heap[i] = s->heap[k];
	}
	s->heap[i] = x;
	return top;
}

// List scheduling by rank.  `left` has room for one word per group.
static void list(struct schedule *s, uint32_t *to, uint32_t *left)
{
	memcpy(left, s->needs, s->n * sizeof *left);
	for (uint32_t i = 0; i < s->n; i++)
		if (!left[i])
			push(s, i);
	while (s->ready) {
		uint32_t i = pop(s);
		*to++ = s->group[i];
		for (uint32_t e = s->first[i]; e < s->first[i + 1]; e++)
			if (!--left[s->follower[e]])
				push(s, s->follower[e]);
	}
}

static const struct yk_node *node_of(const struct schedule *s, uint32_t number)
{
	return &s->w->g.node[s->w->schedule.group[s->group[number]].at];
}

enum { AHEAD = 256 }; // maximum positions by which device groups overtake the CPU's

// Ranks for copies that overlap with the device's groups: downloads as early as their bytes exist,
// uploads as late as the CPU's group.  False: nothing is on the CPU.
static bool rank_beside(struct schedule *s, const uint32_t *order)
{
	const struct yk_work *w = s->w;
	bool any = false;
	for (uint32_t i = 0; i < s->n; i++)
		s->rank[s->number[order[i]]] = i;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct yk_node *n = node_of(s, i);
		if (n->op == YK_TRANSFER && n->stream == YK_STREAM_CPU) {
			uint32_t maker =
				w->node[w->g.value[w->value[w->g.arg[n->in]].place.base].node]
					.group;
			s->rank[i] = maker == YK_NIL ? 0 : s->rank[s->number[maker]];
		} else if (n->stream == YK_STREAM_CPU) {
			s->rank[i] += AHEAD;
			any = true;
		}
	}
	return any;
}

// Is the copy made only for collectives?
static bool is_for_ranks(const struct yk_work *w, const struct yk_node *n)
{
	uint32_t u = w->value[n->out].use;
	bool any = n->op == YK_TRANSFER && u != YK_NIL;
	for (; u != YK_NIL && any; u = w->use[u].next)
		any = yk_is_ranks(&w->g.node[w->use[u].node]);
	return any;
}

// Gives collectives, and copies for them, the rank of the last group they need.
static void rank_ranks(struct schedule *s)
{
	const struct yk_work *w = s->w;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct yk_node *n = node_of(s, i);
		uint32_t rank = 0;
		if (!yk_is_ranks(n) && !is_for_ranks(w, n))
			continue;
		for (uint32_t a = 0; a < n->nin; a++) {
			const uint32_t by =
				w->node[w->g.value[w->value[w->g.arg[n->in + a]].place.base].node]
					.group;
			if (by != YK_NIL && s->rank[s->number[by]] > rank)
				rank = s->rank[s->number[by]];
		}
		s->rank[i] = rank;
	}
}

static int number_groups(struct schedule *s)
{
	struct yk_work *w = s->w;
	uint32_t *node = yk_in_time(w);
	for (size_t k = 0; k < w->g.nodes && node; k++) {
		uint32_t group = w->node[node[k]].group;
		if (group == YK_NIL || w->schedule.group[group].at != node[k])
			continue;
		s->rank[s->n] = s->n;
		s->number[group] = s->n;
		s->group[s->n++] = group;
	}
	free(node);
	rank_ranks(s);
	return node ? 0 : YOKE_ENOMEM;
}

// Stores the best of three orders in w->order.  last: a word per value; scratch: three per group.
static void choose(struct schedule *s, uint32_t *other, uint32_t *last, uint32_t *scratch)
{
	struct yk_work *w = s->w;
	list(s, w->schedule.order, scratch);
	early_updates(w, w->schedule.order, s->n, other, scratch);
	uint64_t min = peak(w, w->schedule.order, s->n, last), bytes = peak(w, other, s->n, last);
	if (bytes < min) {
		memcpy(w->schedule.order, other, s->n * sizeof *other);
		min = bytes;
	}
	if (!rank_beside(s, w->schedule.order))
		return;
	list(s, other, scratch);
	if (peak(w, other, s->n, last) <= min + min / 8)
		memcpy(w->schedule.order, other, s->n * sizeof *other);
}

int yk_order(struct yk_work *w)
{
	struct schedule s = { .w = w };
	size_t groups = w->schedule.groups + (size_t)2;
	uint32_t *words = calloc(9 * groups, sizeof *words), *scratch = words + 6 * groups;
	uint32_t *last = malloc((w->g.values + 1) * sizeof *last);
	w->schedule.order = malloc(groups * sizeof *w->schedule.order);
	int err =
		words && last && w->schedule.order ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (!err) {
		s.group = words;
		s.number = words + groups;
		s.first = words + 2 * groups;
		s.needs = words + 3 * groups;
		s.rank = words + 4 * groups;
		s.heap = words + 5 * groups;
		err = number_groups(&s);
	}
	if (!err)
		err = find_edges(&s);
	uint32_t *other = err ? NULL : calloc(groups, sizeof *other);
	if (other)
		choose(&s, other, last, scratch);
	else if (!err)
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	w->schedule.norder = s.n;
	free(words);
	free(last);
	free(other);
	free(s.edge);
	free(s.follower);
	return err;
}
