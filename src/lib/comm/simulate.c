// SPDX-License-Identifier: Apache-2.0
// Simulator: executes the schedules of all ranks with times instead of data.
#include "config.h"

#include "comm/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { MAX_ACTIONS = 64 << 20 }; // of all simulated schedules together

struct message {
	uint32_t to;
	bool taken;
	const struct yk_action *action;
	double gone; // when it has left the sender's port and arrived
};

struct runner {
	struct yk_schedule s;
	size_t at;
	double clock, port;
	struct message *sent;
	size_t sends, pending; // sends before `pending` are complete
	size_t *took;          // per simulated sender: where the search for its next message begins
};

struct world {
	const struct yk_wire_model *m;
	const struct yk_schedule_request *w;
	double bytes;
	uint32_t run;  // ranks 0 .. run - 1 are simulated and represent all
	struct runner *r;
};

static double min(double a, double b)
{
	return a < b ? a : b;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

static double cost(const struct world *x, uint32_t from, uint32_t to, double bytes)
{
	const struct yk_wire_model *m = x->m;
	return from / m->node == to / m->node ? m->alpha1 + bytes * m->beta1 :
						m->alpha2 + bytes * m->beta2 * m->node;
}

static double bytes_of(const struct world *x, const struct runner *r, const struct yk_action *a)
{
	return x->bytes * a->chunks / r->s.chunks;
}

// ---- conflicts between an action and pending sends ----

static int place_of(const struct runner *r, const struct yk_action *a)
{
	const int place = a->kind == YK_ACT_SUM ? YK_OUT : a->place;
	return place == YK_WORK && !r->s.work ? YK_OUT : place;
}

static bool meets(const struct runner *r, const struct yk_action *a, const struct yk_action *b)
{
	if (place_of(r, a) != place_of(r, b) || (a->place == YK_SLOT && a->slot != b->slot))
		return false;
	return yk_actions_meet(a, b);
}

static void await_sends(struct runner *r, const struct yk_action *a)
{
	double until = r->clock;
	while (r->pending < r->sends && r->sent[r->pending].gone <= r->clock)
		r->pending++;
	for (size_t i = r->pending; i < r->sends; i++)
		if (meets(r, a, r->sent[i].action))
			until = max(until, r->sent[i].gone);
	r->clock = until;
}

// ---- running ----

// Number of ranks to simulate. In rotation-invariant schedules (rank r + k does what rank r does,
// with all peers shifted by k) only one machine's ranks are simulated, or one rank if all links are
// alike. A message from a rank that is not simulated is taken from its representative.
static uint32_t to_run(const struct yk_schedule_request *w, const struct yk_wire_model *m)
{
	const bool turns = (w->how == YK_BY_PAIRWISE || w->how == YK_BY_RING ||
			    (w->how == YK_BY_2D && w->node == m->node)) &&
			   (w->what == YK_DO_ALL_REDUCE || w->what == YK_DO_REDUCE_SCATTER ||
			    w->what == YK_DO_ALL_GATHER) &&
			   w->ranks % m->node == 0;
	return !turns ? w->ranks : m->node == w->ranks ? 1 : m->node;
}

// The next message that rank `me` receives from `peer`; NULL: not sent yet.
static struct message *find(const struct world *x, uint32_t me, uint32_t peer)
{
	const uint32_t n = x->w->ranks, from = peer % x->run, to = (me + n - (peer - from)) % n;
	struct runner *s = &x->r[from];
	size_t *begin = &x->r[me].took[from];
	for (size_t k = 0; k < s->sends; k++) {
		const size_t i = (*begin + k) % s->sends;
		if (s->sent[i].to == to && !s->sent[i].taken) {
			*begin = i + 1;
			return &s->sent[i];
		}
	}
	return NULL;
}

// Executes the next action; false: it waits for a message that is not sent yet.
static bool act(struct world *x, uint32_t me)
{
	struct runner *r = &x->r[me];
	const struct yk_action *a = &r->s.action[r->at];
	const double bytes = bytes_of(x, r, a);
	struct message *got = NULL;
	if (a->kind == YK_ACT_SEND) {
		r->port = max(r->port, r->clock) + cost(x, me, a->peer, bytes);
		r->sent[r->sends++] = (struct message){ a->peer, false, a, r->port };
	} else {
		const bool receives = a->kind == YK_ACT_RECV || a->kind == YK_ACT_RECV_ADD;
		if (receives && !(got = find(x, me, a->peer)))
			return false;
		await_sends(r, a);
		if (got) {
			got->taken = true;
			r->clock = max(r->clock, got->gone);
		}
		if (a->kind == YK_ACT_RECV_ADD || a->kind == YK_ACT_ADD)
			r->clock += bytes * x->m->gamma;
		else if (a->kind == YK_ACT_SUM)
			r->clock += (a->terms - 1) * bytes * x->m->gamma;
	}
	r->at++;
	return true;
}

static int prepare(struct world *x)
{
	struct yk_schedule_request w = *x->w;
	size_t actions = 0;
	for (w.rank = 0; w.rank < x->run; w.rank++) {
		struct runner *r = &x->r[w.rank];
		if (yk_schedule_make(&w, &r->s) < 0)
			return yk_fail(YOKE_ENOMEM, "no memory to simulate %u ranks", w.ranks);
		r->sent = malloc((r->s.messages + 1) * sizeof *r->sent);
		r->took = calloc(x->run, sizeof *r->took);
		actions += r->s.n;
		if (!r->sent || !r->took)
			return yk_fail(YOKE_ENOMEM, "no memory to simulate %u ranks", w.ranks);
		if (actions > MAX_ACTIONS)
			return yk_fail(
				YOKE_EINVAL,
				"%s of %u ranks on machines of %u has too many steps to simulate",
				yk_algorithm_name[w.how], w.ranks, x->m->node);
	}
	return 0;
}

static int finish(const struct world *x, double *seconds)
{
	*seconds = 0;
	for (uint32_t i = 0; i < x->run; i++) {
		if (x->r[i].at < x->r[i].s.n)
			return yk_fail(YOKE_EINVAL, "%s of %u ranks "
				"deadlocks", yk_algorithm_name[x->w->how], x->w->ranks);
		*seconds = max(*seconds, max(x->r[i].clock, x->r[i].port));
	}
	return 0;
}

int yk_simulate(const struct yk_wire_model *m, const struct yk_schedule_request *w, double bytes,
		double *seconds)
{
	struct world x = { .m = m, .w = w, .bytes = bytes, .run = m->node ? to_run(w, m) : 1 };
	if (!yk_schedule_exists(w) || !m->node)
		return yk_fail(YOKE_EINVAL, "there is no %s by %s of %u ranks",
			       yk_collective_name[w->what], yk_algorithm_name[w->how], w->ranks);
	x.r = calloc(x.run, sizeof *x.r);
	int err = x.r ? prepare(&x) :
			yk_fail(YOKE_ENOMEM, "no memory to simulate %u ranks", w->ranks);
	for (bool moved = true; moved && !err;) {
		moved = false;
		for (uint32_t i = 0; i < x.run; i++)
			while (x.r[i].at < x.r[i].s.n && act(&x, i))
				moved = true;
	}
	err = err ? err : finish(&x, seconds);
	for (uint32_t i = 0; i < x.run && x.r; i++) {
		yk_schedule_fini(&x.r[i].s);
		free(x.r[i].sent);
		free(x.r[i].took);
	}
	free(x.r);
	return err;
}

// ---- closed forms ----

static bool is_power(uint32_t n)
{
	return n && !(n & (n - 1));
}

// Time of a message over a distance that is a power of two, with a power of two of ranks per
// machine.
static double at(const struct yk_wire_model *m, uint32_t distance, double bytes)
{
	return distance < m->node ? m->alpha1 + bytes * m->beta1 :
				    m->alpha2 + bytes * m->beta2 * m->node;
}

static double pairwise(double alpha, double beta, double gamma, uint32_t n, double bytes)
{
	return 2 * (n - 1) * alpha + (n - 1) / (double)n * bytes * (2 * beta + gamma);
}

bool yk_simulate_formula(const struct yk_wire_model *m, const struct yk_schedule_request *w,
			 double bytes, double *to)
{
	const uint32_t n = w->ranks, g = m->node < n ? m->node : n;
	const bool powers = is_power(n) && is_power(g);
	double t = 0;
	switch (w->how) {
	case YK_BY_TREE: // per level: one message up, an addition, one message down
	case YK_BY_DOUBLING:
		for (uint32_t d = 1; d < n; d *= 2)
			t += at(m, d, bytes) * (w->how == YK_BY_TREE ? 2 : 1) + bytes * m->gamma;
		*to = t;
		return powers;
	case YK_BY_HALVING:
		for (uint32_t d = 1; d < n; d *= 2)
			t += 2 * at(m, d, bytes / (2. * d)) + bytes / (2. * d) * m->gamma;
		*to = t;
		return powers;
	case YK_BY_PAIRWISE: // with different links, ranks wait for the slowest
	case YK_BY_RING:
		*to = g == n ? pairwise(m->alpha1, m->beta1, m->gamma, n, bytes) :
			       pairwise(m->alpha2, m->beta2, m->gamma, n, bytes);
		return g == n || g == 1;
	case YK_BY_2D:
		*to = pairwise(m->alpha1, m->beta1, m->gamma, g, bytes) +
		      pairwise(m->alpha2, m->beta2 * m->node, m->gamma, n / g, bytes / g);
		return n % g == 0 && w->node == m->node;
	}
	return false;
}

double yk_simulate_min(const struct yk_wire_model *m, uint32_t n, double bytes)
{
	const uint32_t machines = (n + m->node - 1) / m->node;
	const double within = 2. * (n - 1) / n * bytes *
			      min(m->beta1, machines > 1 ? m->beta2 * m->node : m->beta1);
	return max(within, 2. * (machines - 1) / machines * bytes * m->beta2);
}

// ---- pipeline ----

struct stage {
	int64_t at;             // turns done
	double clock, port[2];  // port: when the forward and backward sending ports are free
	// per micro-batch: arrival time from the previous stage and from the next stage; < 0: not
	// arrived
	double *came[2];
};

// Executes the next turn of stage s; false: its input has not been sent.
static bool turn(struct stage *st, const struct yk_wire_model *m,
		 const struct yk_pipeline_request *w, int64_t s)
{
	struct stage *me = &st[s];
	const struct yk_turn t = yk_turn_of(w->how, w->stages, s, w->parts, me->at);
	const int64_t to = t.back ? s - 1 : s + 1, from = t.back ? s + 1 : s - 1;
	if (from >= 0 && from < w->stages && me->came[t.back][t.part] < 0)
		return false;
	me->clock = max(me->clock, me->came[t.back][t.part]) + (t.back ? w->back : w->forward);
	me->at++;
	if (to < 0 || to >= w->stages)
		return true;
	const bool near = s / m->node == to / m->node;
	me->port[t.back] = max(me->port[t.back], me->clock) +
			   (near ? m->alpha1 + w->bytes * m->beta1 :
				   m->alpha2 + w->bytes * m->beta2 * m->node);
	st[to].came[t.back][t.part] = me->port[t.back];
	return true;
}

int yk_simulate_pipeline(const struct yk_wire_model *m, const struct yk_pipeline_request *w,
			 double *seconds, double *bubble)
{
	struct stage *st = calloc((size_t)w->stages, sizeof *st);
	double *came = malloc(2 * (size_t)w->stages * (size_t)w->parts * sizeof *came);
	const bool good = st && came && m->node;
	*seconds = *bubble = 0;
	for (int64_t i = 0; i < 2 * w->stages * w->parts && good; i++)
		came[i] = -1;
	for (int64_t s = 0; s < w->stages && good; s++)
		for (int k = 0; k < 2; k++)
			st[s].came[k] = came + (2 * s + k) * w->parts;
	for (bool moved = good; moved;) {
		moved = false;
		for (int64_t s = 0; s < w->stages; s++)
			while (st[s].at < 2 * w->parts && turn(st, m, w, s))
				moved = true;
	}
	for (int64_t s = 0; s < w->stages && good; s++)
		*seconds = max(*seconds, st[s].clock);
	if (*seconds > 0)
		*bubble = 1 - (double)w->parts * (w->forward + w->back) / *seconds;
	free(st);
	free(came);
	return good ? 0 :
		      yk_fail(YOKE_ENOMEM, "no memory to simulate %lld stages",
			      (long long)w->stages);
}
