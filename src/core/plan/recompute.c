// SPDX-License-Identifier: Apache-2.0
// Recomputation of activations (Chen et al. 2016): values of the forward pass that only gradients
// read later are not kept, but computed again before the gradients need them.
//
// The forward pass, all nodes that do not depend on a gradient, is cut into segments where few
// bytes cross.  Values that cross a border are kept.  Nodes of the backward pass that read other
// values of a segment read clones of their makers instead, computed from the kept values.  Clones
// are placed right before their first reader, so that only one segment at a time exists in full.
// The last segment is kept, because it is needed at once.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/edit.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/work.h"

YK_PARAM(recompute, "recompute", YK_STRING, "none",
	 "activations recomputed for gradients, to save memory: none; block: all for which it "
		"pays; auto: as few as needed for a plan to fit");

enum {
	PLACES = 2048, // maximum number of candidate borders
	BUDGETS = 24   // segment sizes that are tried
};

struct recomputation {
	struct yk_work *w;
	uint32_t *order; // nodes in time
	size_t n;
	uint32_t *fwd;   // the forward pass: nodes that compute, in time
	uint32_t nfwd;
	uint32_t *pos;   // by node: its index in fwd, or YK_NIL
	uint8_t *back;   // by node: it depends on a gradient
	uint64_t *cross; // by index: bytes produced up to there that the forward pass reads after
			 // it
	uint64_t *stash; // by index: bytes produced before it that the backward pass reads
	uint32_t *last;  // by value: index of its last forward reader, or of its maker
	uint32_t *end;   // by segment: index of its last node
	uint32_t segments;
	uint32_t *seg;   // by index
	yk_id *clone;    // by value: its latest clone, YK_NIL: none
	uint8_t *need;   // by index
};

// ---- values that cross a border ----

static bool recorded_back(const struct yk_work *w, uint32_t node)
{
	return w->ctx->graph.node[w->marks->node[w->node[node].from]].back;
}

static void find_passes(struct recomputation *r)
{
	const struct yk_work *w = r->w;
	const struct yk_graph *g = &w->g;
	for (size_t i = 0; i < r->n; i++) {
		uint32_t k = r->order[i];
		const struct yk_node *n = &g->node[k];
		bool back = recorded_back(w, k);
		for (uint32_t a = 0; a < n->nin && !back; a++)
			back = g->arg[n->in + a] != YK_NIL &&
			       r->back[g->value[g->arg[n->in + a]].node];
		r->back[k] = back;
		r->pos[k] = YK_NIL;
		if (!back && yk_computes(w, k)) {
			r->pos[k] = r->nfwd;
			r->fwd[r->nfwd++] = k;
		}
	}
}

// Index of the last forward reader of a value, or of its maker.
static uint32_t last_forward(const struct recomputation *r, yk_id v)
{
	const struct yk_work *w = r->w;
	uint32_t last = r->pos[w->g.value[v].node];
	for (uint32_t u = w->value[v].use; u != YK_NIL; u = w->use[u].next) {
		uint32_t pos = r->pos[w->use[u].node];
		last = pos != YK_NIL && pos > last ? pos : last;
	}
	return last;
}

static bool read_back(const struct recomputation *r, yk_id v)
{
	const struct yk_work *w = r->w;
	uint32_t u = w->value[v].use;
	while (u != YK_NIL && !r->back[w->use[u].node])
		u = w->use[u].next;
	return u != YK_NIL;
}

static void weigh(struct recomputation *r)
{
	const struct yk_work *w = r->w;
	for (uint32_t p = 0; p < r->nfwd; p++) {
		const struct yk_node *n = &w->g.node[r->fwd[p]];
		r->stash[p + 1] += r->stash[p];
		for (uint32_t o = 0; o < n->nout; o++) {
			yk_id v = n->out + o;
			uint64_t bytes = yk_bytes_of_value(&w->g.value[v]);
			r->last[v] = last_forward(r, v);
			if (w->value[v].rooted)
				continue;
			r->cross[p] += bytes; // differences, summed up below
			r->cross[r->last[v]] -= bytes;
			if (read_back(r, v))
				r->stash[p + 1] += bytes;
		}
	}
	for (uint32_t p = 1; p < r->nfwd; p++)
		r->cross[p] += r->cross[p - 1];
}

// ---- borders ----

// Dynamic program over cuts: by border, with the border before it.
struct cuts {
	const struct recomputation *r;
	uint32_t *at; // indices of borders; the last is the end
	uint32_t n;
	uint64_t *cost; // bytes kept by the best way to cut up to here
	uint32_t *from; // the border before on that way, YK_NIL: the beginning
};

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// Local minima of the bytes that cross; of these the PLACES smallest.
static int find_places(struct cuts *c)
{
	const struct recomputation *r = c->r;
	const uint64_t *cross = r->cross;
	uint64_t max = UINT64_MAX, *sizes = malloc(r->nfwd * sizeof *sizes);
	uint32_t n = 0;
	if (!sizes)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t p = 0; p + 1 < r->nfwd; p++)
		if ((!p || cross[p] <= cross[p - 1]) && cross[p] <= cross[p + 1])
			sizes[n++] = cross[p];
	if (n > PLACES) {
		qsort(sizes, n, sizeof *sizes, by_number);
		max = sizes[PLACES];
	}
	for (uint32_t p = 0; p + 1 < r->nfwd; p++)
		if ((!p || cross[p] <= cross[p - 1]) && cross[p] <= cross[p + 1] && cross[p] < max)
			c->at[c->n++] = p;
	c->at[c->n++] = r->nfwd - 1;
	free(sizes);
	return 0;
}

// The bytes made after border i, up to border k, that gradients read.
static uint64_t between(const struct cuts *c, uint32_t i, uint32_t k)
{
	const uint64_t *stash = c->r->stash;
	return stash[c->at[k] + 1] - (i == YK_NIL ? 0 : stash[c->at[i] + 1]);
}

// The fewest bytes kept with segments of at most `budget` bytes, and the largest segment;
// UINT64_MAX: impossible.
static uint64_t cut(struct cuts *c, uint64_t budget)
{
	for (uint32_t k = 0; k < c->n; k++) {
		uint64_t own = k + 1 < c->n ? c->r->cross[c->at[k]] : 0;
		c->cost[k] = between(c, YK_NIL, k) <= budget ? own : UINT64_MAX;
		c->from[k] = YK_NIL;
		for (uint32_t i = k; i-- > 0 && between(c, i, k) <= budget;)
			if (c->cost[i] != UINT64_MAX && c->cost[i] + own < c->cost[k]) {
				c->cost[k] = c->cost[i] + own;
				c->from[k] = i;
			}
	}
	uint64_t largest = 0;
	for (uint32_t k = c->n - 1; c->cost[c->n - 1] != UINT64_MAX && k != YK_NIL;
	     k = c->from[k]) {
		uint64_t bytes = between(c, c->from[k], k);
		largest = bytes > largest ? bytes : largest;
	}
	return c->cost[c->n - 1] == UINT64_MAX ? UINT64_MAX : c->cost[c->n - 1] + largest;
}

static void take_cut(struct recomputation *r, const struct cuts *c)
{
	uint32_t n = 0;
	for (uint32_t k = c->n - 1; k != YK_NIL; k = c->from[k])
		r->end[n++] = c->at[k];
	for (uint32_t i = 0; i < n / 2; i++) {
		uint32_t x = r->end[i];
		r->end[i] = r->end[n - 1 - i];
		r->end[n - 1 - i] = x;
	}
	r->segments = n;
	for (uint32_t p = 0, s = 0; p < r->nfwd; p++) {
		r->seg[p] = s;
		s += p == r->end[s];
	}
}

// Chooses segments that minimize the kept bytes plus the largest segment.
static int find_segments(struct recomputation *r)
{
	struct cuts c = { .r = r };
	uint64_t best = r->stash[r->nfwd], budget = best, min = 0;
	c.at = malloc((r->nfwd + (size_t)1) * sizeof *c.at);
	c.from = malloc((r->nfwd + (size_t)1) * sizeof *c.from);
	c.cost = malloc((r->nfwd + (size_t)1) * sizeof *c.cost);
	int err = c.at && c.from && c.cost ? find_places(&c) :
					     yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (int i = 0; i < BUDGETS && !err; i++) {
		budget -= budget / 5;
		uint64_t bytes = cut(&c, budget);
		if (bytes == UINT64_MAX)
			break;
		if (bytes < best) {
			best = bytes;
			min = budget;
		}
	}
	if (!err && min) {
		cut(&c, min);
		take_cut(r, &c);
	}
	free(c.at);
	free(c.from);
	free(c.cost);
	return err;
}

// ---- clones ----

static bool may_clone(const struct yk_work *w, uint32_t node)
{
	const struct yk_node *n = &w->g.node[node];
	if (n->op == YK_BARRIER || n->op == YK_TRANSFER || yk_is_ranks(n))
		return false;
	for (uint32_t i = 0; i < n->nin; i++)
		if (w->g.arg[n->in + i] != YK_NIL && w->value[w->g.arg[n->in + i]].place.gate)
			return false;
	return true;
}

// Is a value of a segment recomputed, or is it kept?
static bool is_again(const struct recomputation *r, yk_id v, uint32_t segment)
{
	const struct yk_work *w = r->w;
	uint32_t node = w->g.value[v].node, pos = r->pos[node];
	return pos != YK_NIL && r->seg[pos] == segment && !w->value[v].rooted &&
	       r->seg[r->last[v]] == segment && may_clone(w, node);
}

// The value that replaces v as an operand of clones.
static int cloned(struct recomputation *r, yk_id v, yk_id *to)
{
	struct yk_work *w = r->w;
	yk_id base = v == YK_NIL ? v : w->value[v].place.base;
	*to = v;
	if (base == YK_NIL || r->clone[base] == YK_NIL)
		return 0;
	return yk_edit_view(w, v, r->clone[base], to);
}

static int clone_node(struct recomputation *r, uint32_t node)
{
	struct yk_work *w = r->w;
	const struct yk_node n = w->g.node[node];
	yk_id *in = malloc((n.nin + (size_t)1) * sizeof *in), out;
	int err = in ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t i = 0; i < n.nin && !err; i++)
		err = cloned(r, w->g.arg[n.in + i], &in[i]);
	if (!err)
		err = yk_edit_clone(w, node, in, &out);
	for (uint32_t o = 0; o < n.nout && !err; o++)
		r->clone[n.out + o] = out + o;
	free(in);
	return err;
}

// Clones all nodes that a recomputed value needs and that have no clone yet.
static int make_again(struct recomputation *r, yk_id v)
{
	const struct yk_work *w = r->w;
	uint32_t top = r->pos[w->g.value[v].node], s = r->seg[top], low = s ? r->end[s - 1] + 1 : 0;
	int err = 0;
	memset(r->need + low, 0, top - low + (size_t)1);
	r->need[top] = 1;
	for (uint32_t p = top + 1; p-- > low;) {
		const struct yk_node *n = &w->g.node[r->fwd[p]];
		for (uint32_t a = 0; a < n->nin && r->need[p]; a++) {
			yk_id x = w->g.arg[n->in + a];
			x = x == YK_NIL ? x : w->value[x].place.base;
			if (x != YK_NIL && r->clone[x] == YK_NIL && is_again(r, x, s))
				r->need[r->pos[w->g.value[x].node]] = 1;
		}
	}
	for (uint32_t p = low; p <= top && !err; p++)
		if (r->need[p])
			err = clone_node(r, r->fwd[p]);
	return err;
}

// Makes a node of the backward pass read clones.
static int read_clones(struct recomputation *r, uint32_t node)
{
	struct yk_work *w = r->w;
	const struct yk_node n = w->g.node[node];
	int err = 0;
	for (uint32_t i = 0; i < n.nin && !err; i++) {
		yk_id v = w->g.arg[n.in + i], base = w->use[n.in + i].base, to;
		uint32_t pos = base == YK_NIL ? YK_NIL : r->pos[w->g.value[base].node];
		if (pos == YK_NIL || r->seg[pos] >= w->wanted.segments || w->value[v].place.gate ||
		    !is_again(r, base, r->seg[pos]))
			continue;
		if (r->clone[base] == YK_NIL)
			err = make_again(r, base);
		if (!err)
			err = cloned(r, v, &to);
		if (!err)
			err = yk_edit_replace(w, n.in + i, to);
	}
	return err;
}

static int clone_all(struct recomputation *r)
{
	struct yk_work *w = r->w;
	uint32_t *order = NULL;
	size_t n = 0, cap = 0, had = w->g.nodes;
	int err = 0;
	yk_edit_begin(w);
	for (size_t i = 0; i < r->n && !err; i++) {
		uint32_t k = r->order[i];
		if (r->back[k] && yk_computes(w, k))
			err = read_clones(r, k);
		if (!err && yk_grow(&order, &cap, n + w->g.nodes - had + 1, sizeof *order) < 0)
			err = yk_fail(YOKE_ENOMEM, "no memory to plan");
		for (; had < w->g.nodes && !err; had++) // new nodes come before their reader
			order[n++] = (uint32_t)had;
		if (!err)
			order[n++] = k;
	}
	for (size_t i = 0; i < n && !err; i++)
		w->node[order[i]].time = (uint32_t)i;
	free(order);
	return err ? err : yk_edit_sweep(w);
}

static int recompute_init(struct recomputation *r)
{
	const size_t nodes = r->w->g.nodes + 1, values = r->w->g.values + 1;
	r->order = yk_in_time(r->w);
	r->n = r->w->g.nodes;
	r->fwd = malloc(nodes * sizeof *r->fwd);
	r->pos = malloc(nodes * sizeof *r->pos);
	r->back = calloc(nodes, 1);
	r->need = calloc(nodes, 1);
	r->seg = malloc(nodes * sizeof *r->seg);
	r->end = malloc(nodes * sizeof *r->end);
	r->cross = calloc(nodes, sizeof *r->cross);
	r->stash = calloc(nodes, sizeof *r->stash);
	r->clone = malloc(values * sizeof *r->clone);
	r->last = malloc(values * sizeof *r->last);
	if (!r->order)
		return YOKE_ENOMEM;
	if (!r->fwd || !r->pos || !r->back || !r->need || !r->seg || !r->end || !r->cross ||
	    !r->stash || !r->clone || !r->last)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	memset(r->clone, 0xff, values * sizeof *r->clone);
	return 0;
}

int yk_recompute(struct yk_work *w)
{
	struct recomputation r = { .w = w };
	int err = w->wanted.segments ? recompute_init(&r) : 0;
	if (w->wanted.segments && !err) {
		find_passes(&r);
		if (r.nfwd) {
			weigh(&r);
			err = find_segments(&r);
		}
		if (!err && r.segments > 1) {
			w->available.segments = r.segments - 1;
			w->wanted.segments = w->wanted.segments < w->available.segments ?
						     w->wanted.segments :
						     w->available.segments;
			err = clone_all(&r);
		}
	}
	free(r.order);
	free(r.fwd);
	free(r.pos);
	free(r.back);
	free(r.need);
	free(r.seg);
	free(r.end);
	free(r.cross);
	free(r.stash);
	free(r.clone);
	free(r.last);
	return err;
}

int yk_recompute_setting(enum yk_recompute *to)
{
	const char *text = yk_param_str(&recompute);
	const char *const words[] = { "none", "block", "auto" };
	for (int i = 0; i < 3; i++)
		if (!strcmp(text, words[i])) {
			*to = (enum yk_recompute)i;
			return 0;
		}
	return yk_fail(YOKE_EINVAL, "recompute=%s: must be none, block or auto", text);
}
