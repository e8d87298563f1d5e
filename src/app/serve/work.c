// SPDX-License-Identifier: Apache-2.0
// The computing thread: takes calls, cancels those whose client is gone or whose time is over,
// computes a block of embeddings and a step of the engine.
#include "config.h"

#include "base/clock.h"
#include "serve/call.h"
#include "serve/open.h"

void yk_serve_wake(struct yk_serve *s)
{
	pthread_mutex_lock(&s->inbox.mutex);
	s->inbox.woken = true;
	pthread_cond_signal(&s->inbox.changed);
	pthread_mutex_unlock(&s->inbox.mutex);
	if (atomic_load(&s->phase) != YK_LOADING && s->lm.engine)
		yoke_engine_wake(s->lm.engine);
}

void yk_serve_refuse(struct yk_exchange *x)
{
	yk_exchange_set(x, "Retry-After", "1");
	yk_exchange_error(x, 429, NULL, "queue_full",
			  "too many requests are waiting; try again later");
}

// The prompts of a call that cannot start at once, or 1 for embeddings after others.  The caller
// holds the mutex.
static int64_t waits_of(const struct yk_serve *s, const struct yk_serve_call *c,
			const struct yoke_engine_stats *stats)
{
	if (c->kind->work)
		return s->inbox.embeds > 0;
	const int64_t free = s->is.slots - stats->running - stats->queued - s->inbox.choices;
	// its first choice has a slot
	const int64_t start = free > 0 ? (free + c->choices - 1) / c->choices : 0;
	return c->prompts > start ? c->prompts - start : 0;
}

bool yk_serve_arrive(struct yk_serve *s, struct yk_serve_call *c)
{
	struct yoke_engine_stats stats = { .size = sizeof stats };
	if (s->lm.engine)
		yoke_engine_stats(s->lm.engine, &stats);
	pthread_mutex_lock(&s->inbox.mutex);
	const int64_t waits = waits_of(s, c, &stats),
		      embeds = s->inbox.embeds > 1 ? s->inbox.embeds - 1 : 0;
	const bool full = waits && stats.waiting + s->inbox.waiting + embeds + waits > s->is.queue;
	if (!full) {
		yk_exchange_keep(c->x);
		c->next = NULL;
		*s->inbox.last = c;
		s->inbox.last = &c->next;
		if (c->kind->work) {
			s->inbox.embeds++;
		} else {
			s->inbox.choices += (int64_t)c->prompts * c->choices;
			s->inbox.waiting += waits;
		}
	}
	pthread_mutex_unlock(&s->inbox.mutex);
	if (full)
		yk_serve_refuse(c->x);
	else
		yk_serve_wake(s);
	return !full;
}

void yk_serve_wait(struct yk_serve *s, int64_t milliseconds)
{
	if (s->lm.engine) {
		yoke_engine_wait(s->lm.engine, milliseconds);
		return;
	}
	const struct timespec end = yk_deadline(1e-3 * (double)milliseconds);
	pthread_mutex_lock(&s->inbox.mutex);
	while (!s->inbox.woken &&
	       pthread_cond_timedwait(&s->inbox.changed, &s->inbox.mutex, &end) == 0)
		;
	s->inbox.woken = false;
	pthread_mutex_unlock(&s->inbox.mutex);
}

// ---- calls ----

static void take_arrived(struct yk_serve *s)
{
	pthread_mutex_lock(&s->inbox.mutex);
	struct yk_serve_call *c = s->inbox.first;
	s->inbox.first = NULL;
	s->inbox.last = &s->inbox.first;
	s->inbox.choices = s->inbox.waiting = 0;
	s->inbox.woken = false;
	pthread_mutex_unlock(&s->inbox.mutex);
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
			pthread_mutex_lock(&s->inbox.mutex);
			s->inbox.embeds--;
			pthread_mutex_unlock(&s->inbox.mutex);
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
	const int n = yoke_engine_step(s->lm.engine);
	if (n < 0)
		return n;
	yoke_engine_stats(s->lm.engine, &stats);
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
	if (s->lm.engine)
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
	for (struct yk_serve_call *c = s->inbox.first, *next; c; c = next) {
		next = c->next;
		c->next = s->running;
		s->running = c;
	}
	s->inbox.first = NULL;
	for (struct yk_serve_call *c = s->running; c; c = c->next)
		c->done = true;
	remove_done(s);
}

bool yk_serve_is_idle(struct yk_serve *s)
{
	pthread_mutex_lock(&s->inbox.mutex);
	const bool idle = !s->inbox.first && !s->running;
	pthread_mutex_unlock(&s->inbox.mutex);
	return idle;
}
