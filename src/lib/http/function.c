// SPDX-License-Identifier: Apache-2.0
// yoke-serve.h: functions of arrays.  The requests that have arrived while a batch was computed
// form the next one, as far as their samples have the same dtype and dims.
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "http/arrays.h"
#include "http/http.h"

enum { FUNCTIONS = 64 };

struct function {
	yoke_server *server;
	char *path;
	yoke_serve_call *call;
	struct yoke_serve_options is;
	void *user;
};

struct job {
	struct yk_exchange *x;
	struct function *f;
	struct yoke_serve_array in;
	bool npy;
	struct job *next;
};

struct yoke_server {
	struct yoke_server_options is;
	char *host, *key;
	struct function function[FUNCTIONS];
	struct yk_route route[FUNCTIONS];
	int functions;
	struct yk_http *http;  // NULL: does not listen
	pthread_mutex_t mutex; // protects the members below
	pthread_cond_t changed;
	struct job *first, **last;
	int64_t waiting;
	bool stopped;
};

// ---- requests, on threads of HTTP ----

static void job_free(struct job *j)
{
	yk_exchange_release(j->x);
	free(j->in.data);
	free(j);
}

static int read_array(struct yk_exchange *x, const struct function *f, struct job *j)
{
	const char *type = yk_exchange_header(x, "Content-Type");
	size_t bytes;
	const char *body = yk_exchange_body(x, &bytes);
	j->npy = type && strstr(type, "npy");
	const int e = j->npy ? yk_array_of_npy(body, bytes, f->is.dtype, &j->in) :
			       yk_array_of_json(body, bytes, f->is.dtype, &j->in);
	if (e < 0 || !f->is.rank || j->in.rank == f->is.rank)
		return e;
	return yk_fail(YOKE_ESHAPE, "the array has %d axes; the function takes %d", j->in.rank,
		       f->is.rank);
}

static void handle(struct yk_exchange *x, void *arg)
{
	struct function *f = arg;
	yoke_server *s = f->server;
	struct job *j = calloc(1, sizeof *j);
	if (!j || read_array(x, f, j) < 0) {
		if (!j)
			yk_fail(YOKE_ENOMEM, "no memory for a request");
		yk_exchange_failed(x, NULL);
		if (j)
			free(j->in.data);
		free(j);
		return;
	}
	j->f = f;
	j->x = x;
	yk_exchange_keep(x);
	pthread_mutex_lock(&s->mutex);
	const bool full = s->waiting >= s->is.queue;
	if (!full) {
		s->waiting++;
		*s->last = j;
		s->last = &j->next;
		pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->mutex);
	if (!full)
		return;
	yk_exchange_set(x, "Retry-After", "1");
	yk_exchange_error(x, 429, NULL, "queue_full",
			  "too many requests are waiting; try again later");
	job_free(j);
}

// ---- batches, on the thread of yoke_server_run ----

static bool fits(const struct job *a, const struct job *b)
{
	return a->f == b->f && a->in.rank == b->in.rank &&
	       !memcmp(a->in.dims + 1, b->in.dims + 1,
		       (size_t)(a->in.rank - 1) * sizeof *a->in.dims);
}

// Takes the first job and those that fit it, in order.  The caller holds the mutex.
static struct job *take_batch(yoke_server *s, int64_t *samples)
{
	struct job *batch = NULL, **end = &batch;
	*samples = 0;
	for (struct job **at = &s->first; *at;) {
		struct job *j = *at;
		if (batch && (!fits(batch, j) || *samples + j->in.dims[0] > batch->f->is.batch)) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		j->next = NULL;
		*end = j;
		end = &j->next;
		*samples += j->in.dims[0];
		s->waiting--;
	}
	s->last = &s->first;
	while (*s->last)
		s->last = &(*s->last)->next;
	return batch;
}

static void reply(struct job *j, const struct yoke_serve_array *out)
{
	struct yk_string text = { 0 };
	const int e = j->npy ? yk_array_to_npy(out, &text) : yk_array_to_json(out, &text);
	if (e < 0)
		yk_exchange_error(j->x, 500, NULL, NULL, "%s", yoke_error());
	else
		yk_exchange_reply(j->x, 200, j->npy ? "application/x-npy" : "application/json",
				  text.failed ? NULL : text.s, text.n);
	if (e < 0 || text.failed)
		yk_string_fini(&text);
	yoke_error_clear();
}

static void fail(struct job *batch, int e)
{
	const bool theirs = e == YOKE_EINVAL || e == YOKE_EFORMAT || e == YOKE_ERANGE ||
			    e == YOKE_ESHAPE || e == YOKE_EDTYPE;
	for (struct job *j = batch; j; j = j->next)
		yk_exchange_error(j->x, theirs ? 400 : 500, NULL, NULL, "%s",
				  *yoke_error() ? yoke_error() : yk_error_text(e));
	yoke_error_clear();
}

static int join(const struct job *batch, int64_t samples, struct yoke_serve_array *to)
{
	const size_t sample =
		(size_t)yk_array_sample(&batch->in) * yk_array_element(batch->in.dtype);
	char *at = malloc((size_t)samples * sample);
	if (!at)
		return yk_fail(YOKE_ENOMEM, "no memory for a batch");
	*to = batch->in;
	to->dims[0] = samples;
	to->data = at;
	for (const struct job *j = batch; j; j = j->next) {
		memcpy(at, j->in.data, (size_t)j->in.dims[0] * sample);
		at += (size_t)j->in.dims[0] * sample;
	}
	return 0;
}

static int check(const struct yoke_serve_array *out, int64_t samples)
{
	if (out->rank < 1 || out->rank > YOKE_MAX_RANK || !out->data || out->dims[0] != samples)
		return yk_fail(
			YOKE_EFAILED,
			"the function's result does not have the %lld samples of its argument",
			(long long)samples);
	return 0;
}

static void compute(struct job *batch, int64_t samples)
{
	struct yoke_serve_array in = { 0 }, out = { 0 };
	int e = join(batch, samples, &in);
	if (e == 0)
		e = batch->f->call(batch->f->user, &in, &out);
	if (e >= 0)
		e = check(&out, samples);
	if (e < 0) {
		fail(batch, e);
	} else {
		struct yoke_serve_array one = out;
		for (struct job *j = batch; j; j = j->next) {
			one.dims[0] = j->in.dims[0];
			reply(j, &one);
			one.data =
				(char *)one.data + (size_t)(one.dims[0] * yk_array_sample(&out)) *
							   yk_array_element(out.dtype);
		}
	}
	free(in.data);
	free(out.data);
}

// Drops requests whose client is gone, or has the reply that its time is over.
static struct job *without_late(struct job *batch, int64_t *samples)
{
	for (struct job **at = &batch; *at;) {
		struct job *j = *at;
		if (!yk_exchange_disconnected(j->x) && !yk_exchange_is_done(j->x)) {
			at = &j->next;
			continue;
		}
		yk_exchange_error(j->x, 499, NULL, NULL, "the client closed the connection");
		*samples -= j->in.dims[0];
		*at = j->next;
		job_free(j);
	}
	return batch;
}

static struct job *await_batch(yoke_server *s, int64_t *samples)
{
	pthread_mutex_lock(&s->mutex);
	while (!s->first && !s->stopped)
		pthread_cond_wait(&s->changed, &s->mutex);
	struct job *batch = take_batch(s, samples);
	pthread_mutex_unlock(&s->mutex);
	return batch;
}

// ---- entry points ----

yoke_server *yoke_server_new(const struct yoke_server_options *options)
{
	struct yoke_server_options o = { .size = sizeof o };
	if (options &&
	    yk_sized_read(&o, sizeof o, options, "server_new", "yoke_server_options") < 0)
		return NULL;
	if (o.port < 0 || o.port > 65535 || o.connections < 0 || o.connections > 10000 ||
	    o.body < 0 || o.queue < 0 || o.timeout < 0) {
		yk_fail(YOKE_EINVAL, "server_new: an option is out of range");
		return NULL;
	}
	o.connections = o.connections ? o.connections : 256;
	o.body = o.body ? o.body : 4 << 20;
	o.queue = o.queue ? o.queue : 64;
	o.timeout = o.timeout ? o.timeout : 600;
	yoke_server *s = calloc(1, sizeof *s);
	if (s) {
		s->is = o;
		s->last = &s->first;
		s->host = strdup(o.host ? o.host : "127.0.0.1");
		s->key = o.key ? strdup(o.key) : NULL;
		pthread_mutex_init(&s->mutex, NULL);
		pthread_cond_init(&s->changed, NULL);
	}
	if (s && s->host && (s->key || !o.key))
		return s;
	yoke_server_free(s);
	yk_fail(YOKE_ENOMEM, "server_new: no memory for a server");
	return NULL;
}

void yoke_server_free(yoke_server *s)
{
	if (!s)
		return;
	yk_http_stop(s->http);
	while (s->first) {
		struct job *j = s->first;
		s->first = j->next;
		job_free(j);
	}
	for (int i = 0; i < s->functions; i++)
		free(s->function[i].path);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	free(s->host);
	free(s->key);
	free(s);
}

int yoke_serve_function(yoke_server *s, const char *path, yoke_serve_call *call,
			const struct yoke_serve_options *options, void *user)
{
	struct yoke_serve_options o = { .size = sizeof o };
	int e = yk_require(s, "server");
	if (e == 0)
		e = yk_require(path, "path");
	if (e == 0 && !call)
		e = yk_fail(YOKE_EINVAL, "serve_function: the function is NULL");
	if (e == 0 && options)
		e = yk_sized_read(&o, sizeof o, options, "serve_function", "yoke_serve_options");
	if (e < 0)
		return e;
	o.dtype = o.dtype ? o.dtype : yoke_f32;
	o.batch = o.batch ? o.batch : 64;
	if (o.batch < 0 || o.rank < 0 || o.rank > YOKE_MAX_RANK ||
	    (o.dtype != yoke_f32 && o.dtype != yoke_f64 && o.dtype != yoke_i32 &&
	     o.dtype != yoke_i64))
		return yk_fail(YOKE_EINVAL, "serve_function: an option is out of range");
	if (s->http)
		return yk_fail(YOKE_EBUSY, "serve_function: the server listens already");
	if (*path != '/' || s->functions == FUNCTIONS)
		return yk_fail(YOKE_EINVAL,
			       *path != '/' ?
				       "serve_function: the path '%s' does not begin with /" :
				       "serve_function: '%s': the server has 64 functions already",
			       path);
	for (int i = 0; i < s->functions; i++)
		if (!strcmp(s->function[i].path, path))
			return yk_fail(YOKE_EINVAL, "serve_function: the path '%s' has a function",
				       path);
	struct function *f = &s->function[s->functions];
	*f = (struct function){ s, strdup(path), call, o, user };
	if (!f->path)
		return yk_fail(YOKE_ENOMEM, "serve_function: no memory for a path");
	s->route[s->functions++] = (struct yk_route){ "POST", f->path, false, handle, f };
	return 0;
}

int yoke_server_start(yoke_server *s)
{
	int e = yk_require(s, "server");
	if (e < 0)
		return e;
	if (s->http)
		return yk_fail(YOKE_EBUSY, "server_start: the server listens already");
	const struct yk_http_options o = { .host = s->host,
					   .port = s->is.port,
					   .key = s->key,
					   .open = s->is.open,
					   .body = (size_t)s->is.body,
					   .connections = s->is.connections,
					   .timeout = (double)s->is.timeout };
	e = yk_http_start(&o, s->route, (size_t)s->functions, &s->http);
	return e < 0 ? e : yk_http_port(s->http);
}

int yoke_server_run(yoke_server *s)
{
	int64_t samples;
	const int e = yk_require(s, "server");
	if (e < 0)
		return e;
	if (!s->http)
		return yk_fail(YOKE_EINVAL,
			       "server_run: the server does not listen; call yoke_server_start");
	for (bool stopped = false; !stopped;) {
		struct job *batch = await_batch(s, &samples);
		yk_http_watch(s->http);
		batch = without_late(batch, &samples);
		if (batch)
			compute(batch, samples);
		while (batch) {
			struct job *j = batch;
			batch = j->next;
			job_free(j);
		}
		pthread_mutex_lock(&s->mutex);
		stopped = s->stopped && !s->first;
		s->stopped = s->stopped && !stopped;
		pthread_mutex_unlock(&s->mutex);
	}
	return 0;
}

void yoke_server_stop(yoke_server *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stopped = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}
