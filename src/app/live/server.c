// SPDX-License-Identifier: Apache-2.0
// HTTP server of the dashboard: answers GET only and never modifies a run's files. One thread of
// libmicrohttpd answers requests; the calling thread checks the files four times per second and
// wakes the event streams that wait for news.
#include "config.h"

#include "live/live.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "http/guard.h"
#include "http/page.h"
#include "live/answers.h"
#include "live/page.h"

enum { CLIENTS = 16, NEWS = 64, CONNECTIONS = 64, IDLE = 30, LOOK_MS = 250, COMMENT_S = 15 };

struct client {
	bool used, asleep;
	struct MHD_Connection *connection;
	uint64_t next;  // number of the next event for this client
	double wrote;   // time when something was last sent
	bool comment;   // a comment is being sent to keep the connection alive
	char *text;     // the text being sent
	size_t n, sent;
	struct server *server;
};

struct server {
	struct yk_live_state live;
	struct yk_guard guard;
	pthread_mutex_t mutex; // protects all members below, and the views
	struct client client[CONNECTIONS]; // at most CLIENTS of them are active
	uint64_t news;           // number of the next event
	char *text[NEWS];        // the most recent events
	bool ends;
	char *page;
	char policy[YK_POLICY_BYTES];
};

// ---- answers ----

static enum MHD_Result reply(struct server *s, struct MHD_Connection *c, unsigned code,
			     const char *type, const char *text, size_t bytes, const char *cookie)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text,
								 MHD_RESPMEM_MUST_COPY);
	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Content-Security-Policy", s->policy);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET");
	if (cookie)
		MHD_add_response_header(r, "Set-Cookie", cookie);
	enum MHD_Result done = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result refuse(struct server *s, struct MHD_Connection *c, unsigned code,
			      const char *why)
{
	char text[256];
	snprintf(text, sizeof text, "%s\n", why);
	return reply(s, c, code, "text/plain; charset=utf-8", text, strlen(text), NULL);
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static const char *argument(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

// A number in the query string; `otherwise` if it is missing or not finite.
static double number(struct MHD_Connection *c, const char *name, double otherwise)
{
	const char *text = argument(c, name);
	char *end;
	double x = text ? strtod(text, &end) : NAN;
	return text && end != text && !*end && isfinite(x) ? x : otherwise;
}

// ---- streams ----

static bool send_text(struct client *c, char *text)
{
	if (!text)
		return false;
	free(c->text);
	c->text = text;
	c->n = strlen(text);
	c->sent = 0;
	c->wrote = yk_seconds();
	return true;
}

// Chooses the next text for a client; false: nothing to send yet.
static bool next_text(struct server *s, struct client *c)
{
	if (c->next + NEWS < s->news) { // the client was too slow and lost events
		c->next = s->news;
		return send_text(c, strdup("event: gap\ndata: {}\n\n"));
	}
	if (c->next < s->news)
		return send_text(c, strdup(s->text[c->next++ % NEWS]));
	if (!c->comment)
		return false;
	c->comment = false;
	return send_text(c, strdup(": nothing new\n\n"));
}

static ssize_t stream_read(void *arg, uint64_t at, char *to, size_t room)
{
	struct client *c = arg;
	struct server *s = c->server;
	ssize_t n = 0;
	(void)at;
	pthread_mutex_lock(&s->mutex);
	if (s->ends) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (c->sent < c->n || next_text(s, c)) {
		n = (ssize_t)(c->n - c->sent < room ? c->n - c->sent : room);
		memcpy(to, c->text + c->sent, (size_t)n);
		c->sent += (size_t)n;
	} else {
		c->asleep = true;
		MHD_suspend_connection(c->connection);
	}
	pthread_mutex_unlock(&s->mutex);
	return n;
}

static void stream_end(void *arg)
{
	struct client *c = arg;
	struct server *s = c->server;
	pthread_mutex_lock(&s->mutex);
	free(c->text);
	*c = (struct client){ .server = s };
	pthread_mutex_unlock(&s->mutex);
}

// The caller holds the mutex.
static void wake(struct server *s)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (s->client[i].asleep) {
			s->client[i].asleep = false;
			MHD_resume_connection(s->client[i].connection);
		}
}

// Has the client closed the connection? The library does not notice, because it reads nothing from
// a stream's connection.
static bool is_gone(const struct client *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	char byte;
	return info && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Finds a free client slot; NULL: the maximum number of clients is active. The caller holds the
// mutex.
static struct client *room(struct server *s)
{
	struct client *c = NULL;
	int live = 0;
	for (int i = 0; i < CONNECTIONS; i++) {
		if (s->client[i].used)
			live += !is_gone(&s->client[i]);
		else
			c = &s->client[i];
	}
	return live < CLIENTS ? c : NULL;
}

// A client that reconnects sends the id of its last event. If this is not the current state, it
// gets the full state at once.
static enum MHD_Result stream(struct server *s, struct MHD_Connection *connection)
{
	const char *known = header(connection, "Last-Event-ID");
	char position[YK_LIVE_ID];
	pthread_mutex_lock(&s->mutex);
	struct client *c = room(s);
	if (!c) {
		pthread_mutex_unlock(&s->mutex);
		return refuse(s, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "16 clients are connected already");
	}
	yk_live_position(&s->live, position);
	*c = (struct client){
		.used = true, .connection = connection, .next = s->news, .server = s
	};
	send_text(c, known && strcmp(known, position) ? yk_live_all(&s->live) :
							strdup(": hello\nretry: 2000\n\n"));
	pthread_mutex_unlock(&s->mutex);
	struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384,
								   stream_read, c, stream_end);
	if (!r) {
		stream_end(c);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", "text/event-stream");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	enum MHD_Result done = MHD_queue_response(connection, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}

// ---- requests ----

// Sends a text that was created while the views were locked, and frees it.
static enum MHD_Result made(struct server *s, struct MHD_Connection *c, const char *type,
			    char *text, const char *missing)
{
	enum MHD_Result done = text ? reply(s, c, MHD_HTTP_OK, type, text, strlen(text), NULL) :
				      refuse(s, c, MHD_HTTP_NOT_FOUND, missing);
	free(text);
	return done;
}

static enum MHD_Result plot(struct server *s, struct MHD_Connection *c, const char *name, bool svg)
{
	const struct yk_plot_options ask = {
		.from = number(c, "from", -INFINITY),
		.to = number(c, "to", INFINITY),
		.points = (size_t)fmax(2, fmin(4000, number(c, "points", 960))),
		.smooth = fmax(0, fmin(0.999, number(c, "smooth", 0))),
		.log = number(c, "log", 0) == 1,
		.plain = number(c, "plain", 0) == 1,
		.width = (int)fmax(320, fmin(1440, number(c, "width", 720))),
	};
	pthread_mutex_lock(&s->mutex);
	const struct yk_live_choice choice = yk_live_choose(&s->live, argument(c, "runs"));
	char *text = yk_live_plot(&s->live, &choice, name, &ask, svg);
	pthread_mutex_unlock(&s->mutex);
	return made(s, c, svg ? "image/svg+xml" : "application/json", text, "no such plot");
}

static enum MHD_Result page(struct server *s, struct MHD_Connection *c)
{
	char cookie[YK_TOKEN_BYTES + 128];
	snprintf(cookie, sizeof cookie, "%s=%s; Path=/; SameSite=Strict; HttpOnly", s->guard.cookie,
		 s->guard.token);
	return reply(s, c, MHD_HTTP_OK, "text/html; charset=utf-8", s->page, strlen(s->page),
		     cookie);
}

static enum MHD_Result answer(struct server *s, struct MHD_Connection *c, const char *url)
{
	static const struct {
		const char *url, *type;
		char *(*make)(struct yk_live_state *, const struct yk_live_choice *);
	} plain[] = {
		{ "/run.json", "application/json", yk_live_runs },
		{ "/kernels.json", "application/json", yk_live_kernels },
		{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", yk_live_metrics },
	};
	char name[160];
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(url, plain[i].url)) {
			pthread_mutex_lock(&s->mutex);
			const struct yk_live_choice choice =
				yk_live_choose(&s->live, argument(c, "runs"));
			char *text = plain[i].make(&s->live, &choice);
			pthread_mutex_unlock(&s->mutex);
			return made(s, c, plain[i].type, text, "out of memory");
		}
	if (!strcmp(url, "/"))
		return page(s, c);
	if (!strcmp(url, "/events"))
		return stream(s, c);
	if (!strcmp(url, "/favicon.ico")) // every browser requests it
		return reply(s, c, MHD_HTTP_NO_CONTENT, "image/x-icon", "", 0, NULL);
	if (!strcmp(url, "/series"))
		return plot(s, c, argument(c, "name") ? argument(c, "name") : "", false);
	size_t n = strlen(url), head = strlen("/plot/"), tail = strlen(".svg");
	if (n > head + tail && n < head + sizeof name && !strncmp(url, "/plot/", head) &&
	    !strcmp(url + n - tail, ".svg")) {
		snprintf(name, sizeof name, "%.*s", (int)(n - head - tail), url + head);
		return plot(s, c, name, true);
	}
	return refuse(s, c, MHD_HTTP_NOT_FOUND, "no such page");
}

static enum MHD_Result request(void *arg, struct MHD_Connection *c, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *bytes, void **state)
{
	static int began;
	struct server *s = arg;
	(void)version;
	(void)upload;
	if (!*state) { // first call: headers are complete, the body has not arrived
		*state = &began;
		return MHD_YES;
	}
	if (*bytes) { // ignore the body
		*bytes = 0;
		return MHD_YES;
	}
	if (!yk_guard_host(&s->guard, header(c, "Host")))
		return refuse(s, c, MHD_HTTP_FORBIDDEN, "the request's host name is not allowed");
	if (!yk_guard_origin(&s->guard, header(c, "Origin")))
		return refuse(s, c, MHD_HTTP_FORBIDDEN,
			      "requests from other sites' pages are refused");
	if (strcmp(method, "GET"))
		return refuse(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is supported");
	const char *token = strcmp(url, "/") ? NULL : argument(c, "token");
	bool known = yk_guard_headers(&s->guard, header(c, "Authorization"), header(c, "Cookie"));
	if (!known && !(token && yk_guard_token(&s->guard, token)))
		return refuse(s, c, MHD_HTTP_UNAUTHORIZED,
			      "the token is missing or wrong: use the address that yoke dashboard "
			      "printed");
	return answer(s, c, url);
}

// ---- the page ----

static int page_make(struct server *s)
{
	const struct yk_page page = { yk_page_html, yk_page_css, yk_page_js, yk_page_css_hash,
				      yk_page_js_hash };
	yk_page_policy(&page, "img-src 'self'; ", s->policy);
	s->page = yk_page_text(&page);
	return s->page ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for the page");
}

// ---- serving ----

// Writes or removes RUN/dashboard.json, which holds the address with the token; only the user can
// read it.
static void note(const struct server *s, const char *folder, const char *url, bool there)
{
	char path[4096], text[1024];
	if (snprintf(path, sizeof path, "%s/dashboard.json", folder) >= (int)sizeof path)
		return;
	unlink(path);
	int fd =
		there ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd < 0)
		return;
	int n = snprintf(text, sizeof text, "{\"url\":\"%s\",\"token\":\"%s\",\"pid\":%ld}\n", url,
			 s->guard.token, (long)getpid());
	if (write(fd, text, (size_t)n) != n)
		unlink(path);
	close(fd);
}

// Sends an event to all streams; takes the text. The caller holds the mutex.
static void publish(struct server *s, char *text)
{
	if (!text)
		return;
	free(s->text[s->news % NEWS]);
	s->text[s->news++ % NEWS] = text;
}

// Sends new events to all streams.
static void look(struct server *s)
{
	pthread_mutex_lock(&s->mutex);
	if (yk_live_search(&s->live))
		publish(s, strdup("event: runs\ndata: {}\n\n"));
	s->live.looks++;
	for (int i = 0; i < s->live.n; i++)
		publish(s, yk_live_news(&s->live, i));
	double now = yk_seconds();
	for (int i = 0; i < CONNECTIONS; i++)
		if (s->client[i].used &&
		    (now - s->client[i].wrote > COMMENT_S || is_gone(&s->client[i])))
			s->client[i].comment = true;
	bool any = false;
	for (int i = 0; i < CONNECTIONS; i++)
		any |= s->client[i].asleep &&
		       (s->client[i].comment || s->client[i].next != s->news);
	if (any)
		wake(s);
	pthread_mutex_unlock(&s->mutex);
}

// Runs until a signal or the end of standard input.
static void watch(struct server *s, const sigset_t *set, bool until_eof)
{
	for (;;) {
		struct timespec t = { .tv_nsec = LOOK_MS * 1000000L };
		struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
		char c;
		if (sigtimedwait(set, NULL, &t) > 0)
			return;
		if (until_eof && poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0)
			return;
		look(s);
	}
}

static struct MHD_Daemon *start(struct server *s, const struct yk_dashboard *d, int *port)
{
	const char *bind = d->bind ? d->bind : "127.0.0.1";
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)d->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)d->port) };
	const bool four = inet_pton(AF_INET, strcasecmp(bind, "localhost") ? bind : "127.0.0.1",
				    &v4.sin_addr) == 1;
	if (!four && inet_pton(AF_INET6, bind, &v6.sin6_addr) != 1) {
		yk_fail(YOKE_EINVAL, "bind=%s is not an IP address", bind);
		return NULL;
	}
	if (!yk_is_loopback(bind))
		snprintf(s->guard.name, sizeof s->guard.name, four ? "%s" : "[%s]", bind);
	const struct sockaddr *address =
		four ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
	errno = 0;
	struct MHD_Daemon *m = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_ALLOW_SUSPEND_RESUME |
			(four ? 0u : MHD_USE_IPv6),
		(uint16_t)d->port, NULL, NULL, request, s, MHD_OPTION_SOCK_ADDR, address,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)IDLE, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)65536, MHD_OPTION_END);
	if (!m) {
		yk_fail(YOKE_EIO, "cannot bind port %d of %s: %s; port=0 selects a free port",
			d->port, bind, errno ? strerror(errno) : "the server did not start");
		return NULL;
	}
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(m, MHD_DAEMON_INFO_BIND_PORT);
	*port = info ? info->port : d->port;
	return m;
}

static int serve(struct server *s, const struct yk_dashboard *d, const sigset_t *set)
{
	const char *bind = d->bind ? d->bind : "127.0.0.1";
	char url[256];
	int port = 0, e = page_make(s);
	if (e == 0)
		e = d->token_file ? yk_token_read("token_file", d->token_file, s->guard.token) :
				    yk_token_draw(s->guard.token);
	if (e < 0)
		return e;
	struct MHD_Daemon *m = start(s, d, &port);
	if (!m)
		return yoke_error_code();
	pthread_mutex_lock(&s->mutex);
	// a browser shares cookies among ports, so the name contains the port
	snprintf(s->guard.cookie, sizeof s->guard.cookie, "yoke-%d", port);
	pthread_mutex_unlock(&s->mutex);
	snprintf(url, sizeof url, strchr(bind, ':') ? "http://[%s]:%d/" : "http://%s:%d/", bind,
		 port);
	printf("yoke dashboard: %s?token=%s\n", url, s->guard.token);
	fflush(stdout);
	note(s, d->folder[0], url, true);
	watch(s, set, d->until_eof);
	note(s, d->folder[0], url, false);
	pthread_mutex_lock(&s->mutex);
	s->ends = true;
	wake(s);
	pthread_mutex_unlock(&s->mutex);
	MHD_stop_daemon(m);
	return 0;
}

int yk_dashboard_serve(const struct yk_dashboard *d)
{
	struct server s = { .mutex = PTHREAD_MUTEX_INITIALIZER };
	sigset_t set;
	int e = 0;
	if (d->bind && !yk_is_loopback(d->bind)) {
		if (!d->token_file)
			return yk_fail(YOKE_EINVAL,
				       "bind=%s: other machines can connect to this address; give "
				       "token_file=FILE with your own token",
				       d->bind);
		yk_warn("dashboard",
			"bind=%s: the connection is not encrypted: anyone who can read the network "
			"traffic sees the token and the pages",
			d->bind);
	}
	yk_stop_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL); // before any other thread is created
	for (int i = 0; i < CONNECTIONS; i++)
		s.client[i].server = &s;
	e = yk_live_open(&s.live, d->n, d->folder);
	if (e == 0)
		e = serve(&s, d, &set);
	yk_live_close(&s.live);
	for (int i = 0; i < NEWS; i++)
		free(s.text[i]);
	free(s.page);
	return e;
}
