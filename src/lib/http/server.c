// SPDX-License-Identifier: Apache-2.0
// The server: libmicrohttpd receives requests, on a few threads for all connections.
#include "config.h"

#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "base/socket.h"
#include "base/system.h"

// DISCARDED: bytes of a refused body that are read, so that the client gets to read the reply.
enum { THREADS = 4, DISCARDED = 64 << 20, FLUSH_S = 2, WATCH_MS = 250 };

YK_PARAM(idle_setting, "http.idle", YK_INT, "60000",
	 "milliseconds in which a client may send or receive nothing, or a request's headers must be complete",
	 .min = 1, .max = INT32_MAX);

// ---- lists ----

static void add(struct yk_http *h, struct yk_exchange *x)
{
	pthread_mutex_lock(&h->mutex);
	x->after = h->first;
	if (h->first)
		h->first->before = x;
	h->first = x;
	h->active++;
	pthread_mutex_unlock(&h->mutex);
}

// The caller holds the mutex.
static void drop(struct yk_http *h, struct yk_exchange *x)
{
	if (x->after)
		x->after->before = x->before;
	if (x->before)
		x->before->after = x->after;
	else
		h->first = x->after;
	h->active--;
	pthread_cond_broadcast(&h->changed);
}

static struct yk_connection *connection_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static void set_busy(struct yk_http *h, struct MHD_Connection *c, bool busy)
{
	struct yk_connection *own = connection_of(c);
	pthread_mutex_lock(&h->mutex);
	if (own) {
		own->busy = busy;
		own->since = yk_seconds();
		own->received = yk_socket_received(own->fd);
	}
	pthread_mutex_unlock(&h->mutex);
}

static void connected(void *arg, struct MHD_Connection *c, void **context,
		      enum MHD_ConnectionNotificationCode code)
{
	struct yk_http *h = arg;
	struct yk_connection *own = *context;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		own = calloc(1, sizeof *own);
		*context = own;
		if (!own) // without a time limit
			return;
		own->fd = info ? info->connect_fd : -1;
		own->since = yk_seconds();
		pthread_mutex_lock(&h->mutex);
		own->after = h->connections;
		if (own->after)
			own->after->before = own;
		h->connections = own;
		pthread_mutex_unlock(&h->mutex);
	} else if (own) {
		pthread_mutex_lock(&h->mutex);
		if (own->after)
			own->after->before = own->before;
		if (own->before)
			own->before->after = own->after;
		else
			h->connections = own->after;
		pthread_mutex_unlock(&h->mutex);
		free(own);
	}
}

// ---- requests ----

static void wake(void *connection)
{
	MHD_resume_connection(connection);
}

static const char *lookup(void *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void too_large(struct yk_exchange *x, size_t max)
{
	yk_exchange_error(x, 413, NULL, NULL, "the request has more than %zu bytes", max);
}

// Bytes of the body that the headers announce; -1: not known.
static double announced(const struct yk_exchange *x)
{
	const char *length = yk_exchange_header(x, "Content-Length");
	double n = -1;
	return length && yk_number(length, &n) ? n : -1;
}

// The headers are complete.  *at_once: the reply does not wait for the body.
static struct yk_exchange *begin(struct yk_http *h, struct MHD_Connection *c, const char *url,
				 const char *method, bool *at_once)
{
	struct yk_exchange *x = yk_exchange_new(url);
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!x)
		return NULL;
	x->connection = c;
	x->wake = wake;
	x->lookup = lookup;
	x->fd = info ? info->connect_fd : -1;
	add(h, x);
	if (h->is.received)
		h->is.received(h->is.arg);
	set_busy(h, c, true);
	yk_http_admit(h, x, method);
	if (!yk_exchange_is_done(x) && announced(x) > (double)h->is.body)
		too_large(x, h->is.body);
	// A client that waits for a 100 Continue sends nothing more.
	*at_once = yk_exchange_is_done(x) &&
		   (yk_exchange_header(x, "Expect") || announced(x) > DISCARDED);
	return x;
}

static enum MHD_Result request(void *arg, struct MHD_Connection *c, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *bytes, void **state)
{
	struct yk_http *h = arg;
	struct yk_exchange *x = *state;
	(void)version;
	if (!x) {
		bool at_once = false;
		x = *state = begin(h, c, url, method, &at_once);
		if (!x)
			return MHD_NO;
		return at_once ? yk_http_pass_reply(x) : MHD_YES;
	}
	if (*bytes) {
		if (!yk_exchange_is_done(x) && x->body.n + *bytes > h->is.body)
			too_large(x, h->is.body);
		if (!yk_exchange_is_done(x))
			yk_string_add(&x->body, upload, *bytes);
		*bytes = 0;
		return MHD_YES;
	}
	if (!x->handled) {
		x->handled = true;
		yk_string_add(&x->body, "", 1);
		if (x->body.failed)
			yk_exchange_error(x, 500, NULL, NULL, "no memory for the request");
		else
			x->body.n--;
		if (!yk_exchange_is_done(x))
			x->route->handle(x, x->route->arg);
	}
	return yk_http_pass_reply(x);
}

// Has a stream been passed on to its last event?  A client that then closes at once has it.  The
// caller holds the exchange's mutex.
static bool is_passed_on(const struct yk_exchange *x)
{
	return x->streams && x->complete && x->sent == x->out.n;
}

static void completed(void *arg, struct MHD_Connection *c, void **state,
		      enum MHD_RequestTerminationCode why)
{
	struct yk_http *h = arg;
	struct yk_exchange *x = *state;
	if (!x)
		return;
	set_busy(h, c, false);
	pthread_mutex_lock(&h->mutex);
	pthread_mutex_lock(&x->mutex);
	if ((why != MHD_REQUEST_TERMINATED_COMPLETED_OK || !x->complete) && !is_passed_on(x) &&
	    !x->expired)
		atomic_store(&x->gone, true);
	x->asleep = false;
	x->connection = NULL;
	x->lookup = NULL;
	x->fd = -1;
	pthread_mutex_unlock(&x->mutex);
	drop(h, x);
	pthread_mutex_unlock(&h->mutex);
	if (h->is.finished)
		h->is.finished(h->is.arg, x);
	yk_exchange_release(x);
	*state = NULL;
}

// ---- clients that are late or gone ----

static void too_slow(struct yk_exchange *x)
{
	yk_exchange_error(x, 408, NULL, "timeout", "the request did not arrive in time");
}

// Replies on a connection that waits for the rest of a request, which libmicrohttpd does not, and
// closes it.
static void reply_and_close(int fd, const struct yk_exchange *x)
{
	char head[300];
	size_t bytes;
	const char *text = yk_exchange_text(x, &bytes);
	const int n =
		snprintf(head, sizeof head,
			 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
			 x->status, MHD_get_reason_phrase_for((unsigned)x->status), x->type, bytes);
	if (send(fd, head, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n)
		send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_RDWR);
}

// The headers of a request are not complete; idle connections are closed without a reply.
static void close_late(struct yk_connection *c)
{
	struct yk_exchange *x =
		yk_socket_received(c->fd) > c->received ? yk_exchange_new("") : NULL;
	if (x) {
		too_slow(x);
		reply_and_close(c->fd, x);
	}
	yk_exchange_release(x);
	shutdown(c->fd, SHUT_RDWR);
	c->fd = -1;
}

// The caller holds the mutex.
static void check_time(const struct yk_http *h, struct yk_exchange *x, double now)
{
	if (now - x->began <= h->is.timeout || x->fd < 0 || x->expired)
		return;
	x->expired = !x->handled;
	if (x->handled && !yk_exchange_is_done(x)) {
		yk_exchange_error(x, 504, NULL, "timeout", "the request took more than %g seconds",
				  h->is.timeout);
	} else if (!x->handled) {
		too_slow(x);
		reply_and_close(x->fd, x);
	}
}

void yk_http_watch(struct yk_http *h)
{
	const double now = yk_seconds(), idle = 1e-3 * (double)yk_param_int(&idle_setting);
	pthread_mutex_lock(&h->mutex);
	for (struct yk_exchange *x = h->first; x; x = x->after) {
		check_time(h, x, now);
		if (x->handled && !atomic_load(&x->gone) && x->fd >= 0 && yk_socket_closed(x->fd)) {
			pthread_mutex_lock(&x->mutex);
			if (!x->complete) // else completed() knows whether it was sent
				atomic_store(&x->gone, true);
			pthread_mutex_unlock(&x->mutex);
		}
	}
	for (struct yk_connection *c = h->connections; c; c = c->after)
		if (!c->busy && now - c->since > idle && c->fd >= 0)
			close_late(c);
	pthread_mutex_unlock(&h->mutex);
}

// Watches while the computing thread is busy with a long step.
static void *watch_always(void *arg)
{
	struct yk_http *h = arg;
	while (!atomic_load(&h->ends)) {
		yk_http_watch(h);
		const struct timespec end = yk_deadline(1e-3 * WATCH_MS);
		pthread_mutex_lock(&h->mutex);
		while (!atomic_load(&h->ends) &&
		       pthread_cond_timedwait(&h->ending, &h->mutex, &end) == 0)
			;
		pthread_mutex_unlock(&h->mutex);
	}
	return NULL;
}

// ---- the server ----

int yk_http_port(const struct yk_http *h)
{
	return h->port;
}

const char *yk_http_url(const struct yk_http *h)
{
	return h->url;
}

void yk_http_drain(struct yk_http *h)
{
	atomic_store(&h->draining, true);
}

static int listen_on(struct yk_http *h)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)h->is.port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)h->is.port) };
	const char *name = yk_same_word(h->host, "localhost") ? "127.0.0.1" : h->host;
	const bool four = inet_pton(AF_INET, name, &v4.sin_addr) == 1;
	if (!four && inet_pton(AF_INET6, name, &v6.sin6_addr) != 1)
		return yk_fail(YOKE_EINVAL, "host=%s is not an IP address", h->host);
	const struct sockaddr *address =
		four ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
	if (!yk_is_loopback(h->host))
		snprintf(h->guard.name, sizeof h->guard.name, four ? "%.100s" : "[%.100s]",
			 h->host);
	const int64_t idle = yk_param_int(&idle_setting) / 1000 + 1;
	errno = 0;
	h->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_ALLOW_SUSPEND_RESUME |
			(four ? 0u : MHD_USE_IPv6),
		(uint16_t)h->is.port, NULL, NULL, request, h, MHD_OPTION_SOCK_ADDR, address,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)h->is.connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)idle,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)65536, MHD_OPTION_NOTIFY_COMPLETED,
		completed, h, MHD_OPTION_NOTIFY_CONNECTION, connected, h, MHD_OPTION_END);
	if (!h->daemon)
		return yk_fail(
			YOKE_EIO, "cannot bind port %d of %s: %s; port=0 selects a free port",
			h->is.port, h->host, errno ? strerror(errno) : "the server did not start");
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
	h->port = info ? info->port : h->is.port;
	snprintf(h->url, sizeof h->url, four ? "http://%s:%d" : "http://[%s]:%d", name, h->port);
	return 0;
}

static void release(struct yk_http *h)
{
	pthread_cond_destroy(&h->changed);
	pthread_cond_destroy(&h->ending);
	pthread_mutex_destroy(&h->mutex);
	free(h);
}

int yk_http_start(const struct yk_http_options *options, const struct yk_route *route,
		  size_t routes, struct yk_http **to)
{
	const char *host = options->host;
	const bool local = yk_is_loopback(host);
	if (strlen(host) >= 100)
		return yk_fail(YOKE_EINVAL, "host=%s is not an IP address", host);
	if (options->key && yk_token_check(options->key, "the API key") < 0)
		return yk_error_last();
	if (!local && !options->key && !options->open)
		return yk_fail(YOKE_EINVAL,
			       "host=%s: other machines can connect to this address; set an API "
			       "key in YOKE_API_KEY or "
			       "key_file=, or give open=1 to serve everyone",
			       host);
	if (!local)
		yk_warn("serve",
			"host=%s: the connection is not encrypted: anyone who can read the network "
			"traffic sees %s",
			host, options->key ? "the key and all texts" : "all texts");
	struct yk_http *h = calloc(1, sizeof *h);
	if (!h)
		return yk_fail(YOKE_ENOMEM, "no memory for a server");
	h->is = *options;
	h->route = route;
	h->routes = routes;
	pthread_mutex_init(&h->mutex, NULL);
	yk_cond_init(&h->changed);
	yk_cond_init(&h->ending);
	snprintf(h->host, sizeof h->host, "%s", host);
	snprintf(h->key, sizeof h->key, "%s", options->key ? options->key : "");
	int e = listen_on(h);
	if (e == 0 && pthread_create(&h->watch, NULL, watch_always, h)) {
		MHD_stop_daemon(h->daemon);
		e = yk_fail(YOKE_ENOMEM, "no memory for a thread");
	}
	if (e < 0)
		release(h);
	else
		*to = h;
	return e;
}

void yk_http_stop(struct yk_http *h)
{
	if (!h)
		return;
	const struct timespec end = yk_deadline(FLUSH_S);
	atomic_store(&h->draining, true);
	pthread_mutex_lock(&h->mutex);
	for (struct yk_exchange *x = h->first; x; x = x->after)
		if (x->handled)
			yk_exchange_error(x, 503, NULL, NULL, "the server is shutting down");
	while (h->active && pthread_cond_timedwait(&h->changed, &h->mutex, &end) == 0)
		;
	atomic_store(&h->ends, true);
	pthread_cond_broadcast(&h->ending);
	pthread_mutex_unlock(&h->mutex);
	pthread_join(h->watch, NULL);
	MHD_stop_daemon(h->daemon);
	release(h);
}
