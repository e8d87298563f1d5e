// SPDX-License-Identifier: Apache-2.0
// Waits: which steps of other streams each step must wait for, and which steps are known to be done
// when it begins (vector clocks: Fidge 1988, Mattern 1989).
//
// Steps of a stream run in order, except collectives of different groups.  A step that reads a
// result of another stream waits for that step's event, and then also knows all steps known to that
// step. Copies between memories, and collectives, wait at least for the work of the steps' queue
// before the plan, because their memory was in use there.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/work.h"

struct waits {
	struct yk_work *w;
	struct yk_plan *p;
	struct yk_clock now[YK_STREAMS]; // after the last step of each stream
	uint32_t count[YK_STREAMS];      // 1 + index of that step, 0: none yet
	bool began[YK_STREAMS];          // the stream has waited for the work before the plan
	uint32_t *down;                // steps that download spilled values
	uint32_t downs, known;         // the device knows down[0 .. known - 1] to be done
	uint32_t shared, before;       // the last reduction to shards and the one before it,
				       // YK_NIL: none
	uint32_t *writer;              // by base value: the last step that wrote it, YK_NIL: none
};

// Records that stream k is done with its steps before `over`.
static void learn(struct yk_clock *c, int k, uint32_t over)
{
	if (c->over[k] < over)
		c->over[k] = over;
}

// Makes step `s` wait for the event; YK_NIL: for work before the plan.
static int add_wait(struct waits *t, uint32_t s, uint32_t event)
{
	struct yk_plan *p = t->p;
	if (yk_grow(&p->sync.wait, &p->sync.wait_cap, p->sync.waits + 1, sizeof *p->sync.wait) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	p->sync.wait[p->sync.waits++] = event;
	p->step[s].waits++;
	return 0;
}

static uint32_t event_of(struct waits *t, uint32_t s)
{
	struct yk_step *step = &t->p->step[s];
	if (step->event == YK_NIL)
		step->event = t->p->sync.events++;
	return step->event;
}

// Makes step s wait for step `other`, of another stream.
static int run_after(struct waits *t, uint32_t s, uint32_t other)
{
	struct yk_clock *c = &t->w->schedule.clock[s];
	int stream = t->p->step[other].stream;
	if (c->over[stream] > other)
		return 0;
	for (int k = 0; k < YK_STREAMS; k++)
		learn(c, k, t->w->schedule.clock[other].over[k]);
	learn(c, stream, other + 1);
	t->began[t->p->step[s].stream] |= t->began[stream];
	return add_wait(t, s, event_of(t, other));
}

bool yk_may_overtake(const struct yk_step *first, const struct yk_step *second)
{
	const struct yk_ranked a = yk_ranked(first->op.attr), b = yk_ranked(second->op.attr);
	const bool ends = first->opcode == YK_RANKS_SEND || first->opcode == YK_RANKS_RECV ||
			  second->opcode == YK_RANKS_SEND || second->opcode == YK_RANKS_RECV;
	return a.group != b.group ||
	       (ends && (first->opcode != second->opcode || a.peer != b.peer));
}

enum { LAG = 8 }; // steps by which the device runs ahead before it waits to reuse memory of a copy

static bool is_spilled(const struct waits *t, uint32_t s)
{
	return t->w->node[t->p->step[s].node].cause == yk_spilled;
}

// A spilled value's memory is reused once its download is known to be done; its upload takes memory
// no earlier than it runs.
static int wait_spilled(struct waits *t, uint32_t s)
{
	const struct yk_step *step = &t->p->step[s];
	uint32_t other = YK_NIL;
	if (step->stream == YK_STREAM_DEVICE)
		while (t->known < t->downs && t->down[t->known] + LAG <= s)
			other = t->down[t->known++];
	else if (step->kind == YK_STEP_UP && is_spilled(t, s) && t->count[YK_STREAM_DEVICE])
		other = t->count[YK_STREAM_DEVICE] - 1;
	else if (step->kind == YK_STEP_DOWN && is_spilled(t, s))
		t->down[t->downs++] = s;
	return other == YK_NIL ? 0 : run_after(t, s, other);
}

// After each reduction to shards, the device waits for the reduction before it, so that at most two
// hold their operands.
static int wait_shared(struct waits *t, uint32_t s)
{
	const struct yk_step *step = &t->p->step[s];
	const uint32_t other = t->before;
	if (step->kind == YK_STEP_RANKS && step->opcode == YK_RANKS_REDUCE_SHARDS) {
		t->before = t->shared;
		t->shared = s;
	}
	if (step->stream != YK_STREAM_DEVICE || other == YK_NIL)
		return 0;
	t->before = YK_NIL;
	return run_after(t, s, other);
}

static int visit(struct waits *t, uint32_t s)
{
	struct yk_plan *p = t->p;
	struct yk_step *step = &p->step[s];
	struct yk_clock *c = &t->w->schedule.clock[s];
	int err = 0;
	*c = t->now[step->stream];
	step->wait = (uint32_t)p->sync.waits;
	for (uint32_t i = 0; i < step->views && !err; i++) {
		const struct yk_ref *r = &p->ref[step->view + i];
		if (r->where != YK_AT_ARENA || t->writer[r->index] == YK_NIL)
			continue;
		const uint32_t writer = t->writer[r->index];
		if (p->step[writer].stream != step->stream)
			err = run_after(t, s, writer);
		else if (step->stream == YK_STREAM_RANKS && yk_may_overtake(&p->step[writer], step))
			err = add_wait(t, s, event_of(t, writer));
	}
	if (!err)
		err = wait_spilled(t, s);
	if (!err)
		err = wait_shared(t, s);
	// a queue that owns no memory
	bool own = step->stream != YK_STREAM_DEVICE && step->stream != YK_STREAM_CPU;
	if (!err && own && !t->began[step->stream]) {
		err = add_wait(t, s, YK_NIL);
		t->began[step->stream] = true;
	}
	uint32_t results =
		step->kind == YK_STEP_RUN || step->kind == YK_STEP_RANKS ? step->op.nout : 1;
	for (uint32_t i = 0; i < results; i++)
		if (p->ref[step->view + i].where == YK_AT_ARENA)
			t->writer[p->ref[step->view + i].index] = s;
	t->now[step->stream] = *c;
	learn(&t->now[step->stream], step->stream, s + 1);
	t->count[step->stream] = s + 1;
	return err;
}

int yk_waits(struct yk_work *w)
{
	struct yk_plan *p = w->plan;
	struct waits t = { .w = w, .p = p, .began = { [YK_STREAM_DEVICE] = true }, .shared = YK_NIL,
			   .before = YK_NIL };
	int err = 0;
	w->schedule.clock = calloc(p->steps + 1, sizeof *w->schedule.clock);
	t.writer = malloc((w->g.values + 1) * sizeof *t.writer);
	t.down = malloc((p->steps + 1) * sizeof *t.down);
	if (!w->schedule.clock || !t.writer || !t.down)
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	else
		memset(t.writer, 0xff, (w->g.values + 1) * sizeof *t.writer);
	for (uint32_t s = 0; s < p->steps && !err; s++)
		err = visit(&t, s);
	// the run ends when all streams have finished
	for (int k = 0; k < YK_STREAMS && !err; k++) {
		p->sync.last[k] = YK_NIL;
		if (k == YK_STREAM_DEVICE || !t.count[k])
			continue;
		p->sync.last[k] = event_of(&t, t.count[k] - 1);
		if (t.now[YK_STREAM_DEVICE].over[k] < t.count[k])
			p->sync.unjoined |= 1u << k;
	}
	free(t.writer);
	free(t.down);
	return err;
}
