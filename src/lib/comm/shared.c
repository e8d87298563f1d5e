// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks that are threads: once all have reached the same operation, each does its
// share of the work directly in all ranks' memory, and none leaves before all have finished.
// Also advances jobs of the vendor's library, whose ranks may be processes.
//
// When a group breaks, a rank may free its memory, so it first waits for ranks that are working in
// it. A rank that starts work sets `busy` and then checks whether the group is broken; a rank that
// leaves a broken group checks `busy`. One of the two sees the other.
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/native.h"
#include "comm/ranks.h"
#include "comm/sums.h"

YK_PARAM(warn_setting, "dist.warn", YK_INT, "5", "seconds until ranks that others wait for are "
	"logged", .min = 1,
	 .max = 1000000);
YK_PARAM(timeout_setting, "dist.timeout", YK_INT, "300", "seconds until a rank stops waiting for "
	"another and fails", .min = 1,
	 .max = 1000000);

uint64_t yk_ranks_warn(void)
{
	return (uint64_t)yk_param_int(&warn_setting) * 1000000000u;
}

uint64_t yk_ranks_timeout(void)
{
	return (uint64_t)yk_param_int(&timeout_setting) * 1000000000u;
}

static struct yk_rank_slot *rank_slot_of(const struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	return &g->rendezvous->slot[g->rank];
}

// Wakes all other ranks of the job's group.
static void wake_others(const struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	for (uint32_t i = 0; i < g->ranks; i++)
		if (i != g->rank)
			yk_wakeup_ring(atomic_load(&g->rendezvous->wakeup[i]));
}

// ---- the work ----

struct part { // range in the concatenated elements of all tensors
	int64_t from, to;
};

static struct part part_of(const struct yk_task *t, uint32_t rank)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < t->tensors; i++)
		n += t->count[i];
	const int64_t ranks = t->group->ranks, whole = n / ranks, rest = n % ranks;
	return (struct part){ whole * rank + rest * rank / ranks,
			      whole * (rank + 1) + rest * (rank + 1) / ranks };
}

static char *const *ins_of(const struct yoke_group *g, uint32_t rank)
{
	return atomic_load(&g->rendezvous->slot[rank].job)->in;
}

static char *const *outs_of(const struct yoke_group *g, uint32_t rank)
{
	return atomic_load(&g->rendezvous->slot[rank].job)->out;
}

// Reduces this rank's part into the results of all ranks that receive it.
static void reduce_part(const struct yk_task *t)
{
	const struct yoke_group *g = t->group;
	const struct part p = part_of(t, g->rank);
	const size_t size = yoke_dtype_size(t->dtype);
	int64_t start = 0;
	for (uint32_t k = 0; k < t->tensors; start += t->count[k++]) {
		const void *in[YK_MAX_RANKS];
		void *out[YK_MAX_RANKS];
		int64_t from = p.from > start ? p.from - start : 0,
			to = p.to - start < t->count[k] ? p.to - start : t->count[k];
		uint32_t results = 0;
		if (from >= to)
			continue;
		for (uint32_t i = 0; i < g->ranks; i++) {
			in[i] = ins_of(g, i)[k] + (size_t)from * size;
			if (t->what == YK_DO_ALL_REDUCE || i == t->root)
				out[results++] = outs_of(g, i)[k] + (size_t)from * size;
		}
		yk_sums(t->dtype, t->kind, g->ranks, in, results, out, (size_t)(to - from));
	}
}

static void copy(char *to, const char *from, size_t bytes)
{
	if (to != from && bytes)
		memcpy(to, from, bytes);
}

// Copies every rank's shard into this rank's results.
static void gather_shards(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const struct yoke_group *g = t->group;
	const size_t size = yoke_dtype_size(t->dtype);
	for (uint32_t s = 0; s < g->ranks; s++) {
		const uint32_t i = (g->rank + s) % g->ranks;
		const int64_t first = yk_shard_at(g->ranks, i, t->root, t->tensors, t->count),
			      end = yk_shard_at(g->ranks, i + 1, t->root, t->tensors, t->count);
		const char *shard = ins_of(g, i)[t->mine];
		int64_t start = 0, from, to;
		for (uint32_t k = 0; k < t->tensors; start += t->count[k++]) {
			yk_shard_overlap(first, end, start, t->count[k], &from, &to);
			copy(j->out[k] + (size_t)from * size, shard, (size_t)(to - from) * size);
			shard += (size_t)(to - from) * size;
		}
	}
}

// Reduces this rank's shard into its result.
static void reduce_shards(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const struct yoke_group *g = t->group;
	const size_t size = yoke_dtype_size(t->dtype);
	const int64_t first = yk_shard_at(g->ranks, g->rank, t->root, t->tensors, t->count),
		      end = yk_shard_at(g->ranks, g->rank + 1, t->root, t->tensors, t->count);
	const void *in[YK_MAX_RANKS];
	char *to = j->out[0];
	int64_t start = 0, from, stop;
	for (uint32_t k = 0; k < t->tensors; start += t->count[k++]) {
		yk_shard_overlap(first, end, start, t->count[k], &from, &stop);
		for (uint32_t i = 0; i < g->ranks; i++)
			in[i] = ins_of(g, i)[k] + (size_t)from * size;
		yk_sums(t->dtype, t->kind, g->ranks, in, 1, (void *[]){ to },
			(size_t)(stop - from));
		to += (size_t)(stop - from) * size;
	}
}

static void work(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const struct yoke_group *g = t->group;
	const size_t size = yoke_dtype_size(t->dtype),
		     all = t->tensors ? (size_t)t->count[0] * size : 0, cut = all / g->ranks;
	const void *in[YK_MAX_RANKS];
	switch (t->what) {
	case YK_DO_REDUCE:
		for (uint32_t k = 0; k < t->tensors && g->rank != t->root; k++)
			memset(j->out[k], 0, (size_t)t->count[k] * size);
		reduce_part(t);
		return;
	case YK_DO_ALL_REDUCE: reduce_part(t); return;
	case YK_DO_GATHER_SHARDS: gather_shards(j); return;
	case YK_DO_REDUCE_SHARDS: reduce_shards(j); return;
	case YK_DO_REDUCE_SCATTER:
		for (uint32_t i = 0; i < g->ranks; i++)
			in[i] = ins_of(g, i)[0] + g->rank * cut;
		yk_sums(t->dtype, t->kind, g->ranks, in, 1, (void *[]){ j->out[0] }, cut / size);
		return;
	case YK_DO_ALL_GATHER:
	case YK_DO_ALL_TO_ALL:
		for (uint32_t s = 0; s < g->ranks; s++) {
			const uint32_t i = (g->rank + s) % g->ranks;
			if (t->what == YK_DO_ALL_GATHER)
				copy(j->out[0] + i * all, ins_of(g, i)[0], all);
			else
				copy(j->out[0] + i * cut, ins_of(g, i)[0] + g->rank * cut, cut);
		}
		return;
	case YK_DO_BROADCAST:
		for (uint32_t k = 0; k < t->tensors; k++)
			copy(j->out[k], ins_of(g, t->root)[k], (size_t)t->count[k] * size);
	}
}

// The bytes that other ranks read of this one, counted as what it would send by the algorithm with
// the fewest bytes.
static uint64_t sent_by(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint64_t others = t->group->ranks - 1, rank = t->group->rank,
		       size = yoke_dtype_size(t->dtype);
	const struct part p = part_of(t, (uint32_t)rank);
	const bool sharded = t->what == YK_DO_GATHER_SHARDS || t->what == YK_DO_REDUCE_SHARDS;
	const int64_t own = sharded ? yk_shard_at((uint32_t)others + 1, (uint32_t)rank + 1, t->root,
						  t->tensors, t->count) -
					      yk_shard_at((uint32_t)others + 1, (uint32_t)rank,
							  t->root, t->tensors, t->count) :
				      p.to - p.from;
	const uint64_t part = (uint64_t)own * size,
		       all = (uint64_t)part_of(t, (uint32_t)others).to * size;
	switch (t->what) {
	case YK_DO_ALL_REDUCE: return all - part + others * part;
	case YK_DO_REDUCE: return all - part + (rank == t->root ? 0 : part);
	case YK_DO_REDUCE_SCATTER:
	case YK_DO_REDUCE_SHARDS:
	case YK_DO_ALL_TO_ALL: return all - part;
	case YK_DO_GATHER_SHARDS: return others * part;
	case YK_DO_ALL_GATHER: return others * all;
	case YK_DO_BROADCAST: return rank == t->root ? others * all : 0;
	case YK_DO_SEND: return all;
	}
	return 0;
}

void yk_job_sent(const struct yk_job *j)
{
	atomic_fetch_add_explicit(&j->task->group->bytes, sent_by(j), memory_order_relaxed);
}

// ---- joining and leaving a job ----

bool yk_job_broken(struct yk_job *j, int *code, char why[YK_WHY])
{
	const struct yk_rendezvous *h = j->task->group->rendezvous;
	if (atomic_load(&h->area->broken) != 2)
		return false;
	for (uint32_t i = 0; i < h->ranks; i++)
		if (i != j->task->group->rank && atomic_load(&h->slot[i].busy))
			return true;
	*code = h->area->code;
	snprintf(why, YK_WHY, "%s", h->area->why);
	j->phase = YK_OVER;
	return true;
}

static bool begin_work(struct yk_rank_slot *s, const struct yk_rendezvous *h)
{
	atomic_store(&s->busy, 1);
	if (!atomic_load(&h->area->broken))
		return true;
	atomic_store(&s->busy, 0);
	return false;
}

static void note(struct yk_rank_slot *s)
{
	atomic_store_explicit(&s->since, yk_nanoseconds(), memory_order_relaxed);
}

void yk_job_disagrees(const struct yk_job *j, uint32_t other, const char *text)
{
	const struct yk_task *t = j->task;
	const uint32_t a = t->group->rank < other ? t->group->rank : other,
		       b = a == other ? t->group->rank : other;
	yk_rendezvous_break(t->group->rendezvous, YOKE_EMISMATCH,
			    "operation %llu of %s: rank %u does %s, rank %u %s",
			    (unsigned long long)j->sequence + 1, t->group->name, a,
			    a == other ? text : t->text, b, b == other ? text : t->text);
}

void yk_job_peer_left(const struct yk_job *j, uint32_t other)
{
	const struct yoke_group *g = j->task->group;
	yk_rendezvous_break(g->rendezvous, YOKE_ERANK,
			    "rank %u has left %s before operation %llu, %s", other, g->name,
			    (unsigned long long)j->sequence + 1, j->task->text);
}

// Whether all ranks have reached the same operation.
static bool all_came(struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	const uint64_t want = j->sequence + 1;
	for (uint32_t i = 0; i < g->ranks; i++) {
		struct yk_rank_slot *s = &g->rendezvous->slot[i];
		const bool gone = atomic_load(&s->gone); // read before `arrived`
		if (atomic_load(&s->arrived) < want) {
			if (gone)
				yk_job_peer_left(j, i);
			return false;
		}
	}
	for (uint32_t i = 0; i < g->ranks; i++)
		if (g->rendezvous->slot[i].hash != j->task->hash) {
			yk_job_disagrees(j, i, g->rendezvous->slot[i].text[j->sequence % YK_TEXTS]);
			return false;
		}
	return true;
}

static bool all_left(const struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	for (uint32_t i = 0; i < g->ranks; i++)
		if (atomic_load(&g->rendezvous->slot[i].left) <= j->sequence)
			return false;
	return true;
}

void yk_job_arrive(struct yk_job *j, uint64_t now)
{
	struct yk_rank_slot *s = rank_slot_of(j);
	j->begun = now;
	s->hash = j->task->hash;
	memcpy(s->text[j->sequence % YK_TEXTS], j->task->text, sizeof *s->text);
	atomic_store_explicit(&s->job, j, memory_order_release); // before `arrived`, like the hash
	atomic_store_explicit(&s->since, j->begun, memory_order_relaxed);
	atomic_store_explicit(&s->beat, j->begun, memory_order_relaxed);
	atomic_store(&s->arrived, j->sequence + 1);
	wake_others(j);
}

// Marks that this rank no longer reads other ranks' memory for the job.
static void leave(struct yk_job *j)
{
	struct yk_rank_slot *s = rank_slot_of(j);
	yk_job_sent(j);
	j->phase = YK_LEAVING;
	note(s);
	atomic_store(&s->left, j->sequence + 1);
	wake_others(j);
}

// Advances a job of the vendor library; returns true if anything changed.
static bool advance_device(struct yk_job *j)
{
	struct yoke_group *g = j->task->group;
	char why[YK_WHY];
	const bool had = yoke_error_code() != 0;
	const int now = yk_native_advance(j);
	if (!now)
		return false;
	if (now < 0) {
		yk_backend_detail(had, now, why, sizeof why);
		yk_rendezvous_break(g->rendezvous, now == YOKE_EUNSUPPORTED ? YOKE_EDEVICE : now,
				    "rank %u of %s, %s: %s", g->rank, g->name, j->task->text, why);
	} else if (now == 2) {
		atomic_fetch_sub(&g->queue->away, 1);
		leave(j);
	}
	return true;
}

static bool advance_group(struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	struct yk_rank_slot *s = rank_slot_of(j);
	bool moved = !j->begun;
	if (!j->begun)
		yk_job_arrive(j, yk_nanoseconds());
	if (j->phase == YK_COMING && all_came(j)) {
		if (j->place) {
			j->phase = YK_WORKING;
			atomic_fetch_add(&g->queue->away, 1);
		} else if (begin_work(s, g->rendezvous)) {
			work(j);
			atomic_store(&s->busy, 0);
			leave(j);
			moved = true;
		}
	}
	if (j->phase == YK_WORKING)
		moved |= advance_device(j);
	if (j->phase == YK_LEAVING && all_left(j)) {
		j->phase = YK_OVER;
		moved = true;
	}
	return moved;
}

// ---- send and recv ----

static struct yk_box *box_of(const struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	const bool sends = j->task->what == YK_DO_SEND;
	return &g->rendezvous->box[sends ? g->rank * g->ranks + j->task->root :
					   j->task->root * g->ranks + g->rank];
}

static bool advance_send(struct yk_job *j)
{
	struct yk_box *b = box_of(j);
	struct yk_job *none = NULL;
	if (!j->begun) { // earlier transfers have been taken
		j->begun = yk_nanoseconds();
		memset(j->out[0], 0, sizeof(float));
		atomic_compare_exchange_strong(&b->job, &none, j);
		yk_wakeup_ring(atomic_load(&j->task->group->rendezvous->wakeup[j->task->root]));
		return true;
	}
	if (atomic_load(&b->taken) <= j->sequence)
		return false;
	yk_job_sent(j);
	j->phase = YK_OVER;
	return true;
}

static bool advance_recv(struct yk_job *j)
{
	struct yk_box *b = box_of(j);
	const struct yk_task *t = j->task;
	struct yk_rank_slot *s = rank_slot_of(j), *peer = &t->group->rendezvous->slot[t->root];
	if (!j->begun)
		j->begun = yk_nanoseconds();
	// before reading the sender's job, which may be freed
	if (!begin_work(s, t->group->rendezvous))
		return false;
	struct yk_job *from = atomic_load(&b->job);
	const bool agree = from && from->task->hash == t->hash;
	char text[YK_TASK_TEXT] = "";
	if (agree)
		copy(j->out[0], from->in[0], (size_t)t->count[0] * yoke_dtype_size(t->dtype));
	else if (from)
		memcpy(text, from->task->text, sizeof text);
	if (agree)
		atomic_store(&b->job, NULL);
	atomic_store(&s->busy, 0);
	if (from && !agree)
		yk_job_disagrees(j, t->root, text);
	if (!from && atomic_load(&peer->gone))
		yk_rendezvous_break(t->group->rendezvous, YOKE_ERANK,
				    "rank %u has left %s before it sent what rank %u waits for: %s",
				    t->root, t->group->name, t->group->rank, t->text);
	if (!agree)
		return false;
	atomic_fetch_add(&b->taken, 1);
	yk_wakeup_ring(atomic_load(&t->group->rendezvous->wakeup[t->root]));
	j->phase = YK_OVER;
	return true;
}

// ---- entry points ----

bool yk_shared_advance(struct yk_job *j, int *code, char why[YK_WHY])
{
	if (j->phase == YK_WORKING && atomic_load(&j->task->group->rendezvous->area->broken) == 2) {
		if (!yk_native_stop(j))
			return false;
		atomic_fetch_sub(&j->task->group->queue->away, 1);
		j->phase = YK_LEAVING;
	}
	if (yk_job_broken(j, code, why))
		return j->phase == YK_OVER;
	switch (j->task->what) {
	case YK_DO_SEND: return advance_send(j);
	case YK_DO_RECV: return advance_recv(j);
	}
	return advance_group(j);
}

// nanoseconds; a waiting rank updates its beat several times within this
enum { BEATS = 500000000 };

// Among the ranks of a group that have finished at most `jobs` jobs, names the one whose last beat
// is oldest, as it may have been stopped while working.
static uint32_t stopped_rank(const struct yoke_group *g, uint64_t jobs, uint64_t now, char *to,
			     size_t cap)
{
	uint32_t found = g->rank;
	uint64_t oldest = now - BEATS;
	for (uint32_t i = 0; i < g->ranks; i++) {
		const uint64_t beat = atomic_load(&g->rendezvous->slot[i].beat);
		if (i == g->rank || !beat || beat > oldest ||
		    atomic_load(&g->rendezvous->slot[i].left) > jobs)
			continue;
		oldest = beat;
		found = i;
	}
	if (found == g->rank)
		return 0;
	const struct yk_rank_slot *s = &g->rendezvous->slot[found];
	snprintf(to, cap, "rank %u (%s %d)%s%.20s has not moved since %llu s", found,
		 g->rendezvous->apart ? "pid" : "thread",
		 g->rendezvous->apart ? s->process : s->thread, jobs == UINT64_MAX ? " of " : "",
		 jobs == UINT64_MAX ? g->name : "",
		 (unsigned long long)((now - oldest) / 1000000000u));
	return 1;
}

// Whether a rank of a group is itself waiting in a collective, according to its recent beat.
static bool is_waiting(const struct yoke_group *g, uint32_t rank, uint64_t now)
{
	const struct yoke_group *world = g->queue->world;
	const struct yk_rank_slot *s = &g->rendezvous->slot[rank];
	for (uint32_t i = 0; world && i < world->ranks; i++) {
		const struct yk_rank_slot *w = &world->rendezvous->slot[i];
		if (w->process == s->process && w->thread == s->thread)
			return atomic_load(&w->beat) > now - BEATS;
	}
	return false;
}

// Names up to four ranks that have not reached the job; returns the number of late ranks.
static uint32_t late_ranks(const struct yk_job *j, char *to, size_t cap)
{
	const struct yoke_group *g = j->task->group;
	const uint64_t now = yk_nanoseconds();
	uint32_t late = 0, waiting = 0;
	size_t n = 0;
	*to = '\0';
	for (uint32_t i = 0; i < g->ranks; i++) {
		struct yk_rank_slot *s = &g->rendezvous->slot[i];
		const bool ends = j->task->what == YK_DO_SEND || j->task->what == YK_DO_RECV;
		const uint64_t arrived = atomic_load(&s->arrived), since = atomic_load(&s->since);
		char position[YK_TASK_TEXT + 64] = "";
		if (i == g->rank ||
		    (ends ? i != j->task->root : atomic_load(&s->left) > j->sequence))
			continue;
		if (!ends && arrived > j->sequence)
			continue;
		if (arrived && !ends)
			snprintf(position, sizeof position, ", after %.*s, operation %llu",
				 YK_TASK_TEXT - 1, s->text[(arrived - 1) % YK_TEXTS],
				 (unsigned long long)arrived);
		const bool waits = is_waiting(g, i, now);
		waiting += waits;
		if (late++ < 4 && n < cap)
			n += (size_t)snprintf(
				to + n, cap - n, "%srank %u (%s %d) %s since %llu s%s",
				late > 1 ? "; " : "", i, g->rendezvous->apart ? "pid" : "thread",
				g->rendezvous->apart ? s->process : s->thread,
				waits ? "waits for others" : "is in host code",
				(unsigned long long)(since ? (now - since) / 1000000000u : 0),
				position);
	}
	if (!late && stopped_rank(g, j->sequence, now, to, cap))
		return 1;
	if (late > waiting || !g->queue->world) // otherwise all late ranks wait for another group
		return late;
	char other[200];
	if (!stopped_rank(g->queue->world, UINT64_MAX, now, other, sizeof other))
		return late;
	const size_t room = strlen(other) + (late ? 2 : 0);
	if (room >= cap)
		return late;
	memmove(to + room, to, cap - room);
	memcpy(to, other, strlen(other));
	memcpy(to + strlen(other), "; ", room - strlen(other));
	to[cap - 1] = '\0';
	return late + 1;
}

void yk_job_watch(struct yk_job *j)
{
	char who[600];
	const uint64_t now = yk_nanoseconds();
	const uint64_t since = j->begun ? j->begun : j->ready;
	const int64_t waited = since ? (int64_t)((now - since) / 1000000000u) : 0;
	if (j->begun)
		atomic_store_explicit(&rank_slot_of(j)->beat, now, memory_order_relaxed);
	if (!since ||
	    (waited < yk_param_int(&warn_setting) && waited < yk_param_int(&timeout_setting)))
		return;
	if (waited >= yk_param_int(&timeout_setting)) {
		late_ranks(j, who, sizeof who);
		// otherwise each group would wait for its own timeout
		for (struct yoke_group *g = j->task->group->queue->groups; g; g = g->next)
			yk_rendezvous_break(
				g->rendezvous, YOKE_ERANK,
				"%s, operation %llu of %s, was not done within %lld s (dist.timeout): %.200s",
				j->task->text, (unsigned long long)j->sequence + 1,
				j->task->group->name, (long long)yk_param_int(&timeout_setting),
				who);
	} else if (!j->warned && late_ranks(j, who, sizeof who)) {
		j->warned = true;
		yk_warn("dist", "rank %u waits in %s, operation %llu of %s: %s",
			j->task->group->rank, j->task->text, (unsigned long long)j->sequence + 1,
			j->task->group->name, who);
	}
}
