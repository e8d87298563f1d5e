// SPDX-License-Identifier: Apache-2.0
// Generates schedules: each algorithm appends the actions of one rank.
//
// A send does not block later actions. Its data must not be overwritten before it was sent, so the
// executor waits before such an action. Partners that exchange the same chunk therefore both
// receive into a slot.

#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "comm/schedule.h"

const char *const yk_collective_name[YK_COLLECTIVES] = {
	[YK_DO_ALL_REDUCE] = "all_reduce", [YK_DO_REDUCE_SCATTER] = "reduce_scatter",
	[YK_DO_ALL_GATHER] = "all_gather", [YK_DO_BROADCAST] = "broadcast",
	[YK_DO_REDUCE] = "reduce",         [YK_DO_ALL_TO_ALL] = "all_to_all",
	[YK_DO_BARRIER] = "barrier",       [YK_DO_SEND] = "send",
	[YK_DO_RECV] = "recv",             [YK_DO_GATHER_SHARDS] = "gather_shares",
	[YK_DO_REDUCE_SHARDS] = "reduce_shares",
};
const char *const yk_algorithm_name[YK_ALGORITHMS] = {
	[YK_BY_TREE] = "tree",         [YK_BY_DOUBLING] = "doubling", [YK_BY_HALVING] = "halving",
	[YK_BY_PAIRWISE] = "pairwise", [YK_BY_RING] = "ring",         [YK_BY_2D] = "2d",
	[YK_BY_SHARED] = "shared",
};

struct maker {
	const struct yk_schedule_request *w;
	struct yk_schedule *s;
	int err;
};

static void add(struct maker *m, struct yk_action a)
{
	struct yk_schedule *s = m->s;
	if (m->err || yk_grow(&s->action, &s->cap, s->n + 1, sizeof *s->action) < 0) {
		m->err = YOKE_ENOMEM;
		return;
	}
	a.step = a.step ? a.step : 1;
	s->action[s->n++] = a;
	if (a.kind == YK_ACT_SEND) {
		s->messages++;
		s->sent += a.chunks;
	}
	if (a.place == YK_WORK || (a.kind == YK_ACT_COPY && a.source == YK_WORK))
		s->work |= m->w->what == YK_DO_REDUCE_SCATTER;
	const uint32_t last = a.kind == YK_ACT_SUM	       ? a.slot + a.terms - 1u :
			      a.place == YK_SLOT || a.kind == YK_ACT_ADD ? a.slot + 1u :
							       0;
	s->slots = last > s->slots ? last : s->slots;
	if (last)
		s->room = a.chunks > s->room ? a.chunks : s->room;
}

struct range { // of chunks
	uint32_t chunk, step, chunks;
};

static struct range all(const struct maker *m)
{
	return (struct range){ 0, 1, m->s->chunks };
}

static struct range one(uint32_t chunk)
{
	return (struct range){ chunk, 1, 1 };
}

static void move(struct maker *m, int kind, uint32_t peer, int place, struct range c)
{
	add(m, (struct yk_action){ .kind = (uint8_t)kind, .place = (uint8_t)place, .peer = peer,
				   .chunk = c.chunk, .step = c.step, .chunks = c.chunks });
}

static void send(struct maker *m, uint32_t peer, int place, struct range c)
{
	move(m, YK_ACT_SEND, peer, place, c);
}

static void recv(struct maker *m, uint32_t peer, int place, struct range c)
{
	move(m, YK_ACT_RECV, peer, place, c);
}

// WORK <- received combined with source.
static void recv_add(struct maker *m, uint32_t peer, int source, struct range c, bool first)
{
	add(m, (struct yk_action){ .kind = YK_ACT_RECV_ADD,
				   .place = YK_WORK,
				   .source = (uint8_t)source,
				   .peer = peer,
				   .chunk = c.chunk,
				   .step = c.step,
				   .chunks = c.chunks,
				   .first = first });
}

static void recv_slot(struct maker *m, uint32_t peer, uint32_t slot, struct range c)
{
	add(m, (struct yk_action){ .kind = YK_ACT_RECV,
				   .place = YK_SLOT,
				   .slot = (uint16_t)slot,
				   .peer = peer,
				   .chunk = c.chunk,
				   .step = c.step,
				   .chunks = c.chunks });
}

static void copy(struct maker *m, int place, int source, struct range c)
{
	add(m, (struct yk_action){ .kind = YK_ACT_COPY,
				   .place = (uint8_t)place,
				   .source = (uint8_t)source,
				   .chunk = c.chunk,
				   .step = c.step,
				   .chunks = c.chunks });
}

static void sum(struct maker *m, int place, uint32_t slot, uint32_t terms, uint32_t own,
		struct range c)
{
	if (terms == 1) {
		copy(m, YK_OUT, place, c);
		return;
	}
	add(m, (struct yk_action){ .kind = YK_ACT_SUM,
				   .place = (uint8_t)place,
				   .slot = (uint16_t)slot,
				   .terms = (uint16_t)terms,
				   .own = (uint16_t)own,
				   .chunk = c.chunk,
				   .step = c.step,
				   .chunks = c.chunks });
}

static bool is_power(uint32_t n)
{
	return n && !(n & (n - 1));
}

// ---- trees ----

// Reduces IN of all ranks, in order T, into the root's WORK. The sum of a block of ranks is at its
// first rank, or at the root if the root is in the block.
static void tree_up(struct maker *m, uint32_t root)
{
	const uint32_t n = m->w->ranks, r = m->w->rank;
	int sum = YK_IN; // the buffer that holds the sum so far
	for (uint32_t d = 1; d < n; d *= 2) {
		uint32_t left = r / (2 * d) * 2 * d, right = left + d;
		if (right >= n)
			continue;
		const bool at_left = root >= left && root < right,
			   at_right = root >= right && root < right + d;
		const uint32_t a = at_left ? root : left, b = at_right ? root : right;
		const uint32_t to = at_right ? b : a, from = at_right ? a : b;
		if (r == from) {
			send(m, to, sum, all(m));
			return;
		}
		if (r == to) {
			recv_add(m, from, sum, all(m), at_right);
			sum = YK_WORK;
		}
	}
}

// Broadcasts the root's OUT along a binomial tree.
static void tree_down(struct maker *m, uint32_t root)
{
	const uint32_t n = m->w->ranks, v = (m->w->rank + n - root) % n;
	uint32_t d = 1;
	for (; d < n && !(v & d); d *= 2)
		;
	if (v)
		recv(m, (v - d + root) % n, YK_OUT, all(m));
	for (d /= 2; d; d /= 2)
		if (v + d < n)
			send(m, (v + d + root) % n, YK_OUT, all(m));
}

// ---- powers of two ----

static void doubling(struct maker *m)
{
	const uint32_t r = m->w->rank;
	for (uint32_t d = 1; d < m->w->ranks; d *= 2) {
		const uint8_t sum = d == 1 ? YK_IN : YK_WORK;
		send(m, r ^ d, sum, all(m));
		recv_slot(m, r ^ d, 0, all(m));
		add(m, (struct yk_action){ .kind = YK_ACT_ADD,
					   .place = YK_WORK,
					   .source = sum,
					   .slot = 0,
					   .first = (r & d) != 0,
					   .chunks = m->s->chunks });
	}
}

// Chunks whose numbers equal r in the bits below d.
static struct range like(const struct maker *m, uint32_t r, uint32_t d)
{
	return (struct range){ r & (d - 1), d, m->w->ranks / d };
}

// Recursive halving: rank r ends with the sum of chunk r in WORK.
static void halving_down(struct maker *m)
{
	const uint32_t r = m->w->rank;
	for (uint32_t d = 1; d < m->w->ranks; d *= 2) {
		const int sum = d == 1 ? YK_IN : YK_WORK;
		send(m, r ^ d, sum, like(m, r ^ d, 2 * d));
		recv_add(m, r ^ d, sum, like(m, r, 2 * d), (r & d) != 0);
	}
}

// Recursive doubling: rank r starts with chunk r and ends with all.
static void halving_up(struct maker *m)
{
	const uint32_t r = m->w->rank;
	for (uint32_t d = m->w->ranks / 2; d; d /= 2) {
		send(m, r ^ d, YK_OUT, like(m, r, 2 * d));
		recv(m, r ^ d, YK_OUT, like(m, r ^ d, 2 * d));
	}
}

// ---- pairwise ----

// Rank r ends with the sum of chunk r in OUT.
static void pairwise_down(struct maker *m)
{
	const uint32_t n = m->w->ranks, r = m->w->rank;
	for (uint32_t s = 1; s < n; s++) {
		const uint32_t to = (r + s) % n, from = (r + n - s) % n;
		send(m, to, YK_IN, one(to));
		recv_slot(m, from, from - (from > r), one(r));
	}
	sum(m, YK_IN, 0, n, r, one(r));
}

// Sends each rank r's chunk r of OUT to all ranks.
static void pairwise_up(struct maker *m)
{
	const uint32_t n = m->w->ranks, r = m->w->rank;
	for (uint32_t s = 1; s < n; s++) {
		send(m, (r + s) % n, YK_OUT, one(r));
		recv(m, (r + n - s) % n, YK_OUT, one((r + n - s) % n));
	}
}

// Sends OUT's chunks from the root to their owners, or back from the owners to the root.
static void scatter(struct maker *m, bool back)
{
	const uint32_t n = m->w->ranks, r = m->w->rank, root = m->w->root;
	for (uint32_t c = 0; c < n; c++) {
		const bool mine = r == c && r != root, roots = r == root && c != root;
		if (back ? mine : roots)
			send(m, back ? root : c, YK_OUT, one(c));
		else if (mine || roots)
			recv(m, back ? c : root, YK_OUT, one(c));
	}
}

static void exchange(struct maker *m)
{
	const uint32_t n = m->w->ranks, r = m->w->rank;
	copy(m, YK_OUT, YK_IN, one(r));
	for (uint32_t s = 1; s < n; s++) {
		send(m, (r + s) % n, YK_IN, one((r + s) % n));
		recv(m, (r + n - s) % n, YK_OUT, one((r + n - s) % n));
	}
}

// ---- ring ----

// Step s sends chunk r + back - s and adds the one before it; rank r ends with the sum of chunk r +
// 1 + back.
static void ring_down(struct maker *m, uint32_t back)
{
	const uint32_t n = m->w->ranks, r = m->w->rank + n - back, next = (m->w->rank + 1) % n,
		       last = (m->w->rank + n - 1) % n;
	for (uint32_t s = 0; s + 1 < n; s++) {
		send(m, next, s ? YK_WORK : YK_IN, one((r + n - s) % n));
		recv_add(m, last, YK_IN, one((r + n - s - 1) % n), false);
	}
}

// All-gather; rank r starts with chunk r + ahead.
static void ring_up(struct maker *m, uint32_t ahead)
{
	const uint32_t n = m->w->ranks, r = m->w->rank + ahead, next = (m->w->rank + 1) % n,
		       last = (m->w->rank + n - 1) % n;
	for (uint32_t s = 0; s + 1 < n; s++) {
		send(m, next, YK_OUT, one((r + n - s) % n));
		recv(m, last, YK_OUT, one((r + n - s - 1) % n));
	}
}

// ---- hierarchical: machines ----

// The array is divided into as many parts as a machine has ranks; each part has one chunk per
// machine.
struct nodes {
	// ranks per machine, machines, this rank's machine, ranks of that machine
	uint32_t g, count, mine, here;
};

static uint32_t owner(const struct maker *m, const struct nodes *d, uint32_t node, uint32_t part)
{
	const uint32_t left = m->w->ranks - node * d->g;
	return node * d->g + part % (left < d->g ? left : d->g);
}

static struct range part_of(const struct nodes *d, uint32_t part)
{
	return (struct range){ part * d->count, 1, d->count };
}

// Reduces within a machine; each part ends at its owner.
static void node_down(struct maker *m, const struct nodes *d)
{
	const uint32_t first = d->mine * d->g, r = m->w->rank, me = r - first;
	uint32_t slot = 0;
	for (uint32_t s = 1; s < d->here; s++) {
		const uint32_t to = first + (me + s) % d->here;
		for (uint32_t c = to - first; c < d->g; c += d->here)
			send(m, to, YK_IN, part_of(d, c));
	}
	for (uint32_t s = 1; s < d->here; s++) {
		const uint32_t from = (me + d->here - s) % d->here, place = from - (from > me);
		uint32_t k = 0;
		for (uint32_t c = me; c < d->g; c += d->here, k++)
			recv_slot(m, first + from, k * (d->here - 1) + place, part_of(d, c));
	}
	for (uint32_t c = me; c < d->g; c += d->here, slot += d->here - 1)
		sum(m, YK_IN, slot, d->here, me, part_of(d, c));
}

// Reduces a part over all machines, among each machine's owner of it.
static void between_nodes(struct maker *m, const struct nodes *d, uint32_t part)
{
	const struct range whole = part_of(d, part);
	for (uint32_t s = 1; s < d->count; s++) {
		const uint32_t to = (d->mine + s) % d->count,
			       from = (d->mine + d->count - s) % d->count;
		send(m, owner(m, d, to, part), YK_OUT, one(whole.chunk + to));
		recv_slot(m, owner(m, d, from, part), from - (from > d->mine),
			  one(whole.chunk + d->mine));
	}
	sum(m, YK_OUT, 0, d->count, d->mine, one(whole.chunk + d->mine));
	for (uint32_t s = 1; s < d->count; s++) {
		const uint32_t to = (d->mine + s) % d->count,
			       from = (d->mine + d->count - s) % d->count;
		send(m, owner(m, d, to, part), YK_OUT, one(whole.chunk + d->mine));
		recv(m, owner(m, d, from, part), YK_OUT, one(whole.chunk + from));
	}
}

static void node_up(struct maker *m, const struct nodes *d)
{
	const uint32_t first = d->mine * d->g, me = m->w->rank - first;
	for (uint32_t s = 1; s < d->here; s++) {
		for (uint32_t c = me; c < d->g; c += d->here)
			send(m, first + (me + s) % d->here, YK_OUT, part_of(d, c));
		const uint32_t from = (me + d->here - s) % d->here;
		for (uint32_t c = from; c < d->g; c += d->here)
			recv(m, first + from, YK_OUT, part_of(d, c));
	}
}

static void by_nodes(struct maker *m)
{
	const uint32_t g = m->w->node, n = m->w->ranks;
	struct nodes d = { .g = g, .count = (n + g - 1) / g, .mine = m->w->rank / g };
	d.here = n - d.mine * g < g ? n - d.mine * g : g;
	m->s->chunks = g * d.count;
	node_down(m, &d);
	for (uint32_t c = m->w->rank - d.mine * g; c < g; c += d.here)
		if (d.count > 1)
			between_nodes(m, &d, c);
	node_up(m, &d);
}

// ---- collectives ----

static void barrier(struct maker *m) // dissemination barrier (Hensgen, Finkel, Manber 1988)
{
	const uint32_t n = m->w->ranks, r = m->w->rank;
	for (uint32_t d = 1; d < n; d *= 2) {
		send(m, (r + d) % n, YK_OUT, (struct range){ 0, 1, 0 });
		recv(m, (r + n - d) % n, YK_OUT, (struct range){ 0, 1, 0 });
	}
}

static void all_reduce(struct maker *m)
{
	switch (m->w->how) {
	case YK_BY_TREE:
		tree_up(m, 0);
		tree_down(m, 0);
		return;
	case YK_BY_DOUBLING: doubling(m); return;
	case YK_BY_HALVING:
		halving_down(m);
		halving_up(m);
		return;
	case YK_BY_RING:
		ring_down(m, 0);
		ring_up(m, 1);
		return;
	case YK_BY_2D: by_nodes(m); return;
	}
	pairwise_down(m);
	pairwise_up(m);
}

static void reduce_scatter(struct maker *m)
{
	if (m->w->how == YK_BY_PAIRWISE) {
		pairwise_down(m);
		return;
	}
	if (m->w->how == YK_BY_HALVING)
		halving_down(m);
	else
		ring_down(m, 1);
	copy(m, YK_OUT, YK_WORK, one(m->w->rank));
}

static void all_gather(struct maker *m)
{
	copy(m, YK_OUT, YK_IN, one(m->w->rank));
	if (m->w->how == YK_BY_HALVING)
		halving_up(m);
	else if (m->w->how == YK_BY_RING)
		ring_up(m, 0);
	else
		pairwise_up(m);
}

static void broadcast(struct maker *m)
{
	if (m->w->rank == m->w->root)
		copy(m, YK_OUT, YK_IN, all(m));
	if (m->w->how == YK_BY_TREE) {
		tree_down(m, m->w->root);
		return;
	}
	scatter(m, false);
	pairwise_up(m);
}

static void reduce(struct maker *m)
{
	if (m->w->how == YK_BY_TREE) {
		tree_up(m, m->w->root);
		return;
	}
	pairwise_down(m);
	scatter(m, true);
}

bool yk_schedule_exists(const struct yk_schedule_request *w)
{
	const bool power = is_power(w->ranks);
	switch (w->what) {
	case YK_DO_ALL_REDUCE:
		return w->how == YK_BY_TREE || w->how == YK_BY_PAIRWISE || w->how == YK_BY_RING ||
		       (power && (w->how == YK_BY_DOUBLING || w->how == YK_BY_HALVING)) ||
		       (w->how == YK_BY_2D && w->node && w->node <= w->ranks);
	case YK_DO_REDUCE_SCATTER:
	case YK_DO_ALL_GATHER:
		return w->how == YK_BY_PAIRWISE || w->how == YK_BY_RING ||
		       (power && w->how == YK_BY_HALVING);
	case YK_DO_BROADCAST:
	case YK_DO_REDUCE: return w->how == YK_BY_TREE || w->how == YK_BY_PAIRWISE;
	case YK_DO_ALL_TO_ALL:
	case YK_DO_BARRIER: return w->how == YK_BY_PAIRWISE;
	}
	return false;
}

bool yk_schedule_in_order(const struct yk_schedule_request *w)
{
	return w->how != YK_BY_RING &&
	       (w->how != YK_BY_2D || is_power(w->node) || w->node >= w->ranks);
}

bool yk_schedule_rounds_once(const struct yk_schedule_request *w)
{
	return w->ranks == 1 || w->how == YK_BY_PAIRWISE || w->how == YK_BY_SHARED;
}

static bool try_way(struct yk_schedule_request *w, int how, bool once)
{
	w->how = (uint8_t)how;
	return yk_schedule_exists(w) && (!once || yk_schedule_rounds_once(w));
}

enum { SMALL = 65536 }; // bytes; up to this size few messages are better than few bytes

void yk_schedule_usual(struct yk_schedule_request *w, double bytes, bool once)
{
	static const uint8_t few[] = { YK_BY_DOUBLING, YK_BY_TREE, YK_BY_PAIRWISE },
			     many[] = { YK_BY_HALVING, YK_BY_PAIRWISE, YK_BY_TREE };
	const bool small = bytes <= SMALL;
	if (w->node > 1 && w->node < w->ranks && !small && try_way(w, YK_BY_2D, once) &&
	    yk_schedule_in_order(w))
		return;
	for (int i = 0; i < 3; i++)
		if (try_way(w, small ? few[i] : many[i], once))
			return;
}

int yk_schedule_make(const struct yk_schedule_request *w, struct yk_schedule *s)
{
	struct maker m = { .w = w, .s = s };
	*s = (struct yk_schedule){ .chunks = w->ranks };
	if (w->ranks == 1 && w->what != YK_DO_BARRIER)
		copy(&m, YK_OUT, YK_IN, all(&m));
	switch (w->ranks == 1 ? YK_COLLECTIVES : w->what) {
	case YK_DO_ALL_REDUCE: all_reduce(&m); break;
	case YK_DO_REDUCE_SCATTER: reduce_scatter(&m); break;
	case YK_DO_ALL_GATHER: all_gather(&m); break;
	case YK_DO_BROADCAST: broadcast(&m); break;
	case YK_DO_REDUCE: reduce(&m); break;
	case YK_DO_ALL_TO_ALL: exchange(&m); break;
	case YK_DO_BARRIER: barrier(&m); break;
	}
	if (m.err)
		yk_schedule_fini(s);
	return m.err;
}

void yk_schedule_fini(struct yk_schedule *s)
{
	free(s->action);
	*s = (struct yk_schedule){ 0 };
}
