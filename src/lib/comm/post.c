// SPDX-License-Identifier: Apache-2.0
// Collectives of few bytes among ranks of one machine. Each rank posts its operands in shared
// memory, reads those of all others as soon as they appear, and computes its result itself. A rank
// waits once for each other rank's post but never for others to read its own: it has two posts, and
// reuses one once all others have finished the job it was used for.
//
// A rank that posts job n has finished all earlier jobs; the others usually detect it that way.
// Finishing a job therefore wakes no rank; reaching the next job does.
#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "comm/ranks.h"
#include "comm/sums.h"

enum {
	ALIGN = 16, // alignment of a tensor's bytes in a post
	LOOKS = 40, // checks of others' posts before other jobs get a turn
};

static size_t bytes_of(const struct yk_task *t, uint32_t k)
{
	return (size_t)t->count[k] * yoke_dtype_size(t->dtype);
}

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t whole(const struct yk_task *t)
{
	size_t bytes = 0;
	for (uint32_t k = 0; k < t->tensors && bytes <= YK_POST; k++)
		bytes += aligned(bytes_of(t, k));
	return bytes;
}

bool yk_post_takes(const struct yk_task *t)
{
	const struct yoke_group *g = t->group;
	if (g->rendezvous->route || g->ranks < 2 ||
	    (t->what != YK_DO_ALL_REDUCE && t->what != YK_DO_ALL_GATHER &&
	     t->what != YK_DO_BROADCAST && t->what != YK_DO_BARRIER))
		return false;
	const size_t bytes = whole(t);
	return bytes <= YK_POST && bytes * g->ranks <= (size_t)2 * YK_POST;
}

static struct yk_post *post_of(const struct yk_job *j, uint32_t rank)
{
	return &j->task->group->rendezvous->slot[rank].post[j->sequence % 2];
}

static char *data_of(struct yk_post *p, size_t bytes)
{
	return bytes <= YK_POST_FEW ? p->few : p->data;
}

// Whether all other ranks have finished the job for which this post was last used.
static bool is_free(struct yk_job *j)
{
	struct yoke_group *g = j->task->group;
	const uint64_t used =
		atomic_load_explicit(&post_of(j, g->rank)->number, memory_order_relaxed);
	for (uint32_t i = 0; i < g->ranks && g->others < used; i++)
		if (i != g->rank && atomic_load(&g->rendezvous->slot[i].left) < used)
			return false;
	g->others = g->others < used ? used : g->others;
	return true;
}

static void post(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	struct yk_post *p = post_of(j, t->group->rank);
	char *to = data_of(p, whole(t));
	size_t at = 0;
	// fetch the others' posts while writing this one
	for (uint32_t i = 0; i < t->group->ranks; i++)
		__builtin_prefetch(post_of(j, i));
	for (uint32_t k = 0; k < t->tensors; k++) {
		if (t->what != YK_DO_BROADCAST || t->group->rank == t->root)
			memcpy(to + at, j->in[k], bytes_of(t, k));
		at += aligned(bytes_of(t, k));
	}
	p->hash = t->hash;
	atomic_store_explicit(&p->number, j->sequence + 1, memory_order_release);
	yk_job_arrive(j, yk_nanoseconds_coarse());
}

// Whether all others have posted the same operation. closely: also check for ranks that have left
// or run another operation; this reads their slots while they write to them, and slows them down.
static bool all_posted(const struct yk_job *j, bool closely)
{
	const struct yoke_group *g = j->task->group;
	const uint64_t want = j->sequence + 1;
	for (uint32_t i = 0; i < g->ranks; i++) {
		struct yk_rank_slot *s = &g->rendezvous->slot[i];
		if (atomic_load_explicit(&s->post[j->sequence % 2].number, memory_order_acquire) ==
		    want)
			continue;
		if (!closely)
			return false;
		// read before their post
		const bool gone = atomic_load(&s->gone), arrived = atomic_load(&s->arrived) >= want;
		if (atomic_load(&s->post[j->sequence % 2].number) == want)
			continue;
		if (arrived)
			yk_job_disagrees(j, i, s->text[j->sequence % YK_TEXTS]);
		else if (gone)
			yk_job_peer_left(j, i);
		return false;
	}
	for (uint32_t i = 0; i < g->ranks; i++)
		if (post_of(j, i)->hash != j->task->hash) {
			yk_job_disagrees(j, i, g->rendezvous->slot[i].text[j->sequence % YK_TEXTS]);
			return false;
		}
	return true;
}

static void compute(const struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t n = t->group->ranks;
	const void *in[YK_MAX_RANKS];
	const size_t all = whole(t);
	size_t at = 0;
	for (uint32_t k = 0; k < t->tensors; k++) {
		const size_t bytes = bytes_of(t, k);
		for (uint32_t i = 0; i < n; i++)
			in[i] = data_of(post_of(j, i), all) + at;
		if (t->what == YK_DO_ALL_REDUCE) {
			// reading back the operands just posted would be slow
			in[t->group->rank] = j->in[k];
			yk_sums(t->dtype, t->kind, n, in, 1, (void *[]){ j->out[k] },
				(size_t)t->count[k]);
		} else if (t->what == YK_DO_BROADCAST) {
			memcpy(j->out[k], in[t->root], bytes);
		} else {
			for (uint32_t i = 0; i < n; i++)
				memcpy(j->out[k] + i * bytes, in[i], bytes);
		}
		at += aligned(bytes);
	}
}

bool yk_post_advance(struct yk_job *j, int *code, char why[YK_WHY])
{
	struct yoke_group *g = j->task->group;
	struct yk_rank_slot *s = &g->rendezvous->slot[g->rank];
	const bool comes = !j->begun;
	if (yk_job_broken(j, code, why))
		return j->phase == YK_OVER;
	if (comes && !is_free(j)) {
		j->ready = j->ready ? j->ready : yk_nanoseconds();
		return false;
	}
	if (comes)
		post(j);
	// the others usually post at about the same time
	for (int k = 0; !all_posted(j, k == LOOKS); k++) {
		if (k == LOOKS ||
		    atomic_load_explicit(&g->rendezvous->area->broken, memory_order_relaxed))
			return comes;
		yk_pause();
	}
	compute(j);
	yk_job_sent(j);
	g->others = j->sequence > g->others ? j->sequence : g->others;
	j->phase = YK_OVER;
	if (!comes)
		atomic_store_explicit(&s->since, yk_nanoseconds_coarse(), memory_order_relaxed);
	atomic_store_explicit(&s->left, j->sequence + 1, memory_order_release);
	return true;
}
