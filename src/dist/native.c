// SPDX-License-Identifier: Apache-2.0
// How a job goes by the vendor's library.  It is taken apart into what is enqueued one behind another on a queue of the
// group's own: collectives of the library, copies, and sums, which are maps on the device, in order T.  So a reduction
// is an exchange of parts, of which each rank sums its own, and gathers them where all want it: the same bits as by the
// host's memory.  With dist.order=fast the library reduces, in whatever order it likes.
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "dist/native.h"

YK_PARAM(native_setting, "dist.native", YK_BOOL, "1",
	 "ranks on GPUs of one vendor and one machine use its library of collectives (NCCL, RCCL); else all goes through the "
	 "host's memory");
YK_PARAM(order_setting, "dist.order", YK_STRING, "fixed",
	 "fixed: sums have one order, and the same bits on any number of ranks; fast: on GPUs the vendor's library adds as it "
	 "likes");

struct yk_native { // of a rank in a group
	const struct yoke_collectives_ext *ext;
	const struct yoke_backend *ops;
	uint32_t device;
	void *comm, *queue; // comm NULL: of one rank, or given up
	bool broken;
};

// A sum of so many elements, as it was prepared for operands that lie so.
struct yk_native_sum {
	struct yk_native_sum *next;
	const struct yoke_backend *ops;
	uint64_t count;
	uint32_t align;
	void *handle;
};

// ---- who can ----

static bool fast(void)
{
	return !strcmp(yk_param_str(&order_setting), "fast");
}

static const struct yoke_collectives_ext *ext_of(const struct yk_device *d)
{
	if (!yk_param_bool(&native_setting) || d->real || !d->ops->ext || !d->ops->fill)
		return NULL;
	const struct yoke_collectives_ext *x = d->ops->ext("collectives");
	return x && x->size >= sizeof *x ? x : NULL;
}

// The hub's ranks use it, with an id of this rank's making; false: it has none, which is said.
static bool make_id(const struct yoke_collectives_ext *x, char *id)
{
	char why[300];
	const bool had = yoke_error_code() != 0;
	const int err = x->id(id);
	if (!err)
		return true;
	yk_backend_detail(had, err, why, sizeof why);
	yk_warn("dist", "ranks talk through the host's memory: %s", why);
	return false;
}

static bool is_called(const struct yk_device *d, const void *id)
{
	return !strcmp(d->id, id);
}

void yk_native_offer(struct yk_hub *h, int ranks, char (*device)[sizeof ((struct yk_device *)NULL)->id])
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

// What tells the device's card from others of the machine, whatever this process may see of them.
static uint64_t card_of(const struct yk_device *d)
{
	const char *by = *d->info.uuid ? d->info.uuid : *d->info.pci ? d->info.pci : d->id;
	return yk_hash(by, strlen(by), 0);
}

static bool all_said(const struct yk_hub *h)
{
	bool all = true;
	for (uint32_t i = 0; i < h->ranks; i++)
		all &= atomic_load(&h->seat[i].offer) != 0;
	return all;
}

static bool has_id(const struct yk_hub *h)
{
	return atomic_load(&h->area->id_state) != YK_ID_NONE;
}

// Until the others have said what they are to say; false: they do not.
static bool wait_for(const struct yk_hub *h, bool (*is)(const struct yk_hub *))
{
	const struct timespec pause = { 0, 1000000 };
	const uint64_t began = yk_nanoseconds();
	while (!is(h) && !atomic_load(&h->area->broken) && yk_nanoseconds() - began < yk_ranks_timeout())
		nanosleep(&pause, NULL);
	return is(h);
}

// Have all the same, each on a device of its own?
static bool all_alike(const struct yk_hub *h)
{
	bool alike = true;
	for (uint32_t i = 0; i < h->ranks; i++) {
		alike &= atomic_load(&h->seat[i].offer) == atomic_load(&h->seat[0].offer);
		for (uint32_t k = 0; k < i; k++)
			alike &= h->seat[i].card != h->seat[k].card;
	}
	return alike;
}

void yk_native_meet(struct yk_hub *h, uint32_t rank, struct yk_device *d)
{
	enum { NOTHING = 1 };
	const bool may = !h->route && h->ranks > 1 && h->ranks <= YK_NATIVE_RANKS;
	const struct yoke_collectives_ext *x = may ? ext_of(d) : NULL;
	const char *name = d->ops->name;
	struct yk_seat *own = &h->seat[rank];
	own->card = card_of(d);
	atomic_store(&own->offer, x ? yk_hash(name, strlen(name), 0) | 2 : NOTHING);
	if (!x || !wait_for(h, all_said) || !all_alike(h))
		return;
	if (!rank)
		atomic_store(&h->area->id_state, make_id(x, h->area->id) ? YK_ID_MADE : YK_ID_FAILED);
	h->native = wait_for(h, has_id) && atomic_load(&h->area->id_state) == YK_ID_MADE;
	memcpy(h->id, h->area->id, sizeof h->id);
}

int yk_native_split(struct yoke_group *g, bool makes, uint32_t from, struct yk_hub *part)
{
	struct given {
		int64_t good;
		char id[YOKE_COLLECTIVES_ID];
	} *all, mine = { 0 };
	if (!g->native)
		return 0;
	if (!(all = calloc(g->ranks, sizeof *all)))
		return yk_fail(YOKE_ENOMEM, "no memory to split a group");
	const bool some = part && part->ranks > 1;
	mine.good = makes && some && g->native->ext->id(mine.id) == 0;
	int err = yoke_group_exchange(g, &mine, sizeof mine, all);
	if (!err && some && !all[from].good)
		err = yk_fail(YOKE_ERANK, "rank %u has no id for a group of devices", from);
	if (!err && part) {
		memcpy(part->id, all[from].id, sizeof part->id);
		part->native = true;
	}
	free(all);
	return err;
}

// ---- joining ----

int yk_native_join(struct yoke_group *g)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct yk_device *d = g->ctx->device;
	struct yk_native *n = calloc(1, sizeof *n);
	int err = n ? 0 : yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
	if (err)
		return err;
	*n = (struct yk_native){ .ext = ext_of(d), .ops = d->ops, .device = d->index };
	if (fast() && !atomic_flag_test_and_set(&said))
		yk_warn("dist", "dist.order=fast: sums have an order of the vendor's library, and other bits on another number of ranks");
	err = n->ext ? n->ops->queue_new(n->device, YOKE_QUEUE_COMPUTE, &n->queue) : YOKE_EUNSUPPORTED;
	if (!err && g->ranks > 1)
		err = n->ext->join(n->device, g->hub->id, g->rank, g->ranks, &n->comm);
	if (err) {
		if (n->queue)
			n->ops->queue_free(n->queue);
		free(n);
		return err;
	}
	g->native = n;
	g->ctx->device_ranks = true;
	return 0;
}

void yk_native_leave(struct yoke_group *g)
{
	struct yk_native *n = g->native;
	if (!n)
		return;
	if (n->comm)
		n->ext->leave(n->comm, n->broken || atomic_load(&g->hub->area->broken));
	n->ops->queue_free(n->queue);
	free(n);
	g->native = NULL;
}

// ---- what a job does ----

enum act_kind { TOGETHER, COPY, SUM, ZERO };
struct act {
	enum act_kind kind;
	uint32_t first, n; // TOGETHER: of the course's collectives
	struct yk_address to, from;
	uint64_t count, slot; // elements; SUM: where in each slot the terms are, bytes
};

struct yk_native_course {
	struct yoke_collective *what;
	size_t nwhat, what_cap;
	struct act *act;
	size_t n, cap, at;
	size_t closed; // so many acts take nothing more: all ranks' sums are between the same of the library's groups
	void *event; // behind all of it
	bool begun, marked;
	bool short_of_memory;
};

static size_t size_of(const struct yk_task *t)
{
	return yoke_dtype_size(t->dtype);
}

static struct yk_address in_of(const struct yk_job *j, uint32_t k, int64_t element)
{
	const struct yk_address *p = &j->place[k];
	return (struct yk_address){ p->segment, p->offset + (uint64_t)element * size_of(j->task) };
}

static struct yk_address out_of(const struct yk_job *j, uint32_t k, int64_t element)
{
	return in_of(j, j->nin + k, element);
}

static struct act *add(struct yk_native_course *c, enum act_kind kind)
{
	if (yk_grow(&c->act, &c->cap, c->n + 1, sizeof *c->act) < 0) {
		c->short_of_memory = true;
		return NULL;
	}
	c->act[c->n] = (struct act){ .kind = kind, .first = (uint32_t)c->nwhat };
	return &c->act[c->n++];
}

// What the library does goes together with what it was told to do just before.
static void tell(struct yk_job *j, int code, uint32_t peer, struct yk_address in, struct yk_address out, uint64_t count)
{
	struct yk_native_course *c = j->native;
	struct act *a = c->n > c->closed && c->act[c->n - 1].kind == TOGETHER ? &c->act[c->n - 1] : NULL;
	if (!count || (!a && !(a = add(c, TOGETHER))))
		return;
	if (yk_grow(&c->what, &c->what_cap, c->nwhat + 1, sizeof *c->what) < 0) {
		c->short_of_memory = true;
		return;
	}
	c->what[c->nwhat++] = (struct yoke_collective){ .code = (uint32_t)code, .dtype = j->task->dtype, .kind = j->task->kind,
							 .peer = peer, .count = count, .in = in.segment,
							 .in_offset = in.offset, .out = out.segment,
							 .out_offset = out.offset };
	a->n++;
}

static const struct yk_address none;

static void act(struct yk_job *j, enum act_kind kind, struct yk_address to, struct yk_address from, uint64_t count, uint64_t slot)
{
	struct act *a = count ? add(j->native, kind) : NULL;
	if (!a)
		return;
	a->to = to;
	a->from = from;
	a->count = count;
	a->slot = slot;
}

// ---- parts of tensors, and slots for those that come ----

struct range { // of the elements of all tensors
	int64_t from, to;
};

static struct range range_of(const struct yk_task *t, uint32_t rank)
{
	const uint32_t ranks = t->group->ranks;
	int64_t n = 0;
	if (t->what == YK_DO_GATHER_SHARES || t->what == YK_DO_REDUCE_SHARES)
		return (struct range){ yk_share_at(ranks, rank, t->root, t->tensors, t->count),
				       yk_share_at(ranks, rank + 1, t->root, t->tensors, t->count) };
	for (uint32_t i = 0; i < t->tensors; i++)
		n += t->count[i];
	return (struct range){ n / ranks * rank + n % ranks * rank / ranks,
			       n / ranks * (rank + 1) + n % ranks * (rank + 1) / ranks };
}

// The pieces of a rank's range, one a call: of tensor *k the elements from *from, *count of them, which stand behind
// *at others of the range.  Begins with *k UINT32_MAX.
static bool next_piece(const struct yk_task *t, struct range r, uint32_t *k, int64_t *from, int64_t *count, int64_t *at)
{
	int64_t start = 0;
	const uint32_t next = *k + 1;
	for (uint32_t i = 0; i < next; i++)
		start += t->count[i];
	for (*k = next; *k < t->tensors; start += t->count[(*k)++]) {
		int64_t to;
		yk_share_of(r.from, r.to, start, t->count[*k], from, &to);
		*count = to - *from;
		*at = start + *from - r.from;
		if (*count > 0)
			return true;
	}
	return false;
}

#define EACH_PIECE(t, rank, k, from, count, at) \
	uint32_t k = UINT32_MAX; \
	for (int64_t from, count, at; next_piece(t, range_of(t, rank), &k, &from, &count, &at);)

static uint64_t slot_bytes(const struct yk_task *t)
{
	const struct range r = range_of(t, t->group->rank);
	return ((uint64_t)(r.to - r.from) * size_of(t) + 255) / 256 * 256;
}

static bool reduces(const struct yk_task *t)
{
	return t->what == YK_DO_ALL_REDUCE || t->what == YK_DO_REDUCE || t->what == YK_DO_REDUCE_SCATTER ||
	       t->what == YK_DO_REDUCE_SHARES;
}

int yk_native_takes(const struct yk_task *t)
{
	if (!t->group->native || t->what == YK_DO_SEND || t->what == YK_DO_RECV)
		return YK_BY_HOST;
	return reduces(t) && t->what != YK_DO_REDUCE_SHARES && fast() ? YK_BY_LIBRARY : YK_BY_DEVICE;
}

uint64_t yk_native_bytes(const struct yk_task *t)
{
	return reduces(t) && t->where == YK_BY_DEVICE && t->group->ranks > 1 ? t->group->ranks * slot_bytes(t) : 0;
}

// Where the terms of rank i come to; its own slot takes sums that go on from there.
static struct yk_address slot_of(const struct yk_job *j, uint32_t i, int64_t element)
{
	const struct yk_task *t = j->task;
	const struct yk_address *work = &j->place[j->nin + j->nout];
	return (struct yk_address){ work->segment, work->offset + i * slot_bytes(t) + (uint64_t)element * size_of(t) };
}

// ---- plans of jobs ----

// Another rank's terms of this one's range.
static void receive(struct yk_job *j, uint32_t i)
{
	EACH_PIECE(j->task, j->task->group->rank, k, from, count, at)
		tell(j, YOKE_COLLECTIVE_RECV, i, none, slot_of(j, i, at), (uint64_t)count);
}

// Parts to their owners, whose sums are done behind.
static void exchange(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	for (uint32_t c = 0; c < t->group->ranks; c++) {
		if (c == own)
			continue;
		EACH_PIECE(t, c, k, from, count, at)
			tell(j, YOKE_COLLECTIVE_SEND, c, in_of(j, k, from), none, (uint64_t)count);
		receive(j, c);
	}
}

// The sums of this rank's range, to where `to` says.
static void sum(struct yk_job *j, struct yk_address (*to)(const struct yk_job *, uint32_t k, int64_t from, int64_t at))
{
	const struct yk_task *t = j->task;
	EACH_PIECE(t, t->group->rank, k, from, count, at)
		act(j, SUM, to(j, k, from, at), in_of(j, k, from), (uint64_t)count, (uint64_t)at * size_of(t));
	j->native->closed = j->native->n; // .. of a rank without a part of the sums, too
}

static struct yk_address in_result(const struct yk_job *j, uint32_t k, int64_t from, int64_t at)
{
	(void)at;
	return out_of(j, k, from);
}

static struct yk_address in_share(const struct yk_job *j, uint32_t k, int64_t from, int64_t at)
{
	(void)k;
	(void)from;
	return out_of(j, 0, at);
}

static struct yk_address in_slot(const struct yk_job *j, uint32_t k, int64_t from, int64_t at)
{
	(void)k;
	(void)from;
	return slot_of(j, j->task->group->rank, at);
}

// What a rank has of the results, from it.
static void take_results(struct yk_job *j, uint32_t c)
{
	EACH_PIECE(j->task, c, k, from, count, at)
		tell(j, YOKE_COLLECTIVE_RECV, c, none, out_of(j, k, from), (uint64_t)count);
}

static void all_reduce(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	exchange(j);
	sum(j, in_result);
	for (uint32_t c = 0; c < t->group->ranks; c++) {
		if (c == own)
			continue;
		EACH_PIECE(t, own, k, from, count, at)
			tell(j, YOKE_COLLECTIVE_SEND, c, out_of(j, k, from), none, (uint64_t)count);
		take_results(j, c);
	}
}

static void zero_results(struct yk_job *j)
{
	for (uint32_t k = 0; k < j->task->tensors; k++)
		act(j, ZERO, out_of(j, k, 0), none, (uint64_t)j->task->count[k], 0);
}

static void reduce(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	exchange(j);
	if (own == t->root) {
		sum(j, in_result);
		for (uint32_t c = 0; c < t->group->ranks; c++)
			if (c != own)
				take_results(j, c);
		return;
	}
	sum(j, in_slot);
	EACH_PIECE(t, own, k, from, count, at)
		tell(j, YOKE_COLLECTIVE_SEND, t->root, slot_of(j, own, at), none, (uint64_t)count);
	zero_results(j);
}

static void gather_shares(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	for (uint32_t c = 0; c < t->group->ranks; c++) {
		if (c == own)
			continue;
		EACH_PIECE(t, own, k, from, count, at)
			tell(j, YOKE_COLLECTIVE_SEND, c, in_of(j, t->mine, at), none, (uint64_t)count);
		take_results(j, c);
	}
	EACH_PIECE(t, own, k, from, count, at)
		act(j, COPY, out_of(j, k, from), in_of(j, t->mine, at), (uint64_t)count, 0);
}

static void all_to_all(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	const int64_t cut = t->count[0] / t->group->ranks;
	for (uint32_t c = 0; c < t->group->ranks; c++)
		if (c != own) {
			tell(j, YOKE_COLLECTIVE_SEND, c, in_of(j, 0, c * cut), none, (uint64_t)cut);
			tell(j, YOKE_COLLECTIVE_RECV, c, none, out_of(j, 0, c * cut), (uint64_t)cut);
		}
	act(j, COPY, out_of(j, 0, own * cut), in_of(j, 0, own * cut), (uint64_t)cut, 0);
}

// The library's own, of each tensor.
static void by_library(struct yk_job *j, int code)
{
	const struct yk_task *t = j->task;
	const int64_t cut = t->what == YK_DO_REDUCE_SCATTER ? t->group->ranks : 1;
	for (uint32_t k = 0; k < t->tensors; k++)
		tell(j, code, t->root, in_of(j, k, 0), out_of(j, k, 0), (uint64_t)(t->count[k] / cut));
}

// Of one rank: operands are the results, or what there is of them.
static void alone(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	int64_t at = 0;
	for (uint32_t k = 0; k < t->tensors; at += t->count[k++]) {
		const struct yk_address from = t->what == YK_DO_GATHER_SHARES ? in_of(j, t->mine, at) : in_of(j, k, 0),
				   to = t->what == YK_DO_REDUCE_SHARES ? out_of(j, 0, at) : out_of(j, k, 0);
		act(j, COPY, to, from, (uint64_t)t->count[k], 0);
	}
}

static void plan(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	if (t->group->ranks == 1) {
		alone(j);
		return;
	}
	switch (t->what) {
	case YK_DO_ALL_REDUCE:
		if (t->where == YK_BY_LIBRARY)
			by_library(j, YOKE_COLLECTIVE_ALL_REDUCE);
		else
			all_reduce(j);
		return;
	case YK_DO_REDUCE:
		if (t->where != YK_BY_LIBRARY) {
			reduce(j);
			return;
		}
		by_library(j, YOKE_COLLECTIVE_REDUCE);
		if (t->group->rank != t->root)
			zero_results(j);
		return;
	case YK_DO_REDUCE_SCATTER:
		if (t->where == YK_BY_LIBRARY) {
			by_library(j, YOKE_COLLECTIVE_REDUCE_SCATTER);
			return;
		}
		exchange(j); // rows of axis 0 are the ranges
		sum(j, in_share);
		return;
	case YK_DO_REDUCE_SHARES:
		exchange(j);
		sum(j, in_share);
		return;
	case YK_DO_GATHER_SHARES: gather_shares(j); return;
	case YK_DO_ALL_GATHER: by_library(j, YOKE_COLLECTIVE_ALL_GATHER); return;
	case YK_DO_ALL_TO_ALL: all_to_all(j); return;
	case YK_DO_BROADCAST: by_library(j, YOKE_COLLECTIVE_BROADCAST); return;
	}
}

// ---- sums ----

static uint16_t step(struct yoke_map *m, int op, int dtype, uint16_t a, uint16_t b)
{
	m->insn[m->ninsn] = (struct yoke_insn){ .op = (uint16_t)op, .dtype = (uint8_t)dtype, .a = a, .b = b };
	return m->ninsn++;
}

// All terms in order T; halves in f32, rounded once.
static void program_of(const struct yk_task *t, struct yoke_map *m)
{
	const int op = t->kind == YOKE_REDUCE_MAX ? YOKE_MAP_MAX : t->kind == YOKE_REDUCE_MIN ? YOKE_MAP_MIN : YOKE_MAP_ADD,
		  acc = t->dtype == yoke_f16 || t->dtype == yoke_bf16 ? yoke_f32 : t->dtype;
	const uint32_t ranks = t->group->ranks;
	uint16_t term[YK_NATIVE_RANKS];
	*m = (struct yoke_map){ .size = sizeof *m, .nin = (uint16_t)ranks, .nout = 1 };
	for (uint32_t i = 0; i < ranks; i++) {
		term[i] = step(m, YOKE_MAP_INPUT, t->dtype, (uint16_t)i, 0);
		if (acc != t->dtype)
			term[i] = step(m, YOKE_MAP_CAST, acc, term[i], 0);
	}
	for (uint32_t d = 1; d < ranks; d *= 2)
		for (uint32_t i = 0; i + d < ranks; i += 2 * d)
			term[i] = step(m, op, acc, term[i], term[i + d]);
	m->out[0] = acc != t->dtype ? step(m, YOKE_MAP_CAST, t->dtype, term[0], 0) : term[0];
}

static struct yoke_view view_of(const struct yk_task *t, struct yk_address p, uint64_t count, uint32_t *align)
{
	const uint32_t own = p.offset & 255 ? (uint32_t)(p.offset & -p.offset & 255) : 256;
	*align = own < *align ? own : *align;
	return (struct yoke_view){ .segment = p.segment, .offset = p.offset, .dims = { (int64_t)count }, .strides = { 1 },
				   .dtype = t->dtype, .rank = 1, .kind = YOKE_VIEW_BUFFER };
}

static int prepare_sum(struct yk_task *t, const struct yoke_op *op, uint32_t align, struct yk_native_sum **to)
{
	const struct yk_native *n = t->group->native;
	struct yk_native_sum *s = t->sums;
	while (s && (s->count != (uint64_t)op->dims[0] || s->align != align))
		s = s->next;
	*to = s;
	if (s)
		return 0;
	uint64_t bytes = 0;
	uint64_t some = n->ops->can(n->device, op);
	int err = (s = calloc(1, sizeof *s)) ? YOKE_EUNSUPPORTED : yk_fail(YOKE_ENOMEM, "no memory for a collective");
	for (; s && some && err == YOKE_EUNSUPPORTED; some &= some - 1)
		err = n->ops->prepare(n->device, op, (uint32_t)__builtin_ctzll(some), 0, &s->handle, &bytes);
	if (!err && bytes) { // there is none for it
		n->ops->release(s->handle);
		err = YOKE_EUNSUPPORTED;
	}
	if (err) {
		free(s);
		return err;
	}
	s->ops = n->ops;
	s->count = (uint64_t)op->dims[0];
	s->align = align;
	s->next = t->sums;
	*to = t->sums = s;
	return 0;
}

static int run_sum(struct yk_job *j, const struct act *a)
{
	struct yk_task *t = j->task;
	const struct yoke_group *g = t->group;
	struct yoke_view v[1 + YK_NATIVE_RANKS];
	struct yoke_map map;
	struct yk_native_sum *s;
	uint32_t align = 256;
	program_of(t, &map);
	v[0] = view_of(t, a->to, a->count, &align);
	for (uint32_t i = 0; i < g->ranks; i++) {
		struct yk_address p = slot_of(j, i, 0);
		p.offset += a->slot;
		v[1 + i] = view_of(t, i == g->rank ? a->from : p, a->count, &align);
	}
	for (uint32_t i = 0; i <= g->ranks; i++)
		v[i].align = align;
	const bool over = a->to.segment == a->from.segment && a->to.offset == a->from.offset;
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_MAP, .rank = 1, .nout = 1, .nin = g->ranks,
			      .dims = { (int64_t)a->count }, .out = v, .in = v + 1, .map = &map,
			      .alias_mask = (uint64_t)over << g->rank };
	const int err = prepare_sum(t, &op, align, &s);
	return err ? err : g->native->ops->run(g->native->queue, s->handle, &op);
}

void yk_native_task_fini(struct yk_task *t)
{
	while (t->sums) {
		struct yk_native_sum *s = t->sums;
		t->sums = s->next;
		s->ops->release(s->handle);
		free(s);
	}
}

// ---- moving on ----

static int enqueue(struct yk_job *j, const struct act *a)
{
	const struct yk_native *n = j->task->group->native;
	const uint64_t bytes = a->count * size_of(j->task);
	const uint8_t zero = 0;
	switch (a->kind) {
	case TOGETHER: return n->ext->run(n->queue, n->comm, a->n, j->native->what + a->first);
	case SUM: return run_sum(j, a);
	case ZERO: return n->ops->fill(n->queue, a->to.segment, a->to.offset, bytes, &zero, 1);
	case COPY: break;
	}
	if (a->to.segment == a->from.segment && a->to.offset == a->from.offset)
		return 0;
	return n->ops->copy(n->queue, a->to.segment, a->to.offset, a->from.segment, a->from.offset, bytes);
}

static int mark(struct yk_native_course *c, const struct yk_native *n)
{
	int err = n->ops->event_mark(n->queue, &c->event);
	c->marked = !err;
	return err || !n->ops->queue_flush ? err : n->ops->queue_flush(n->queue);
}

static int begin(struct yk_job *j)
{
	if (!(j->native = calloc(1, sizeof *j->native)))
		return yk_fail(YOKE_ENOMEM, "no memory for a collective");
	plan(j);
	return j->native->short_of_memory ? yk_fail(YOKE_ENOMEM, "no memory for a collective") : 1;
}

int yk_native_advance(struct yk_job *j)
{
	const struct yk_native *n = j->task->group->native;
	struct yk_native_course *c = j->native;
	if (!c)
		return begin(j);
	const int ready = n->comm ? n->ext->status(n->comm) : 1;
	if (ready <= 0)
		return ready;
	if (c->at < c->n) {
		const int err = enqueue(j, &c->act[c->at++]);
		c->begun = true;
		return err ? err : 1;
	}
	if (!c->marked) {
		const int err = mark(c, n);
		return err ? err : 1;
	}
	const int done = c->event ? n->ops->event_done(c->event) : 1;
	return done > 0 ? 2 : done;
}

// The library ends what is under way; what then is still on the queue are copies and sums.
bool yk_native_stop(struct yk_job *j)
{
	struct yk_native *n = j->task->group->native;
	struct yk_native_course *c = j->native;
	if (n->comm)
		n->ext->leave(n->comm, 1);
	n->comm = NULL;
	n->broken = true;
	if (!c || !c->begun || (!c->marked && mark(c, n) < 0))
		return true;
	return !c->event || n->ops->event_done(c->event) != 0;
}

void yk_native_job_fini(struct yk_job *j)
{
	struct yk_native_course *c = j->native;
	if (!c)
		return;
	if (c->event)
		j->task->group->native->ops->event_free(c->event);
	free(c->what);
	free(c->act);
	free(c);
}
