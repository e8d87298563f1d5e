// SPDX-License-Identifier: Apache-2.0
// The computing thread: takes calls, cancels those whose client is gone or whose time is over, computes a
// block of embeddings and a step of the engine.
#include "config.h"

#include "base/clock.h"
#include "serve/call.h"
#include "serve/open.h"

void yk_serve_wake(struct yk_serve *s)
{
	pthread_mutex_lock(&s->mutex);
	s->woken = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->mutex);
	if (atomic_load(&s->phase) != YK_LOADING && s->engine)
		yoke_engine_wake(s->engine);
}

void yk_serve_refuse(struct yk_exchange *x)
{
	yk_exchange_set(x, "Retry-After", "1");
	yk_exchange_error(x, 429, NULL, "queue_full",
			  "too many requests are waiting; try again later");
}

// The prompts of a call that cannot start at once, or 1 for embeddings after others.  The caller holds the mutex.
static int64_t waits_of(const struct yk_serve *s, const struct yk_serve_call *c, const struct yoke_engine_stats *stats)
{
	if (c->kind->work)
		return s->embeds > 0;
	const int64_t free = s->is.slots - stats->running - stats->queued - s->arrived_choices;
	const int64_t start = free > 0 ? (free + c->choices - 1) / c->choices : 0; // its first choice has a slot
	return c->prompts > start ? c->prompts - start : 0;
}

bool yk_serve_arrive(struct yk_serve *s, struct yk_serve_call *c)
{
	struct yoke_engine_stats stats = { .size = sizeof stats };
	if (s->engine)
		yoke_engine_stats(s->engine, &stats);
	pthread_mutex_lock(&s->mutex);
	const int64_t waits = waits_of(s, c, &stats), embeds = s->embeds > 1 ? s->embeds - 1 : 0;
	const bool full = waits && stats.waiting + s->arrived_waiting + embeds + waits > s->is.queue;
	if (!full) {
		yk_exchange_keep(c->x);
		c->next = NULL;
		*s->last = c;
		s->last = &c->next;
		if (c->kind->work) {
			s->embeds++;
		} else {
			s->arrived_choices += (int64_t)c->prompts * c->choices;
			s->arrived_waiting += waits;
		}
	}
	pthread_mutex_unlock(&s->mutex);
	if (full)
		yk_serve_refuse(c->x);
	else
		yk_serve_wake(s);
	return !full;
}

void yk_serve_wait(struct yk_serve *s, int64_t milliseconds)
{
	if (s->engine) {
		yoke_engine_wait(s->engine, milliseconds);
		return;
	}
	const struct timespec end = yk_deadline(1e-3 * (double)milliseconds);
	pthread_mutex_lock(&s->mutex);
	while (!s->woken && pthread_cond_timedwait(&s->changed, &s->mutex, &end) == 0)
		;
	s->woken = false;
	pthread_mutex_unlock(&s->mutex);
}

// ---- calls ----

static void take_arrived(struct yk_serve *s)
{
	pthread_mutex_lock(&s->mutex);
	struct yk_serve_call *c = s->arrived;
	s->arrived = NULL;
	s->last = &s->arrived;
	s->arrived_choices = s->arrived_waiting = 0;
	s->woken = false;
	pthread_mutex_unlock(&s->mutex);
	while (c) {
		struct yk_serve_call *next = c->next;
		c->next = s->running;
		s->running = c;
		if (yk_exchange_disconnected(c->x) || yk_exchange_is_done(c->x))
			c->done = c->cancelled = true;
		else
			c->kind->start(c);
		c = next;
	}
}

static void cancel(struct yk_serve_call *c)
{
	if (c->cancelled || c->done)
		return;
	c->cancelled = true;
	c->kind->cancel(c);
}

// Ends a call whose client is gone, or has the reply that its time is over.
static void check(struct yk_serve_call *c)
{
	if (!yk_exchange_disconnected(c->x) && !yk_exchange_is_done(c->x))
		return;
	cancel(c);
	yk_exchange_error(c->x, 499, NULL, NULL, "the client closed the connection");
}

static void remove_done(struct yk_serve *s)
{
	for (struct yk_serve_call **at = &s->running; *at;) {
		struct yk_serve_call *c = *at;
		if (!c->done) {
			at = &c->next;
			continue;
		}
		struct yk_exchange *x = c->x;
		*at = c->next;
		if (c->kind->work) {
			pthread_mutex_lock(&s->mutex);
			s->embeds--;
			pthread_mutex_unlock(&s->mutex);
		}
		c->kind->free(c);
		yk_exchange_release(x);
	}
}

// A block of the oldest call that computes by itself.
static bool work_once(struct yk_serve *s)
{
	struct yk_serve_call *oldest = NULL;
	for (struct yk_serve_call *c = s->running; c; c = c->next)
		if (c->kind->work && !c->done)
			oldest = c;
	if (oldest)
		oldest->kind->work(oldest);
	return oldest != NULL;
}

static int step(struct yk_serve *s)
{
	struct yoke_engine_stats stats = { .size = sizeof stats };
	const int n = yoke_engine_step(s->engine);
	if (n < 0)
		return n;
	yoke_engine_stats(s->engine, &stats);
	if (stats.steps > s->steps)
		yk_metrics_observe(&s->metrics, YK_STEP, (double)stats.last_step_tokens);
	s->steps = stats.steps;
	return n;
}

int yk_serve_work(struct yk_serve *s)
{
	int n = 0;
	take_arrived(s);
	if (s->http)
		yk_http_watch(s->http);
	for (struct yk_serve_call *c = s->running; c; c = c->next)
		check(c);
	const bool worked = work_once(s);
	if (s->engine)
		n = step(s);
	remove_done(s);
	return n < 0 ? n : n > 0 || worked;
}

void yk_serve_cancel(struct yk_serve *s)
{
	take_arrived(s);
	for (struct yk_serve_call *c = s->running; c; c = c->next) {
		yk_exchange_error(c->x, 503, NULL, NULL, "the server is shutting down");
		cancel(c);
	}
}

void yk_serve_abandon(struct yk_serve *s)
{
	for (struct yk_serve_call *c = s->arrived, *next; c; c = next) {
		next = c->next;
		c->next = s->running;
		s->running = c;
	}
	s->arrived = NULL;
	for (struct yk_serve_call *c = s->running; c; c = c->next)
		c->done = true;
	remove_done(s);
}

bool yk_serve_is_idle(struct yk_serve *s)
{
	pthread_mutex_lock(&s->mutex);
	const bool idle = !s->arrived && !s->running;
	pthread_mutex_unlock(&s->mutex);
	return idle;
}
