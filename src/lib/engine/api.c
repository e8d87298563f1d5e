// SPDX-License-Identifier: Apache-2.0
// The public functions of yoke-engine.h: checks options and requests, and takes them from any
// thread.
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sized.h"
#include "engine/engine.h"

enum { SLOTS = 256 };           // max slots
#define CACHE_BYTES (INT64_C(2) << 30) // max of the default number of pages

// ---- creation ----

static int64_t page_bytes(const struct yk_network *n)
{
	const struct yk_model_shape *s = &n->shape;
	const int64_t size = n->cache_dtype == yoke_f16 ? 2 : 4;
	return 2 * s->layers * YK_PAGE * s->decoder.kv_heads * s->decoder.head_dim * size;
}

static int take_options(const struct yk_network *n, const struct yoke_engine_options *from,
			struct yoke_engine_options *o)
{
	*o = (struct yoke_engine_options){ 0 };
	const int e =
		from ? yk_sized_read(o, sizeof *o, from, "engine_new", "yoke_engine_options") : 0;
	if (e < 0)
		return e;
	o->slots = o->slots ? o->slots : 8;
	o->queue = o->queue ? o->queue : 64;
	o->step = o->step ? o->step : 512;
	o->alike = o->alike ? o->alike : 1;
	const int64_t context = (n->shape.context + YK_PAGE - 1) / YK_PAGE,
		      max = CACHE_BYTES / page_bytes(n);
	const int64_t all = context * o->slots, few = max > context ? max : context;
	if (!o->pages)
		o->pages = all < few ? all : few;
	if (o->slots < 1 || o->slots > SLOTS || o->queue < 1 || o->step < o->slots ||
	    o->step > 1 << 20 || o->pages < 1 || o->pages > INT32_MAX / YK_PAGE ||
	    (o->alike != 1 && o->alike != -1) || o->reuse < -1 || o->reuse > 1)
		return yk_fail(
			YOKE_EINVAL,
			"engine_new: slots %d, queue %d, step %" PRId64 ", pages %" PRId64
			", alike %d, reuse %d: "
			"slots are 1 .. %d, the others positive, step at least slots, alike and reuse 1 or -1",
			o->slots, o->queue, o->step, o->pages, o->alike, o->reuse, SLOTS);
	return 0;
}

static void *allocate(int64_t n, size_t size)
{
	void *p = calloc((size_t)n, size);
	if (!p)
		yk_fail(YOKE_ENOMEM, "engine_new: no memory");
	return p;
}

static int begin(struct yoke_engine *e)
{
	const struct yk_network *n = e->net;
	const int64_t table =
		yk_engine_rounded((n->shape.context + YK_PAGE - 1) / YK_PAGE + YK_PAGE);
	e->slot = allocate(e->options.slots, sizeof *e->slot);
	e->running = allocate(e->options.slots, sizeof *e->running);
	e->operand = allocate(YK_ENGINE_OPERANDS * yk_engine_rounded(e->options.step) +
				      e->options.slots * table,
			      sizeof *e->operand);
	e->rows = yk_engine_rounded(e->options.slots);
	e->logits = allocate(e->rows * n->shape.vocab, sizeof *e->logits);
	e->pages = yk_pages_new((int32_t)e->options.pages);
	e->sampler = yk_sampler_new(n->shape.vocab);
	if (!e->slot || !e->running || !e->operand || !e->logits || !e->pages || !e->sampler)
		return YOKE_ENOMEM;
	const yoke_tokenizer *t = yoke_model_tokenizer(e->model);
	if (!t && yoke_error_code() != YOKE_ENOENT)
		return yoke_error_code();
	if (!t)
		yoke_error_clear();
	e->eos_count = t ? yoke_tokenizer_eos(t, &e->eos) : 0;
	e->cache.dtype = n->cache_dtype;
	n->model->pages(&n->shape, e->options.pages, &e->cache);
	return e->cache.error;
}

// With alike, all products must be computed on the device, by rows.
static int check_device(const struct yoke_engine *e)
{
	const int64_t dims[] = { 2, 16 };
	struct yoke_stats before = { .size = sizeof before }, after = { .size = sizeof after };
	float y[4];
	int error = yoke_stats(&before);
	yoke_scope *s = yoke_scope_begin("engine");
	yoke_tensor *x = yoke_full(yoke_f32, 2, dims, 1);
	error = error ? error : yoke_read(yoke_matmul(x, x, YOKE_TB | YOKE_BY_ROW), y, sizeof y);
	const int ended = yoke_scope_end(s);
	error = error ? error : ended;
	error = error ? error : yoke_stats(&after);
	if (!error && after.fallbacks > before.fallbacks)
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"engine_new: %s has no products whose rows do not depend on the number of rows; "
			"give alike -1",
			yoke_device_of(e->cache.var[0]));
	return error;
}

yoke_engine *yoke_engine_new(yoke_model *m, const struct yoke_engine_options *options)
{
	struct yoke_engine_options o;
	if (!m) {
		yk_fail(YOKE_EINVAL, "engine_new: the model is NULL");
		return NULL;
	}
	if (!m->is.net->model->pages) {
		yk_fail(YOKE_EUNSUPPORTED, "engine_new: %s predicts no tokens", m->path);
		return NULL;
	}
	if (take_options(m->is.net, options, &o) < 0)
		return NULL;
	struct yoke_engine *e = calloc(1, sizeof *e);
	if (!e) {
		yk_fail(YOKE_ENOMEM, "engine_new: no memory");
		return NULL;
	}
	e->net = m->is.net;
	e->model = m;
	e->options = o;
	e->limit = o.step;
	e->context = yoke_context_of(yk_network_base(e->net)->var[0]);
	e->max_tokens = o.pages * YK_PAGE < e->net->shape.context ? o.pages * YK_PAGE :
								    e->net->shape.context;
	e->last_event = &e->event;
	e->shared.last = &e->shared.submitted;
	e->shared.stats.pages = o.pages;
	e->was_by_row = e->net->by_row;
	e->net->by_row = o.alike == 1;
	pthread_mutex_init(&e->shared.lock, NULL);
	yk_cond_init(&e->shared.changed);
	yoke_context *was = yoke_use(e->context);
	int error = begin(e);
	if (!error && o.alike == 1)
		error = check_device(e);
	yoke_use(was);
	if (!error)
		return e;
	yoke_engine_free(e);
	return NULL;
}

static void free_events(struct yk_queued_event *v)
{
	while (v) {
		struct yk_queued_event *next = v->next;
		free(v);
		v = next;
	}
}

void yoke_engine_free(yoke_engine *e)
{
	if (!e)
		return;
	struct yk_request *r = e->shared.newest;
	while (r) {
		struct yk_request *older = r->older;
		yk_request_free(r);
		r = older;
	}
	free_events(e->event);
	free(e->current);
	yoke_context *was = yoke_use(e->context);
	yk_parameters_fini(&e->cache);
	yk_engine_adapters_free(e);
	yoke_use(was);
	e->net->by_row = e->was_by_row;
	yk_pages_free(e->pages);
	yk_sampler_free(e->sampler);
	free(e->slot);
	free(e->running);
	free(e->operand);
	free(e->logits);
	pthread_cond_destroy(&e->shared.changed);
	pthread_mutex_destroy(&e->shared.lock);
	free(e);
}

int yoke_engine_adapter(yoke_engine *e, const char *name, const char *folder)
{
	if (!e || !name || !folder)
		return yk_fail(YOKE_EINVAL, "engine_adapter: an argument is NULL");
	if (!*name || yk_engine_adapters_find(e, name) >= 0)
		return yk_fail(YOKE_EINVAL, "engine_adapter: the name '%.80s' is empty or used",
			       name);
	if (e->count || e->net->adapters)
		return yk_fail(
			YOKE_EINVAL,
			"engine_adapter: sequences are running, or the model itself has adapters");
	yoke_context *was = yoke_use(e->context);
	pthread_mutex_lock(&e->shared.lock);
	const int error = yk_engine_adapters_add(e, name, folder);
	pthread_mutex_unlock(&e->shared.lock);
	yoke_use(was);
	return error;
}

// ---- requests ----

static int check_sampling(const struct yoke_engine_request *r)
{
	const double real[] = { r->temperature, r->top_p, r->min_p, r->repetition };
	bool good =
		r->tokens >= 0 && r->top_k >= 0 && isfinite(r->frequency) && isfinite(r->presence);
	for (int i = 0; i < 4; i++)
		good = good && isfinite(real[i]) && real[i] >= 0;
	if (!good)
		return yk_fail(YOKE_EINVAL,
			       "engine_submit: tokens %" PRId64 ", temperature %g, top_k %" PRId64
			       ", top_p %g, min_p %g, "
			       "repetition %g: must be finite and not negative",
			       r->tokens, r->temperature, r->top_k, r->top_p, r->min_p,
			       r->repetition);
	if (r->choices < 0 || r->choices > YOKE_ENGINE_CHOICES || r->logprobs < -1 ||
	    r->logprobs > YOKE_ENGINE_LOGPROBS)
		return yk_fail(
			YOKE_EINVAL,
			"engine_submit: choices %d, logprobs %d: choices are 1 .. %d, logprobs up to %d",
			r->choices, r->logprobs, YOKE_ENGINE_CHOICES, YOKE_ENGINE_LOGPROBS);
	return 0;
}

static int check_ids(const struct yoke_engine *e, const char *what, const int32_t *ids, int64_t n)
{
	if (n < 0 || (n && !ids))
		return yk_fail(YOKE_EINVAL, "engine_submit: %s: %" PRId64 " tokens", what, n);
	for (int64_t i = 0; i < n; i++)
		if (ids[i] < 0 || ids[i] >= e->net->shape.vocab)
			return yk_fail(YOKE_ERANGE,
				       "engine_submit: %s: id %d at %" PRId64
				       " is not in 0 .. %" PRId64,
				       what, (int)ids[i], i, e->net->shape.vocab - 1);
	return 0;
}

static int check_request(const struct yoke_engine *e, const struct yoke_engine_request *r)
{
	int error = r->count < 1 || !r->prompt ?
			    yk_fail(YOKE_EINVAL, "engine_submit: the prompt is empty") :
			    check_sampling(r);
	error = error ? error : check_ids(e, "prompt", r->prompt, r->count);
	error = error ? error : check_ids(e, "stop", r->stop, r->stops);
	error = error ? error : check_ids(e, "bias_id", r->bias_id, r->biases);
	for (int64_t i = 0; i < r->biases && !error; i++)
		if (!r->bias || isnan(r->bias[i]))
			error = yk_fail(YOKE_EINVAL, "engine_submit: bias %" PRId64 " is no number",
					i);
	if (!error && r->count >= e->max_tokens)
		error = yk_fail(YOKE_ESHAPE,
				"engine_submit: a prompt of %" PRId64
				" tokens leaves no room in a context of %" PRId64,
				r->count, e->max_tokens);
	return error;
}

static void *copied(const void *from, int64_t n, size_t size)
{
	void *to = malloc((size_t)n * size + 1);
	if (to && n)
		memcpy(to, from, (size_t)n * size);
	return to;
}

// NULL: ENOMEM
static struct yk_request *request_new(const struct yoke_engine *e,
				      const struct yoke_engine_request *from)
{
	const int choices = from->choices ? from->choices : 1;
	const int64_t left = e->max_tokens - from->count,
		      end = from->count +
			    (from->tokens && from->tokens < left ? from->tokens : left);
	struct yk_request *r = calloc(1, sizeof *r + (size_t)choices * sizeof *r->choice);
	if (!r) {
		yk_fail(YOKE_ENOMEM, "engine_submit: no memory");
		return NULL;
	}
	r->is = *from;
	r->is.choices = r->live = choices;
	r->is.prompt = copied(from->prompt, from->count, sizeof *from->prompt);
	r->is.bias_id = copied(from->bias_id, from->biases, sizeof *from->bias_id);
	r->is.bias = copied(from->bias, from->biases, sizeof *from->bias);
	r->is.stop = copied(from->stop, from->stops, sizeof *from->stop);
	bool good = r->is.prompt && r->is.bias_id && r->is.bias && r->is.stop;
	for (int i = 0; i < choices; i++) {
		struct yk_sequence *s = &r->choice[i];
		*s = (struct yk_sequence){ .request = r,
					   .choice = i,
					   .n = from->count,
					   .end = end,
					   .cached = -1,
					   .slot = -1,
					   .logits = -1,
					   .scored = 1,
					   .scores = from->score_prompt && !i ? from->count : 0 };
		s->ids = malloc((size_t)end * sizeof *s->ids);
		s->page = malloc((size_t)(end / YK_PAGE + 1) * sizeof *s->page);
		good = good && s->ids && s->page;
		if (s->ids)
			memcpy(s->ids, from->prompt, (size_t)from->count * sizeof *s->ids);
	}
	if (good)
		return r;
	yk_fail(YOKE_ENOMEM, "engine_submit: no memory for %" PRId64 " tokens", end);
	yk_request_free(r);
	return NULL;
}

// Requests in the queue: no step has given them a slot, and none is free after the requests before
// them.  Under the lock.
static int queued(const struct yoke_engine *e)
{
	const struct yk_engine_shared *x = &e->shared;
	int64_t before = x->live;
	int n = 0;
	for (const struct yk_request *r = x->newest; r; r = r->older)
		if (!r->started) {
			before -= r->is.choices;
			n += before >= e->options.slots;
		}
	return n;
}

int64_t yoke_engine_submit(yoke_engine *e, const struct yoke_engine_request *request)
{
	struct yoke_engine_request is = { 0 };
	if (!e || !request)
		return yk_fail(YOKE_EINVAL, "engine_submit: an argument is NULL");
	int error = yk_sized_read(&is, sizeof is, request, "engine_submit", "yoke_engine_request");
	error = error ? error : check_request(e, &is);
	struct yk_request *r = error ? NULL : request_new(e, &is);
	if (!r)
		return error ? error : YOKE_ENOMEM;
	struct yk_engine_shared *x = &e->shared;
	pthread_mutex_lock(&x->lock);
	r->adapter = is.adapter ? yk_engine_adapters_find(e, is.adapter) : -1;
	if (is.adapter && r->adapter < 0)
		error = yk_fail(YOKE_ENOENT, "engine_submit: there is no adapter '%.80s'",
				is.adapter);
	else if (x->live >= e->options.slots && queued(e) >= e->options.queue)
		error = yk_fail(YOKE_EBUSY, "engine_submit: the queue is full with %d requests",
				e->options.queue);
	if (error) {
		pthread_mutex_unlock(&x->lock);
		yk_request_free(r);
		return error;
	}
	const int64_t id = r->id = ++x->ids;
	r->older = x->newest;
	if (r->older)
		r->older->newer = r;
	x->newest = r;
	*x->last = r;
	x->last = &r->next;
	x->stats.submitted++;
	x->live += r->is.choices;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	return id;
}

int yoke_engine_cancel(yoke_engine *e, int64_t request)
{
	if (!e)
		return yk_fail(YOKE_EINVAL, "engine_cancel: the engine is NULL");
	struct yk_engine_shared *x = &e->shared;
	pthread_mutex_lock(&x->lock);
	struct yk_request *r = x->newest;
	while (r && r->id != request)
		r = r->older;
	if (r)
		r->cancelled = x->cancels = true;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	return r ? 0 :
		   yk_fail(YOKE_ENOENT,
			   "engine_cancel: request %" PRId64 " has ended, or never was", request);
}

int64_t yoke_engine_context(const yoke_engine *e)
{
	return e ? e->max_tokens : yk_fail(YOKE_EINVAL, "engine_context: the engine is NULL");
}

// ---- steps, events, statistics ----

int yoke_engine_step(yoke_engine *e)
{
	if (!e)
		return yk_fail(YOKE_EINVAL, "engine_step: the engine is NULL");
	yoke_context *was = yoke_use(e->context);
	const int left = yk_engine_step(e);
	yoke_use(was);
	return left;
}

int yoke_engine_next(yoke_engine *e, struct yoke_engine_event *to)
{
	if (!e || !to)
		return yk_fail(YOKE_EINVAL, "engine_next: an argument is NULL");
	struct yk_queued_event *v = e->event;
	const struct yoke_engine_event none = { 0 };
	const int error = yk_sized_write(to, sizeof none, v ? &v->is : &none, "engine_next",
					 "yoke_engine_event");
	if (error < 0 || !v)
		return error;
	e->event = v->next;
	if (!e->event)
		e->last_event = &e->event;
	free(e->current);
	e->current = v;
	return 1;
}

int yoke_engine_wait(yoke_engine *e, int64_t milliseconds)
{
	if (!e)
		return yk_fail(YOKE_EINVAL, "engine_wait: the engine is NULL");
	struct yk_engine_shared *x = &e->shared;
	const struct timespec until =
		yk_deadline(milliseconds > 0 ? 1e-3 * (double)milliseconds : 0);
	int over = 0;
	pthread_mutex_lock(&x->lock);
	while (!x->newest && !x->woken && !over)
		over = milliseconds < 0 ? pthread_cond_wait(&x->changed, &x->lock) :
					  pthread_cond_timedwait(&x->changed, &x->lock, &until);
	const int work = x->newest != NULL;
	x->woken = false;
	pthread_mutex_unlock(&x->lock);
	return work;
}

void yoke_engine_wake(yoke_engine *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->shared.lock);
	e->shared.woken = true;
	pthread_cond_broadcast(&e->shared.changed);
	pthread_mutex_unlock(&e->shared.lock);
}

int yoke_engine_stats(yoke_engine *e, struct yoke_engine_stats *to)
{
	if (!e || !to)
		return yk_fail(YOKE_EINVAL, "engine_stats: an argument is NULL");
	pthread_mutex_lock(&e->shared.lock);
	struct yoke_engine_stats s = e->shared.stats;
	if (s.running > e->shared.live)
		s.running = e->shared.live;
	s.queued = e->shared.live - s.running;
	s.waiting = queued(e);
	pthread_mutex_unlock(&e->shared.lock);
	return yk_sized_write(to, sizeof s, &s, "engine_stats", "yoke_engine_stats");
}
