// SPDX-License-Identifier: Apache-2.0
// HTTP for servers of models: routes, whole request bodies, replies and event streams.
//
// The server's threads receive requests and call the handlers of routes.  A handler replies, or
// keeps the exchange (yk_exchange_keep) for another thread, which replies later.  Every error is a
// JSON object as in OpenAI's API.
#ifndef YK_HTTP_H
#define YK_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_http;     // a server
struct yk_exchange; // a request and its reply

typedef void yk_handler_fn(struct yk_exchange *, void *arg);

struct yk_route {
	const char *method, *path;
	bool open; // needs no key
	yk_handler_fn *handle;
	void *arg;
};

struct yk_http_options {
	const char *host; // an address, or localhost
	int port;         // 0: any
	const char *key;  // that clients must send; NULL: none
	bool open;        // without a key, addresses other than loopback are allowed
	size_t body;      // max bytes of a request
	int connections;  // max
	// seconds until a request whose headers are complete gets 408 or, with its body, 504
	double timeout;
	// Called when the headers of a request are complete.
	void (*received)(void *arg);
	// Called after each reply was sent, or could not be sent: for metrics and logs.
	void (*finished)(void *arg, const struct yk_exchange *);
	void *arg;
};

// Starts a server; the routes must remain until yk_http_stop.  EINVAL: the address, or one that
// other machines reach without a key; EIO: the port is in use; EUNSUPPORTED: a build without
// libmicrohttpd.
int yk_http_start(const struct yk_http_options *, const struct yk_route *, size_t routes,
		  struct yk_http **);
int yk_http_port(const struct yk_http *);
// "http://127.0.0.1:8080"
const char *yk_http_url(const struct yk_http *);
// Looks for clients that hung up, and replies to requests that take too long.  The server does it
// four times a second; a thread that computes calls it between its steps.
void yk_http_watch(struct yk_http *);
// Requests from now on are refused with 503.
void yk_http_drain(struct yk_http *);
// Closes all connections; replies that are not complete are cut off.  NULL is allowed.
void yk_http_stop(struct yk_http *);

// ---- a request ----

// An exchange without a connection, for requests from files: the reply stays in it.  The caller
// releases it. body is copied.
struct yk_exchange *yk_exchange_local(const char *path, const char *body, size_t bytes);
uint64_t yk_exchange_id(const struct yk_exchange *); // a number, from 1
const char *yk_exchange_path(const struct yk_exchange *);
const char *yk_exchange_body(const struct yk_exchange *, size_t *bytes); // ends with a NUL
// A header of the request; NULL: not sent.  Only in handlers.
const char *yk_exchange_header(const struct yk_exchange *, const char *name);
double yk_exchange_began(const struct yk_exchange *); // by yk_seconds
// Has the client hung up?  From any thread.
bool yk_exchange_disconnected(const struct yk_exchange *);

// ---- its reply ----

// All of these may be called from any thread, and do nothing once the reply is complete.

// Adds a header to a reply that has not begun; the name must remain.
void yk_exchange_set(struct yk_exchange *, const char *name, const char *value);
// Replies; takes `text`, which was allocated with malloc (NULL: no memory, status 500).
void yk_exchange_reply(struct yk_exchange *, int status, const char *type, char *text,
		       size_t bytes);
void yk_exchange_json(struct yk_exchange *, int status, json_t *); // takes the reference
// Replies with an error object; in a stream that has begun, sends it as an event and ends the
// stream. param, code: may be NULL.  The type follows from the status.
void yk_exchange_error(struct yk_exchange *, int status, const char *param, const char *code,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
// The same for the thread's error, which is cleared: 400 for errors of the request, 500 for others.
void yk_exchange_failed(struct yk_exchange *, const char *param);
// Begins a stream of server-sent events, sends one ("data: TEXT"), sends the last one.
void yk_exchange_stream(struct yk_exchange *);
void yk_exchange_event(struct yk_exchange *, const char *text, size_t bytes);
void yk_exchange_end(struct yk_exchange *, const char *text, size_t bytes);
bool yk_exchange_is_done(const struct yk_exchange *); // is the reply complete?
int yk_exchange_status(const struct yk_exchange *);   // of the reply; 0: none yet
// The text of a complete reply.
const char *yk_exchange_text(const struct yk_exchange *, size_t *bytes);

// Keeps the exchange beyond its handler; and releases it.
void yk_exchange_keep(struct yk_exchange *);
void yk_exchange_release(struct yk_exchange *);

#endif
