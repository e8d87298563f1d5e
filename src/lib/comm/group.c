// SPDX-License-Identifier: Apache-2.0
// Groups: joining, splitting, and collectives on host memory.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"
#include "base/sized.h"
#include "base/system.h"
#include "comm/adapt.h"
#include "comm/carrier.h"
#include "comm/native.h"
#include "comm/process.h"
#include "comm/ranks.h"
#include "comm/segment.h"

// ---- registry of the process's groups, by number ----

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct yoke_group **groups;
static size_t ngroups, cap_groups;
static uint64_t numbers;

static int enroll(struct yoke_group *g)
{
	pthread_mutex_lock(&lock);
	int err = yk_grow(&groups, &cap_groups, ngroups + 1, sizeof *groups);
	if (!err) {
		g->number = ++numbers;
		groups[ngroups++] = g;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

struct yoke_group *yk_group_ref(uint64_t number)
{
	struct yoke_group *g = NULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ngroups && !g; i++)
		g = groups[i]->number == number ? groups[i] : NULL;
	if (g)
		atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return g;
}

void yk_group_unref(struct yoke_group *g)
{
	if (atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) > 1)
		return;
	yk_rendezvous_unref(g->rendezvous);
	yk_adapt_free(g->adapt);
	free(g->sent);
	free(g);
}

void yk_group_leave(struct yoke_group *g)
{
	struct yk_rendezvous *h = g->rendezvous;
	yk_native_leave(g);
	pthread_mutex_lock(&lock);
	size_t i = 0;
	while (groups[i] != g)
		i++;
	groups[i] = groups[--ngroups];
	pthread_mutex_unlock(&lock);
	if (h->route)
		yk_route_leave(h->route);
	atomic_store(&h->slot[g->rank].gone, 1);
	for (uint32_t k = 0; k < h->ranks; k++)
		yk_wakeup_ring(atomic_load(&h->wakeup[k]));
	yk_group_unref(g);
}

// ---- joining ----

// The context's queue, created if needed; NULL on failure.
static struct yk_queue *queue_of(struct yoke_context *ctx)
{
	static struct yk_device device = { .ops = &yk_ranks_table,
					   .id = "ranks",
					   .info = { .name = "ranks" } };
	struct yk_queue *q;
	if (ctx->stream[YK_STREAM_RANKS].queue != ctx->queues.steps)
		return ctx->stream[YK_STREAM_RANKS].queue;
	if (yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &q) < 0)
		return NULL;
	ctx->stream[YK_STREAM_RANKS] = (struct yk_stream){ &device, q };
	return q;
}

// Whether the setting dist.algorithm names an existing algorithm.
static int check_algorithm(void)
{
	const char *algorithm = yk_ranks_algorithm();
	char hint[200];
	for (int how = 0; how < YK_BY_SHARED; how++)
		if (!*algorithm || !strcmp(algorithm, yk_algorithm_name[how]))
			return 0;
	return yk_fail(YOKE_EINVAL, "dist.algorithm '%s': %s", algorithm,
		       yk_hint(algorithm, yk_algorithm_name, YK_BY_SHARED, hint, sizeof hint));
}

static int check_link(void)
{
	const char *link = yk_param_str(yk_param_find("dist.link"));
	double alpha, beta;
	return !*link || yk_ranks_link(&alpha, &beta) ?
		       0 :
		       yk_fail(YOKE_EINVAL,
			       "dist.link '%s' must be ALPHA,BETA (seconds, and seconds per byte), as 1e-4,1e-9",
			       link);
}

int yk_group_join(struct yoke_context *ctx, struct yk_rendezvous *h, uint32_t rank,
		  const char *name, struct yoke_group **to)
{
	struct yk_queue *queue = check_algorithm() || check_link() ? NULL : queue_of(ctx);
	struct yoke_group *g = queue ? calloc(1, sizeof *g) : NULL;
	uint64_t *words = calloc(4 * (size_t)h->ranks, sizeof *words);
	if (g)
		*g = (struct yoke_group){
			.rank = rank, .ranks = h->ranks, .rendezvous = h, .ctx = ctx, .sent = words
		};
	int err = !queue       ? yk_error_last() :
		  !g || !words ? yk_fail(YOKE_ENOMEM, "no memory for a group of ranks") :
				 0;
	if (!err && h->native)
		err = yk_native_join(g);
	if (!err && enroll(g) < 0) {
		err = yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
		yk_native_leave(g);
	}
	if (err) {
		free(g);
		free(words);
		return err;
	}
	atomic_init(&g->refs, 1);
	g->received = words + h->ranks;
	g->send_pass = words + 2 * h->ranks;
	g->recv_pass = words + 3 * h->ranks;
	g->queue = queue->handle;
	snprintf(g->name, sizeof g->name, "%s", name);
	struct yk_rank_slot *s = &h->slot[rank];
	s->thread = yk_thread_number();
	s->process = (int)getpid();
	atomic_store(&s->since, yk_nanoseconds());
	if (!h->apart) {
		atomic_fetch_add_explicit(&g->queue->wakeup->refs, 1, memory_order_relaxed);
		atomic_store(&h->wakeup[rank], g->queue->wakeup);
	}
	pthread_mutex_lock(&g->queue->drive); // the queue's thread reads the list of groups
	g->next = g->queue->groups;
	g->queue->groups = g;
	pthread_mutex_unlock(&g->queue->drive);
	*to = g;
	return 0;
}

void yk_world_set(struct yoke_group *g)
{
	g->queue->world = g;
}

yoke_group *yk_group_dry(uint32_t ranks, uint32_t rank, bool world)
{
	struct yoke_context *ctx = yk_current();
	struct yk_ranks *q = ctx ? yk_ranks_in(ctx) : NULL;
	struct yoke_group *g = NULL;
	if (world && q && q->world && q->world->rank == rank)
		return q->world;
	struct yk_rendezvous *h = yk_rendezvous_new(ranks);
	if (!h) {
		yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
		return NULL;
	}
	for (uint32_t i = 1; i < ranks; i++)
		yk_rendezvous_unref(h);
	if (yk_group_join(ctx, h, rank, world ? "world" : "part", &g) < 0)
		yk_rendezvous_unref(h);
	else if (world)
		yk_world_set(g);
	return g;
}

static int join_world(struct yoke_context *ctx, struct yk_rendezvous *h, uint32_t rank,
		      struct yoke_group **to)
{
	if (h->apart)
		yk_native_meet(h, rank, ctx->device);
	return yk_group_join(ctx, h, rank, "world", to);
}

yoke_group *yoke_group_world(void)
{
	struct yoke_context *ctx = yk_current();
	struct yoke_group *g = NULL;
	if (!ctx || yk_enter(ctx) < 0)
		return NULL;
	struct yk_queue *q = queue_of(ctx);
	if (q)
		g = ((struct yk_ranks *)q->handle)->world;
	uint32_t rank = 0;
	if (q && !g) {
		struct yk_rendezvous *h = NULL;
		int err = yk_process_world(q->handle, &h, &rank);
		if (!err && !h)
			h = yk_rendezvous_new(1);
		if (err)
			;
		else if (!h)
			yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
		else if (join_world(ctx, h, rank, &g) < 0)
			yk_rendezvous_unref(h);
		else
			yk_world_set(g);
	}
	yk_leave(ctx);
	return g;
}

int yoke_group_rank(const yoke_group *g)
{
	const int err = yk_require(g, "group");
	return err ? err : (int)g->rank;
}

int yoke_group_size(const yoke_group *g)
{
	const int err = yk_require(g, "group");
	return err ? err : (int)g->ranks;
}

int yoke_group_state(const yoke_group *g, struct yoke_group_state *to)
{
	const int err = yk_require(g, "group");
	if (err)
		return err;
	const struct yk_rank_slot *s = &g->rendezvous->slot[g->rank];
	struct yoke_group_state now = { .size = sizeof now };
	struct timespec clock;
	do { // retry: a text is overwritten YK_TEXTS collectives later
		now.seq = atomic_load(&s->arrived);
		if (now.seq)
			memcpy(now.op, s->text[(now.seq - 1) % YK_TEXTS], YK_TASK_TEXT);
	} while (atomic_load(&s->arrived) - now.seq >= YK_TEXTS - 1);
	now.op[sizeof now.op - 1] = '\0';
	now.sent = atomic_load(&g->bytes);
	now.waited = 1e-9 * (double)atomic_load(&g->queue->waited);
	now.open = atomic_load(&s->left) < now.seq;
	clock_gettime(CLOCK_REALTIME, &clock);
	now.since = (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec -
		    1e-9 * (double)(yk_nanoseconds() - atomic_load(&s->since));
	return yk_sized_write(to, sizeof now, &now, "group_state", "yoke_group_state");
}

void yoke_group_free(yoke_group *g)
{
	if (!g || g == g->queue->world)
		return;
	struct yk_ranks *q = g->queue;
	struct yoke_group **at = &q->groups;
	if (g->native) // its jobs on the device use state that is freed with the group
		yk_ranks_wait(q, atomic_load(&q->enqueued));
	pthread_mutex_lock(&q->drive);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	pthread_mutex_unlock(&q->drive);
	yk_group_leave(g);
}

// ---- collectives on host memory ----

int yk_task_do(struct yk_task *t, void *in, void *out)
{
	struct yk_ranks *q = t->group->queue;
	struct yk_result result;
	const int err = yk_ranks_do(q, t, 1, (char *[]){ in }, 1, (char *[]){ out }, &result);
	if (err)
		return yk_fail(err, "no memory for a collective");
	return result.code ? yk_fail(result.code, "%s", result.why) : 0;
}

static int run_task(struct yoke_group *g, int what, int dtype, uint32_t root, int64_t count,
		    void *in, void *out)
{
	struct yk_task t = { .group = g,
			     .what = (uint8_t)what,
			     .dtype = (uint8_t)dtype,
			     .root = root,
			     .tensors = count >= 0,
			     .count = &count };
	yk_task_name(&t, NULL);
	const int err = yk_task_do(&t, in, out);
	yk_task_fini(&t);
	return err;
}

int yoke_group_barrier(yoke_group *g)
{
	const int err = yk_require(g, "group");
	return err ? err : run_task(g, YK_DO_BARRIER, 0, 0, -1, NULL, NULL);
}

int yoke_group_exchange(yoke_group *g, const void *mine, size_t bytes, void *all)
{
	int err = yk_require(g, "group");
	if (!err && bytes && !(err = yk_require(mine, "memory of this rank's bytes")))
		err = yk_require(all, "memory of all ranks' bytes");
	return err ? err :
		     run_task(g, YK_DO_ALL_GATHER, yoke_u8, 0, (int64_t)bytes,
			      (void *)(uintptr_t)mine, all);
}

int yk_group_send(struct yoke_group *g, uint32_t to, const void *data, size_t bytes)
{
	float done; // the op's dummy result
	return run_task(g, YK_DO_SEND, yoke_u8, to, (int64_t)bytes, (void *)(uintptr_t)data, &done);
}

int yk_group_recv(struct yoke_group *g, uint32_t from, void *data, size_t bytes)
{
	return run_task(g, YK_DO_RECV, yoke_u8, from, (int64_t)bytes, NULL, data);
}

int yk_group_broadcast(struct yoke_group *g, uint32_t root, void *data, size_t bytes)
{
	return run_task(g, YK_DO_BROADCAST, yoke_u8, root, (int64_t)bytes, data, data);
}

// ---- splits ----

struct split_request {
	int64_t color, key;
	uint64_t rank;
};

static int by_key(const void *a, const void *b)
{
	const struct split_request *x = a, *y = b;
	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

// What each member publishes during a split.
struct offer {
	// address (threads) or segment offset (processes) of the new rendezvous; 0: this member
	// made none
	uint64_t rendezvous;
	uint32_t tag; // first unused tag
};

// The index in request[0 .. n - 1] of the member that creates the rendezvous: the first one on this
// machine.
static uint32_t maker(const yoke_group *g, const struct split_request *request)
{
	uint32_t k = 0;
	while (g->rendezvous->route &&
	       yk_route_away(g->rendezvous->route, (uint32_t)request[k].rank))
		k++;
	return k;
}

// For processes: the rendezvous whose area is at offset `at` of the shared segment.
static struct yk_rendezvous *rendezvous_apart(yoke_group *g, uint64_t at,
					      const struct split_request *request, uint32_t n,
					      uint32_t me, uint32_t tag)
{
	struct yk_wakeup *wakeup[YK_MAX_RANKS];
	uint32_t world[YK_MAX_RANKS];
	const struct yk_carrier_route *r = g->rendezvous->route;
	bool away = false;
	for (uint32_t i = 0; i < n; i++) {
		wakeup[i] = atomic_load(&g->rendezvous->wakeup[request[i].rank]);
		world[i] = r ? yk_route_world(r, (uint32_t)request[i].rank) : 0;
		away |= r && yk_route_away(r, (uint32_t)request[i].rank);
	}
	struct yk_area *area = yk_segment_area(g->rendezvous->segment, at, n);
	struct yk_rendezvous *h =
		area ? yk_rendezvous_apart(g->rendezvous->segment, area, wakeup) : NULL;
	if (h && away) {
		pthread_mutex_lock(&g->queue->drive);
		const int err = yk_carrier_add(atomic_load(&g->queue->carrier), h, me, world, tag);
		pthread_mutex_unlock(&g->queue->drive);
		if (err) {
			yk_rendezvous_unref(h);
			return NULL;
		}
	}
	return h;
}

// Creates or receives the rendezvous of the ranks with the same color, request[0 .. n - 1]; this
// rank has index `me`. in: its color is not negative.
static int share_rendezvous(yoke_group *g, const struct split_request *request, uint32_t n,
			    uint32_t me, bool in, struct yk_rendezvous **to)
{
	struct offer *all = calloc(g->ranks, sizeof *all), mine = { 0, 0 };
	const bool first = in && maker(g, request) == me, apart = g->rendezvous->apart;
	uint32_t tag = 0;
	int err = all ? 0 : yk_fail(YOKE_ENOMEM, "no memory to split a group");
	if (!err && first) // for processes an offset in the shared segment
		mine.rendezvous = apart ? yk_segment_reserve(g->rendezvous->segment, n) :
					  (uintptr_t)yk_rendezvous_new(n);
	if (!err && first && !mine.rendezvous)
		err = yk_fail(YOKE_ENOMEM,
			      apart ? "the shared memory of the ranks cannot hold another group" :
				      "no memory to split a group");
	if (g->rendezvous->route)
		mine.tag = yk_route_tag(g->rendezvous->route);
	int sent = all ? yoke_group_exchange(g, &mine, sizeof mine, all) : err;
	const uint64_t theirs = sent || !in ? 0 : all[request[maker(g, request)].rank].rendezvous;
	for (uint32_t i = 0; i < g->ranks && !sent; i++)
		tag = all[i].tag > tag ? all[i].tag : tag;
	*to = NULL;
	if (theirs && !apart)
		*to = (struct yk_rendezvous *)(uintptr_t)theirs;
	else if (theirs)
		*to = rendezvous_apart(g, theirs, request, n, me, tag);
	if (sent && mine.rendezvous && !apart)
		for (uint32_t i = 0; i < n; i++)
			yk_rendezvous_unref((struct yk_rendezvous *)(uintptr_t)mine.rendezvous);
	if (!err && !sent && in && !*to)
		err = yk_fail(theirs ? YOKE_ENOMEM : YOKE_ERANK,
			      "rank %llu has no memory to split a group",
			      (unsigned long long)request[0].rank);
	free(all);
	return err ? err : sent;
}

// Collective: returns this rank's new group if no rank failed. `all` has space for one number per
// rank.
static yoke_group *agree(yoke_group *g, bool failed, yoke_group *to, uint64_t *all)
{
	const uint64_t mine = failed;
	bool bad = yoke_group_exchange(g, &mine, sizeof mine, all) < 0;
	for (uint32_t i = 0; i < g->ranks && !bad && !failed; i++)
		if ((bad = all[i]))
			yk_fail(YOKE_ERANK, "rank %u of %s could not split it", i, g->name);
	if (!bad)
		return to;
	yoke_group_free(to);
	return NULL;
}

yoke_group *yoke_group_split(yoke_group *g, int color, int key)
{
	if (yk_require(g, "group"))
		return NULL;
	struct split_request mine = { color, key, g->rank }, *all = calloc(g->ranks, sizeof *all);
	struct yk_rendezvous *h = NULL;
	struct yoke_group *to = NULL;
	char name[48]; // truncated to the size of a group's name
	uint32_t from = 0, n = 0, rank = 0;
	if (!all) {
		yk_fail(YOKE_ENOMEM, "no memory to split a group");
		return NULL;
	}
	int err = yoke_group_exchange(g, &mine, sizeof mine, all);
	if (!err) {
		qsort(all, g->ranks, sizeof *all, by_key);
		while (all[from].color != color)
			from++;
		while (from + n < g->ranks && all[from + n].color == color) {
			rank = all[from + n].rank == g->rank ? n : rank;
			n++;
		}
		err = share_rendezvous(g, all + from, n, rank, color >= 0, &h);
	}
	if (!err)
		err = yk_native_split(g, color >= 0 && !rank, (uint32_t)all[from].rank, h);
	snprintf(name, sizeof name, "%.18s/%u.%d", g->name, ++g->splits, color);
	if (h && (err || (err = yk_group_join(g->ctx, h, rank, name, &to)) < 0))
		yk_rendezvous_unref(h);
	to = agree(g, err < 0, to, (uint64_t *)(void *)all);
	free(all);
	return to;
}
