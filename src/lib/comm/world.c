// SPDX-License-Identifier: Apache-2.0
// The world of a process that was started as a rank: joins the machine's memory and the other
// machines, and detects ranks of this machine that have ended.
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/system.h"
#include "comm/carrier.h"
#include "comm/mpi_load.h"
#include "comm/process.h"
#include "comm/segment.h"

int yk_process_rank(uint32_t *rank, uint32_t *ranks)
{
	struct yk_started p;
	const int is = yk_started_find(&p);
	if (is > 0) {
		*rank = p.rank;
		*ranks = p.ranks;
	}
	return is;
}

bool yk_process_launched(void)
{
	struct yk_started p;
	return yk_started_find(&p) > 0 && p.launcher;
}

// ---- joining ----

static struct yk_ranks *_Atomic open_queue; // a queue connected to other machines

// A program may exit without freeing its context; data already sent must still arrive.
static void at_exit(void)
{
	struct yk_ranks *q = atomic_exchange(&open_queue, NULL);
	if (q)
		yk_ranks_quit(q);
}

void yk_world_forget(struct yk_ranks *q)
{
	struct yk_ranks *was = q;
	atomic_compare_exchange_strong(&open_queue, &was, NULL);
}

// Connects to other machines by MPI, which torchrun does not provide.
static int over_machines(struct yk_ranks *q, const struct yk_started *p, struct yk_segment *s,
			 struct yk_rendezvous *h)
{
	uint32_t first = p->rank, all[YK_MAX_RANKS];
	if (!p->mpi)
		return yk_fail(YOKE_EUNSUPPORTED, "%s started %u ranks, %u of them on this "
			"machine: yoke needs MPI between machines; start it with mpirun or "
			"srun", p->launcher, p->ranks, p->locals);
	for (uint32_t i = 0; i < p->ranks; i++)
		all[i] = i;
	first = yk_segment_first(s);
	int err = yk_carrier_new(q, p, first);
	if (err)
		return err;
	pthread_mutex_lock(&q->drive);
	err = yk_carrier_add(atomic_load(&q->carrier), h, p->rank, all, 0);
	pthread_mutex_unlock(&q->drive);
	if (!err && atexit(at_exit) == 0)
		atomic_store(&open_queue, q);
	return err;
}

int yk_process_world(struct yk_ranks *q, struct yk_rendezvous **to, uint32_t *rank)
{
	static atomic_flag taken = ATOMIC_FLAG_INIT;
	struct yk_wakeup *wakeup[YK_MAX_RANKS];
	struct yk_segment *s = NULL;
	struct yk_started p;
	int err = yk_started_find(&p);
	if (err <= 0 || atomic_flag_test_and_set(&taken))
		return err < 0 ? err : 0;
	err = yk_segment_get(&p, &s);
	if (err)
		return err;
	struct yk_area *a = yk_segment_world(s);
	for (uint32_t i = 0; i < p.ranks; i++)
		wakeup[i] = &a->slot[i].wakeup;
	struct yk_rendezvous *h = yk_rendezvous_apart(s, a, wakeup);
	if (!h)
		return yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
	if (p.locals < p.ranks)
		err = over_machines(q, &p, s, h);
	if (err) {
		yk_rendezvous_unref(h);
		return err;
	}
	atomic_store(&q->wakeup, wakeup[p.rank]);
	*rank = p.rank;
	*to = h;
	return 0;
}

// ---- CPU sets and visible devices ----

// Waits until the machine's ranks have set the slot member at offset `at`, up to about 10 s or
// until the group is broken.
static void await_locals(const struct yk_started *p, struct yk_area *world, size_t at)
{
	struct yk_rank_slot *slot = world->slot;
	const struct timespec pause = { 0, 1000000 };
	for (uint32_t here = 0, tries = 0;
	     here < p->locals && tries < 10000 && !atomic_load(&world->broken); tries++) {
		here = 0;
		for (uint32_t i = 0; i < p->ranks; i++)
			here += atomic_load((_Atomic uint64_t *)(void *)((char *)&slot[i] + at)) !=
				0;
		if (here < p->locals)
			nanosleep(&pause, NULL);
	}
}

int yk_process_unlike(int devices, const char *uuid, uint32_t *other)
{
	struct yk_segment *s = NULL;
	struct yk_started p;
	int err = yk_started_find(&p);
	if (err <= 0)
		return err;
	err = yk_segment_get(&p, &s);
	if (err)
		return err;
	struct yk_rank_slot *slot = yk_segment_world(s)->slot;
	const uint64_t mine = devices == 1 ? yk_hash(uuid, strlen(uuid), 0) | 2 : 1;
	bool alone = true;
	*other = p.rank;
	atomic_store(&slot[p.rank].sees, mine);
	await_locals(&p, yk_segment_world(s), offsetof(struct yk_rank_slot, sees));
	for (uint32_t i = 0; i < p.ranks; i++) {
		const uint64_t theirs = atomic_load(&slot[i].sees);
		alone &= theirs != 1;
		if (i != p.rank && theirs == mine)
			*other = i;
	}
	return alone && *other == p.rank;
}

int yk_process_cpu(uint32_t *index, uint32_t *share)
{
	struct yk_segment *s = NULL;
	struct yk_started p;
	int err = yk_started_find(&p);
	*index = 0;
	*share = 1;
	if (err <= 0 || !p.launcher)
		return err < 0 ? err : 0;
	err = yk_segment_get(&p, &s);
	if (err)
		return err;
	struct yk_rank_slot *slot = yk_segment_world(s)->slot;
	await_locals(&p, yk_segment_world(s), offsetof(struct yk_rank_slot, cpus));
	for (uint32_t i = 0; i < p.ranks; i++)
		if (i != p.rank && atomic_load(&slot[i].cpus) == atomic_load(&slot[p.rank].cpus)) {
			++*share;
			*index += i < p.rank;
		}
	return 0;
}

// ---- ended ranks ----

// Whether a process of this machine has ended. *fd caches its descriptor; not positive: there is
// none yet.
static bool has_ended(int pid, int *fd)
{
	if (*fd <= 0) {
		*fd = yk_process_open(pid);
		if (*fd < 0 && errno == ESRCH)
			return true;
	}
	struct pollfd p = { .fd = *fd, .events = POLLIN };
	return *fd > 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

// A launcher kills all ranks after the first one ends, so wait up to half a second for the rank
// that reports the failure.
static void wait_for_report(pid_t speaker)
{
	const struct timespec pause = { 0, 2000000 };
	const uint64_t began = yk_nanoseconds();
	int fd = 0;
	while (!has_ended(speaker, &fd) && yk_nanoseconds() - began < 500000000)
		nanosleep(&pause, NULL);
	if (fd > 0)
		close(fd);
}

bool yk_process_failed(void)
{
	struct yk_segment *s = NULL;
	struct yk_started p;
	char why[YK_WHY];
	snprintf(why, sizeof why, "%s", yoke_error());
	const int code = yoke_error_code();
	yk_mpi_leave();
	if (yk_started_find(&p) <= 0 || yk_segment_get(&p, &s) < 0)
		return false;
	if (code != YOKE_ERANK && code != YOKE_EFAILED)
		atomic_store(&yk_segment_world(s)->slot[p.rank].erred, 1);
	yk_segment_break(s, YOKE_ERANK, "rank %u: %s", p.rank, why);
	if (!p.launcher) // its parent reports the failure
		return true;
	const pid_t speaker = yk_segment_speaker(s);
	if (speaker == getpid())
		return false;
	wait_for_report(speaker);
	return true;
}

void yk_world_check(struct yk_ranks *q)
{
	const struct yoke_group *world = q->world;
	struct yk_started p;
	if (!world || !world->rendezvous->apart)
		return;
	// otherwise the parent reports how it ended
	const bool launched = yk_started_find(&p) > 0 && p.launcher;
	for (uint32_t i = 0; i < world->ranks; i++) {
		const struct yk_rank_slot *s = &world->rendezvous->slot[i];
		const bool here =
			!world->rendezvous->route || !yk_route_away(world->rendezvous->route, i);
		if (i == world->rank || !here || !s->process ||
		    !has_ended(s->process, yk_segment_peer(world->rendezvous->segment, i)))
			continue;
		for (struct yoke_group *g = q->groups; g; g = g->next)
			for (uint32_t k = 0; k < g->ranks; k++)
				if (g->rendezvous->slot[k].process == s->process &&
				    !atomic_load(&g->rendezvous->slot[k].gone) &&
				    (launched || g != world))
					yk_rendezvous_break(g->rendezvous, YOKE_ERANK,
							    "rank %u of %s (pid %d) has ended", k,
							    g->name, s->process);
	}
}
