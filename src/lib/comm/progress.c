// SPDX-License-Identifier: Apache-2.0
// Advances the jobs of the ranks queue, on the queue's own thread or on threads that wait for a
// job.
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "base/system.h"
#include "comm/adapt.h"
#include "comm/carrier.h"
#include "comm/native.h"
#include "comm/process.h"
#include "comm/ranks.h"
#include "graph/context.h"

enum {
	YIELD_NS = 2000,        // a waiting thread first spins, from here on with sched_yield,
	SPIN_NS = 50000,        // then sleeps
	LOOK_NS = 100000000,    // interval between checks for late ranks
	POLL_NS = 100000,       // polling interval for MPI messages while a job waits for one
	IDLE_NS = 2000000,      // and while none does
	SOON = 1 << 20,         // max bytes of a job that the enqueuing thread advances itself
	SOON_NS = 1000000,      // for at most this long
	SOON_STILL_NS = 3000,   // and while there is progress within this time
	SLICE_NS = 100000       // time slice that the queue's thread requests
};

YK_PARAM(algorithm_setting, "dist.algorithm", YK_STRING, "",
	 "algorithm of collectives: tree, doubling, halving, pairwise, ring (sums of 3 or more "
		"ranks have other bits) or 2d, where it exists; empty: chosen by size");

YK_PARAM(link_setting, "dist.link", YK_STRING, "",
	 "ALPHA,BETA: delays each message between ranks by ALPHA seconds plus BETA seconds per "
		"byte, one after the other, to simulate a slow link. Empty: no "
		"delay", .debug = true);

bool yk_ranks_link(double *alpha, double *beta)
{
	const char *text = yk_param_str(&link_setting);
	char end;
	*alpha = *beta = 0;
	return *text && yk_sscanf(text, "%lf,%lf%c", alpha, beta, &end) == 2 && *alpha >= 0 &&
	       *alpha < 10 && *beta >= 0 && *beta < 1;
}

static bool has_link(void)
{
	return *yk_param_str(&link_setting);
}

const char *yk_ranks_algorithm(void)
{
	return yk_param_str(&algorithm_setting);
}

// ---- advancing jobs ----

static void take_incoming(struct yk_ranks *q)
{
	struct yk_job **end = &q->active;
	if (q->taken == atomic_load(&q->enqueued))
		return;
	while (*end)
		end = &(*end)->next;
	pthread_mutex_lock(&q->lock);
	*end = q->inbox.first;
	q->inbox.first = NULL;
	q->inbox.end = &q->inbox.first;
	q->taken = atomic_load(&q->enqueued);
	pthread_mutex_unlock(&q->lock);
}

// Whether an earlier job in the same order is not over.
static bool is_held_up(struct yk_ranks *q, const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	struct yoke_group *g = t->group;
	uint64_t *pass = t->what == YK_DO_SEND ? &g->send_pass[t->root] :
			 t->what == YK_DO_RECV ? &g->recv_pass[t->root] :
						 &g->pass;
	const bool held = *pass == q->pass;
	*pass = q->pass;
	return held;
}

// Lets the next job of the same order begin.
static void release_next(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	struct yoke_group *g = t->group;
	*(t->what == YK_DO_SEND ? &g->send_pass[t->root] :
	  t->what == YK_DO_RECV ? &g->recv_pass[t->root] :
				  &g->pass) = 0;
}

static void finish(struct yk_ranks *q, struct yk_job *j, int code, const char *why)
{
	yk_ranks_history_add(&q->history, j, code);
	if (j->result) {
		j->result->code = code;
		if (code)
			snprintf(j->result->why, sizeof j->result->why, "%s", why);
	} else if (code) {
		pthread_mutex_lock(&q->lock);
		if (!q->failure.job || q->failure.job <= q->failure.reported) {
			q->failure.job = j->number;
			q->failure.code = code;
			snprintf(q->failure.why, sizeof q->failure.why, "%s", why);
		}
		pthread_mutex_unlock(&q->lock);
	}
	yk_course_free(j->course);
	yk_native_job_fini(j);
	free(j);
}

typedef bool advance_fn(struct yk_job *, int *code, char why[YK_WHY]);

// Selects the transport: posted operands, messages, or shared memory.
static advance_fn *way_of(const struct yk_job *j)
{
	const bool by_message = *yk_ranks_algorithm() || has_link();
	if (j->place)
		return yk_shared_advance;
	if (!by_message && yk_post_takes(j->task))
		return yk_post_advance;
	return j->task->group->rendezvous->apart || (by_message && j->task->group->ranks > 1) ?
		       yk_message_advance :
		       yk_shared_advance;
}

// Advances all jobs as far as possible; returns true if anything changed. The caller holds `drive`.
static bool move_on(struct yk_ranks *q)
{
	char why[YK_WHY] = "";
	bool moved = false, ended = false;
	struct yk_carrier *c = atomic_load(&q->carrier);
	advance_fn *last = NULL;
	if (c)
		moved |= yk_carrier_step(c);
	take_incoming(q);
	q->pass++;
	q->timer.next = 0;
	for (struct yk_job **at = &q->active; *at;) {
		struct yk_job *j = *at;
		int code = 0;
		if (is_held_up(q, j)) {
			at = &j->next;
			continue;
		}
		if (!j->begun) // settings may have changed since
			j->way = way_of(j);
		last = j->way;
		moved |= last(j, &code, why);
		if (j->phase != YK_OVER) {
			at = &j->next;
			continue;
		}
		release_next(j);
		*at = j->next;
		finish(q, j, code, why);
		ended = true;
	}
	atomic_store_explicit(&q->timer.due, q->timer.next, memory_order_relaxed);
	if (c && moved)
		yk_carrier_step(c);
	q->waits = q->active && !q->active->next && q->active->begun && last == yk_post_advance;
	if (!ended)
		return moved;
	atomic_store(&q->over, q->active ? q->active->number - 1 : q->taken);
	yk_wakeup_ring(q->wakeup);
	return true;
}

bool yk_ranks_help(struct yk_ranks *q)
{
	if (pthread_mutex_trylock(&q->drive))
		return false;
	bool moved = move_on(q);
	pthread_mutex_unlock(&q->drive);
	return moved;
}

static void watch(struct yk_ranks *q)
{
	pthread_mutex_lock(&q->drive);
	if (q->active)
		yk_world_check(q);
	if (q->world)
		atomic_store_explicit(&q->world->rendezvous->slot[q->world->rank].beat,
				      yk_nanoseconds(), memory_order_relaxed);
	for (struct yk_job *j = q->active; j; j = j->next)
		yk_job_watch(j);
	pthread_mutex_unlock(&q->drive);
}

// The same, after waiting for the thread that is currently advancing jobs.
static bool help_after(struct yk_ranks *q)
{
	pthread_mutex_lock(&q->drive);
	bool moved = move_on(q);
	pthread_mutex_unlock(&q->drive);
	return moved;
}

// How long to sleep if the wakeup is not rung.
static uint64_t sleeps(const struct yk_ranks *q, bool polls)
{
	const uint64_t due = atomic_load(&q->timer.due), now = yk_nanoseconds();
	return polls || atomic_load(&q->away) ? POLL_NS :
	       !due                           ? LOOK_NS :
	       due > now                      ? due - now :
						0;
}

// One step of waiting for a job: spins at first, then sleeps until something happens. *began: when
// the wait began; 0 after progress. far: only another thread may call MPI.
static void wait_step(struct yk_ranks *q, uint64_t *began, uint64_t job, bool far, bool polls)
{
	const uint64_t now = yk_nanoseconds();
	*began = *began ? *began : now;
	if (now - *began < SPIN_NS) {
		yk_pause();
		if (now - *began > YIELD_NS)
			sched_yield(); // the rank it waits for may need this processor
		return;
	}
	struct yk_wakeup *wakeup = atomic_load(&q->wakeup);
	const uint32_t rings = yk_wakeup_register(wakeup);
	const bool moved = !far && help_after(q);
	if (!moved && atomic_load(&q->over) < job && !atomic_load(&q->quit))
		yk_wakeup_sleep(wakeup, rings, sleeps(q, polls));
	yk_wakeup_deregister(wakeup);
	if (moved) {
		*began = 0;
		return;
	}
	if (now - *began > LOOK_NS && now - atomic_load(&q->timer.watched) > LOOK_NS / 2) {
		atomic_store(&q->timer.watched, now);
		watch(q);
	}
}

bool yk_ranks_is_open(const struct yk_ranks *q)
{
	const struct yk_carrier *c = atomic_load(&q->carrier);
	return !c || yk_carrier_by_turns(c);
}

// The calling thread stops advancing jobs.
static void stop_helping(struct yk_ranks *q)
{
	if (atomic_fetch_sub(&q->helpers, 1) == 1 &&
	    atomic_load(&q->over) < atomic_load(&q->enqueued))
		yk_wakeup_ring(&q->duty);
}

static void wait_for(struct yk_ranks *q, uint64_t job)
{
	uint64_t began = 0;
	if (!yk_ranks_is_open(q)) {
		while (atomic_load(&q->over) < job)
			wait_step(q, &began, job, true, false);
		return;
	}
	atomic_fetch_add(&q->helpers, 1);
	while (atomic_load(&q->over) < job)
		if (yk_ranks_help(q))
			began = 0;
		else if (atomic_load(&q->over) < job)
			wait_step(q, &began, job, false, atomic_load(&q->carrier));
	stop_helping(q);
}

void yk_ranks_wait(struct yk_ranks *q, uint64_t job)
{
	if (atomic_load(&q->over) >= job)
		return;
	const uint64_t began = yk_nanoseconds();
	wait_for(q, job);
	atomic_fetch_add_explicit(&q->waited, yk_nanoseconds() - began, memory_order_relaxed);
}

// Whether there is nothing to do, or another thread advances the jobs.
static bool is_idle(const struct yk_ranks *q)
{
	return atomic_load(&q->helpers) || atomic_load(&q->over) == atomic_load(&q->enqueued);
}

static void rest(struct yk_ranks *q)
{
	const uint32_t rings = yk_wakeup_register(&q->duty);
	const struct yk_carrier *c = atomic_load(&q->carrier);
	if (!atomic_load(&q->quit) && is_idle(q))
		yk_wakeup_sleep(&q->duty, rings, c ? IDLE_NS : 10 * (uint64_t)LOOK_NS);
	yk_wakeup_deregister(&q->duty);
}

void *yk_ranks_serve(void *arg)
{
	struct yk_ranks *q = arg;
	uint64_t began = 0;
	// the rank's CPU device keeps the processors busy, while this thread needs one briefly
	// and soon after an event
	yk_thread_slice(SLICE_NS);
	while (!atomic_load(&q->quit)) {
		struct yk_carrier *c = atomic_load(&q->carrier);
		const bool idle = is_idle(q);
		if (c && yk_carrier_requested(c))
			yk_carrier_open(c);
		if ((c || !idle) && yk_ranks_help(q)) {
			began = 0;
		} else if (idle) {
			rest(q);
			began = 0;
		} else {
			wait_step(q, &began, atomic_load(&q->over) + 1, false, c != NULL);
		}
	}
	if (atomic_load(&q->carrier))
		yk_carrier_end(q->carrier);
	return NULL;
}

// ---- jobs ----

static uint64_t next_of(const struct yk_task *t)
{
	struct yoke_group *g = t->group;
	return t->what == YK_DO_SEND ? g->sent[t->root]++ :
	       t->what == YK_DO_RECV ? g->received[t->root]++ :
				       g->jobs++;
}

// Advances a short job on the enqueuing thread, so that other ranks need not wait for this one.
// Returns false if there are several jobs, if the job is larger, or if the other ranks have not
// reached it. The queue's thread then continues unless a thread waits for the job. Waking the
// queue's thread would take longer than a short job itself.
static bool is_begun(struct yk_ranks *q)
{
	if (atomic_load(&q->carrier) || pthread_mutex_trylock(&q->drive))
		return false;
	take_incoming(q);
	const struct yk_job *j = q->active;
	const bool few = j && !j->next && way_of(j) == yk_post_advance,
		   some = j && !j->next && !j->place && !has_link() &&
			  yk_task_bytes(j->task) <= SOON;
	uint64_t began = 0, moved = 0, now = 0;
	do {
		const bool moves = (few || some) && move_on(q);
		if (few || !some)
			break;
		now = yk_nanoseconds();
		began = began ? began : now;
		moved = moves || !moved ? now : moved;
	} while (q->active && now - moved < SOON_STILL_NS && now - began < SOON_NS);
	const bool begun = (few && q->waits) || ((few || some) && !q->active);
	pthread_mutex_unlock(&q->drive);
	return begun;
}

static void enqueue(struct yk_ranks *q, struct yk_job *j)
{
	pthread_mutex_lock(&q->lock);
	j->number = atomic_load(&q->enqueued) + 1;
	*q->inbox.end = j;
	q->inbox.end = &j->next;
	atomic_store(&q->enqueued, j->number);
	pthread_mutex_unlock(&q->lock);
	if (!atomic_load(&q->helpers) && !is_begun(q)) {
		yk_wakeup_ring(&q->duty); // it may be idle, or waiting for other ranks
		yk_wakeup_ring(atomic_load(&q->wakeup));
	}
}

static int add(struct yk_ranks *q, struct yk_task *t, uint32_t nin, char *const *in, uint32_t nout,
	       char *const *out, struct yk_result *result)
{
	struct yk_job *j = malloc(sizeof *j + (nin + nout + (size_t)1) * sizeof *in);
	if (!j)
		return YOKE_ENOMEM;
	char **at = (char **)(j + 1);
	*j = (struct yk_job){
		.task = t, .result = result, .in = at, .out = at + nin, .sequence = next_of(t)
	};
	if (t->group->adapt && t->what == YK_DO_ALL_REDUCE)
		j->applied = (uint8_t)yk_adapt_how(t->group->adapt, yk_task_bytes(t));
	for (uint32_t i = 0; i < nin; i++)
		at[i] = in[i];
	for (uint32_t i = 0; i < nout; i++)
		at[nin + i] = out[i];
	enqueue(q, j);
	return 0;
}

int yk_ranks_add(struct yk_ranks *q, struct yk_task *t, uint32_t nin, char *const *in,
		 uint32_t nout, char *const *out)
{
	return add(q, t, nin, in, nout, out, NULL);
}

int yk_ranks_do(struct yk_ranks *q, struct yk_task *t, uint32_t nin, char *const *in, uint32_t nout,
		char *const *out, struct yk_result *result)
{
	const bool helps = yk_ranks_is_open(q);
	if (helps) // before the job is added, so that the queue's thread is not woken
		atomic_fetch_add(&q->helpers, 1);
	const int err = add(q, t, nin, in, nout, out, result);
	if (!err && helps)
		yk_ranks_help(q);
	if (!err)
		yk_ranks_wait(q, atomic_load(&q->enqueued));
	if (helps)
		stop_helping(q);
	return err;
}

int yk_ranks_add_device(struct yk_ranks *q, struct yk_task *t, uint32_t nin, uint32_t nout,
			const struct yk_address *place)
{
	const size_t bytes = (nin + nout + (size_t)1) * sizeof *place;
	struct yk_job *j = malloc(sizeof *j + bytes);
	if (!j)
		return YOKE_ENOMEM;
	memcpy(j + 1, place, bytes);
	*j = (struct yk_job){ .task = t,
			      .place = (struct yk_address *)(j + 1),
			      .nin = nin,
			      .nout = nout,
			      .sequence = next_of(t) };
	enqueue(q, j);
	return 0;
}

void yk_ranks_break(struct yk_ranks *q, int code, const char *why)
{
	for (struct yoke_group *g = q->groups; g; g = g->next)
		yk_rendezvous_break(g->rendezvous, code, "rank %u of %s failed: %s: %.250s",
				    g->rank, g->name, yoke_error_name(code), why);
}
