// SPDX-License-Identifier: Apache-2.0
// The ranks queue as a backend table, so that plans use it like a device queue (slot RANKS).
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/system.h"
#include "comm/native.h"
#include "comm/process.h"
#include "comm/ranks.h"
#include "plan/plan.h"

// ---- tasks ----

uint64_t yk_task_bytes(const struct yk_task *t)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < t->tensors; i++)
		n += (uint64_t)t->count[i];
	return n * yoke_dtype_size(t->dtype);
}

static const uint8_t what_of[] = {
	[YK_RANKS_ALL_REDUCE] = YK_DO_ALL_REDUCE,
	[YK_RANKS_REDUCE_SCATTER] = YK_DO_REDUCE_SCATTER,
	[YK_RANKS_ALL_GATHER] = YK_DO_ALL_GATHER,
	[YK_RANKS_BROADCAST] = YK_DO_BROADCAST,
	[YK_RANKS_REDUCE] = YK_DO_REDUCE,
	[YK_RANKS_ALL_TO_ALL] = YK_DO_ALL_TO_ALL,
	[YK_RANKS_GATHER_SHARDS] = YK_DO_GATHER_SHARDS,
	[YK_RANKS_REDUCE_SHARDS] = YK_DO_REDUCE_SHARDS,
	[YK_RANKS_SEND] = YK_DO_SEND,
	[YK_RANKS_RECV] = YK_DO_RECV,
};

void yk_task_name(struct yk_task *t, const struct yoke_view *first)
{
	static const char *const kinds[] = { "", " sum", " max", " min" };
	char shape[64] = "", end[24] = "";
	int n = 0, max = (int)sizeof shape - 1;
	int64_t all = 0;
	const bool ends = t->what == YK_DO_SEND || t->what == YK_DO_RECV;
	for (uint32_t i = 0; i < t->tensors; i++)
		all += t->count[i];
	if (t->tensors == 1 && first)
		for (int i = 0; i < first->rank && n < max; i++)
			n += snprintf(shape + n, (size_t)(max - n), "%s%lld", i ? "," : "",
				      (long long)first->dims[i]);
	else if (t->tensors)
		snprintf(shape, sizeof shape, "%lld", (long long)all);
	if (ends || t->what == YK_DO_BROADCAST || t->what == YK_DO_REDUCE)
		snprintf(end, sizeof end, "%s %u", ends ? "with" : "root", t->root);
	if (t->what == YK_DO_BARRIER)
		snprintf(t->text, sizeof t->text, "barrier");
	else if (t->tensors == 1)
		snprintf(t->text, sizeof t->text, "%s%s %s [%s]%s%s", yk_collective_name[t->what],
			 kinds[t->kind], yoke_dtype_name(t->dtype), shape, *end ? " " : "", end);
	else
		snprintf(t->text, sizeof t->text, "%s%s %s of %u tensors, %.20s elements%s%s",
			 yk_collective_name[t->what], kinds[t->kind], yoke_dtype_name(t->dtype),
			 t->tensors, shape, *end ? ", " : "", end);
	const uint32_t facts[] = { ends ? 0 : t->what, t->kind,    t->dtype,
				   ends ? 0 : t->root, t->tensors, t->where };
	t->hash = yk_hash(t->count, t->tensors * sizeof *t->count, yk_hash(facts, sizeof facts, 0));
}

static int64_t elements(const struct yoke_view *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan,
		   void **handle, uint64_t *workspace)
{
	const struct yk_ranked r = yk_ranked(op->attr);
	struct yoke_group *g = yk_group_ref((uint64_t)r.group);
	(void)device;
	(void)impl;
	(void)plan;
	if (!g)
		return yk_fail(YOKE_EINVAL, "its group was freed");
	// only this rank's shard exists
	const bool alone = op->code == (YK_STEP_RANKS_CODE | YK_RANKS_GATHER_SHARDS) && r.whole;
	const struct yoke_view *v =
		alone || op->code == (YK_STEP_RANKS_CODE | YK_RANKS_RECV) ? op->out : op->in;
	const uint32_t tensors = op->list ? op->list : 1;
	struct yk_task *t = calloc(1, sizeof *t + tensors * sizeof *t->count);
	if (!t) {
		yk_group_unref(g);
		return yk_fail(YOKE_ENOMEM, "no memory for a collective");
	}
	*t = (struct yk_task){ .group = g,
			       .what = what_of[op->code & ~YK_STEP_RANKS_CODE],
			       .kind = (uint8_t)r.kind,
			       .dtype = v->dtype,
			       .root = (uint32_t)r.peer,
			       .tensors = tensors,
			       .mine = alone ? 0 : tensors,
			       .count = (int64_t *)(t + 1) };
	for (uint32_t i = 0; i < tensors; i++) {
		t->count[i] = elements(&v[i]);
		if (v[i].dtype != t->dtype)
			t->dtype = 0;
	}
	for (uint32_t i = 0; i < tensors && !t->dtype; i++) // mixed dtypes are treated as bytes
		t->count[i] *= (int64_t)yoke_dtype_size(v[i].dtype);
	t->dtype = t->dtype ? t->dtype : yoke_u8;
	t->where = (uint8_t)yk_native_takes(t);
	yk_task_name(t, v);
	*handle = t;
	*workspace = yk_native_bytes(t);
	return 0;
}

// Enqueues an op whose operands and results are on the device.
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
	int err = yk_ranks_add_device(q, t, op->nin, op->nout, at);
	free(at);
	return err ? yk_fail(err, "no memory for a collective") : 0;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	struct yk_ranks *q = queue;
	struct yk_task *t = handle;
	if (!op) { // planned but not run
		yk_rendezvous_break(t->group->rendezvous, YOKE_ERANK,
				    "rank %u of %s failed in an evaluation, before %s",
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
	int err = yk_ranks_add(q, t, op->nin, at, op->nout, at + op->nin);
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

// ---- backend table ----

static int queue_new(uint32_t device, int kind, void **to)
{
	struct yk_ranks *q = calloc(1, sizeof *q);
	sigset_t all, old;
	(void)device;
	(void)kind;
	if (!q || !(q->own = yk_wakeup_new())) {
		free(q);
		return yk_fail(YOKE_ENOMEM, "no host memory");
	}
	atomic_init(&q->wakeup, q->own);
	q->inbox.end = &q->inbox.first;
	pthread_mutex_init(&q->drive, NULL);
	pthread_mutex_init(&q->lock, NULL);
	sigfillset(&all);
	// signals are handled by the application's threads
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&q->thread, NULL, yk_ranks_serve, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		yk_wakeup_unref(q->own);
		free(q);
		return yk_fail(YOKE_ENOMEM, "no thread for the ranks queue: %s", strerror(err));
	}
	yk_thread_name(q->thread, "yoke/ranks");
	*to = q;
	return 0;
}

void yk_ranks_quit(struct yk_ranks *q)
{
	if (atomic_exchange(&q->quit, true))
		return;
	yk_wakeup_ring(&q->duty);
	yk_wakeup_ring(q->wakeup);
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
	yk_wakeup_unref(q->own);
	free(q);
}

struct event {
	struct yk_ranks *q;
	uint64_t job, reported;
};

static int event_mark(void *queue, void **event)
{
	struct yk_ranks *q = queue;
	struct event *e = malloc(sizeof *e);
	if (!e)
		return YOKE_ENOMEM;
	pthread_mutex_lock(&q->lock);
	*e = (struct event){ q, atomic_load(&q->enqueued), q->failure.reported };
	pthread_mutex_unlock(&q->lock);
	*event = e;
	return 0;
}

static int event_done(void *event)
{
	const struct event *e = event;
	struct yk_ranks *q = e->q;
	// The caller queries repeatedly, so it advances jobs itself: other ranks do not wake the
	// queue's thread.
	if (atomic_load(&q->over) < e->job && yk_ranks_is_open(q))
		yk_ranks_help(q);
	if (atomic_load(&q->over) < e->job)
		return 0;
	pthread_mutex_lock(&q->lock);
	const int code =
		q->failure.job > e->reported && q->failure.job <= e->job ? q->failure.code : 1;
	if (code < 0) {
		q->failure.reported = atomic_load(&q->enqueued);
		yk_fail(code, "%s", q->failure.why);
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
