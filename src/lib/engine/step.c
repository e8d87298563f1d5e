// SPDX-License-Identifier: Apache-2.0
// A step: sequences get slots in order of arrival; one token of each running sequence and chunks of
// prompts are packed, the older sequences first; then the network computes them, and the next
// tokens are sampled. A sequence that finds no page takes those of the youngest one, which is
// computed again later.
//
// A failed evaluation leaves the contents of all pages unknown, so all running sequences are
// computed again from their tokens.  After a lack of memory in smaller steps; otherwise together
// once more, then each of them alone until its next token, so that only a sequence that fails alone
// ends with the error.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"

enum {
	ALONE = 2,       // failures in a row after which a sequence is computed alone
	// after which it ends with the error, or all that wait if the cache cannot be created
	FAILURES = 3,
	CALM = 32,       // good steps after which a step may have twice as many tokens again
	SCORES = 64,     // tokens of prompts that are scored in a step
};

static int64_t pages_for(int64_t tokens)
{
	return (tokens + YK_PAGE - 1) / YK_PAGE;
}

// ---- slots and pages ----

static bool is_older(const struct yk_sequence *a, const struct yk_sequence *b)
{
	return a->request->id != b->request->id ? a->request->id < b->request->id :
						  a->choice < b->choice;
}

static void enqueue(struct yoke_engine *e, struct yk_sequence *s)
{
	struct yk_sequence **at = &e->waiting;
	while (*at && is_older(*at, s))
		at = &(*at)->next;
	s->next = *at;
	*at = s;
}

static void release_pages(struct yoke_engine *e, struct yk_sequence *s)
{
	while (s->pages)
		yk_page_release(e->pages, s->page[--s->pages]);
}

// Takes slot and pages of a running sequence.
static void stop(struct yoke_engine *e, struct yk_sequence *s)
{
	int i = 0;
	while (e->running[i] != s)
		i++;
	memmove(&e->running[i], &e->running[i + 1], (size_t)(--e->count - i) * sizeof *e->running);
	e->slot[s->slot] = NULL;
	s->slot = -1;
	s->news = s->computed = 0;
	s->logits = -1;
	release_pages(e, s);
}

static void end(struct yoke_engine *e, struct yk_sequence *s, int reason, int32_t token, int error,
		const char *message)
{
	if (s->slot >= 0) {
		stop(e, s);
	} else {
		struct yk_sequence **at = &e->waiting;
		while (*at && *at != s)
			at = &(*at)->next;
		if (*at)
			*at = s->next;
	}
	yk_engine_end(e, s, reason, token, error, message);
}

static void put_back(struct yoke_engine *e, struct yk_sequence *s)
{
	stop(e, s);
	enqueue(e, s);
}

// Puts a running sequence back for lack of pages.
static void preempt(struct yoke_engine *e, struct yk_sequence *s)
{
	put_back(e, s);
	pthread_mutex_lock(&e->shared.lock);
	e->shared.stats.preempted++;
	pthread_mutex_unlock(&e->shared.lock);
}

// Pages that hold the first tokens of a sequence; its last token is always computed, for its
// logits.
static void find_pages(struct yoke_engine *e, struct yk_sequence *s)
{
	s->pages = s->full = s->computed = 0;
	s->chain = yk_page_chain_of(s->request->adapter + 1);
	while (e->options.reuse >= 0 && s->scored >= s->scores && s->computed + YK_PAGE < s->n) {
		const int32_t page = yk_page_find(e->pages, &s->chain, s->ids + s->computed);
		if (page == YK_NO_PAGE)
			break;
		s->page[s->pages++] = page;
		s->computed += YK_PAGE;
	}
	s->full = s->pages;
}

// Should a choice wait until the first one has computed the prompt, whose pages it then shares?
static bool waits_for_first(const struct yoke_engine *e, const struct yk_sequence *s)
{
	const struct yk_sequence *first = &s->request->choice[0];
	return e->options.reuse >= 0 && s->choice > 0 && !first->ended && first->generated == 0;
}

static void start(struct yoke_engine *e, struct yk_sequence *s)
{
	int at = e->count;
	s->slot = 0;
	while (e->slot[s->slot])
		s->slot++;
	e->slot[s->slot] = s;
	while (at > 0 && is_older(s, e->running[at - 1]))
		at--;
	memmove(&e->running[at + 1], &e->running[at],
		(size_t)(e->count++ - at) * sizeof *e->running);
	e->running[at] = s;
	if (s->cached >= 0) // put back before
		return;
	s->cached = s->computed;
	pthread_mutex_lock(&e->shared.lock);
	s->request->started = true;
	e->shared.stats.prompt_tokens += s->request->is.count;
	e->shared.stats.cached_tokens += s->cached;
	pthread_mutex_unlock(&e->shared.lock);
}

// Is a sequence running alone, or made to, because it has failed with others?
static bool runs_alone(struct yoke_engine *e)
{
	struct yk_sequence **at = &e->waiting, *s;
	if (e->count && e->running[0]->failures >= ALONE)
		return true;
	while (*at && (*at)->failures < ALONE)
		at = &(*at)->next;
	if (!*at)
		return false;
	s = *at;
	*at = s->next;
	while (e->count)
		put_back(e, e->running[e->count - 1]);
	find_pages(e, s);
	start(e, s);
	return true;
}

// Gives slots to those that wait, as long as there seem to be pages for their tokens.
static void start_waiting(struct yoke_engine *e)
{
	const int64_t max = e->options.slots < e->limit ? e->options.slots : e->limit;
	if (runs_alone(e))
		return;
	for (struct yk_sequence **at = &e->waiting, *s; (s = *at) && e->count < max;) {
		if (waits_for_first(e, s)) {
			at = &s->next;
			continue;
		}
		find_pages(e, s);
		const struct yk_page_counts c = yk_pages_count(e->pages);
		if (e->count > 0 && c.all - c.used < pages_for(s->n + 1) - s->pages) {
			release_pages(e, s);
			break;
		}
		*at = s->next;
		start(e, s);
	}
}

// Gives a sequence pages for up to `tokens` more tokens; returns for how many.
static int64_t reserve(struct yoke_engine *e, struct yk_sequence *s, int64_t tokens)
{
	while (s->pages < pages_for(s->computed + tokens)) {
		const int32_t page = yk_page_alloc(e->pages);
		if (page == YK_NO_PAGE)
			break;
		s->page[s->pages++] = page;
	}
	const int64_t room = s->pages * YK_PAGE - s->computed;
	return room < tokens ? room : tokens;
}

// Chooses the tokens that each running sequence computes in this step; returns their number.
static int64_t pack(struct yoke_engine *e)
{
	const int64_t max = e->limit;
	int64_t t = 0, scores = SCORES;
	int singles = 0; // sequences that compute their last token only, and have room in the step
	for (int i = 0; i < e->count; i++)
		singles += e->running[i]->n - e->running[i]->computed == 1;
	for (int i = 0; i < e->count; i++)
		e->running[i]->news = 0;
	for (int i = 0; i < e->count;) {
		struct yk_sequence *s = e->running[i];
		const int64_t left = s->n - s->computed;
		const int64_t room = left == 1 ? 1 : max - t - singles;
		int64_t want = left < room ? left : room;
		if (s->scored < s->scores && want > scores)
			want = scores;
		s->news = want > 0 ? reserve(e, s, want) : 0;
		if (want > 0 && !s->news && e->count > 1) {
			struct yk_sequence *youngest = e->running[e->count - 1];
			singles -= youngest != s && youngest->n - youngest->computed == 1;
			singles -= youngest == s && left == 1;
			preempt(e, youngest);
			continue;
		}
		singles -= left == 1;
		scores -= s->scored < s->scores ? s->news : 0;
		t += s->news;
		i++;
	}
	return t;
}

// ---- requests ----

// Takes what other threads have submitted and cancelled.  Both under one lock: a request that is
// cancelled has left the list of submitted ones before it ends.
static void take_requests(struct yoke_engine *e)
{
	struct yk_engine_shared *x = &e->shared;
	struct yk_request *gone[64];
	bool more = true;
	while (more) {
		int n = 0;
		pthread_mutex_lock(&x->lock);
		struct yk_request *r = x->submitted;
		x->submitted = NULL;
		x->last = &x->submitted;
		for (struct yk_request *c = x->cancels ? x->newest : NULL; c && n < 64;
		     c = c->older)
			if (c->cancelled)
				gone[n++] = c;
		more = n == 64;
		x->cancels = more;
		pthread_mutex_unlock(&x->lock);
		for (; r; r = r->next)
			for (int i = 0; i < r->is.choices; i++)
				enqueue(e, &r->choice[i]);
		for (int i = 0; i < n; i++) {
			r = gone[i];
			for (int k = 0, choices = r->is.choices, left = r->live;
			     k < choices && left; k++)
				if (!r->choice[k].ended) {
					left--;
					end(e, &r->choice[k], YOKE_ENGINE_CANCELLED, -1, 0, NULL);
				}
		}
	}
}

// ---- failures ----

// Creates the cache again.
static void restore(struct yoke_engine *e)
{
	const int dtype = e->cache.dtype;
	yk_parameters_fini(&e->cache);
	e->cache.dtype = dtype;
	e->net->model->pages(&e->net->shape, e->options.pages, &e->cache);
	yk_pages_reset(e->pages);
	e->lost = e->cache.error < 0;
	e->lost_steps = e->lost ? e->lost_steps + 1 : 0;
	if (e->lost_steps == FAILURES) {
		char message[160];
		snprintf(message, sizeof message, "%s", yoke_error());
		while (e->waiting)
			end(e, e->waiting, YOKE_ENGINE_ERROR, -1, e->cache.error, message);
		e->lost_steps = 0;
	}
	yoke_error_clear();
}

static void recover(struct yoke_engine *e, int error, int64_t tokens)
{
	const bool smaller = error == YOKE_ENOMEM && tokens > 1;
	char message[160];
	snprintf(message, sizeof message, "%s", yoke_error());
	yoke_error_clear();
	e->calm = 0;
	if (smaller)
		e->limit = tokens / 2;
	while (e->count) {
		struct yk_sequence *s = e->running[e->count - 1];
		s->failures += s->news > 0 && !smaller;
		if (s->failures < FAILURES)
			put_back(e, s);
		else
			end(e, s, YOKE_ENGINE_ERROR, -1, error, message);
	}
	pthread_mutex_lock(&e->shared.lock);
	e->shared.stats.failed_steps++;
	pthread_mutex_unlock(&e->shared.lock);
	restore(e);
}

static void count_good_step(struct yoke_engine *e, int64_t tokens)
{
	if (e->limit < e->options.step && ++e->calm % CALM == 0)
		e->limit = 2 * e->limit < e->options.step ? 2 * e->limit : e->options.step;
	pthread_mutex_lock(&e->shared.lock);
	e->shared.stats.steps++;
	e->shared.stats.computed_tokens += tokens;
	e->shared.stats.last_step_tokens = tokens;
	pthread_mutex_unlock(&e->shared.lock);
}

// ---- results ----

static bool ends_text(const struct yoke_engine *e, const struct yk_request *r, int32_t id)
{
	bool ends = false;
	for (int k = 0; k < e->eos_count && !r->is.past_end; k++)
		ends = ends || id == e->eos[k];
	for (int64_t k = 0; k < r->is.stops; k++)
		ends = ends || id == r->is.stop[k];
	return ends;
}

// Reports the tokens of a prompt that the first `rows` of the logits predict; they have been
// computed.
static void score(struct yoke_engine *e, struct yk_sequence *s, const float *logits)
{
	const int64_t first = s->computed - s->rows + 1; // predicted by the first row
	for (int i = 0; i < s->rows && s->scored < s->scores; i++) {
		struct yk_queued_event v = { .is = { .kind = YOKE_ENGINE_PROMPT } };
		if (first + i != s->scored) // reported before the sequence was put back
			continue;
		yk_sampler_score(e->sampler, s, logits + i * e->net->shape.vocab, s->ids[s->scored],
				 &v);
		s->scored++;
		yk_engine_emit(e, s, &v);
	}
}

static void next_token(struct yoke_engine *e, struct yk_sequence *s, float *logits)
{
	struct yk_queued_event v = { .is = { .kind = YOKE_ENGINE_TOKEN } };
	const int error = yk_sampler_choose(e->sampler, s, logits, &v);
	if (error < 0) {
		end(e, s, YOKE_ENGINE_ERROR, -1, error, yoke_error());
		yoke_error_clear();
		return;
	}
	if (error > 0 || ends_text(e, s->request, v.is.token)) {
		end(e, s, YOKE_ENGINE_STOP, error > 0 ? -1 : v.is.token, 0, NULL);
		return;
	}
	s->ids[s->n++] = v.is.token;
	s->generated++;
	s->failures = 0;
	yk_engine_emit(e, s, &v);
	pthread_mutex_lock(&e->shared.lock);
	e->shared.stats.generated_tokens++;
	pthread_mutex_unlock(&e->shared.lock);
	if (s->n == s->end)
		end(e, s, YOKE_ENGINE_LENGTH, -1, 0, NULL);
}

// Counts the computed tokens, makes full pages known, and samples.
static void finish(struct yoke_engine *e)
{
	struct yk_sequence *all[256]; // max slots
	const int n = e->count;
	memcpy(all, e->running, (size_t)n * sizeof *all);
	for (int i = 0; i < n; i++) {
		struct yk_sequence *s = all[i];
		s->computed += s->news;
		for (; s->full < s->computed / YK_PAGE; s->full++)
			yk_page_filled(e->pages, s->page[s->full], &s->chain,
				       s->ids + s->full * YK_PAGE);
	}
	for (int i = 0; i < n; i++) {
		struct yk_sequence *s = all[i];
		float *logits = s->logits >= 0 ? e->logits + s->logits * e->net->shape.vocab : NULL;
		if (logits)
			score(e, s, logits);
		if (logits && s->computed == s->n)
			next_token(e, s, logits + (s->rows - 1) * e->net->shape.vocab);
	}
}

// Gives sequences rows of the logits; returns their number, or ENOMEM.
static int assign_rows(struct yoke_engine *e)
{
	int rows = 0;
	for (int i = 0; i < e->count; i++) {
		struct yk_sequence *s = e->running[i];
		const bool last = s->news && s->computed + s->news == s->n,
			   scores = s->news && s->scored < s->scores;
		s->rows = scores ? (int)s->news : last;
		s->logits = s->rows ? rows : -1;
		rows += s->rows;
	}
	if (rows <= e->rows)
		return rows;
	const int64_t more = yk_engine_rounded(rows);
	float *logits = realloc(e->logits, (size_t)(more * e->net->shape.vocab) * sizeof *logits);
	if (!logits)
		return yk_fail(YOKE_ENOMEM, "engine: no memory for %d rows of logits", rows);
	e->logits = logits;
	e->rows = more;
	return rows;
}

static int left_of(struct yoke_engine *e)
{
	struct yk_engine_shared *x = &e->shared;
	const struct yk_page_counts c = yk_pages_count(e->pages);
	pthread_mutex_lock(&x->lock);
	const int left = (int)x->live;
	x->stats.running = e->count;
	x->stats.pages_used = c.used;
	x->stats.pages_kept = c.kept;
	pthread_mutex_unlock(&x->lock);
	return left;
}

int yk_engine_step(struct yoke_engine *e)
{
	take_requests(e);
	if (e->lost)
		restore(e);
	if (e->lost)
		return left_of(e);
	start_waiting(e);
	const int64_t t = pack(e);
	const int rows = assign_rows(e);
	int error = rows < 0 ? rows : 0;
	if (t && !error)
		error = yk_engine_compute(e, t, rows);
	if (error == YOKE_EBUSY)
		return error;
	if (error < 0) {
		recover(e, error, t);
	} else if (t) {
		count_good_step(e, t);
		finish(e);
	}
	return left_of(e);
}
