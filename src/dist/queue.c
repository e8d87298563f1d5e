// SPDX-License-Identifier: Apache-2.0
// The ranks queue: a table of the core's own, as a backend has one, for the slot RANKS of plans.
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/param.h"
#include "dist/carrier.h"
#include "dist/native.h"
#include "dist/process.h"
#include "dist/ranks.h"
#include "plan/plan.h"

enum {
	YIELD_NS = 2000,        // a wait looks for news without a pause that long ..
	SPIN_NS = 50000,        // .. letting others have the processor that long, and then sleeps ..
	LOOK_NS = 100000000,    // .. and that long until it looks who is late
	POLL_NS = 100000,       // between looks for messages of MPI, when one is waited for ..
	IDLE_NS = 2000000       // .. and when none is
};

YK_PARAM(algorithm_setting, "dist.algorithm", YK_STRING, "",
	 "how ranks do things together: tree, doubling, halving, pairwise, ring or 2d, where there is such a way; "
	 "empty: by size");

YK_PARAM(link_setting, "dist.link", YK_STRING, "",
	 "ALPHA,BETA: messages between ranks take so many seconds, and so many a byte, one after the other; to see what a slow "
	 "link does. Empty: as long as they take");

bool yk_ranks_link(double *alpha, double *beta)
{
	const char *text = yk_param_str(&link_setting);
	char end;
	*alpha = *beta = 0;
	return *text && sscanf(text, "%lf,%lf%c", alpha, beta, &end) == 2 && *alpha >= 0 && *alpha < 10 && *beta >= 0 &&
	       *beta < 1;
}

static bool has_link(void)
{
	return *yk_param_str(&link_setting);
}

const char *yk_ranks_algorithm(void)
{
	return yk_param_str(&algorithm_setting);
}

// ---- moving jobs on ----

static void take_incoming(struct yk_ranks *q)
{
	struct yk_job **end = &q->active;
	if (q->taken == atomic_load(&q->enqueued))
		return;
	while (*end)
		end = &(*end)->next;
	pthread_mutex_lock(&q->lock);
	*end = q->incoming;
	q->incoming = NULL;
	q->incoming_end = &q->incoming;
	q->taken = atomic_load(&q->enqueued);
	pthread_mutex_unlock(&q->lock);
}

// Is a job before this one, of those that go in one order with it, not over?
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

// The next job of the same order may begin.
static void let_go(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	struct yoke_group *g = t->group;
	*(t->what == YK_DO_SEND ? &g->send_pass[t->root] :
	  t->what == YK_DO_RECV ? &g->recv_pass[t->root] :
				  &g->pass) = 0;
}

static void finish(struct yk_ranks *q, struct yk_job *j, int code, const char *why)
{
	if (j->result) {
		j->result->code = code;
		snprintf(j->result->why, sizeof j->result->why, "%s", why);
	} else if (code) {
		pthread_mutex_lock(&q->lock);
		if (!q->failed || q->failed <= q->told) {
			q->failed = j->number;
			q->code = code;
			snprintf(q->why, sizeof q->why, "%s", why);
		}
		pthread_mutex_unlock(&q->lock);
	}
	yk_course_free(j->course);
	yk_native_job_fini(j);
	free(j);
}

typedef bool advance_fn(struct yk_job *, int *code, char why[YK_WHY]);

// By what is posted, by messages, or by work in each other's memory.
static advance_fn *way_of(const struct yk_job *j)
{
	const bool told = *yk_ranks_algorithm() || has_link();
	if (j->place)
		return yk_shared_advance;
	if (!told && yk_post_takes(j->task))
		return yk_post_advance;
	return j->task->group->hub->apart || (told && j->task->group->ranks > 1) ? yk_message_advance : yk_shared_advance;
}

// All jobs, as far as they go now; true: something changed.  With `drive`.
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
	for (struct yk_job **at = &q->active; *at;) {
		struct yk_job *j = *at;
		int code = 0;
		if (is_held_up(q, j)) {
			at = &j->next;
			continue;
		}
		if (!j->begun) // settings may change meanwhile
			j->way = way_of(j);
		last = j->way;
		moved |= last(j, &code, why);
		if (j->phase != YK_OVER) {
			at = &j->next;
			continue;
		}
		let_go(j);
		*at = j->next;
		finish(q, j, code, why);
		ended = true;
	}
	if (c && moved)
		yk_carrier_step(c);
	q->waits = q->active && !q->active->next && q->active->begun && last == yk_post_advance;
	if (!ended)
		return moved;
	pthread_mutex_lock(&q->lock);
	const struct yk_job *first = q->active ? q->active : q->incoming;
	atomic_store(&q->over, first ? first->number - 1 : atomic_load(&q->enqueued));
	pthread_mutex_unlock(&q->lock);
	yk_bell_ring(q->bell);
	return true;
}

// What this thread can do for the jobs; false: nothing now.
static bool help(struct yk_ranks *q)
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
		yk_world_look(q);
	for (struct yk_job *j = q->active; j; j = j->next)
		yk_job_watch(j);
	pthread_mutex_unlock(&q->drive);
}

static void pause_briefly(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

// The same, behind whoever is at it.
static bool help_behind(struct yk_ranks *q)
{
	pthread_mutex_lock(&q->drive);
	bool moved = move_on(q);
	pthread_mutex_unlock(&q->drive);
	return moved;
}

// When a wait for a job began, 0: something happened since.  Spins, then sleeps until something happens.  far: another
// thread calls MPI.
static void wait_a_bit(struct yk_ranks *q, uint64_t *began, uint64_t job, bool far, bool polls)
{
	const uint64_t now = yk_nanoseconds();
	*began = *began ? *began : now;
	if (now - *began < SPIN_NS) {
		pause_briefly();
		if (now - *began > YIELD_NS)
			sched_yield(); // whom it waits for may have this processor
		return;
	}
	struct yk_bell *bell = atomic_load(&q->bell);
	const uint32_t rings = yk_bell_lie(bell);
	const bool moved = !far && help_behind(q);
	if (!moved && atomic_load(&q->over) < job && !atomic_load(&q->quit))
		yk_bell_sleep(bell, rings, polls || has_link() || atomic_load(&q->away) ? POLL_NS : LOOK_NS);
	yk_bell_rise(bell);
	if (moved) {
		*began = 0;
		return;
	}
	if (now - *began > LOOK_NS && now - atomic_load(&q->watched) > LOOK_NS / 2) {
		atomic_store(&q->watched, now);
		watch(q);
	}
}

void yk_ranks_wait(struct yk_ranks *q, uint64_t job)
{
	uint64_t began = 0;
	if (atomic_load(&q->over) >= job)
		return;
	if (atomic_load(&q->carrier)) { // MPI is the queue's thread's alone
		while (atomic_load(&q->over) < job)
			wait_a_bit(q, &began, job, true, false);
		return;
	}
	atomic_fetch_add(&q->helpers, 1);
	while (atomic_load(&q->over) < job)
		if (help(q))
			began = 0;
		else if (atomic_load(&q->over) < job)
			wait_a_bit(q, &began, job, false, false);
	if (atomic_fetch_sub(&q->helpers, 1) == 1 && atomic_load(&q->over) < atomic_load(&q->enqueued))
		yk_bell_ring(&q->duty);
}

// Is nothing to be done, or somebody else at it?
static bool is_idle(const struct yk_ranks *q)
{
	return atomic_load(&q->helpers) || atomic_load(&q->over) == atomic_load(&q->enqueued);
}

static void rest(struct yk_ranks *q)
{
	const uint32_t rings = yk_bell_lie(&q->duty);
	const struct yk_carrier *c = atomic_load(&q->carrier);
	if (!atomic_load(&q->quit) && is_idle(q))
		yk_bell_sleep(&q->duty, rings, c ? IDLE_NS : 10 * (uint64_t)LOOK_NS);
	yk_bell_rise(&q->duty);
}

static void *serve(void *arg)
{
	struct yk_ranks *q = arg;
	uint64_t began = 0;
	while (!atomic_load(&q->quit)) {
		struct yk_carrier *c = atomic_load(&q->carrier);
		const bool idle = is_idle(q);
		if (c && yk_carrier_asked(c))
			yk_carrier_open(c);
		if ((c || !idle) && help(q)) {
			began = 0;
		} else if (idle) {
			rest(q);
			began = 0;
		} else {
			wait_a_bit(q, &began, atomic_load(&q->over) + 1, false, c != NULL);
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
	return t->what == YK_DO_SEND ? g->sent[t->root]++ : t->what == YK_DO_RECV ? g->received[t->root]++ : g->jobs++;
}

// Does what there is to do for a job of few bytes, so that others need not wait for this rank; false: there are more jobs,
// or larger ones, which are the queue's thread's until somebody waits for them.
static bool is_begun(struct yk_ranks *q)
{
	if (atomic_load(&q->carrier) || pthread_mutex_trylock(&q->drive))
		return false;
	take_incoming(q);
	const struct yk_job *j = q->active;
	const bool few = j && !j->next && way_of(j) == yk_post_advance;
	if (few)
		move_on(q);
	const bool begun = few && (!q->active || q->waits);
	pthread_mutex_unlock(&q->drive);
	return begun;
}

static void enqueue(struct yk_ranks *q, struct yk_job *j)
{
	pthread_mutex_lock(&q->lock);
	j->number = atomic_load(&q->enqueued) + 1;
	*q->incoming_end = j;
	q->incoming_end = &j->next;
	atomic_store(&q->enqueued, j->number);
	pthread_mutex_unlock(&q->lock);
	if (!atomic_load(&q->helpers) && !is_begun(q)) {
		yk_bell_ring(&q->duty); // its thread has nothing to do, or waits for what others do
		yk_bell_ring(atomic_load(&q->bell));
	}
}

int yk_ranks_add(struct yk_ranks *q, struct yk_task *t, uint32_t nin, char *const *in, uint32_t nout,
		 char *const *out, struct yk_result *result)
{
	struct yk_job *j = malloc(sizeof *j + (nin + nout + (size_t)1) * sizeof *in);
	if (!j)
		return YOKE_ENOMEM;
	char **at = (char **)(j + 1);
	*j = (struct yk_job){ .task = t, .result = result, .in = at, .out = at + nin, .sequence = next_of(t) };
	for (uint32_t i = 0; i < nin; i++)
		at[i] = in[i];
	for (uint32_t i = 0; i < nout; i++)
		at[nin + i] = out[i];
	enqueue(q, j);
	return 0;
}

int yk_ranks_add_places(struct yk_ranks *q, struct yk_task *t, uint32_t nin, uint32_t nout, const struct yk_address *place)
{
	const size_t bytes = (nin + nout + (size_t)1) * sizeof *place;
	struct yk_job *j = malloc(sizeof *j + bytes);
	if (!j)
		return YOKE_ENOMEM;
	memcpy(j + 1, place, bytes);
	*j = (struct yk_job){ .task = t, .place = (struct yk_address *)(j + 1), .nin = nin, .nout = nout,
			      .sequence = next_of(t) };
	enqueue(q, j);
	return 0;
}

void yk_ranks_break(struct yk_ranks *q, int code, const char *why)
{
	for (struct yoke_group *g = q->groups; g; g = g->next)
		yk_hub_break(g->hub, code, "rank %u of %s failed: %s: %.250s", g->rank, g->name, yoke_error_name(code),
			     why);
}

// ---- tasks ----

static const uint8_t what_of[] = {
	[YK_RANKS_ALL_REDUCE] = YK_DO_ALL_REDUCE, [YK_RANKS_REDUCE_SCATTER] = YK_DO_REDUCE_SCATTER,
	[YK_RANKS_ALL_GATHER] = YK_DO_ALL_GATHER, [YK_RANKS_BROADCAST] = YK_DO_BROADCAST,
	[YK_RANKS_REDUCE] = YK_DO_REDUCE,         [YK_RANKS_ALL_TO_ALL] = YK_DO_ALL_TO_ALL,
	[YK_RANKS_SHARES] = YK_DO_GATHER_SHARES, [YK_RANKS_REDUCE_SHARES] = YK_DO_REDUCE_SHARES,
	[YK_RANKS_SEND] = YK_DO_SEND,             [YK_RANKS_RECV] = YK_DO_RECV,
};

void yk_task_name(struct yk_task *t, const struct yoke_view *first)
{
	static const char *const kinds[] = { "", " sum", " max", " min" };
	char shape[64] = "", end[24] = "";
	int n = 0, most = (int)sizeof shape - 1;
	int64_t all = 0;
	const bool ends = t->what == YK_DO_SEND || t->what == YK_DO_RECV;
	for (uint32_t i = 0; i < t->tensors; i++)
		all += t->count[i];
	if (t->tensors == 1 && first)
		for (int i = 0; i < first->rank && n < most; i++)
			n += snprintf(shape + n, (size_t)(most - n), "%s%lld", i ? "," : "", (long long)first->dims[i]);
	else if (t->tensors)
		snprintf(shape, sizeof shape, "%lld", (long long)all);
	if (ends || t->what == YK_DO_BROADCAST || t->what == YK_DO_REDUCE)
		snprintf(end, sizeof end, "%s %u", ends ? "with" : "root", t->root);
	if (t->what == YK_DO_BARRIER)
		snprintf(t->text, sizeof t->text, "barrier");
	else if (t->tensors == 1)
		snprintf(t->text, sizeof t->text, "%s%s %s [%s]%s%s", yk_collective_name[t->what], kinds[t->kind],
			 yoke_dtype_name(t->dtype), shape, *end ? " " : "", end);
	else
		snprintf(t->text, sizeof t->text, "%s%s %s of %u tensors, %s elements%s%s", yk_collective_name[t->what],
			 kinds[t->kind], yoke_dtype_name(t->dtype), t->tensors, shape, *end ? ", " : "", end);
	const uint32_t facts[] = { ends ? 0 : t->what, t->kind, t->dtype, ends ? 0 : t->root, t->tensors, t->where };
	t->hash = yk_hash(t->count, t->tensors * sizeof *t->count, yk_hash(facts, sizeof facts, 0));
}

static int64_t elements(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan, void **handle,
		   uint64_t *workspace)
{
	const struct yk_ranked r = yk_ranked(op->attr);
	struct yoke_group *g = yk_group_ref((uint64_t)r.group);
	(void)device;
	(void)impl;
	(void)plan;
	if (!g)
		return yk_fail(YOKE_EINVAL, "its group was freed");
	const bool alone = op->code == (YK_STEP_RANKS_CODE | YK_RANKS_SHARES) && r.whole; // there is the rank's share only
	const struct yoke_view *v = alone || op->code == (YK_STEP_RANKS_CODE | YK_RANKS_RECV) ? op->out : op->in;
	const uint32_t tensors = op->list ? op->list : 1;
	struct yk_task *t = calloc(1, sizeof *t + tensors * sizeof *t->count);
	if (!t) {
		yk_group_unref(g);
		return yk_fail(YOKE_ENOMEM, "no memory for a collective");
	}
	*t = (struct yk_task){ .group = g, .what = what_of[op->code & ~YK_STEP_RANKS_CODE], .kind = (uint8_t)r.kind,
			       .dtype = v->dtype, .root = (uint32_t)r.peer, .tensors = tensors, .mine = alone ? 0 : tensors,
			       .count = (int64_t *)(t + 1) };
	for (uint32_t i = 0; i < tensors; i++) {
		t->count[i] = elements(&v[i]);
		if (v[i].dtype != t->dtype)
			t->dtype = 0;
	}
	for (uint32_t i = 0; i < tensors && !t->dtype; i++) // as bytes
		t->count[i] *= (int64_t)yoke_dtype_size(v[i].dtype);
	t->dtype = t->dtype ? t->dtype : yoke_u8;
	t->where = (uint8_t)yk_native_takes(t);
	yk_task_name(t, v);
	*handle = t;
	*workspace = yk_native_bytes(t);
	return 0;
}

// Operands and results on the device.
static int run_places(struct yk_ranks *q, struct yk_task *t, const struct yoke_op *op)
{
	struct yk_address *at = malloc((op->nin + op->nout + (size_t)1) * sizeof *at);
	if (!at)
		return yk_fail(YOKE_ENOMEM, "no memory for a collective");
	for (uint32_t i = 0; i < op->nin + op->nout; i++) {
		const struct yoke_view *v = i < op->nin ? &op->in[i] : &op->out[i - op->nin];
		at[i] = (struct yk_address){ v->segment, v->offset };
	}
	at[op->nin + op->nout] = (struct yk_address){ op->workspace.segment, op->workspace.offset };
	int err = yk_ranks_add_places(q, t, op->nin, op->nout, at);
	free(at);
	return err ? yk_fail(err, "no memory for a collective") : 0;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	struct yk_ranks *q = queue;
	struct yk_task *t = handle;
	if (!op) { // it is not come to
		yk_hub_break(t->group->hub, YOKE_ERANK, "rank %u of %s failed in an evaluation, before %s",
			     t->group->rank, t->group->name, t->text);
		return 0;
	}
	if (t->where != YK_BY_HOST)
		return run_places(q, t, op);
	char **at = malloc((op->nin + op->nout + (size_t)1) * sizeof *at);
	if (!at)
		return yk_fail(YOKE_ENOMEM, "no memory for a collective");
	for (uint32_t i = 0; i < op->nin + op->nout; i++)
		at[i] = i < op->nin ? op->in[i].segment : op->out[i - op->nin].segment;
	int err = yk_ranks_add(q, t, op->nin, at, op->nout, at + op->nin, NULL);
	free(at);
	return err ? yk_fail(err, "no memory for a collective") : 0;
}

static void release(void *handle)
{
	struct yk_task *t = handle;
	yk_group_unref(t->group);
	yk_task_fini(t);
	free(t);
}

// ---- the table ----

static int queue_new(uint32_t device, int kind, void **to)
{
	struct yk_ranks *q = calloc(1, sizeof *q);
	sigset_t all, old;
	(void)device;
	(void)kind;
	if (!q || !(q->own = yk_bell_new())) {
		free(q);
		return yk_fail(YOKE_ENOMEM, "no host memory");
	}
	atomic_init(&q->bell, q->own);
	q->incoming_end = &q->incoming;
	pthread_mutex_init(&q->drive, NULL);
	pthread_mutex_init(&q->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); // signals are the application's
	int err = pthread_create(&q->thread, NULL, serve, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		yk_bell_unref(q->own);
		free(q);
		return yk_fail(YOKE_ENOMEM, "no thread for the ranks queue: %s", strerror(err));
	}
	pthread_setname_np(q->thread, "yoke/ranks");
	*to = q;
	return 0;
}

void yk_ranks_quit(struct yk_ranks *q)
{
	if (atomic_exchange(&q->quit, true))
		return;
	yk_bell_ring(&q->duty);
	yk_bell_ring(q->bell);
	pthread_join(q->thread, NULL);
}

static void queue_free(void *queue)
{
	struct yk_ranks *q = queue;
	yk_world_forget(q);
	yk_ranks_quit(q);
	while (q->groups) {
		struct yoke_group *g = q->groups;
		q->groups = g->next;
		yk_group_leave(g);
	}
	pthread_mutex_destroy(&q->drive);
	pthread_mutex_destroy(&q->lock);
	yk_bell_unref(q->own);
	free(q);
}

struct event {
	struct yk_ranks *q;
	uint64_t job, told;
};

static int event_mark(void *queue, void **event)
{
	struct yk_ranks *q = queue;
	struct event *e = malloc(sizeof *e);
	if (!e)
		return YOKE_ENOMEM;
	pthread_mutex_lock(&q->lock);
	*e = (struct event){ q, atomic_load(&q->enqueued), q->told };
	pthread_mutex_unlock(&q->lock);
	*event = e;
	return 0;
}

static int event_done(void *event)
{
	const struct event *e = event;
	struct yk_ranks *q = e->q;
	if (atomic_load(&q->over) < e->job && !atomic_load(&q->carrier))
		help(q); // who asks again and again waits, and others ring the queue's bell, not its thread's
	if (atomic_load(&q->over) < e->job)
		return 0;
	pthread_mutex_lock(&q->lock);
	const int code = q->failed > e->told && q->failed <= e->job ? q->code : 1;
	if (code < 0) {
		q->told = atomic_load(&q->enqueued);
		yk_fail(code, "%s", q->why);
	}
	pthread_mutex_unlock(&q->lock);
	return code;
}

static int event_wait(void *event)
{
	const struct event *e = event;
	yk_ranks_wait(e->q, e->job);
	const int code = event_done(event);
	return code < 0 ? code : 0;
}

static int nothing(void *queue)
{
	(void)queue;
	return 0;
}

static int not_after(void *queue, void *event)
{
	(void)queue;
	(void)event;
	return YOKE_EUNSUPPORTED;
}

static int no_times(void *from, void *to, uint64_t *nanoseconds)
{
	(void)from;
	(void)to;
	(void)nanoseconds;
	return YOKE_EUNSUPPORTED;
}

static const char *no_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	(void)device;
	(void)op;
	(void)impl;
	return NULL;
}

const struct yoke_backend yk_ranks_table = {
	.size = sizeof yk_ranks_table,
	.abi = YOKE_ABI,
	.name = "ranks",
	.queue_new = queue_new,
	.queue_free = queue_free,
	.queue_flush = nothing,
	.event_mark = event_mark,
	.event_after = not_after,
	.event_done = event_done,
	.event_wait = event_wait,
	.event_elapsed = no_times,
	.event_free = free,
	.prepare = prepare,
	.run = run,
	.release = release,
	.impl_name = no_name,
};
