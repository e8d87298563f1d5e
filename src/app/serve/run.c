// SPDX-License-Identifier: Apache-2.0
// yoke serve: listens while it loads the model, serves until a signal, and answers what is in
// progress.
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "http/guard.h"
#include "serve/open.h"
#include "serve/routes.h"

enum { WATCH_MS = 250 }; // between looks at connections while nothing is computed

struct server {
	struct yk_serve *s;
	struct yk_stop stop;
	pthread_mutex_t mutex; // protects `ended`
	bool ended;            // the HTTP server is about to be freed
	struct yk_route route[YK_ROUTES];
	char key[YK_TOKEN_BYTES];
};

// Runs on the thread that waits for signals.  Requests are refused from then on, however long the
// step takes.
static void stop_requested(void *arg, int signal, bool again)
{
	struct server *v = arg;
	(void)signal;
	if (again)
		return;
	pthread_mutex_lock(&v->mutex);
	if (atomic_load(&v->s->phase) != YK_LOADING && !v->ended)
		yk_http_drain(v->s->http);
	pthread_mutex_unlock(&v->mutex);
	yk_serve_wake(v->s);
}

// The log has numbers and times, and never a text.
static void received(void *arg)
{
	struct yk_serve *s = arg;
	yk_metrics_received(&s->metrics);
}

static void finished(void *arg, const struct yk_exchange *x)
{
	struct yk_serve *s = arg;
	const int status = yk_exchange_disconnected(x) ? 499 : yk_exchange_status(x);
	yk_metrics_replied(&s->metrics, yk_route_name(yk_exchange_path(x)), status);
	yk_info("serve", "request %" PRIu64 " %s %d %.0f ms", yk_exchange_id(x),
		yk_route_name(yk_exchange_path(x)), status,
		1000 * (yk_seconds() - yk_exchange_began(x)));
}

static int listen(struct server *v)
{
	struct yk_serve *s = v->s;
	struct yk_http_options o = { .host = s->is.host,
				     .port = s->is.port,
				     .open = s->is.public,
				     .body = (size_t)s->is.body,
				     .connections = s->is.connections,
				     .timeout = s->is.timeout,
				     .received = received,
				     .finished = finished,
				     .arg = s };
	const int e = yk_api_key_read(s->is.key_file, false, v->key);
	o.key = *v->key ? v->key : NULL;
	yk_routes_of(s, v->route);
	return e < 0 ? e : yk_http_start(&o, v->route, YK_ROUTES, &s->http);
}

// Serves until a signal.
static int serve(struct server *v)
{
	struct yk_serve *s = v->s;
	int e = 0;
	while (e >= 0 && !atomic_load(&v->stop.signal)) {
		e = yk_serve_work(s);
		if (e == 0)
			yk_serve_wait(s, WATCH_MS);
	}
	return e < 0 ? e : 0;
}

// Answers the requests in progress, as long as there is time.
static int drain(struct server *v)
{
	struct yk_serve *s = v->s;
	const double end = yk_seconds() + s->is.drain;
	bool late = false;
	int e = 0;
	atomic_store(&s->phase, YK_DRAINING);
	yk_http_drain(s->http);
	while (e >= 0 && !yk_serve_is_idle(s)) {
		if (!late && yk_seconds() > end) {
			yk_serve_cancel(s);
			late = true;
		}
		e = yk_serve_work(s);
		if (e == 0)
			yk_serve_wait(s, 10);
	}
	return e < 0 ? e : 0;
}

static int run(struct server *v)
{
	struct yk_serve *s = v->s;
	int e = listen(v);
	if (e == 0)
		e = yk_serve_open(s);
	if (e < 0)
		return e;
	atomic_store(&s->phase, YK_READY);
	printf("yoke serve: %s\n", yk_http_url(s->http));
	fflush(stdout);
	e = serve(v);
	return e < 0 ? e : drain(v);
}

int yk_serve_run(const struct yk_serve_options *options)
{
	struct server v = { .s = yk_serve_new(options), .mutex = PTHREAD_MUTEX_INITIALIZER };
	if (!v.s)
		return yoke_error_code();
	int e = yk_stop_begin(&v.stop, stop_requested, &v);
	if (e == 0) {
		e = run(&v);
		pthread_mutex_lock(&v.mutex);
		v.ended = true;
		pthread_mutex_unlock(&v.mutex);
		yk_http_stop(v.s->http);
		yk_stop_end(&v.stop); // a second signal ends the process until here
	}
	yk_serve_free(v.s);
	return e;
}
