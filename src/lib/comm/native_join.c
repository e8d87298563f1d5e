// SPDX-License-Identifier: Apache-2.0
// Decides which groups use the vendor's library, and joins their ranks: every rank needs the
// library and its own device, and all use a communicator id created by the first.
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/native.h"

YK_PARAM(native_setting, "dist.native", YK_BOOL, "1",
	 "ranks on GPUs of one vendor on one machine use its collectives library (NCCL, RCCL); "
		"otherwise data is copied through host memory");

// ---- capability ----

static const struct yoke_collectives_ext *ext_of(const struct yk_device *d)
{
	if (!yk_param_bool(&native_setting) || d->real || !d->ops->ext || !d->ops->fill)
		return NULL;
	const struct yoke_collectives_ext *x = d->ops->ext("collectives");
	return x && x->size >= sizeof *x ? x : NULL;
}

// Creates a communicator id for the rendezvous; false: the library failed, which is logged.
static bool make_id(const struct yoke_collectives_ext *x, char *id)
{
	char why[300];
	const bool had = yoke_error_code() != 0;
	const int err = x->id(id);
	if (!err)
		return true;
	yk_backend_detail(had, err, why, sizeof why);
	yk_warn("dist", "ranks communicate through host memory: %s", why);
	return false;
}

static bool is_called(const struct yk_device *d, const void *id)
{
	return !strcmp(d->id, id);
}

void yk_native_offer(struct yk_rendezvous *h, int ranks,
		     char (*device)[sizeof((struct yk_device *)NULL)->id])
{
	const struct yk_device *first = NULL;
	bool good = ranks > 1 && ranks <= YK_NATIVE_RANKS;
	for (int i = 0; i < ranks && good; i++) {
		const struct yk_device *d = yk_device_known(is_called, device[i]);
		good = d && (!first || d->backend == first->backend) && ext_of(d);
		first = first ? first : d;
		for (int k = 0; k < i; k++)
			good &= strcmp(device[i], device[k]) != 0;
	}
	h->native = good && make_id(ext_of(first), h->id);
}

// Hash that distinguishes this device from others of the machine in every process, whatever devices
// that process sees.
static uint64_t card_of(const struct yk_device *d)
{
	const char *by = *d->info.uuid ? d->info.uuid : *d->info.pci ? d->info.pci : d->id;
	return yk_hash(by, strlen(by), 0);
}

// The first rank that has not published its device; h->ranks: none.
static uint32_t missing_device(const struct yk_rendezvous *h)
{
	uint32_t i = 0;
	while (i < h->ranks && atomic_load(&h->slot[i].offer))
		i++;
	return i;
}

static uint32_t missing_id(const struct yk_rendezvous *h)
{
	return atomic_load(&h->area->id_state) != YK_ID_NONE ? h->ranks : 0;
}

// Waits until no rank is `silent`. False: timeout, or the group is broken.
static bool wait_for(const struct yk_rendezvous *h, uint32_t rank,
		     uint32_t (*silent)(const struct yk_rendezvous *), const char *what)
{
	const struct timespec pause = { 0, 1000000 };
	const uint64_t began = yk_nanoseconds();
	bool warned = false;
	uint32_t who;
	while ((who = silent(h)) < h->ranks && !atomic_load(&h->area->broken)) {
		const uint64_t waited = yk_nanoseconds() - began;
		if (waited >= yk_ranks_timeout())
			break;
		if (waited >= yk_ranks_warn() && !warned) {
			warned = true;
			yk_warn("dist",
				"rank %u waits for %s of rank %u (pid %d), which has not come so far",
				rank, what, who, h->slot[who].process);
		}
		nanosleep(&pause, NULL);
	}
	return who == h->ranks;
}

// Whether all ranks have the same backend and different devices.
static bool all_alike(const struct yk_rendezvous *h)
{
	bool alike = true;
	for (uint32_t i = 0; i < h->ranks; i++) {
		alike &= atomic_load(&h->slot[i].offer) == atomic_load(&h->slot[0].offer);
		for (uint32_t k = 0; k < i; k++)
			alike &= h->slot[i].card != h->slot[k].card;
	}
	return alike;
}

void yk_native_meet(struct yk_rendezvous *h, uint32_t rank, struct yk_device *d)
{
	enum { NOTHING = 1 };
	const bool may = !h->route && h->ranks > 1 && h->ranks <= YK_NATIVE_RANKS;
	const struct yoke_collectives_ext *x = may ? ext_of(d) : NULL;
	const char *name = d->ops->name;
	struct yk_rank_slot *own = &h->slot[rank];
	own->card = card_of(d);
	atomic_store(&own->offer, x ? yk_hash(name, strlen(name), 0) | 2 : NOTHING);
	if (!x || !wait_for(h, rank, missing_device, "the device") || !all_alike(h))
		return;
	if (!rank)
		atomic_store(&h->area->id_state,
			     make_id(x, h->area->id) ? YK_ID_MADE : YK_ID_FAILED);
	h->native = wait_for(h, rank, missing_id, "the library's id") &&
		    atomic_load(&h->area->id_state) == YK_ID_MADE;
	memcpy(h->id, h->area->id, sizeof h->id);
}

struct given {
	int64_t good;
	char id[YOKE_COLLECTIVES_ID];
};

static void give(struct yk_rendezvous *part, const struct given *given)
{
	memcpy(part->id, given->id, sizeof part->id);
	part->native = true;
}

int yk_native_split(struct yoke_group *g, bool makes, uint32_t from, struct yk_rendezvous *part)
{
	struct given *all, mine = { 0 };
	if (!g->native)
		return 0;
	if (!(all = calloc(g->ranks, sizeof *all)))
		return yk_fail(YOKE_ENOMEM, "no memory to split a group");
	const bool some = part && part->ranks > 1;
	mine.good = makes && some && g->native->ext->id(mine.id) == 0;
	if (part && makes && (mine.good || !some))
		give(part, &mine); // threads share one rendezvous; other ranks may join after this
	int err = yoke_group_exchange(g, &mine, sizeof mine, all);
	if (!err && some && !all[from].good)
		err = yk_fail(YOKE_ERANK, "rank %u has no id for a group of devices", from);
	if (!err && part && !makes && part->apart)
		give(part, &all[from]);
	free(all);
	return err;
}

// ---- joining ----

int yk_native_join(struct yoke_group *g)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;
	struct yk_device *d = g->ctx->device;
	struct yk_native *n = calloc(1, sizeof *n);
	int err = n ? 0 : yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
	if (err)
		return err;
	*n = (struct yk_native){ .ext = ext_of(d), .ops = d->ops, .device = d->index };
	if (yk_native_fast() && !atomic_flag_test_and_set(&logged))
		yk_warn("dist",
			"dist.order=fast: sums have an order of the vendor's library, and other bits on another number of ranks");
	err = n->ext ? n->ops->queue_new(n->device, YOKE_QUEUE_COMPUTE, &n->queue) :
		       YOKE_EUNSUPPORTED;
	if (!err && g->ranks > 1)
		err = n->ext->join(n->device, g->rendezvous->id, g->rank, g->ranks, &n->comm);
	if (err) {
		if (n->queue)
			n->ops->queue_free(n->queue);
		free(n);
		return err;
	}
	g->native = n;
	g->ctx->queues.device_ranks = true;
	return 0;
}

void yk_native_leave(struct yoke_group *g)
{
	struct yk_native *n = g->native;
	if (!n)
		return;
	if (n->comm)
		n->ext->leave(n->comm, n->broken || atomic_load(&g->rendezvous->area->broken));
	n->ops->queue_free(n->queue);
	free(n);
	g->native = NULL;
}
