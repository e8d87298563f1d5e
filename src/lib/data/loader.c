// SPDX-License-Identifier: Apache-2.0
// Loaders: worker threads that fill slots, the queue of batches, and their delivery to the caller.
#include "config.h"

#include "data/loader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/sized.h"
#include "base/system.h"
#include "graph/context.h"

YK_PARAM(data_timeout, "data.timeout", YK_INT, "300",
	 "seconds that reading a sample may take before the run ends", .min = 1, .max = 1000000);

enum { MAX_WORKERS = 8, LOGGED = 10 };
#define STREAM_END 0.1 // seconds that closing a loader waits for a read from a pipe

static void loader_drop(struct yoke_loader *l)
{
	pthread_mutex_lock(&l->lock);
	const int left = --l->refs;
	pthread_mutex_unlock(&l->lock);
	if (left)
		return;
	yk_slots_free(l);
	free(l->trace.span);
	free(l->worker);
	yk_reader_fini(&l->reader);
	yoke_dataset_free(l->set);
	pthread_cond_destroy(&l->work);
	pthread_cond_destroy(&l->done);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

// ---- the queue; called under the lock ----

// Max batches in the queue: prefetch, and one more while the caller waits or if batches are
// uploaded.  A batch that is read between two calls is then uploaded in the second one, while that
// call's step runs.
static int64_t max_ahead(const struct yoke_loader *l)
{
	const int64_t ahead = l->workers ? l->feed.prefetch : 0;
	return ahead + (l->asking || (ahead && l->upload.aheads));
}

// Begins a batch if a slot is free and the queue is not full.
static bool begin_batch(struct yoke_loader *l)
{
	struct yk_batch *s = NULL;
	if (l->queue.head - l->queue.tail >= max_ahead(l) ||
	    l->queue.head - l->queue.tail >= l->slots)
		return false;
	for (int i = 0; i < l->slots && !s; i++)
		if (l->slot[i].free)
			s = &l->slot[i];
	const int64_t samples = s ? yk_cursor_batch(&l->feed, &l->queue.cursor) : 0;
	if (!samples)
		return false;
	s->free = false;
	s->queued = true;
	s->begin = l->queue.cursor;
	s->end = l->queue.cursor = yk_cursor_on(&l->feed, &s->begin, samples);
	s->samples = s->left = samples < l->layout.rows ? samples : l->layout.rows;
	s->rows = l->feed.last == YK_LAST_PAD ? l->feed.batch : s->samples;
	s->next = 0;
	s->failures = 0;
	if (l->dry) {
		s->next = s->samples;
		s->left = 0;
		for (int f = 0; f < l->set->fields; f++)
			memcpy(s->shape[f], l->set->field[f].dims, sizeof *s->shape);
	}
	l->queue.slot[l->queue.head++ % l->slots] = (int)(s - l->slot);
	return true;
}

// The oldest batch with rows that no thread has taken yet.
static struct yk_batch *open_slot(struct yoke_loader *l)
{
	for (;;) {
		struct yk_batch *s;
		for (int64_t k = 0; (s = yk_queued(l, k)); k++)
			if (s->next < s->samples)
				return s;
		if (!begin_batch(l))
			return NULL;
	}
}

static void note_reading(struct yoke_loader *l, const struct yk_worker *w, uint64_t begin,
			 uint64_t end)
{
	if (l->trace.n < l->trace.max)
		l->trace.span[l->trace.n++] =
			(struct yk_reading){ begin, end - begin, w ? (int)(w - l->worker) : -1 };
}

// Takes rows, reads them without the lock, and marks them as done.
static void read_some(struct yoke_loader *l, struct yk_reader *r, struct yk_batch *s,
		      struct yk_worker *w)
{
	const int64_t first = s->next, rest = s->samples - first;
	const int64_t n = rest < l->set->chunk ? rest : l->set->chunk;
	const uint64_t begin = yk_nanoseconds();
	uint64_t end;
	s->next += n;
	l->flight++;
	if (w) {
		w->place = yk_cursor_on(&l->feed, &s->begin, yk_row_of(l, first));
		w->since = 1e-9 * (double)begin;
	}
	pthread_mutex_unlock(&l->lock);
	yk_rows_read(l, r, s, first, n);
	end = yk_nanoseconds();
	pthread_mutex_lock(&l->lock);
	l->stats.reading += 1e-9 * (double)(end - begin);
	const bool last = s->left == n;
	if (last) { // all other threads have finished with the slot
		pthread_mutex_unlock(&l->lock);
		yk_batch_finish(l, s);
		const uint64_t finished = yk_nanoseconds();
		pthread_mutex_lock(&l->lock);
		l->stats.padding += 1e-9 * (double)(finished - end);
		end = finished;
	}
	note_reading(l, w, begin, end);
	s->left -= n;
	l->flight--;
	if (w)
		w->since = 0;
	if (last || l->paused)
		pthread_cond_broadcast(&l->done);
}

static void *work(void *arg)
{
	struct yk_worker *w = arg;
	struct yoke_loader *l = w->loader;
	struct yk_reader reader;
	struct yk_batch *s;
	const int e = yk_reader_init(&reader, l->set);
	pthread_mutex_lock(&l->lock);
	l->error.worker = e < 0 ? e : l->error.worker;
	while (!l->quit && e == 0) {
		if (l->paused || !(s = open_slot(l)))
			pthread_cond_wait(&l->work, &l->lock);
		else
			read_some(l, &reader, s, w);
	}
	w->ended = true;
	pthread_cond_broadcast(&l->done);
	pthread_mutex_unlock(&l->lock);
	if (e == 0)
		yk_reader_fini(&reader);
	loader_drop(l);
	return NULL;
}

// ---- waiting ----

// false: a read exceeds the time limit; the error names the sample.
static bool wait_done(struct yoke_loader *l, bool quitting)
{
	// on close, data that a pipe may still deliver is not needed, so do not wait long
	const double max = l->quit && l->set->stream ? STREAM_END :
						       (double)yk_param_int(&data_timeout),
		     now = yk_seconds();
	double first = now;
	const struct yk_worker *oldest = NULL;
	for (int i = 0; i < l->workers; i++) {
		const struct yk_worker *w = &l->worker[i];
		if (w->started && !w->ended && w->since > 0 && w->since <= first) {
			first = w->since;
			oldest = w;
		}
	}
	if (oldest && now - first >= max) {
		if (!quitting && !l->error.code) {
			l->error.code = YOKE_EIO;
			snprintf(l->error.why, sizeof l->error.why,
				 "%s: sample %lld: has been read for longer than data.timeout = "
				 "%lld seconds",
				 l->set->name,
				 (long long)yk_cursor_sample(&l->feed, &oldest->place),
				 (long long)max);
		}
		return false;
	}
	struct timespec until;
	const double at = first + max + 0.01;
	until.tv_sec = (time_t)at;
	until.tv_nsec = (long)((at - (double)until.tv_sec) * 1e9);
	pthread_cond_timedwait(&l->done, &l->lock, &until);
	return true;
}

// Discards the batches read ahead: frees all slots of the queue, when no thread reads.  false: a
// read does not return.
static bool drop_queue(struct yoke_loader *l)
{
	l->paused = true;
	while (l->flight > 0 && wait_done(l, true))
		;
	if (l->flight > 0)
		return false;
	for (struct yk_batch *s; (s = yk_queued(l, 0)); l->queue.tail++) {
		s->queued = false;
		yk_batch_settle(s);
	}
	l->queue.tail = l->queue.head = 0;
	l->upload.sent = 0;
	l->paused = false;
	return true;
}

// Does the next batch begin at the cursor?  Then a seek there keeps the batches read ahead, since a
// read in progress may wait for a pipe that delivers the next sample only later.
static bool is_next(const struct yoke_loader *l, const struct yk_cursor *c)
{
	const struct yk_batch *s = yk_queued(l, 0);
	struct yk_cursor next = s ? s->begin : l->queue.cursor, to = *c;
	yk_cursor_batch(&l->feed, &next);
	yk_cursor_batch(&l->feed, &to);
	return !l->error.code && next.epoch == to.epoch && next.base == to.base && next.at == to.at;
}

// ---- construction ----

static int start(struct yoke_loader *l)
{
	sigset_t all, old;
	int e = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); // signals are handled by the application's
						  // threads
	for (int i = 0; i < l->workers && e == 0 && !l->dry; i++) {
		struct yk_worker *w = &l->worker[i];
		w->loader = l;
		pthread_mutex_lock(&l->lock);
		l->refs++;
		pthread_mutex_unlock(&l->lock);
		const int reason = pthread_create(&w->thread, NULL, work, w);
		w->started = !reason;
		if (reason) {
			loader_drop(l);
			e = yk_fail(YOKE_ENOMEM, "loader: cannot start thread %d of %d: %s", i + 1,
				    l->workers, strerror(reason));
		}
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}

static void set_position(struct yoke_loader *l, const struct yk_cursor *c,
			 const struct yoke_position *p)
{
	l->position = (struct yoke_position){ .epoch = c->epoch,
					      .index = yk_cursor_index(&l->feed, c),
					      .failed = c->epoch == p->epoch ? p->failed : 0 };
}

static void init_locks(struct yoke_loader *l)
{
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->work, NULL);
	yk_cond_init(&l->done);
}

yoke_loader *yoke_loader_new(yoke_dataset *set, const char *settings)
{
	return yk_loader_new_at(set, settings,
				&(struct yoke_position){ .size = sizeof(struct yoke_position) });
}

yoke_loader *yk_loader_new_at(yoke_dataset *set, const char *settings,
			      const struct yoke_position *at)
{
	struct yk_feed feed = { .count = set ? set->count : 0 };
	struct yk_cursor begin;
	if (yk_require(set, "data set"))
		return NULL;
	if (yk_feed_parse(&feed, settings) < 0 || yk_cursor_from(&feed, at, &begin) < 0)
		return NULL;
	struct yoke_loader *l = calloc(1, sizeof *l);
	if (!l) {
		yk_fail(YOKE_ENOMEM, "loader_new: no memory");
		return NULL;
	}
	init_locks(l);
	l->refs = 1;
	l->set = yk_dataset_ref(set);
	l->feed = feed;
	l->queue.cursor = begin;
	set_position(l, &begin, at);
	l->workers = (int)feed.workers;
	if (feed.workers == YK_DATA_AUTO) {
		const int half = yk_processors() / 2;
		l->workers = half < 1 ? 1 : half > MAX_WORKERS ? MAX_WORKERS : half;
	}
	l->upload.ctx = yk_current_or_null();
	l->dry = l->upload.ctx && l->upload.ctx->mode.dry;
	l->worker = calloc((size_t)l->workers + 1, sizeof *l->worker);
	int e = l->worker ? yk_slots_make(l) : yk_fail(YOKE_ENOMEM, "loader_new: no memory");
	if (e == 0)
		e = yk_reader_init(&l->reader, set);
	if (e == 0)
		e = start(l);
	if (e == 0)
		return l;
	yoke_loader_free(l);
	return NULL;
}

void yoke_loader_free(yoke_loader *l)
{
	bool late = false;
	if (!l)
		return;
	yk_loader_release(l);
	yk_loader_send_fini(l);
	pthread_mutex_lock(&l->lock);
	l->quit = true;
	pthread_cond_broadcast(&l->work);
	for (int i = 0; i < l->workers; i++)
		while (l->worker[i].started && !l->worker[i].ended && !late)
			late = !wait_done(l, true);
	for (int i = 0; i < l->workers; i++) {
		struct yk_worker *w = &l->worker[i];
		if (!w->started)
			continue;
		const bool ended = w->ended;
		pthread_mutex_unlock(&l->lock);
		if (ended)
			pthread_join(w->thread, NULL);
		else
			pthread_detach(w->thread);
		pthread_mutex_lock(&l->lock);
	}
	if (late && !l->set->stream)
		yk_warn("data", "%s: a read does not return; its thread is abandoned",
			l->set->name);
	pthread_mutex_unlock(&l->lock);
	loader_drop(l);
}

// ---- delivery ----

const void *yk_loader_current(const struct yoke_loader *l, int field, int64_t part)
{
	return l->current ? yk_batch_part(l->current, field, part) : NULL;
}

void yk_batch_settle(struct yk_batch *s)
{
	if (s->queued || s->held || s->current || s->copied)
		return;
	s->free = true;
	pthread_cond_broadcast(&s->loader->work);
}

void yk_loader_release(struct yoke_loader *l)
{
	pthread_mutex_lock(&l->lock);
	if (l->current) {
		l->current->current = false;
		yk_batch_settle(l->current);
	}
	l->current = NULL;
	pthread_mutex_unlock(&l->lock);
}

void yk_batch_hold(struct yk_batch *s)
{
	pthread_mutex_lock(&s->loader->lock);
	s->held++;
	s->loader->refs++;
	pthread_mutex_unlock(&s->loader->lock);
}

void yk_batch_unhold(void *slot)
{
	struct yk_batch *s = slot;
	struct yoke_loader *l = s->loader;
	pthread_mutex_lock(&l->lock);
	s->held--;
	yk_batch_settle(s);
	pthread_mutex_unlock(&l->lock);
	loader_drop(l);
}

int yk_loader_out(struct yoke_loader *l)
{
	int n = 0;
	pthread_mutex_lock(&l->lock);
	for (int i = 0; i < l->slots; i++)
		n += l->slot[i].held > 0 && !l->slot[i].current;
	pthread_mutex_unlock(&l->lock);
	return n;
}

static int by_row(const void *a, const void *b)
{
	const struct yk_item_failure *x = a, *y = b;
	return (x->row > y->row) - (x->row < y->row);
}

static void end_by(struct yoke_loader *l, const struct yk_item_failure *f, const char *rule)
{
	l->error.code = f->code;
	snprintf(l->error.why, sizeof l->error.why, "%s: sample %lld: %s%s", l->set->name,
		 (long long)f->number, f->why, rule);
}

// Reports a skipped sample.  Called without the lock, since the callback is the application's.
static void report_skipped(struct yoke_loader *l, const struct yk_item_failure *f)
{
	if (l->stats.failed++ < LOGGED)
		yk_warn("data", "%s: sample %lld is skipped: %s%s", l->set->name,
			(long long)f->number, f->why,
			l->stats.failed == LOGGED ? "; further ones are not logged" : "");
	if (l->error.report)
		l->error.report(l->error.report_arg,
				&(struct yoke_data_error){ .size = sizeof(struct yoke_data_error),
							   .name = l->set->name,
							   .number = f->number,
							   .epoch = f->epoch,
							   .code = f->code,
							   .why = f->why });
}

// Counts the failures of a batch in row order.  The count continues with the last one's epoch.
static void count_failures(struct yoke_loader *l, struct yk_batch *s, struct yoke_position *p)
{
	char rule[80];
	if (s->failures)
		qsort(s->failure, s->failures, sizeof *s->failure, by_row);
	for (size_t i = 0; i < s->failures && !l->error.code; i++) {
		const struct yk_item_failure *f = &s->failure[i];
		if (f->epoch != p->epoch) {
			p->epoch = f->epoch;
			p->failed = 0;
		}
		p->failed++;
		snprintf(rule, sizeof rule, "; this exceeds on_error=%lld",
			 (long long)l->feed.on_error);
		if (f->ends)
			end_by(l, f,
			       l->feed.on_error == YK_ERROR_STOP ?
				       "" :
				       "; no other sample of the epoch can be read");
		else if (l->feed.on_error > 0 && p->failed > l->feed.on_error)
			end_by(l, f, rule);
		else
			report_skipped(l, f);
	}
}

// Begins the batch that the caller waits for, unless one is in the queue; *end is set after the
// last epoch.
static void begin_wanted(struct yoke_loader *l, bool *end)
{
	l->asking = true;
	pthread_cond_broadcast(&l->work);
	while (open_slot(l), l->queue.head == l->queue.tail) {
		int free = 0;
		for (int i = 0; i < l->slots; i++)
			free += l->slot[i].free;
		if (free)
			break;
		pthread_mutex_unlock(&l->lock);
		yk_loader_reclaim(l, true); // all slots wait for copies to complete
		pthread_mutex_lock(&l->lock);
	}
	*end = l->queue.head == l->queue.tail;
}

static struct yk_batch *wait_slot(struct yoke_loader *l, bool *end)
{
	struct yk_batch *s;
	begin_wanted(l, end);
	if (l->workers == 0)
		while (!l->error.code && (s = open_slot(l)))
			read_some(l, &l->reader, s, NULL);
	s = yk_queued(l, 0);
	while (s && s->left > 0 && !l->error.code && !l->error.worker && wait_done(l, false))
		;
	l->asking = false;
	if (l->error.worker && !l->error.code) {
		l->error.code = l->error.worker;
		snprintf(l->error.why, sizeof l->error.why,
			 "loader: %s: no memory in a worker thread", l->set->name);
	}
	return l->error.code ? NULL : s;
}

static bool failed(const struct yoke_loader *l)
{
	if (l->error.code)
		yk_fail(l->error.code, "%s", l->error.why);
	return l->error.code != 0;
}

bool yk_loader_failed(const struct yoke_loader *l)
{
	return l->error.code != 0;
}

struct yk_batch *yk_loader_wait(struct yoke_loader *l, bool *end)
{
	const double began = yk_seconds();
	*end = false;
	yk_loader_release(l);
	yk_loader_reclaim(l, false);
	pthread_mutex_lock(&l->lock);
	struct yk_batch *s = l->error.code ? NULL : wait_slot(l, end);
	pthread_mutex_unlock(&l->lock);
	l->stats.waited += yk_seconds() - began;
	*end &= !failed(l);
	return s;
}

bool yk_loader_take(struct yoke_loader *l, struct yk_batch *s)
{
	struct yoke_position next = l->position;
	count_failures(l, s, &next);
	if (failed(l))
		return false;
	if (s->end.epoch != next.epoch)
		next.failed = 0;
	next.epoch = s->end.epoch;
	next.index = yk_cursor_index(&l->feed, &s->end);
	l->position = next;
	pthread_mutex_lock(&l->lock);
	l->queue.tail++;
	l->upload.taken = l->upload.sent > 0;
	l->upload.sent -= l->upload.taken;
	s->queued = false;
	s->current = true;
	l->current = s;
	l->stats.batches++;
	l->stats.samples += (uint64_t)yk_batch_delivered(s, s->samples);
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	return true;
}

// ---- position, statistics ----

int yk_loader_sum(const struct yoke_loader *l, const struct yoke_position *at,
		  int64_t (*of)(void *arg, int64_t number), void *arg, int64_t *to)
{
	struct yk_cursor begin;
	int64_t sum = 0;
	const int e = yk_cursor_from(&l->feed, at, &begin);
	if (e < 0)
		return e;
	const int64_t n = yk_cursor_batch(&l->feed, &begin);
	for (int64_t k = 0; k < n; k++) {
		const struct yk_cursor c = yk_cursor_on(&l->feed, &begin, k);
		sum += of(arg, yk_cursor_sample(&l->feed, &c));
	}
	*to = sum;
	return 0;
}

int yoke_loader_position(const yoke_loader *l, struct yoke_position *to)
{
	const int err = yk_require(l, "loader");
	return err ? err :
		     yk_sized_write(to, sizeof *to, &l->position, "loader_position",
				    "yoke_position");
}

int yoke_loader_seek(yoke_loader *l, const struct yoke_position *at)
{
	struct yoke_position p = { 0 };
	struct yk_cursor c;
	int e = yk_require(l, "loader");
	if (e == 0)
		e = yk_sized_read(&p, sizeof p, at, "loader_seek", "yoke_position");
	if (e == 0)
		e = yk_cursor_from(&l->feed, &p, &c);
	if (e < 0)
		return e;
	yk_loader_release(l);
	pthread_mutex_lock(&l->lock);
	const bool there = is_next(l, &c), moved = there || drop_queue(l);
	if (moved && !there) {
		l->queue.cursor = c;
		l->bad.from = l->bad.to = 0;
		l->error.code = 0;
	}
	if (moved)
		set_position(l, &c, &p);
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	return moved ? 0 :
		       yk_fail(YOKE_EBUSY, "loader_seek: %s: a read does not return", l->set->name);
}

int yoke_loader_errors(yoke_loader *l, void (*fn)(void *arg, const struct yoke_data_error *),
		       void *arg)
{
	const int err = yk_require(l, "loader");
	if (err)
		return err;
	l->error.report = fn;
	l->error.report_arg = arg;
	return 0;
}

int yk_loader_watch(struct yoke_loader *l, size_t max)
{
	pthread_mutex_lock(&l->lock);
	l->trace.span = calloc(max + 1, sizeof *l->trace.span);
	l->trace.max = l->trace.span ? max : 0;
	pthread_mutex_unlock(&l->lock);
	return l->trace.span ? 0 : yk_fail(YOKE_ENOMEM, "loader: no memory for a trace");
}

size_t yk_loader_readings(struct yoke_loader *l, const struct yk_reading **to)
{
	if (!l)
		return 0;
	pthread_mutex_lock(&l->lock);
	const size_t n = l->trace.n;
	*to = l->trace.span;
	pthread_mutex_unlock(&l->lock);
	return n;
}

int yoke_loader_stats(const yoke_loader *loader, struct yoke_loader_stats *to)
{
	struct yoke_loader *l = (struct yoke_loader *)loader; // only to lock its mutex
	const int err = yk_require(l, "loader");
	if (err)
		return err;
	pthread_mutex_lock(&l->lock);
	struct yoke_loader_stats s = l->stats;
	s.workers = l->workers;
	s.bytes = l->layout.bytes * (uint64_t)l->slots;
	s.sent = l->upload.sent;
	for (int64_t k = 0; k < l->queue.head - l->queue.tail; k++)
		s.ready += yk_queued(l, k)->left == 0;
	pthread_mutex_unlock(&l->lock);
	return yk_sized_write(to, sizeof s, &s, "loader_stats", "yoke_loader_stats");
}
