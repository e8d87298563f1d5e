// SPDX-License-Identifier: Apache-2.0
// Message-based collectives: executes a job's schedule over the links of its group. It never
// blocks, so that all jobs of a rank advance together.
//
// A send proceeds in the background while later actions run; its data is not overwritten until it
// is complete. Received bytes are not trusted: an unexpected message header breaks the group.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "comm/adapt.h"
#include "comm/carrier.h"
#include "comm/native.h"
#include "comm/ranks.h"
#include "comm/sums.h"
#include "comm/tuned.h"

enum { TRANSFER = 1 << 15, CARRIED = 1 << 16 }; // bytes; multiples of every element size

struct sending {
	const struct yk_action *action;
	uint64_t done; // bytes sent, including the header
	uint64_t due;  // with dist.link: earliest time to send, nanoseconds
};

struct yk_course {
	const struct yk_schedule *s;
	size_t at;              // index of the current action
	struct sending *send;   // incomplete sends, in order
	size_t sends;
	uint64_t got;           // bytes of the current message received, including its header
	char *slot, *work;
	size_t slot_bytes;
	uint8_t *held;          // per peer, within a pass: an earlier message is incomplete
	bool alias;             // IN and OUT are the same memory
};

void yk_course_free(struct yk_course *c)
{
	if (!c)
		return;
	free(c->send);
	free(c->slot);
	free(c->work);
	free(c->held);
	free(c);
}

void yk_task_fini(struct yk_task *t)
{
	if (t->schedule)
		yk_schedule_fini(t->schedule);
	free(t->schedule);
	t->schedule = NULL;
	yk_native_task_fini(t);
}

// ---- addresses ----

// Number of elements that are divided into chunks.
static int64_t elements(const struct yk_task *t)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < t->tensors; i++)
		n += t->count[i];
	return t->what == YK_DO_ALL_GATHER ? n * t->group->ranks : n;
}

static bool has_shards(const struct yk_task *t)
{
	return t->what == YK_DO_GATHER_SHARDS || t->what == YK_DO_REDUCE_SHARDS;
}

static int64_t chunk_at(const struct yk_task *t, const struct yk_schedule *s, uint32_t c)
{
	const int64_t n = elements(t), k = s->chunks, whole = n / k, rest = n % k;
	if (has_shards(t))
		return yk_shard_at(t->group->ranks, c, t->root, t->tensors, t->count);
	return whole * c + rest * c / k;
}

static size_t size_of(const struct yk_task *t)
{
	return t->dtype ? yoke_dtype_size(t->dtype) : 1;
}

static uint64_t action_bytes(const struct yk_job *j, const struct yk_action *a)
{
	const struct yk_schedule *s = j->course->s;
	uint64_t n = 0;
	for (uint32_t k = 0; k < a->chunks; k++) {
		const uint32_t c = a->chunk + k * a->step;
		n += (uint64_t)(chunk_at(j->task, s, c + 1) - chunk_at(j->task, s, c));
	}
	return n * size_of(j->task);
}

// Address of element e of the concatenated inputs or outputs; *run: number of contiguous elements
// from there.
static char *element_at(const struct yk_job *j, int place, int64_t e, int64_t *run)
{
	const struct yk_task *t = j->task;
	const bool in = place == YK_IN;
	const int64_t part = elements(t) / t->group->ranks * t->group->rank;
	char *const *list = in ? j->in : j->out;
	uint32_t k = 0;
	if (has_shards(t) && in == (t->what == YK_DO_GATHER_SHARDS)) { // this rank's own shard
		*run = INT64_MAX;
		return list[in ? t->mine : 0] +
		       (size_t)(e - chunk_at(t, j->course->s, t->group->rank)) * size_of(t);
	}
	if ((in && t->what == YK_DO_ALL_GATHER) || (!in && t->what == YK_DO_REDUCE_SCATTER))
		e -= part;
	if (t->what == YK_DO_ALL_GATHER) {
		*run = INT64_MAX;
		return list[0] + (size_t)e * size_of(t);
	}
	while (k + 1 < t->tensors && e >= t->count[k])
		e -= t->count[k++];
	*run = t->tensors > 1 ? t->count[k] - e : INT64_MAX;
	return list[k] + (size_t)e * size_of(t);
}

// Address of byte `at` of the action's chunks in a buffer; returns the number of contiguous bytes
// from there.
static uint64_t contiguous_at(const struct yk_job *j, const struct yk_action *a, int place,
			      uint32_t slot, uint64_t at, char **to)
{
	const struct yk_course *c = j->course;
	const size_t size = size_of(j->task);
	if (place == YK_SLOT) {
		*to = c->slot + slot * c->slot_bytes + at;
		return UINT64_MAX;
	}
	for (uint32_t k = 0; k < a->chunks; k++) {
		const uint32_t chunk = a->chunk + k * a->step;
		const int64_t first = chunk_at(j->task, c->s, chunk),
			      end = chunk_at(j->task, c->s, chunk + 1);
		const uint64_t bytes = (uint64_t)(end - first) * size;
		if (at >= bytes) {
			at -= bytes;
			continue;
		}
		const int64_t e = first + (int64_t)(at / size);
		int64_t run = INT64_MAX;
		*to = place == YK_WORK && c->work ?
			      c->work + (size_t)e * size :
			      element_at(j, place == YK_WORK ? YK_OUT : place, e, &run);
		*to += at % size;
		return (uint64_t)(run < end - e ? run : end - e) * size - at % size;
	}
	return 0;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// ---- computing ----

static void compute(struct yk_job *j, const struct yk_action *a)
{
	const struct yk_task *t = j->task;
	const uint64_t bytes = action_bytes(j, a);
	const int place = a->kind == YK_ACT_SUM ? YK_OUT : a->place;
	for (uint64_t at = 0, n; at < bytes; at += n) {
		const void *in[YK_MAX_RANKS];
		char *to, *from;
		n = min(bytes - at, contiguous_at(j, a, place, a->slot, at, &to));
		if (a->kind == YK_ACT_COPY) {
			n = min(n, contiguous_at(j, a, a->source, 0, at, &from));
			if (to != from)
				memcpy(to, from, n);
			continue;
		}
		if (a->kind == YK_ACT_ADD) {
			char *own;
			n = min(n, contiguous_at(j, a, YK_SLOT, a->slot, at, &from));
			n = min(n, contiguous_at(j, a, a->source, 0, at, &own));
			in[a->first ? 0 : 1] = from;
			in[a->first ? 1 : 0] = own;
			yk_sums(t->dtype, t->kind, 2, in, 1, (void *[]){ to }, n / size_of(t));
			continue;
		}
		for (uint32_t i = 0; i < a->terms; i++) {
			const bool own = i == a->own;
			n = min(n, contiguous_at(j, a, own ? a->place : YK_SLOT,
						 a->slot + i - (i > a->own), at, &from));
			in[i] = from;
		}
		yk_sums(t->dtype, t->kind, a->terms, in, 1, (void *[]){ to }, n / size_of(t));
	}
}

// ---- links ----

static uint32_t group_word(const struct yoke_group *g)
{
	return (uint32_t)yk_hash(g->name, strlen(g->name), g->ranks);
}

static struct yk_head head_of(const struct yk_job *j, uint64_t bytes)
{
	return (struct yk_head){ j->task->hash, bytes, j->sequence, group_word(j->task->group),
				 j->task->group->rank };
}

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

// Writes to the ring buffer, wrapping around at its end.
static void ring_write(struct yk_rank_link *l, uint32_t ring, uint64_t at, const void *from,
		       uint64_t n)
{
	const uint64_t first = min(n, ring - at % ring);
	memcpy(l->data + at % ring, from, first);
	memcpy(l->data, (const char *)from + first, n - first);
}

static void ring_read(const struct yk_rank_link *l, uint32_t ring, uint64_t at, void *to,
		      uint64_t n)
{
	const uint64_t first = min(n, ring - at % ring);
	memcpy(to, l->data + at % ring, first);
	memcpy((char *)to + first, l->data, n - first);
}

static bool is_ends(const struct yk_job *j)
{
	return j->task->what == YK_DO_SEND || j->task->what == YK_DO_RECV;
}

// Bytes to transfer in one direction before checking the other. Between machines each transfer
// costs some microseconds, so it is larger, but still small enough that sending, writing and adding
// overlap.
static uint64_t transfer_size(const struct yoke_group *g)
{
	const uint32_t ring = g->rendezvous->area->ring;
	return !g->rendezvous->route ? TRANSFER : min(ring, CARRIED);
}

// With dist.link: whether the message has not arrived yet in simulated time.
static bool is_delayed(struct yoke_group *g, struct sending *x, uint64_t bytes)
{
	double alpha, beta;
	if (x->done || !yk_ranks_link(&alpha, &beta))
		return false;
	const uint64_t now = yk_nanoseconds();
	if (!x->due) {
		x->due = (now > g->port ? now : g->port) +
			 (uint64_t)(1e9 * (alpha + (double)bytes * beta));
		g->port = x->due;
	}
	if (now >= x->due)
		return false;
	g->queue->timer.next = g->queue->timer.next ? min(g->queue->timer.next, x->due) : x->due;
	return true;
}

// Continues a send; returns true if bytes were written.
static bool push(struct yk_job *j, struct sending *x)
{
	struct yoke_group *g = j->task->group;
	const uint32_t ring = g->rendezvous->area->ring;
	struct yk_rank_link *l =
		yk_rendezvous_link(g->rendezvous, is_ends(j), g->rank, x->action->peer);
	const uint64_t bytes = action_bytes(j, x->action),
		       all = sizeof(struct yk_head) + padded(bytes), before = x->done;
	uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed),
		 room = min(ring - (head - atomic_load(&l->tail)), transfer_size(g));
	if (is_delayed(g, x, bytes))
		return false;
	if (!x->done && room >= sizeof(struct yk_head)) {
		const struct yk_head h = head_of(j, bytes);
		ring_write(l, ring, head, &h, sizeof h);
		x->done = sizeof h;
		head += sizeof h;
		room -= sizeof h;
	}
	while (x->done && x->done < all && room >= 8) {
		const uint64_t at = x->done - sizeof(struct yk_head);
		char *from;
		uint64_t n =
			contiguous_at(j, x->action, x->action->place, x->action->slot, at, &from);
		n = min(min(n, bytes - at), room / 8 * 8);
		ring_write(l, ring, head, from, n);
		atomic_fetch_add_explicit(&j->task->group->bytes, n, memory_order_relaxed);
		if (at + n == bytes)
			n += padded(bytes) - bytes; // padding is not read
		x->done += n;
		head += n;
		room -= n;
	}
	if (x->done == before)
		return false;
	atomic_store(&l->head, head);
	yk_wakeup_ring(atomic_load(&g->rendezvous->wakeup[x->action->peer]));
	return true;
}

// Whether the header is the one this job expects. If it is not, the group is usually broken.
static bool is_expected(const struct yk_job *j, const struct yk_head *h, uint32_t from,
			uint64_t bytes)
{
	const struct yoke_group *g = j->task->group;
	const bool good = h->group == group_word(g) && h->from == from;
	if (good && h->hash == j->task->hash && h->sequence == j->sequence && h->bytes == bytes)
		return true;
	const bool differs =
		good && h->hash != j->task->hash && h->sequence == j->sequence && !is_ends(j);
	if (differs && g->rendezvous->route &&
	    atomic_load(&g->rendezvous->slot[from].arrived) <= j->sequence)
		return false; // the other rank's text has not arrived yet
	if (differs)
		yk_job_disagrees(j, from, g->rendezvous->slot[from].text[j->sequence % YK_TEXTS]);
	else if (good && is_ends(j) && h->hash != j->task->hash)
		yk_job_disagrees(j, from, "sends another tensor");
	else
		yk_rendezvous_break(
			g->rendezvous, YOKE_ERANK,
			"rank %u of %s got a message that rank %u cannot have sent in %s", g->rank,
			g->name, from, j->task->text);
	return false;
}

// Continues a receive; returns true if bytes were read. *whole: the message is complete.
static bool pull(struct yk_job *j, const struct yk_action *a, bool *whole)
{
	const struct yk_task *t = j->task;
	const struct yoke_group *g = t->group;
	struct yk_course *c = j->course;
	const uint32_t ring = g->rendezvous->area->ring;
	struct yk_rank_link *l = yk_rendezvous_link(g->rendezvous, is_ends(j), a->peer, g->rank);
	const uint64_t bytes = action_bytes(j, a), all = sizeof(struct yk_head) + padded(bytes),
		       before = c->got;
	uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed),
		 there = atomic_load(&l->head) - tail;
	if (there > ring) {
		yk_rendezvous_break(g->rendezvous, YOKE_ERANK,
				    "rank %u of %s: the link from rank %u is damaged", g->rank,
				    g->name, a->peer);
		return false;
	}
	there = min(there, transfer_size(g));
	if (!c->got && there >= sizeof(struct yk_head)) {
		struct yk_head h;
		ring_read(l, ring, tail, &h, sizeof h);
		if (!is_expected(j, &h, a->peer, bytes))
			return false;
		c->got = sizeof h;
		tail += sizeof h;
		there -= sizeof h;
	}
	while (c->got && c->got < all && there) {
		const uint64_t at = c->got - sizeof(struct yk_head);
		uint64_t n;
		char *to;
		if (at >= bytes) {
			n = min(all - c->got, there);
		} else {
			n = min(contiguous_at(j, a, a->place, a->slot, at, &to),
				min(bytes - at, there));
			n = min(n, ring - tail % ring);
			if (a->kind == YK_ACT_RECV) {
				memcpy(to, l->data + tail % ring, n);
			} else {
				char *own;
				n = min(n, contiguous_at(j, a, a->source, 0, at, &own));
				const void *in[2] = { own, l->data + tail % ring };
				const void *turned[2] = { in[1], in[0] };
				n = n / size_of(t) * size_of(t);
				if (!n)
					break;
				yk_sums(t->dtype, t->kind, 2, a->first ? turned : in, 1,
					(void *[]){ to }, n / size_of(t));
			}
		}
		c->got += n;
		tail += n;
		there -= n;
	}
	*whole = c->got == all;
	if (c->got == before)
		return false;
	atomic_store(&l->tail, tail);
	yk_wakeup_ring(atomic_load(&g->rendezvous->wakeup[a->peer]));
	return true;
}

// ---- schedules ----

static bool rounds_once(const struct yk_task *t)
{
	return (t->dtype == yoke_f16 || t->dtype == yoke_bf16) && t->kind == YOKE_REDUCE_SUM;
}

// Chooses the algorithm: the one that dist.algorithm names if it exists and keeps the rounding,
// else a measured one, else the default for the size.
static void choose(const struct yk_task *t, uint8_t applied, struct yk_schedule_request *w)
{
	const uint32_t node = t->group->rendezvous->node;
	const bool once = rounds_once(t);
	const uint64_t bytes = (uint64_t)elements(t) * size_of(t);
	const char *algorithm = yk_ranks_algorithm();
	w->node = node ? node : w->ranks > 2 ? 2 : w->ranks;
	for (int how = 0; how < YK_BY_SHARED; how++) {
		w->how = (uint8_t)how;
		if (!strcmp(algorithm, yk_algorithm_name[how]) && yk_schedule_exists(w) &&
		    (!once || yk_schedule_rounds_once(w)))
			return;
	}
	const bool tuned = w->what == YK_DO_ALL_REDUCE && !t->group->rendezvous->route;
	const int best = applied ? applied :
			 tuned   ? t->group->rendezvous->area->best[yk_tuned_size(bytes)] :
				   0;
	w->how = (uint8_t)(best - 1);
	if (best && yk_schedule_exists(w) && (!once || yk_schedule_rounds_once(w)) &&
	    yk_schedule_in_order(w))
		return;
	if (!node) // w->node = 2 was only for an explicit dist.algorithm=2d
		w->node = w->ranks;
	yk_schedule_usual(w, (double)bytes, once);
}

static const struct yk_schedule *schedule_of(struct yk_task *t, uint8_t applied)
{
	const uint8_t what = t->what == YK_DO_GATHER_SHARDS ? YK_DO_ALL_GATHER :
			     t->what == YK_DO_REDUCE_SHARDS ? YK_DO_REDUCE_SCATTER :
							      t->what;
	struct yk_schedule_request w = { .what = what, .ranks = t->group->ranks,
				      .rank = t->group->rank, .root = t->root };
	if (t->schedule && t->applied == applied)
		return t->schedule;
	if (t->schedule) { // not in use: jobs of a task run one after the other
		yk_schedule_fini(t->schedule);
		free(t->schedule);
		t->schedule = NULL;
	}
	struct yk_schedule *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	if (t->what == YK_DO_SEND || t->what == YK_DO_RECV) {
		const bool sends = t->what == YK_DO_SEND;
		s->action = calloc(1, sizeof *s->action);
		s->n = s->action != NULL;
		s->chunks = 1;
		if (s->n)
			*s->action = (struct yk_action){ .kind = sends ? YK_ACT_SEND : YK_ACT_RECV,
							 .place = sends ? YK_IN : YK_OUT,
							 .peer = t->root,
							 .step = 1,
							 .chunks = 1 };
	} else {
		choose(t, applied, &w);
		yk_schedule_make(&w, s);
		t->how = w.how;
	}
	if (!s->action && t->group->ranks > 1) {
		free(s);
		return NULL;
	}
	t->applied = applied;
	return t->schedule = s;
}

static bool begin(struct yk_job *j)
{
	struct yk_task *t = j->task;
	const struct yk_schedule *s = schedule_of(t, j->applied);
	struct yk_course *c = s ? calloc(1, sizeof *c) : NULL;
	if (!c)
		return false;
	j->course = c;
	c->s = s;
	const uint64_t n = (uint64_t)elements(t) * size_of(t);
	uint64_t max = 0;
	for (uint32_t i = 0; i < s->chunks; i++) {
		const uint64_t bytes =
			(uint64_t)(chunk_at(t, s, i + 1) - chunk_at(t, s, i)) * size_of(t);
		max = bytes > max ? bytes : max;
	}
	c->slot_bytes = (size_t)padded(max * s->room);
	// inputs and outputs are different tensors
	const bool apart = is_ends(j) || t->what == YK_DO_REDUCE_SHARDS ||
			   (t->what == YK_DO_GATHER_SHARDS && !t->mine);
	for (uint32_t i = 0; i < t->tensors && !apart; i++)
		c->alias |= j->in[i] == j->out[i];
	c->send = malloc((s->n + 1) * sizeof *c->send);
	c->held = malloc(t->group->ranks);
	c->slot = s->slots ? malloc(s->slots * c->slot_bytes + 1) : NULL;
	c->work = s->work ? malloc(n + 1) : NULL;
	return c->send && c->held && (c->slot || !s->slots) && (c->work || !s->work);
}

// ---- advancing ----

static int place_of(const struct yk_job *j, const struct yk_action *a)
{
	const int place = a->kind == YK_ACT_SUM ? YK_OUT : a->place;
	return place == YK_WORK && !j->course->s->work ? YK_OUT : place;
}

// Whether the action would overwrite data that is still being sent.
static bool must_wait(const struct yk_job *j, const struct yk_action *a)
{
	const int place = place_of(j, a);
	if (a->kind == YK_ACT_SEND)
		return false;
	for (size_t i = 0; i < j->course->sends; i++) {
		const struct yk_action *b = j->course->send[i].action;
		const int other =
			place_of(j, b) == YK_IN && j->course->alias ? YK_OUT : place_of(j, b);
		if (place != other || (place == YK_SLOT && a->slot != b->slot))
			continue;
		if (yk_actions_meet(a, b))
			return true;
	}
	return false;
}

static bool push_all(struct yk_job *j)
{
	struct yk_course *c = j->course;
	bool any = false;
	size_t left = 0;
	memset(c->held, 0, j->task->group->ranks);
	for (size_t i = 0; i < c->sends; i++) {
		struct sending *x = &c->send[i];
		const struct yk_action *a = x->action;
		if (!c->held[a->peer])
			any |= push(j, x);
		if (x->done == sizeof(struct yk_head) + padded(action_bytes(j, a)))
			continue;
		c->held[a->peer] = 1;
		c->send[left++] = *x;
	}
	c->sends = left;
	return any;
}

// Continues the current action; returns true if anything changed.
static bool act(struct yk_job *j)
{
	struct yk_course *c = j->course;
	const struct yk_action *a = &c->s->action[c->at];
	bool whole = true, moved = true;
	if (must_wait(j, a))
		return false;
	if (a->kind == YK_ACT_SEND) {
		c->send[c->sends++] = (struct sending){ a, 0, 0 };
	} else if (a->kind == YK_ACT_RECV || a->kind == YK_ACT_RECV_ADD) {
		whole = false;
		moved = pull(j, a, &whole);
	} else {
		compute(j, a);
	}
	if (whole) {
		c->at++;
		c->got = 0;
	}
	return moved || whole;
}

static void end(struct yk_job *j)
{
	const struct yk_task *t = j->task;
	struct yk_rank_slot *s = &t->group->rendezvous->slot[t->group->rank];
	for (uint32_t k = 0; k < t->tensors && t->what == YK_DO_REDUCE && t->group->rank != t->root;
	     k++)
		memset(j->out[k], 0, (size_t)t->count[k] * size_of(t));
	if (t->what == YK_DO_SEND)
		memset(j->out[0], 0, sizeof(float));
	j->phase = YK_OVER;
	if (t->group->adapt && !t->group->rank && t->what == YK_DO_ALL_REDUCE)
		yk_adapt_took(t->group->adapt, yk_task_bytes(t), rounds_once(t), t->how,
			      1e-9 * (double)(yk_nanoseconds() - j->begun));
	if (!is_ends(j)) {
		atomic_store_explicit(&s->since, yk_nanoseconds(), memory_order_relaxed);
		atomic_store(&s->left, j->sequence + 1);
	}
}

// Breaks the group if a rank that this job needs has left.
static void look_for_gone(const struct yk_job *j)
{
	const struct yoke_group *g = j->task->group;
	const struct yk_course *c = j->course;
	const struct yk_action *a = c->at < c->s->n ? &c->s->action[c->at] : NULL;
	// when sending, this rank waits for the receiver
	const bool receives = a && (a->kind == YK_ACT_RECV || a->kind == YK_ACT_RECV_ADD);
	const uint32_t peer = receives ? a->peer : c->sends ? c->send[0].action->peer : g->rank;
	const bool away = g->rendezvous->route && yk_route_away(g->rendezvous->route, peer);
	if (peer == g->rank || !(away ? yk_route_ended(g->rendezvous->route, is_ends(j), peer) :
					atomic_load(&g->rendezvous->slot[peer].gone)))
		return;
	// messages it sent before leaving can still be read
	const struct yk_rank_link *l = yk_rendezvous_link(g->rendezvous, is_ends(j), peer, g->rank);
	if (atomic_load(&l->head) == atomic_load(&l->tail))
		yk_job_peer_left(j, peer);
}

bool yk_message_advance(struct yk_job *j, int *code, char why[YK_WHY])
{
	struct yk_course *c = j->course;
	bool moved = false;
	if (yk_job_broken(j, code, why))
		return j->phase == YK_OVER;
	if (!c) {
		if (is_ends(j))
			j->begun = yk_nanoseconds();
		else
			yk_job_arrive(j, yk_nanoseconds());
		if (!begin(j)) {
			yk_rendezvous_break(j->task->group->rendezvous, YOKE_ENOMEM,
					    "rank %u of %s has no memory for %s",
					    j->task->group->rank, j->task->group->name,
					    j->task->text);
			return true;
		}
		c = j->course;
		moved = true;
	}
	// between machines: one pass only, so that the carrier and other jobs get their turn
	const bool carried = j->task->group->rendezvous->route;
	for (bool any = true, more = true; any && more; more = !carried) {
		any = push_all(j);
		if (c->at < c->s->n)
			any |= act(j);
		moved |= any;
	}
	if (c->at == c->s->n && !c->sends) {
		end(j);
		return true;
	}
	if (!moved)
		look_for_gone(j);
	return moved;
}
