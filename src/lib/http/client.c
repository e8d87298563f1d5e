// SPDX-License-Identifier: Apache-2.0
// A client of plain HTTP/1.1 over a blocking socket.  A kept connection that the server has closed
// in the meantime is opened again, once per request.
#include "config.h"

#include "http/client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/socket.h"
#include "base/system.h"

enum { BUFFER = 16384, LINE = 8192, HEADERS = 200 };

struct yk_client {
	char host[256], port[8], prefix[512];
	const char *key; // owned; NULL: none
	double timeout;
	int fd;          // -1: not connected
	size_t from, to; // bytes of the buffer that were received and not used
	char buffer[BUFFER], line[LINE];
};

struct reply {
	int status;
	bool chunked, sized, close;
	unsigned long long bytes; // of the body, if sized
};

// ---- the connection ----

static int parse_url(struct yk_client *c, const char *url)
{
	const char *at = url + 7, *end;
	if (strncmp(url, "http://", 7))
		return -1;
	const bool six = *at == '[';
	at += six;
	size_t n = strcspn(at, six ? "]" : ":/");
	if (!n || n >= sizeof c->host || (six && at[n] != ']'))
		return -1;
	memcpy(c->host, at, n);
	at += n + six;
	n = *at == ':' ? strspn(++at, "0123456789") : 0;
	if (n >= sizeof c->port)
		return -1;
	snprintf(c->port, sizeof c->port, "%.*s", n ? (int)n : 2, n ? at : "80");
	at += n;
	end = at + strlen(at);
	while (end > at && end[-1] == '/')
		end--;
	if ((*at && *at != '/') || (size_t)(end - at) >= sizeof c->prefix ||
	    at[strcspn(at, " \r\n\t")])
		return -1;
	memcpy(c->prefix, at, (size_t)(end - at));
	return 0;
}

int yk_client_new(const char *url, const char *key, double timeout, struct yk_client **to)
{
	struct yk_client *c = calloc(1, sizeof *c);
	if (!c)
		return yk_fail(YOKE_ENOMEM, "no memory for a connection");
	c->fd = -1;
	c->timeout = timeout;
	if (parse_url(c, url) < 0) {
		yk_client_free(c);
		return yk_fail(YOKE_EINVAL, "'%s': must be http://HOST[:PORT][/PREFIX]", url);
	}
	if (key && !(c->key = strdup(key))) {
		yk_client_free(c);
		return yk_fail(YOKE_ENOMEM, "no memory for a connection");
	}
	*to = c;
	return 0;
}

static void disconnect(struct yk_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->from = c->to = 0;
}

void yk_client_free(struct yk_client *c)
{
	if (!c)
		return;
	disconnect(c);
	free((char *)(uintptr_t)c->key);
	free(c);
}

static int failed(const struct yk_client *c, const char *what)
{
	const int code = errno;
	return yk_fail(YOKE_EIO, "http://%s:%s: %s: %s", c->host, c->port, what,
		       code == EAGAIN || code == EWOULDBLOCK ? "no byte within the time limit" :
							       strerror(code));
}

static int open_socket(struct yk_client *c, const struct addrinfo *a)
{
	const struct timeval limit = { .tv_sec = (time_t)c->timeout };
	const int on = 1;
	c->fd = yk_socket(a->ai_family, a->ai_socktype, a->ai_protocol);
	if (c->fd < 0)
		return -1;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return connect(c->fd, a->ai_addr, a->ai_addrlen);
}

static int connect_to(struct yk_client *c)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	const int code = getaddrinfo(c->host, c->port, &hints, &list);
	if (code)
		return yk_fail(YOKE_EIO, "http://%s:%s: %s", c->host, c->port, gai_strerror(code));
	int e = -1;
	for (const struct addrinfo *a = list; a && e < 0; a = a->ai_next) {
		disconnect(c);
		e = open_socket(c, a);
	}
	const int why = errno;
	freeaddrinfo(list);
	if (e == 0)
		return 0;
	disconnect(c);
	errno = why;
	return failed(c, "cannot connect");
}

// ---- bytes ----

static int send_all(struct yk_client *c, const char *from, size_t n)
{
	while (n) {
		const ssize_t k = send(c->fd, from, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return failed(c, "send");
		from += k;
		n -= (size_t)k;
	}
	return 0;
}

// Receives more bytes if none are left; 0: the server has closed the connection; else 1.
static int fill(struct yk_client *c)
{
	ssize_t k = 0;
	if (c->from < c->to)
		return 1;
	do
		k = recv(c->fd, c->buffer, BUFFER, 0);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return failed(c, "receive");
	c->from = 0;
	c->to = (size_t)k;
	return k > 0;
}

static int cut_off(const struct yk_client *c)
{
	return yk_fail(YOKE_EIO, "http://%s:%s: the server closed the connection within a reply",
		       c->host, c->port);
}

static int not_http(const struct yk_client *c)
{
	return yk_fail(YOKE_EFORMAT, "http://%s:%s: the reply is not HTTP/1.1", c->host, c->port);
}

// Reads a line into c->line, without its end.
static int read_line(struct yk_client *c)
{
	size_t n = 0;
	for (;;) {
		const int e = fill(c);
		if (e <= 0)
			return e < 0 ? e : cut_off(c);
		const char b = c->buffer[c->from++];
		if (b == '\n')
			break;
		if (n + 1 == LINE)
			return not_http(c);
		c->line[n++] = b;
	}
	n -= n && c->line[n - 1] == '\r';
	c->line[n] = '\0';
	return 0;
}

// Passes n bytes on; until_end: those until the connection ends.
static int pass_bytes(struct yk_client *c, unsigned long long n, bool until_end, yk_client_fn *fn,
		      void *arg)
{
	while (n || until_end) {
		int e = fill(c);
		if (e <= 0)
			return e == 0 && !until_end ? cut_off(c) : e;
		size_t k = c->to - c->from;
		k = !until_end && k > n ? (size_t)n : k;
		e = fn(arg, c->buffer + c->from, k);
		if (e)
			return e;
		c->from += k;
		n -= until_end ? 0 : k;
	}
	return 0;
}

// ---- requests ----

static int send_request(struct yk_client *c, const char *path, const char *body, size_t bytes)
{
	char head[2048], length[96] = "";
	if (body)
		snprintf(length, sizeof length,
			 "Content-Type: application/json\r\nContent-Length: %zu\r\n", bytes);
	const bool six = strchr(c->host, ':') != NULL;
	const int n =
		snprintf(head, sizeof head, "%s %s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\n%s%s%s%s\r\n",
			 body ? "POST" : "GET", c->prefix, path, six ? "[" : "", c->host,
			 six ? "]" : "", c->port, length, c->key ? "Authorization: Bearer " : "",
			 c->key ? c->key : "", c->key ? "\r\n" : "");
	if (n < 0 || (size_t)n >= sizeof head)
		return yk_fail(YOKE_EINVAL, "the path or the key is too long for a request");
	const int e = send_all(c, head, (size_t)n);
	return e == 0 && body ? send_all(c, body, bytes) : e;
}

static int read_head(struct yk_client *c, struct reply *r)
{
	*r = (struct reply){ 0 };
	int e = read_line(c), n = 0;
	if (e < 0)
		return e;
	if (sscanf(c->line, "HTTP/1.%*1[01] %3d", &r->status) != 1)
		return not_http(c);
	while ((e = read_line(c)) == 0 && *c->line) {
		for (char *l = c->line; *l; l++)
			*l = (char)(*l >= 'A' && *l <= 'Z' ? *l - 'A' + 'a' : *l);
		const char *colon = strchr(c->line, ':'), *value = colon ? colon + 1 : "";
		value += strspn(value, " \t");
		if (!colon || ++n > HEADERS)
			return not_http(c);
		if (!strncmp(c->line, "content-length:", 15)) {
			r->sized = true;
			r->bytes = strtoull(value, NULL, 10);
		} else if (!strncmp(c->line, "transfer-encoding:", 18)) {
			r->chunked = strstr(value, "chunked") != NULL;
		} else if (!strncmp(c->line, "connection:", 11)) {
			r->close = strstr(value, "close") != NULL;
		}
	}
	return e;
}

static int read_chunks(struct yk_client *c, yk_client_fn *fn, void *arg)
{
	for (;;) {
		char *end;
		int e = read_line(c);
		if (e < 0)
			return e;
		const unsigned long long n = strtoull(c->line, &end, 16);
		if (end == c->line)
			return not_http(c);
		if (n == 0)
			break;
		e = pass_bytes(c, n, false, fn, arg);
		if (e == 0)
			e = read_line(c);
		if (e)
			return e;
	}
	int e; // trailers
	while ((e = read_line(c)) == 0 && *c->line)
		;
	return e;
}

static int read_reply(struct yk_client *c, yk_client_fn *fn, void *arg)
{
	struct reply r;
	int e;
	do
		e = read_head(c, &r);
	while (e == 0 && r.status >= 100 && r.status < 200);
	if (e < 0)
		return e;
	if (r.chunked)
		e = read_chunks(c, fn, arg);
	else if (r.status != 204 && r.status != 304)
		e = pass_bytes(c, r.bytes, !r.sized, fn, arg);
	if (r.close || (!r.chunked && !r.sized))
		disconnect(c);
	return e ? e : r.status;
}

// Has the server closed a kept connection, so that nothing of a reply arrives?
static bool is_closed(struct yk_client *c)
{
	char b;
	ssize_t k;
	do
		k = recv(c->fd, &b, 1, MSG_PEEK);
	while (k < 0 && errno == EINTR);
	return k == 0 || (k < 0 && (errno == ECONNRESET || errno == EPIPE));
}

int yk_client_request(struct yk_client *c, const char *path, const char *body, size_t bytes,
		      yk_client_fn *fn, void *arg)
{
	const bool kept = c->fd >= 0;
	int e = kept ? 0 : connect_to(c);
	if (e == 0)
		e = send_request(c, path, body, bytes);
	if (kept && (e == YOKE_EIO || (e == 0 && is_closed(c)))) {
		if (e < 0)
			yoke_error_clear();
		disconnect(c);
		e = connect_to(c);
		if (e == 0)
			e = send_request(c, path, body, bytes);
	}
	if (e == 0)
		e = read_reply(c, fn, arg);
	if (e < 100) // an error, or fn ended it
		disconnect(c);
	return e;
}
