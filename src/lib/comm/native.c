// SPDX-License-Identifier: Apache-2.0
// Executes a job through the vendor's library. The job becomes a list of commands for the group's
// own device queue: library collectives, copies, and sums in order T, which are map ops. A
// reduction is an exchange in which each rank sums its own range, followed by a gather if all ranks
// need the result, so the bits are those of the host transports. With dist.order=fast the library
// reduces, in an unspecified order.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "comm/native.h"

YK_PARAM(order_setting, "dist.order", YK_STRING, "fixed",
	 "fixed: sums have a fixed order and the same bits on any number of ranks; fast: on GPUs "
		"the vendor's library chooses the order");

// A sum of `count` elements, prepared for operands with this alignment.
struct yk_native_sum {
	struct yk_native_sum *next;
	const struct yoke_backend *ops;
	uint64_t count;
	uint32_t align;
	void *handle;
};

bool yk_native_fast(void)
{
	return !strcmp(yk_param_str(&order_setting), "fast");
}

// ---- commands ----

enum act_kind { TOGETHER, COPY, SUM, ZERO };
struct act {
	enum act_kind kind;
	uint32_t first, n; // TOGETHER: range of the course's collectives
	struct yk_address to, from;
	// count: in elements; SUM: slot is the byte offset of the terms within each slot
	uint64_t count, slot;
};

struct yk_native_course {
	struct yoke_collective *what;
	size_t nwhat, what_cap;
	struct act *act;
	size_t n, cap, at;
	// collectives are not added to the first `closed` commands, so that all ranks place their
	// sums between the same library groups
	size_t closed;
	void *event; // marks the completion of all commands
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

// Adds a library collective, in the same library group as the previous one if possible.
static void add_collective(struct yk_job *j, int code, uint32_t peer, struct yk_address in,
			   struct yk_address out, uint64_t count)
{
	struct yk_native_course *c = j->native;
	struct act *a =
		c->n > c->closed && c->act[c->n - 1].kind == TOGETHER ? &c->act[c->n - 1] : NULL;
	if (!count || (!a && !(a = add(c, TOGETHER))))
		return;
	if (yk_grow(&c->what, &c->what_cap, c->nwhat + 1, sizeof *c->what) < 0) {
		c->short_of_memory = true;
		return;
	}
	c->what[c->nwhat++] = (struct yoke_collective){ .code = (uint32_t)code,
							.dtype = j->task->dtype,
							.kind = j->task->kind,
							.peer = peer,
							.count = count,
							.in = in.segment,
							.in_offset = in.offset,
							.out = out.segment,
							.out_offset = out.offset };
	a->n++;
}

static const struct yk_address none;

static void act(struct yk_job *j, enum act_kind kind, struct yk_address to, struct yk_address from,
		uint64_t count, uint64_t slot)
{
	struct act *a = count ? add(j->native, kind) : NULL;
	if (!a)
		return;
	a->to = to;
	a->from = from;
	a->count = count;
	a->slot = slot;
}

// ---- ranges of tensors, and slots for received terms ----

struct range { // a range of the concatenated elements of all tensors
	int64_t from, to;
};

static struct range range_of(const struct yk_task *t, uint32_t rank)
{
	const uint32_t ranks = t->group->ranks;
	int64_t n = 0;
	if (t->what == YK_DO_GATHER_SHARDS || t->what == YK_DO_REDUCE_SHARDS)
		return (struct range){ yk_shard_at(ranks, rank, t->root, t->tensors, t->count),
				       yk_shard_at(ranks, rank + 1, t->root, t->tensors,
						   t->count) };
	for (uint32_t i = 0; i < t->tensors; i++)
		n += t->count[i];
	return (struct range){ n / ranks * rank + n % ranks * rank / ranks,
			       n / ranks * (rank + 1) + n % ranks * (rank + 1) / ranks };
}

// Iterates over the parts of tensors in a rank's range: tensor *k, elements from *from, *count of
// them, which begin at *at within the range. Start with *k = UINT32_MAX.
static bool next_range(const struct yk_task *t, struct range r, uint32_t *k, int64_t *from,
		       int64_t *count, int64_t *at)
{
	int64_t start = 0;
	const uint32_t next = *k + 1;
	for (uint32_t i = 0; i < next; i++)
		start += t->count[i];
	for (*k = next; *k < t->tensors; start += t->count[(*k)++]) {
		int64_t to;
		yk_shard_overlap(r.from, r.to, start, t->count[*k], from, &to);
		*count = to - *from;
		*at = start + *from - r.from;
		if (*count > 0)
			return true;
	}
	return false;
}

#define EACH_PIECE(t, rank, k, from, count, at) \
	uint32_t k = UINT32_MAX; \
	for (int64_t from, count, at; next_range(t, range_of(t, rank), &k, &from, &count, &at);)

static uint64_t slot_bytes(const struct yk_task *t)
{
	const struct range r = range_of(t, t->group->rank);
	return ((uint64_t)(r.to - r.from) * size_of(t) + 255) / 256 * 256;
}

static bool reduces(const struct yk_task *t)
{
	return t->what == YK_DO_ALL_REDUCE || t->what == YK_DO_REDUCE ||
	       t->what == YK_DO_REDUCE_SCATTER || t->what == YK_DO_REDUCE_SHARDS;
}

int yk_native_takes(const struct yk_task *t)
{
	if (!t->group->native || t->what == YK_DO_SEND || t->what == YK_DO_RECV)
		return YK_BY_HOST;
	return reduces(t) && t->what != YK_DO_REDUCE_SHARDS && yk_native_fast() ? YK_BY_LIBRARY :
	       YK_BY_DEVICE;
}

uint64_t yk_native_bytes(const struct yk_task *t)
{
	return reduces(t) && t->where == YK_BY_DEVICE && t->group->ranks > 1 ?
		       t->group->ranks * slot_bytes(t) :
		       0;
}

// The address at which rank i's terms are received. This rank's own slot holds sums that are sent
// on.
static struct yk_address slot_of(const struct yk_job *j, uint32_t i, int64_t element)
{
	const struct yk_task *t = j->task;
	const struct yk_address *work = &j->place[j->nin + j->nout];
	return (struct yk_address){ work->segment, work->offset + i * slot_bytes(t) +
							   (uint64_t)element * size_of(t) };
}

// ---- command lists per collective ----

// Receives rank i's terms of this rank's range.
static void receive(struct yk_job *j, uint32_t i)
{
	EACH_PIECE(j->task, j->task->group->rank, k, from, count, at)
	add_collective(j, YOKE_COLLECTIVE_RECV, i, none, slot_of(j, i, at), (uint64_t)count);
}

// Sends each range to its owner, which sums it afterwards.
static void exchange(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	for (uint32_t c = 0; c < t->group->ranks; c++) {
		if (c == own)
			continue;
		EACH_PIECE(t, c, k, from, count, at)
		add_collective(j, YOKE_COLLECTIVE_SEND, c, in_of(j, k, from), none,
			       (uint64_t)count);
		receive(j, c);
	}
}

// Sums this rank's range into the locations that `to` returns.
static void sum(struct yk_job *j, struct yk_address (*to)(const struct yk_job *, uint32_t k,
							  int64_t from, int64_t at))
{
	const struct yk_task *t = j->task;
	EACH_PIECE(t, t->group->rank, k, from, count, at)
	act(j, SUM, to(j, k, from, at), in_of(j, k, from), (uint64_t)count,
	    (uint64_t)at * size_of(t));
	j->native->closed = j->native->n; // even if this rank's range is empty
}

static struct yk_address in_result(const struct yk_job *j, uint32_t k, int64_t from, int64_t at)
{
	(void)at;
	return out_of(j, k, from);
}

static struct yk_address in_shard(const struct yk_job *j, uint32_t k, int64_t from, int64_t at)
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

// Receives rank c's range of the results.
static void take_results(struct yk_job *j, uint32_t c)
{
	EACH_PIECE(j->task, c, k, from, count, at)
	add_collective(j, YOKE_COLLECTIVE_RECV, c, none, out_of(j, k, from), (uint64_t)count);
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
		add_collective(j, YOKE_COLLECTIVE_SEND, c, out_of(j, k, from), none,
			       (uint64_t)count);
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
	add_collective(j, YOKE_COLLECTIVE_SEND, t->root, slot_of(j, own, at), none,
		       (uint64_t)count);
	zero_results(j);
}

static void gather_shards(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	const uint32_t own = t->group->rank;
	for (uint32_t c = 0; c < t->group->ranks; c++) {
		if (c == own)
			continue;
		EACH_PIECE(t, own, k, from, count, at)
		add_collective(j, YOKE_COLLECTIVE_SEND, c, in_of(j, t->mine, at), none,
			       (uint64_t)count);
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
			add_collective(j, YOKE_COLLECTIVE_SEND, c, in_of(j, 0, c * cut), none,
				       (uint64_t)cut);
			add_collective(j, YOKE_COLLECTIVE_RECV, c, none, out_of(j, 0, c * cut),
				       (uint64_t)cut);
		}
	act(j, COPY, out_of(j, 0, own * cut), in_of(j, 0, own * cut), (uint64_t)cut, 0);
}

// The library's own collective, for each tensor.
static void by_library(struct yk_job *j, int code)
{
	const struct yk_task *t = j->task;
	const int64_t cut = t->what == YK_DO_REDUCE_SCATTER ? t->group->ranks : 1;
	for (uint32_t k = 0; k < t->tensors; k++)
		add_collective(j, code, t->root, in_of(j, k, 0), out_of(j, k, 0),
			       (uint64_t)(t->count[k] / cut));
}

// Group of one rank: copies the operands, or this rank's shard of them, to the results.
static void alone(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	int64_t at = 0;
	for (uint32_t k = 0; k < t->tensors; at += t->count[k++]) {
		const struct yk_address
			from = t->what == YK_DO_GATHER_SHARDS ? in_of(j, t->mine, at) :
			       in_of(j, k, 0),
			to = t->what == YK_DO_REDUCE_SHARDS ? out_of(j, 0, at) : out_of(j, k, 0);
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
		exchange(j); // ranges are blocks of axis 0
		sum(j, in_shard);
		return;
	case YK_DO_REDUCE_SHARDS:
		exchange(j);
		sum(j, in_shard);
		return;
	case YK_DO_GATHER_SHARDS: gather_shards(j); return;
	case YK_DO_ALL_GATHER: by_library(j, YOKE_COLLECTIVE_ALL_GATHER); return;
	case YK_DO_ALL_TO_ALL: all_to_all(j); return;
	case YK_DO_BROADCAST: by_library(j, YOKE_COLLECTIVE_BROADCAST); return;
	}
}

// ---- sums ----

static uint16_t step(struct yoke_map *m, int op, int dtype, uint16_t a, uint16_t b)
{
	m->insn[m->ninsn] =
		(struct yoke_insn){ .op = (uint16_t)op, .dtype = (uint8_t)dtype, .a = a, .b = b };
	return m->ninsn++;
}

// Adds all terms in order T; half precision is summed in f32 and rounded once.
static void program_of(const struct yk_task *t, struct yoke_map *m)
{
	const int op = t->kind == YOKE_REDUCE_MAX ? YOKE_MAP_MAX :
		       t->kind == YOKE_REDUCE_MIN ? YOKE_MAP_MIN :
						    YOKE_MAP_ADD,
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

static struct yoke_view view_of(const struct yk_task *t, struct yk_address p, uint64_t count,
				uint32_t *align)
{
	const uint32_t own = p.offset & 255 ? (uint32_t)(p.offset & -p.offset & 255) : 256;
	*align = own < *align ? own : *align;
	return (struct yoke_view){ .segment = p.segment,
				   .offset = p.offset,
				   .dims = { (int64_t)count },
				   .strides = { 1 },
				   .dtype = t->dtype,
				   .rank = 1,
				   .kind = YOKE_VIEW_BUFFER };
}

static int prepare_sum(struct yk_task *t, const struct yoke_op *op, uint32_t align,
		       struct yk_native_sum **to)
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
	int err = (s = calloc(1, sizeof *s)) ? YOKE_EUNSUPPORTED :
					       yk_fail(YOKE_ENOMEM, "no memory for a collective");
	for (; s && some && err == YOKE_EUNSUPPORTED; some &= some - 1)
		err = n->ops->prepare(n->device, op, (uint32_t)__builtin_ctzll(some), 0, &s->handle,
				      &bytes);
	if (!err && bytes) { // no workspace is available
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
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_MAP,
			      .rank = 1,
			      .nout = 1,
			      .nin = g->ranks,
			      .dims = { (int64_t)a->count },
			      .out = v,
			      .in = v + 1,
			      .map = &map,
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

// ---- advancing ----

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
	return n->ops->copy(n->queue, a->to.segment, a->to.offset, a->from.segment, a->from.offset,
			    bytes);
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

// Aborts the library's operations; copies and sums may still be running on the queue afterwards.
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
