// SPDX-License-Identifier: Apache-2.0
// Threads are frames: an instruction, a number and a parent.  Equal frames are stored once, so that
// a state is the sorted list of its threads.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "schema/states.h"
#include "yoke.h"

enum {
	MAX_THREADS =
		8192, // of a state; further alternatives are dropped, each of which is a choice
	MAX_VISITS = 1 << 16, // frames that one step visits
};
#define MAX_MEMORY ((size_t)96 << 20)
#define MAX_WORK ((size_t)1 << 24) // frames visited

// ---- frames ----

static size_t place_of(const uint32_t word[3], size_t size)
{
	uint64_t h = word[0] * 0x9e3779b97f4a7c15u ^ word[1] * 0xbf58476d1ce4e5b9u ^
		     word[2] * 0x94d049bb133111ebu;
	h ^= h >> 32;
	return (size_t)(h * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
}

static int enlarge_frames(struct yk_states *s)
{
	const size_t size = s->frame_table_size ? 2 * s->frame_table_size : 256;
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return YOKE_ENOMEM;
	for (uint32_t i = 1; i < s->frames; i++) {
		size_t h = place_of(
			(uint32_t[]){ s->frame[i].op, s->frame[i].number, s->frame[i].parent },
			size);
		while (table[h])
			h = (h + 1) & (size - 1);
		table[h] = i;
	}
	free(s->frame_table);
	s->frame_table = table;
	s->frame_table_size = size;
	return 0;
}

static int frame_of(struct yk_states *s, uint32_t op, uint32_t number, uint32_t parent,
		    uint32_t *to)
{
	int e = 2 * (s->frames + 1) > s->frame_table_size ? enlarge_frames(s) : 0;

	if (e < 0)
		return e;
	size_t h = place_of((uint32_t[]){ op, number, parent }, s->frame_table_size);
	for (; s->frame_table[h]; h = (h + 1) & (s->frame_table_size - 1)) {
		const struct yk_frame *f = &s->frame[s->frame_table[h]];
		if (f->op == op && f->number == number && f->parent == parent) {
			*to = s->frame_table[h];
			return 0;
		}
	}
	if ((e = yk_grow(&s->frame, &s->frame_cap, s->frames + 1, sizeof *s->frame)) < 0)
		return e;
	s->frame[s->frames] =
		(struct yk_frame){ op, number, parent, parent ? s->frame[parent].depth + 1 : 0, 0 };
	*to = (uint32_t)s->frames++;
	s->frame_table[h] = *to;
	return 0;
}

// ---- states ----

static int enlarge_states(struct yk_states *s)
{
	const size_t size = s->state_table_size ? 2 * s->state_table_size : 64;
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return YOKE_ENOMEM;
	for (uint32_t i = YK_STATE_FIRST; i < s->states; i++) {
		size_t h = yk_hash(s->thread + s->state[i].thread,
				   s->state[i].threads * sizeof *s->thread, 0) &
			   (size - 1);
		while (table[h])
			h = (h + 1) & (size - 1);
		table[h] = i;
	}
	free(s->state_table);
	s->state_table = table;
	s->state_table_size = size;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

// The state of the threads from `from` on, which are removed if it is known already.
static int state_of(struct yk_states *s, size_t from, uint32_t *to)
{
	const size_t n = s->threads - from;
	int e = 2 * (s->states + 1) > s->state_table_size ? enlarge_states(s) : 0;

	if (!n) {
		*to = YK_STATE_DEAD;
		return 0;
	}
	if (e < 0)
		return e;
	qsort(s->thread + from, n, sizeof *s->thread, by_number);
	size_t h = yk_hash(s->thread + from, n * sizeof *s->thread, 0) & (s->state_table_size - 1);
	for (; s->state_table[h]; h = (h + 1) & (s->state_table_size - 1)) {
		const struct yk_state *x = &s->state[s->state_table[h]];
		if (x->threads == n &&
		    !memcmp(s->thread + x->thread, s->thread + from, n * sizeof *s->thread)) {
			s->threads = from;
			*to = s->state_table[h];
			return 0;
		}
	}
	if (yk_states_bytes(s) > MAX_MEMORY)
		return YOKE_ERANGE;
	if ((e = yk_grow(&s->state, &s->state_cap, s->states + 1, sizeof *s->state)) < 0 ||
	    (e = yk_grow(&s->step, &s->step_cap, (s->states + 1) * s->classes, sizeof *s->step)) <
		    0)
		return e;
	struct yk_state x = { .thread = from, .threads = (uint32_t)n };
	for (size_t i = from; i < s->threads; i++)
		x.complete |= s->p->op[s->frame[s->thread[i]].op].op == YK_OP_END;
	memset(s->step + s->states * s->classes, 0, s->classes * sizeof *s->step);
	s->state[s->states] = x;
	*to = (uint32_t)s->states++;
	s->state_table[h] = *to;
	return 0;
}

// ---- steps ----

// Adds a frame to the list of a step, once.
static int visit_frame(struct yk_states *s, uint32_t f)
{
	if (s->frame[f].stamp == s->stamp)
		return 0;
	s->frame[f].stamp = s->stamp;
	if (++s->work > MAX_WORK)
		return YOKE_ERANGE;
	const int e = yk_grow(&s->todo, &s->todo_cap, s->todos + 1, sizeof *s->todo);
	if (e == 0)
		s->todo[s->todos++] = f;
	return e;
}

static int visit(struct yk_states *s, uint32_t op, uint32_t number, uint32_t parent)
{
	uint32_t f;
	const int e = frame_of(s, op, number, parent, &f);
	return e < 0 ? e : visit_frame(s, f);
}

static int add_thread(struct yk_states *s, uint32_t f, size_t from)
{
	if (s->threads - from >= MAX_THREADS)
		return 0;
	const int e = yk_grow(&s->thread, &s->thread_cap, s->threads + 1, sizeof *s->thread);
	if (e == 0)
		s->thread[s->threads++] = f;
	return e;
}

// A thread of RUN has a number, with the automaton's state: it stays, if there is a next byte, and
// goes on, if the automaton accepts.
static int run(struct yk_states *s, uint32_t op, uint32_t number, uint32_t parent, size_t from)
{
	const struct yk_dfa_state *x = &s->p->dfa.state[yk_run_state(number)];
	uint32_t f;
	int e = 0;

	if (x->edges && (e = frame_of(s, op, number, parent, &f)) == 0 &&
	    s->frame[f].stamp != s->stamp) {
		s->frame[f].stamp = s->stamp;
		e = add_thread(s, f, from);
	}
	return e == 0 && x->accept ? visit(s, s->p->op[op].next, 0, parent) : e;
}

// Can the code at an instruction be completed with `depth` frames on the stack?
static bool completes(const struct yk_states *s, uint32_t op, uint32_t depth)
{
	return s->p->op[op].need != YK_NO_VALUE && depth + s->p->op[op].need <= YK_STACK_MAX;
}

static int loop(struct yk_states *s, struct yk_frame f)
{
	const struct yk_instr *x = &s->p->op[f.op];
	uint32_t count = f.number + 1, frame;
	int e = f.number >= x->min ? visit(s, x->next, 0, f.parent) : 0;

	if (e < 0 || f.number >= x->max || !completes(s, x->target, f.depth + 1))
		return e;
	if (x->max == YK_LOOP_UNBOUNDED && count > x->min) // further counts make no difference
		count = x->min;
	e = frame_of(s, f.op, count, f.parent, &frame);
	return e < 0 ? e : visit(s, x->target, 0, frame);
}

static int call(struct yk_states *s, struct yk_frame f)
{
	const struct yk_instr *x = &s->p->op[f.op];
	uint32_t frame = f.parent;
	int e = 0;

	if (s->p->op[x->next].op != YK_OP_RETURN)
		e = frame_of(s, x->next, 0, f.parent, &frame);
	return e < 0 ? e : visit(s, x->target, 0, frame);
}

static int choose(struct yk_states *s, struct yk_frame f)
{
	const struct yk_instr *x = &s->p->op[f.op];
	int e = 0;

	for (uint32_t i = x->choices; i-- && e == 0;) { // the first one is to be followed first
		const uint32_t to = s->p->target[x->first + i];
		if (completes(s, to, f.depth))
			e = visit(s, to, 0, f.parent);
	}
	return e;
}

// Follows the listed frames until each thread waits for a byte.  A frame of RUN has the number 0
// before it begins.
static int settle(struct yk_states *s, size_t from)
{
	int e = 0;

	for (size_t visits = 0; e == 0 && s->todos && visits < MAX_VISITS; visits++) {
		const uint32_t at = s->todo[--s->todos];
		const struct yk_frame f = s->frame[at];
		switch (s->p->op[f.op].op) {
		case YK_OP_END: e = add_thread(s, at, from); break;
		case YK_OP_RETURN: e = visit_frame(s, f.parent); break;
		case YK_OP_RUN: e = run(s, f.op, s->p->op[f.op].start, f.parent, from); break;
		case YK_OP_CALL: e = call(s, f); break;
		case YK_OP_CHOICE: e = choose(s, f); break;
		case YK_OP_LOOP: e = loop(s, f); break;
		}
	}
	s->todos = 0;
	return e;
}

// Starts a step; the stamp marks the states it has visited.
static void begin_step(struct yk_states *s)
{
	if (!++s->stamp) {
		for (size_t i = 0; i < s->frames; i++)
			s->frame[i].stamp = 0;
		s->stamp = 1;
	}
}

// The number of a thread of RUN after a byte; 0: it ends.
static uint32_t number_after(const struct yk_program *p, const struct yk_frame *f, uint8_t byte)
{
	const struct yk_instr *x = &p->op[f->op];
	const uint32_t at = yk_run_state(f->number), next = yk_dfa_step(&p->dfa, at, byte);

	if (!x->min || !next)
		return next;
	const uint32_t count =
		(f->number >> YK_COUNT_SHIFT) + (p->dfa.state[at].between && byte != '"');
	return count + p->dfa.state[next].left <= x->max ? next | count << YK_COUNT_SHIFT : 0;
}

int yk_states_find(struct yk_states *s, uint32_t state, uint32_t class, uint32_t *to)
{
	const struct yk_state x = s->state[state];
	const size_t from = s->threads;
	const uint8_t byte = s->byte_of[class];
	int e = 0;

	begin_step(s);
	for (uint32_t i = 0; i < x.threads && e == 0; i++) {
		const struct yk_frame f = s->frame[s->thread[x.thread + i]];
		if (s->p->op[f.op].op != YK_OP_RUN)
			continue;
		const uint32_t next = number_after(s->p, &f, byte);
		if (++s->work > MAX_WORK)
			e = YOKE_ERANGE;
		else if (next)
			e = run(s, f.op, next, f.parent, from);
	}
	if (e == 0)
		e = settle(s, from);
	if (e == 0)
		e = state_of(s, from, to);
	if (e < 0) {
		s->todos = 0;
		s->threads = from;
		return e;
	}
	s->step[state * (size_t)s->classes + class] = *to;
	return 0;
}

// Has a state of an automaton an edge with a plain byte?
static bool takes_plain(const struct yk_dfa *d, uint32_t at)
{
	const struct yk_dfa_state *x = &d->state[at];

	for (uint32_t i = x->edge; i < x->edge + x->edges; i++)
		for (int c = d->edge[i].lo; c <= d->edge[i].hi; c++)
			if (yk_plain_byte((uint8_t)c))
				return true;
	return false;
}

int yk_states_plain(struct yk_states *s, uint32_t state, uint32_t *to)
{
	const struct yk_program *p = s->p;
	const struct yk_state x = s->state[state];
	uint32_t chars = 0, others = 0;
	int e = 0;

	for (uint32_t i = 0; i < x.threads; i++) {
		const struct yk_frame *f = &s->frame[s->thread[x.thread + i]];
		if (p->op[f->op].op != YK_OP_RUN)
			continue;
		if (f->op == p->char_op && f->number == p->op[p->char_op].start)
			chars++;
		else
			others += takes_plain(&p->dfa, yk_run_state(f->number));
	}
	*to = YK_STATE_UNKNOWN;
	if (others || chars > 1)
		return 0;
	*to = YK_STATE_DEAD;
	if (chars)
		e = yk_states_step(s, state, ' ', to);
	return e;
}

// ---- tables ----

static void find_classes(struct yk_states *s)
{
	bool cut[257] = { true };

	for (size_t i = 0; i < s->p->dfa.edges; i++)
		cut[s->p->dfa.edge[i].lo] = cut[s->p->dfa.edge[i].hi + 1] = true;
	for (int i = 0; i < 256; i++) {
		if (cut[i])
			s->byte_of[s->classes++] = (uint8_t)i;
		s->class_of[i] = (uint8_t)(s->classes - 1);
	}
}

// An empty table.
static int begin(struct yk_states *s, const struct yk_program *p)
{
	*s = (struct yk_states){ .p = p };
	find_classes(s);
	int e;
	if ((e = yk_grow(&s->frame, &s->frame_cap, 1, sizeof *s->frame)) < 0 ||
	    (e = yk_grow(&s->state, &s->state_cap, YK_STATE_FIRST, sizeof *s->state)) < 0 ||
	    (e = yk_grow(&s->step, &s->step_cap, YK_STATE_FIRST * (size_t)s->classes,
			 sizeof *s->step)) < 0)
		return e;
	s->frame[s->frames++] = (struct yk_frame){ 0 };
	for (; s->states < YK_STATE_FIRST; s->states++)
		s->state[s->states] = (struct yk_state){ 0 };
	for (size_t i = 0; i < YK_STATE_FIRST * (size_t)s->classes; i++)
		s->step[i] = YK_STATE_DEAD;
	return 0;
}

int yk_states_init(struct yk_states *s, const struct yk_program *p, uint32_t *start)
{
	int e = begin(s, p);

	if (e == 0) {
		begin_step(s);
		e = visit(s, p->entry, 0, 0);
	}
	if (e == 0 && (e = settle(s, 0)) == 0)
		e = state_of(s, 0, start);
	if (e < 0)
		yk_states_fini(s);
	return e;
}

void yk_states_fini(struct yk_states *s)
{
	free(s->frame);
	free(s->frame_table);
	free(s->state);
	free(s->step);
	free(s->thread);
	free(s->state_table);
	free(s->todo);
	*s = (struct yk_states){ 0 };
}

size_t yk_states_bytes(const struct yk_states *s)
{
	return s->frame_cap * sizeof *s->frame + s->frame_table_size * sizeof *s->frame_table +
	       s->state_cap * sizeof *s->state + s->step_cap * sizeof *s->step +
	       s->thread_cap * sizeof *s->thread + s->state_table_size * sizeof *s->state_table;
}

// Frames have smaller numbers than those above them, so that they are moved in order.
int yk_states_move(const struct yk_states *s, uint32_t *state, size_t n, struct yk_states *to)
{
	uint32_t *map = calloc(s->frames, sizeof *map), *moved = malloc((n + 1) * sizeof *moved);
	int e = map && moved ? begin(to, s->p) : YOKE_ENOMEM;

	for (size_t i = 0; e == 0 && i < n; i++) {
		const struct yk_state *x = &s->state[state[i]];
		for (uint32_t j = 0; j < x->threads; j++)
			for (uint32_t f = s->thread[x->thread + j]; f && !map[f];
			     f = s->frame[f].parent)
				map[f] = 1;
	}
	for (uint32_t f = 1; e == 0 && f < s->frames; f++)
		if (map[f])
			e = frame_of(to, s->frame[f].op, s->frame[f].number,
				     s->frame[f].parent ? map[s->frame[f].parent] : 0, &map[f]);
	for (size_t i = 0; e == 0 && i < n; i++) {
		const struct yk_state *x = &s->state[state[i]];
		const size_t from = to->threads;
		if ((e = yk_grow(&to->thread, &to->thread_cap, from + x->threads,
				 sizeof *to->thread)) < 0)
			break;
		for (uint32_t j = 0; j < x->threads; j++)
			to->thread[to->threads++] = map[s->thread[x->thread + j]];
		e = state_of(to, from, &moved[i]);
	}
	if (e == 0)
		memcpy(state, moved, n * sizeof *state);
	else if (map && moved)
		yk_states_fini(to);
	free(map);
	free(moved);
	return e;
}
