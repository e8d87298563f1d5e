// SPDX-License-Identifier: Apache-2.0
// Spilling: copies values that are not read for a long time to host memory, to free device memory.
//
// For each stored value the longest pause between two uses counts, in groups.  Where the plan's
// memory peaks, the largest value that is pausing is spilled, and so on, as many as requested.  The
// download comes right after the use before the pause, the upload LEAD groups before the use after
// it, so that both overlap with the device's work; later readers use the uploaded copy.  waits.c
// makes sure that the device soon knows the download to be done, and that the upload does not begin
// too early.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/edit.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/work.h"

enum {
	MIN_SIZE = 8 << 10, // minimum bytes for which two copies pay
	LEAD = 3,         // groups
	PAUSE = 4 * LEAD  // groups: the shortest pause
};

const char yk_spilled[] = "spilled to the host's memory";

struct pause { // of a value
	yk_id v;
	uint64_t bytes;
	uint32_t from, to; // groups in time that use it before and after
	bool taken;
};

struct spill {
	struct yk_work *w;
	uint32_t *order; // nodes in time
	uint32_t *at;    // by group in time: position of its last member in order
	uint32_t *pos;   // by node: its group in time
	uint32_t groups;
	struct pause *pause;
	uint32_t n;
	uint64_t *live;  // by group in time: bytes on the device
	struct moment {  // final position of each node: its old position, doubled
		uint64_t key;
		uint32_t node;
	} *moment;
};

static int by_moment(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static bool may_wait(const struct yk_work *w, yk_id v)
{
	const uint32_t node = w->g.value[v].node;
	const struct yk_node *n = &w->g.node[node];
	bool may = yk_computes(w, node) && n->stream == YK_STREAM_DEVICE && n->op != YK_TRANSFER &&
		   n->op != YK_BARRIER && !w->value[v].rooted && w->value[v].use != YK_NIL &&
		   yk_bytes_of_value(&w->g.value[v]) >= MIN_SIZE;
	bool stored = false;
	for (uint32_t u = w->value[v].use; u != YK_NIL && may; u = w->use[u].next) {
		const struct yk_node *by = &w->g.node[w->use[u].node];
		may = !w->value[w->g.arg[u]].place.gate && by->stream == YK_STREAM_DEVICE &&
		      by->op != YK_BARRIER;
		stored |= w->node[w->use[u].node].group != w->node[node].group;
	}
	return may && stored;
}

// The next time after `at` at which v is read; YK_NIL: none.
static uint32_t next_use(const struct spill *s, yk_id v, uint32_t at)
{
	const struct yk_work *w = s->w;
	uint32_t next = YK_NIL;
	for (uint32_t u = w->value[v].use; u != YK_NIL; u = w->use[u].next) {
		uint32_t pos = s->pos[w->use[u].node];
		if (pos > at && pos < next)
			next = pos;
	}
	return next;
}

// Records the value's longest pause, and adds its bytes to the live bytes.
static void look_at(struct spill *s, yk_id v)
{
	const uint64_t bytes = yk_bytes_of_value(&s->w->g.value[v]);
	uint32_t at = s->pos[s->w->g.value[v].node], first = at, from = at, to = at;
	for (uint32_t next; (next = next_use(s, v, at)) != YK_NIL; at = next)
		if (next - at > to - from) {
			from = at;
			to = next;
		}
	s->live[first] += bytes; // differences, summed up later
	s->live[at + 1] -= bytes;
	if (to - from >= PAUSE)
		s->pause[s->n++] = (struct pause){ v, bytes, from, to, false };
}

static int find_pauses(struct spill *s)
{
	struct yk_work *w = s->w;
	const size_t nodes = w->g.nodes + 2;
	s->order = yk_in_time(w);
	s->at = malloc(nodes * sizeof *s->at);
	s->pos = malloc(nodes * sizeof *s->pos);
	s->live = calloc(nodes, sizeof *s->live);
	s->pause = malloc((w->g.values + 1) * sizeof *s->pause);
	if (!s->order || !s->at || !s->pos || !s->live || !s->pause)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t i = 0; i < w->g.nodes; i++) {
		const uint32_t group = w->node[s->order[i]].group;
		const struct yk_group *q = group == YK_NIL ? NULL : &w->schedule.group[group];
		if (!q || q->at != s->order[i])
			continue;
		for (uint32_t k = 0; k < q->n; k++)
			s->pos[q->member[k]] = s->groups;
		s->at[s->groups++] = i;
	}
	for (yk_id v = 0; v < w->g.values; v++)
		if (may_wait(w, v))
			look_at(s, v);
	for (uint32_t i = 1; i < s->groups; i++)
		s->live[i] += s->live[i - 1];
	return 0;
}

// The largest value that is pausing at the peak; NULL: none.
static struct pause *choose(struct spill *s)
{
	struct pause *best = NULL;
	uint32_t top = 0;
	for (uint32_t i = 1; i < s->groups; i++)
		top = s->live[i] > s->live[top] ? i : top;
	for (uint32_t k = 0; k < s->n; k++) {
		struct pause *p = &s->pause[k];
		if (!p->taken && p->from + LEAD < top && top + LEAD < p->to &&
		    (!best || p->bytes > best->bytes))
			best = p;
	}
	return best;
}

// Adds a copy, in a group of its own.
static int copy_node(struct spill *s, yk_id from, int stream, uint64_t key, yk_id *to)
{
	struct yk_work *w = s->w;
	struct yk_value value = w->g.value[from];
	const struct yk_call c = { .op = YK_TRANSFER, .nin = 1, .in = &from };
	struct yk_group *q = &w->schedule.group[w->schedule.groups];
	int err = yk_edit_add(w, &c, &value, stream, yk_spilled, w->g.value[from].node, to);
	const uint32_t node = (uint32_t)w->g.nodes - 1;
	if (!err && !(q->member = malloc(sizeof *q->member)))
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	if (err)
		return err;
	q->n = q->cap = 1;
	q->member[0] = q->at = node;
	w->node[node].group = w->schedule.groups++;
	s->moment[node] = (struct moment){ key, node };
	return 0;
}

// Spills the value and makes readers after the pause read the uploaded copy.
static int take(struct spill *s, const struct pause *p)
{
	struct yk_work *w = s->w;
	const uint64_t back = 2 * (uint64_t)s->at[p->to - LEAD] - 1;
	yk_id down, up;
	int err = copy_node(s, p->v, YK_STREAM_CPU, 2 * (uint64_t)s->at[p->from] + 1, &down);
	if (!err)
		err = copy_node(s, down, YK_STREAM_DEVICE, back, &up);
	for (uint32_t u = w->value[p->v].use, next; u != YK_NIL && !err; u = next) {
		yk_id v = w->g.arg[u], to;
		next = w->use[u].next;
		if (w->use[u].node >= s->w->edit.began.nodes || s->pos[w->use[u].node] < p->to)
			continue;
		err = yk_edit_view(w, v, up, &to);
		if (!err && to != up)
			s->moment[w->g.nodes - 1] =
				(struct moment){ back, (uint32_t)w->g.nodes - 1 };
		if (!err)
			err = yk_edit_replace(w, u, to);
	}
	return err;
}

static int take_all(struct spill *s)
{
	struct yk_work *w = s->w;
	const size_t had = w->g.nodes, max = had + 2 * (size_t)s->n + w->g.args;
	struct yk_group *group = realloc(
		w->schedule.group, (w->schedule.groups + 2 * (size_t)s->n + 1) * sizeof *group);
	int err = 0;
	w->schedule.group = group ? group : w->schedule.group;
	if (!group || !(s->moment = malloc((max + 1) * sizeof *s->moment)))
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	memset(group + w->schedule.groups, 0, (2 * (size_t)s->n + 1) * sizeof *group);
	for (uint32_t i = 0; i < had; i++)
		s->moment[s->order[i]] = (struct moment){ 2 * (uint64_t)i, s->order[i] };
	yk_edit_begin(w);
	for (struct pause *p; (p = choose(s)) && !err; w->available.spills++) {
		p->taken = true;
		for (uint32_t i = p->from + 1; i < p->to; i++)
			s->live[i] -= p->bytes;
		if (w->available.spills < w->wanted.spills)
			err = take(s, p);
	}
	if (!err)
		qsort(s->moment, w->g.nodes, sizeof *s->moment, by_moment);
	for (uint32_t i = 0; i < w->g.nodes && !err; i++)
		w->node[s->moment[i].node].time = i;
	return err;
}

int yk_spill(struct yk_work *w)
{
	struct spill s = { .w = w };
	int err = 0;
	if (w->wanted.spills && w->ctx->device != w->ctx->cpu)
		err = find_pauses(&s);
	if (!err && s.n)
		err = take_all(&s);
	free(s.order);
	free(s.at);
	free(s.pos);
	free(s.pause);
	free(s.live);
	free(s.moment);
	return err;
}
