// SPDX-License-Identifier: Apache-2.0
// Links between machines over MPI. The two ends of a link are ring buffers of equal length with the
// same bytes at the same offsets: an MPI message is a contiguous range of the sender's ring and is
// received at the same offset of the receiver's. An empty message means that the sender has left
// the group.
//
// Ranks of a machine read each other's slots and the failure reason when a rank is late or fails.
// For other machines these are sent several times a second as a "board" to the group's first rank
// on each machine, which writes it into shared memory.
#include "config.h"

#include "comm/carrier.h"
#include "comm/mpi_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"

enum {
	BOARD_NS = 250000000, // interval between boards
	END_S = 20,           // time limit for the other ranks to end
	LATE_NS = 500000000,  // time limit for sending a board after the group broke
	COLLECTIVES = 0, SENDS = 1, BOARDS = 2, KINDS = 3 // message tags
};

struct line { // one direction of a link
	uint64_t request;
	size_t bytes; // of the message in flight
	bool busy, ended;
};

struct board {
	uint64_t arrived, left, since_age, beat_age; // ages in nanoseconds
	int32_t broken, code, process, thread;
	char text[YK_TASK_TEXT], why[YK_WHY];
};

struct yk_carrier_route {
	struct yk_carrier_route *next;
	struct yk_carrier *carrier;
	struct yk_rendezvous *rendezvous; // a reference
	uint32_t rank, tag;
	uint32_t *world;    // index: member
	bool *away, *leads; // per member: on another machine; first of its machine
	struct line *out, *in; // index: kind * ranks + member
	struct line *sends;    // boards being sent, per member
	struct board mine, received;
	struct line receive;   // the board being received from member `from`
	uint32_t from;
	uint64_t sent;         // when the last board was sent
	bool broken_sent;      // the others were notified that the group is broken
	atomic_bool leaving;
};

enum { ASKED, OPENED, REFUSED };

struct yk_carrier {
	const struct yk_mpi *mpi;
	struct yk_started place;
	uint32_t first;      // this machine's first rank
	uint32_t *node;      // per rank: the first rank of its machine
	struct yk_carrier_route *routes;
	bool failed;
	atomic_int phase;
	bool serialized;     // threads may call MPI one at a time
	int code;
	char why[YK_WHY];
};

// ---- opening ----

bool yk_carrier_requested(struct yk_carrier *c)
{
	return atomic_load(&c->phase) == ASKED;
}

bool yk_carrier_by_turns(const struct yk_carrier *c)
{
	return atomic_load(&c->phase) == OPENED && c->serialized;
}

__attribute__((format(printf, 3, 4))) static void refuse(struct yk_carrier *c, int code,
							 const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	yk_vsnprintf(c->why, sizeof c->why, fmt, ap);
	va_end(ap);
	c->code = code;
	atomic_store(&c->phase, REFUSED);
}

// Exchanges machine and version of all ranks; versions must be equal.
static int exchange_versions(struct yk_carrier *c)
{
	struct sent {
		uint32_t first;
		char version[60];
	} mine = { .first = c->first }, *all = calloc(c->place.ranks, sizeof *all);
	snprintf(mine.version, sizeof mine.version, "%s", yoke_version());
	const int e = all ? c->mpi->gather(&mine, sizeof mine, all) : -1;
	for (uint32_t i = 0; i < c->place.ranks && e == 0; i++) {
		c->node[i] = all[i].first;
		if (c->code == 0 && strncmp(all[i].version, all[0].version, sizeof mine.version))
			refuse(c, YOKE_EINVAL,
			       "ranks run different versions of yoke: rank 0 has %.59s, rank %u %.59s",
			       all[0].version, i, all[i].version);
	}
	if (e < 0)
		refuse(c, YOKE_ERANK, "ranks cannot find each other: "
			"%s", all ? c->mpi->error() : "no memory");
	free(all);
	return c->code;
}

void yk_carrier_open(struct yk_carrier *c)
{
	const struct yk_started *p = &c->place;
	uint32_t rank = 0, ranks = 0;
	if (c->mpi->begin(&rank, &ranks) < 0)
		refuse(c, YOKE_ERANK, "MPI cannot be initialized: %s", c->mpi->error());
	else if (ranks != p->ranks)
		refuse(c, YOKE_ERANK,
		       "%s started %u ranks, MPI reports %u: it is the launcher of another MPI; dist.mpi names the one to use",
		       p->launcher, p->ranks, ranks);
	else if (rank != p->rank)
		refuse(c, YOKE_ERANK, "%s reports that this is rank %u, MPI reports rank %u",
		       p->launcher, p->rank, rank);
	else if (exchange_versions(c) == 0) {
		c->serialized = c->mpi->serialized();
		atomic_store(&c->phase, OPENED);
	}
}

int yk_carrier_new(struct yk_ranks *q, const struct yk_started *p, uint32_t first)
{
	const struct timespec pause = { 0, 500000 };
	const char *name;
	const struct yk_mpi *mpi = yk_mpi_open(p, &name);
	struct yk_carrier *c = mpi ? calloc(1, sizeof *c) : NULL;
	if (!mpi)
		return yk_error_last();
	if (c)
		*c = (struct yk_carrier){ .mpi = mpi, .place = *p, .first = first,
					  .node = calloc(p->ranks, sizeof *c->node) };
	if (!c || !c->node) {
		free(c);
		return yk_fail(YOKE_ENOMEM, "no memory for %u ranks", p->ranks);
	}
	atomic_store(&q->carrier, c);
	yk_wakeup_ring(&q->duty);
	while (atomic_load(&c->phase) == ASKED)
		nanosleep(&pause, NULL);
	return atomic_load(&c->phase) == OPENED ? 0 : yk_fail(c->code, "%s", c->why);
}

// ---- routes ----

static void route_free(struct yk_carrier_route *r)
{
	r->rendezvous->route = NULL;
	yk_rendezvous_unref(r->rendezvous);
	free(r->world);
	free(r->away);
	free(r->out);
	free(r);
}

// Number of ranks per machine if the ranks of each machine are consecutive (the last machine may
// have fewer); otherwise 0.
static uint32_t regular(const struct yk_carrier *c, uint32_t n, const uint32_t *world)
{
	uint32_t g = 1;
	while (g < n && c->node[world[g]] == c->node[world[0]])
		g++;
	for (uint32_t i = g; i < n; i++) {
		const bool begins = i % g == 0, same = c->node[world[i]] == c->node[world[i - 1]];
		if (begins == same)
			return 0;
	}
	return g;
}

int yk_carrier_add(struct yk_carrier *c, struct yk_rendezvous *h, uint32_t rank,
		   const uint32_t *world, uint32_t tag)
{
	const uint32_t n = h->ranks;
	struct yk_carrier_route *r = calloc(1, sizeof *r);
	struct line *lines = calloc(5 * (size_t)n, sizeof *lines);
	bool *flags = calloc(2 * (size_t)n, sizeof *flags);
	uint32_t *copy = calloc(n, sizeof *copy);
	if (!r || !lines || !flags || !copy) {
		free(r);
		free(lines);
		free(flags);
		free(copy);
		return yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
	}
	memcpy(copy, world, n * sizeof *copy);
	*r = (struct yk_carrier_route){ .carrier = c,
					.rendezvous = h,
					.rank = rank,
					.tag = tag,
					.world = copy,
					.away = flags,
					.leads = flags + n,
					.out = lines,
					.in = lines + 2 * n,
					.sends = lines + 4 * n };
	for (uint32_t i = 0; i < n; i++) {
		r->away[i] = c->node[world[i]] != c->first;
		r->leads[i] = true;
		for (uint32_t k = 0; k < i; k++)
			r->leads[i] &= c->node[world[k]] != c->node[world[i]];
	}
	atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
	h->route = r;
	h->node = regular(c, n, world);
	r->next = c->routes; // the caller holds the queue's `drive`
	c->routes = r;
	return 0;
}

bool yk_route_away(const struct yk_carrier_route *r, uint32_t member)
{
	return r->away[member];
}

bool yk_route_ended(const struct yk_carrier_route *r, bool sends, uint32_t member)
{
	return r->in[(sends ? r->rendezvous->ranks : 0) + member].ended;
}

uint32_t yk_route_world(const struct yk_carrier_route *r, uint32_t member)
{
	return r->world[member];
}

uint32_t yk_route_tag(const struct yk_carrier_route *r)
{
	uint32_t max = 0;
	for (const struct yk_carrier_route *k = r->carrier->routes; k; k = k->next)
		max = k->tag > max ? k->tag : max;
	return max + 1;
}

void yk_route_leave(struct yk_carrier_route *r)
{
	atomic_store(&r->leaving, true);
}

// ---- links ----

static void fail(struct yk_carrier *c)
{
	c->failed = true;
	for (struct yk_carrier_route *r = c->routes; r; r = r->next)
		yk_rendezvous_break(r->rendezvous, YOKE_ERANK,
				    "rank %u of %s has no way to the others: %.200s", r->rank,
				    c->place.launcher, c->mpi->error());
}

static int tag_of(const struct yk_carrier_route *r, int kind)
{
	return (int)(KINDS * r->tag) + kind;
}

// Whether the message in flight is complete. False: not yet, or MPI failed.
static bool is_over(struct yk_carrier *c, struct line *l)
{
	const int done = c->mpi->done(&l->request);
	if (done < 0)
		fail(c);
	l->busy = done == 0;
	return done > 0;
}

static bool send_on(struct yk_carrier_route *r, int kind, uint32_t member)
{
	struct yk_carrier *c = r->carrier;
	struct line *l = &r->out[(kind == SENDS ? r->rendezvous->ranks : 0) + member];
	struct yk_rank_link *k = yk_rendezvous_link(r->rendezvous, kind == SENDS, r->rank, member);
	const uint64_t ring = r->rendezvous->area->ring,
		       tail = atomic_load_explicit(&k->tail, memory_order_relaxed),
		       there = atomic_load_explicit(&k->head, memory_order_acquire) - tail;
	if (l->busy) {
		if (!is_over(c, l))
			return false;
		l->ended = !l->bytes;
		atomic_store_explicit(&k->tail, tail + l->bytes, memory_order_release);
		return true;
	}
	if (l->ended || (!there && !atomic_load(&r->leaving)))
		return false;
	l->bytes = there < ring - tail % ring ? there : ring - tail % ring;
	l->bytes = l->bytes < ring / 2 ? l->bytes : ring / 2;
	l->busy = true;
	if (c->mpi->send(k->data + tail % ring, l->bytes, r->world[member], tag_of(r, kind),
			 &l->request) < 0)
		fail(c);
	return true;
}

static bool receive_on(struct yk_carrier_route *r, int kind, uint32_t member)
{
	struct yk_carrier *c = r->carrier;
	struct line *l = &r->in[(kind == SENDS ? r->rendezvous->ranks : 0) + member];
	struct yk_rank_link *k = yk_rendezvous_link(r->rendezvous, kind == SENDS, member, r->rank);
	const uint64_t ring = r->rendezvous->area->ring,
		       head = atomic_load_explicit(&k->head, memory_order_relaxed),
		       room = ring - (head - atomic_load_explicit(&k->tail, memory_order_acquire)),
		       end = ring - head % ring;
	uint64_t message;
	if (l->busy) {
		if (!is_over(c, l))
			return false;
		l->ended = !l->bytes;
		atomic_store_explicit(&k->head, head + l->bytes, memory_order_release);
		return true;
	}
	if (l->ended || room < ring / 2)
		return false;
	const int there = c->mpi->probe(r->world[member], tag_of(r, kind), &l->bytes, &message);
	if (there <= 0) {
		if (there < 0)
			fail(c);
		return false;
	}
	if (l->bytes > ring / 2 || l->bytes > end) {
		yk_rendezvous_break(r->rendezvous, YOKE_ERANK, "rank %u received %zu bytes over "
			"MPI that rank %u cannot have sent", r->rank, l->bytes,
			     member);
		return false;
	}
	l->busy = true;
	if (c->mpi->take(message, k->data + head % ring, l->bytes, &l->request) < 0)
		fail(c);
	return true;
}

// ---- boards ----

static void write_board(struct yk_carrier_route *r, bool broken)
{
	struct yk_area *a = r->rendezvous->area;
	struct yk_rank_slot *s = &a->slot[r->rank];
	const uint64_t now = yk_nanoseconds(), arrived = atomic_load(&s->arrived);
	struct board *b = &r->mine;
	*b = (struct board){ .arrived = arrived,
			     .left = atomic_load(&s->left),
			     .since_age = now - atomic_load(&s->since),
			     .beat_age = now - atomic_load(&s->beat),
			     .broken = broken,
			     .process = s->process,
			     .thread = s->thread };
	if (arrived)
		memcpy(b->text, s->text[(arrived - 1) % YK_TEXTS], sizeof b->text);
	if (broken) {
		b->code = a->code;
		memcpy(b->why, a->why, sizeof b->why);
	}
}

// Copies another rank's state into its slot, where this machine's ranks read it.
static void read_board(struct yk_carrier_route *r)
{
	struct board *b = &r->received;
	struct yk_rank_slot *s = &r->rendezvous->area->slot[r->from];
	const uint64_t now = yk_nanoseconds();
	b->text[sizeof b->text - 1] = b->why[sizeof b->why - 1] = '\0';
	if (b->arrived)
		memcpy(s->text[(b->arrived - 1) % YK_TEXTS], b->text, sizeof b->text);
	s->process = b->process;
	s->thread = b->thread;
	atomic_store(&s->since, now - b->since_age);
	atomic_store(&s->beat, now - b->beat_age);
	atomic_store(&s->left, b->left);
	atomic_store(&s->arrived, b->arrived);
	if (b->broken)
		yk_rendezvous_break(
			r->rendezvous,
			b->code == YOKE_EMISMATCH || b->code == YOKE_ENOMEM ? b->code : YOKE_ERANK,
			"%s", b->why);
}

static bool boards_gone(struct yk_carrier_route *r)
{
	bool all = true;
	for (uint32_t i = 0; i < r->rendezvous->ranks; i++)
		if (r->sends[i].busy && !is_over(r->carrier, &r->sends[i]))
			all = false;
	return all;
}

static bool send_board(struct yk_carrier_route *r)
{
	struct yk_carrier *c = r->carrier;
	const bool broken = atomic_load(&r->rendezvous->area->broken) == 2,
		   news = broken && !r->broken_sent;
	const uint64_t now = yk_nanoseconds();
	if ((!news && (now - r->sent < BOARD_NS || atomic_load(&r->leaving))) || !boards_gone(r))
		return false;
	write_board(r, broken);
	r->sent = now;
	r->broken_sent = broken;
	for (uint32_t i = 0; i < r->rendezvous->ranks && !c->failed; i++) {
		struct line *l = &r->sends[i];
		if (!r->away[i] || !r->leads[i])
			continue;
		l->busy = true;
		if (c->mpi->send(&r->mine, sizeof r->mine, r->world[i], tag_of(r, BOARDS),
				 &l->request) < 0)
			fail(c);
	}
	return true;
}

static bool hear_board(struct yk_carrier_route *r)
{
	struct yk_carrier *c = r->carrier;
	uint64_t message;
	if (r->receive.busy) {
		if (!is_over(c, &r->receive))
			return false;
		read_board(r);
		return true;
	}
	for (uint32_t i = 0; i < r->rendezvous->ranks && r->leads[r->rank] && !c->failed; i++) {
		size_t bytes = 0;
		const int there = r->away[i] ? c->mpi->probe(r->world[i], tag_of(r, BOARDS), &bytes,
							     &message) :
					       0;
		if (there < 0 || (there && bytes != sizeof r->received)) {
			fail(c);
			return false;
		}
		if (!there)
			continue;
		r->from = i;
		r->receive.busy = true;
		if (c->mpi->take(message, &r->received, bytes, &r->receive.request) < 0)
			fail(c);
		return true;
	}
	return false;
}

// ---- advancing ----

static bool step(struct yk_carrier_route *r)
{
	struct yk_carrier *c = r->carrier;
	bool moved = false;
	for (uint32_t i = 0; i < r->rendezvous->ranks; i++)
		for (int kind = COLLECTIVES; kind <= SENDS && r->away[i] && !c->failed; kind++) {
			moved |= receive_on(r, kind, i);
			moved |= send_on(r, kind, i);
		}
	if (!c->failed)
		moved |= hear_board(r);
	if (!c->failed)
		moved |= send_board(r);
	return moved;
}

// Whether everything was sent and all other ranks have ended.
static bool is_done(struct yk_carrier_route *r)
{
	bool done = !r->receive.busy && boards_gone(r);
	for (uint32_t i = 0; i < 2 * r->rendezvous->ranks; i++)
		done &= !r->away[i % r->rendezvous->ranks] || (r->out[i].ended && r->in[i].ended);
	return done;
}

bool yk_carrier_step(struct yk_carrier *c)
{
	bool moved = false;
	if (atomic_load(&c->phase) != OPENED || c->failed)
		return false;
	for (struct yk_carrier_route **at = &c->routes; *at;) {
		struct yk_carrier_route *r = *at;
		moved |= step(r);
		// the world's route is freed last
		if (!atomic_load(&r->leaving) || !is_done(r) || r->tag == 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		route_free(r);
	}
	return moved;
}

void yk_carrier_end(struct yk_carrier *c)
{
	const struct timespec pause = { 0, 100000 };
	const uint64_t began = yk_nanoseconds();
	bool broken = c->failed, done = false;
	for (struct yk_carrier_route *r = c->routes; r; r = r->next) {
		broken |= atomic_load(&r->rendezvous->area->broken) != 0;
		atomic_store(&r->leaving, true);
	}
	while (atomic_load(&c->phase) == OPENED && !c->failed && !done) {
		done = true;
		if (!yk_carrier_step(c))
			nanosleep(&pause, NULL);
		for (struct yk_carrier_route *r = c->routes; r; r = r->next) {
			broken |= atomic_load(&r->rendezvous->area->broken) != 0;
			done &= broken ? r->broken_sent && boards_gone(r) : is_done(r);
		}
		if (yk_nanoseconds() - began > (broken ? LATE_NS : END_S * (uint64_t)1000000000))
			break;
	}
	// After a failure MPI_Finalize would wait for ranks that never call it.
	if (done && !broken)
		c->mpi->end();
	while (c->routes) {
		struct yk_carrier_route *r = c->routes;
		c->routes = r->next;
		route_free(r);
	}
	free(c->node);
	free(c);
}
