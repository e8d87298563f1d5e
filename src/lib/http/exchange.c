// SPDX-License-Identifier: Apache-2.0
// Requests and their replies, whatever transports them.
#include "config.h"

#include "http/exchange.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

struct yk_exchange *yk_exchange_new(const char *path)
{
	static atomic_uint_fast64_t last;
	struct yk_exchange *x = calloc(1, sizeof *x);
	char *copy = strdup(path);
	if (!x || !copy) {
		free(copy);
		free(x);
		yk_fail(YOKE_ENOMEM, "no memory for a request");
		return NULL;
	}
	pthread_mutex_init(&x->mutex, NULL);
	atomic_init(&x->references, 1);
	x->id = atomic_fetch_add(&last, 1) + 1;
	x->path = copy;
	x->began = yk_seconds();
	x->fd = -1;
	return x;
}

struct yk_exchange *yk_exchange_local(const char *path, const char *body, size_t bytes)
{
	struct yk_exchange *x = yk_exchange_new(path);
	if (!x)
		return NULL;
	yk_string_add(&x->body, body, bytes);
	yk_string_add(&x->body, "", 1);
	if (!x->body.failed) {
		x->body.n--;
		return x;
	}
	yk_exchange_release(x);
	yk_fail(YOKE_ENOMEM, "no memory for a request");
	return NULL;
}

void yk_exchange_keep(struct yk_exchange *x)
{
	atomic_fetch_add(&x->references, 1);
}

void yk_exchange_release(struct yk_exchange *x)
{
	if (!x || atomic_fetch_sub(&x->references, 1) != 1)
		return;
	pthread_mutex_destroy(&x->mutex);
	for (int i = 0; i < x->headers; i++)
		free(x->value[i]);
	yk_string_fini(&x->body);
	yk_string_fini(&x->out);
	free(x->path);
	free(x);
}

// ---- the request ----

uint64_t yk_exchange_id(const struct yk_exchange *x)
{
	return x->id;
}

const char *yk_exchange_path(const struct yk_exchange *x)
{
	return x->path;
}

const char *yk_exchange_body(const struct yk_exchange *x, size_t *bytes)
{
	*bytes = x->body.n;
	return x->body.s ? x->body.s : "";
}

const char *yk_exchange_header(const struct yk_exchange *x, const char *name)
{
	return x->lookup ? x->lookup(x->connection, name) : NULL;
}

double yk_exchange_began(const struct yk_exchange *x)
{
	return x->began;
}

bool yk_exchange_disconnected(const struct yk_exchange *x)
{
	return atomic_load(&x->gone);
}

// ---- the reply ----

static void lock(struct yk_exchange *x)
{
	pthread_mutex_lock(&x->mutex);
}

static void unlock(struct yk_exchange *x)
{
	if (x->asleep && (x->complete || x->streams)) {
		x->asleep = false;
		x->wake(x->connection);
	}
	pthread_mutex_unlock(&x->mutex);
}

void yk_exchange_set(struct yk_exchange *x, const char *name, const char *value)
{
	char *copy = strdup(value);
	lock(x);
	if (copy && x->headers < YK_EXCHANGE_HEADERS) {
		x->header[x->headers] = name;
		x->value[x->headers++] = copy;
		copy = NULL;
	}
	unlock(x);
	free(copy);
}

void yk_exchange_reply(struct yk_exchange *x, int status, const char *type, char *text,
		       size_t bytes)
{
	static const char none[] =
		"{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\","
		"\"param\":null,\"code\":null}}\n";
	lock(x);
	if (!x->complete && !x->streams) {
		x->status = text ? status : 500;
		x->type = text ? type : "application/json";
		if (text)
			x->out = (struct yk_string){ .s = text, .n = bytes, .cap = bytes };
		else
			yk_string_add(&x->out, none, sizeof none - 1);
		x->complete = true;
		text = NULL;
	}
	unlock(x);
	free(text);
}

void yk_exchange_json(struct yk_exchange *x, int status, json_t *o)
{
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	json_decref(o);
	yk_exchange_reply(x, status, "application/json", text, text ? strlen(text) : 0);
}

static const char *error_type(int status)
{
	switch (status) {
	case 401: return "authentication_error";
	case 403: return "permission_error";
	case 404: return "not_found_error";
	case 408: return "timeout_error";
	case 429: return "rate_limit_error";
	case 504: return "timeout_error";
	default: return status < 500 ? "invalid_request_error" : "server_error";
	}
}

static void fail(struct yk_exchange *x, int status, const char *param, const char *code,
		 const char *message)
{
	struct yk_string valid = { 0 };
	yk_utf8_lossy(&valid, message, strlen(message)); // a message may be cut within a character
	json_t *o =
		json_pack("{s:{s:s%, s:s, s:s?, s:s?}}", "error", "message", valid.s ? valid.s : "",
			  valid.n, "type", error_type(status), "param", param, "code", code);
	yk_string_fini(&valid);
	lock(x);
	const bool streams = x->streams;
	pthread_mutex_unlock(&x->mutex);
	if (!streams) {
		yk_exchange_json(x, status, o);
		return;
	}
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	json_decref(o);
	yk_exchange_end(x, text ? text : "{}", text ? strlen(text) : 2);
	free(text);
}

void yk_exchange_error(struct yk_exchange *x, int status, const char *param, const char *code,
		       const char *fmt, ...)
{
	char message[1000];
	va_list ap;
	va_start(ap, fmt);
	yk_vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	fail(x, status, param, code, message);
}

void yk_exchange_failed(struct yk_exchange *x, const char *param)
{
	const int code = yoke_error_code();
	const bool theirs = code == YOKE_EINVAL || code == YOKE_EFORMAT || code == YOKE_ERANGE ||
			    code == YOKE_ESHAPE || code == YOKE_EDTYPE || code == YOKE_EUNSUPPORTED;
	const char *message = *yoke_error() ? yoke_error() : yk_error_text(code);
	fail(x, theirs ? 400 : 500, param, NULL, message);
	yoke_error_clear();
}

void yk_exchange_stream(struct yk_exchange *x)
{
	lock(x);
	if (!x->complete && !x->streams) {
		x->status = 200;
		x->type = "text/event-stream";
		x->streams = true;
	}
	unlock(x);
}

static void add_event(struct yk_exchange *x, const char *text, size_t bytes)
{
	if (x->streams && !x->complete && !atomic_load(&x->gone)) {
		if (x->sent == x->out.n)
			x->sent = x->out.n = 0;
		yk_string_add(&x->out, "data: ", 6);
		yk_string_add(&x->out, text, bytes);
		yk_string_add(&x->out, "\n\n", 2);
		if (x->out.failed) // an event is missing: the client must not take the rest for all
			atomic_store(&x->gone, true);
	}
}

void yk_exchange_event(struct yk_exchange *x, const char *text, size_t bytes)
{
	lock(x);
	add_event(x, text, bytes);
	unlock(x);
}

void yk_exchange_end(struct yk_exchange *x, const char *text, size_t bytes)
{
	lock(x);
	add_event(x, text, bytes);
	x->complete |= x->streams;
	unlock(x);
}

bool yk_exchange_is_done(const struct yk_exchange *x)
{
	struct yk_exchange *own = (struct yk_exchange *)(uintptr_t)x;
	lock(own);
	const bool done = x->complete;
	pthread_mutex_unlock(&own->mutex);
	return done;
}

int yk_exchange_status(const struct yk_exchange *x)
{
	return x->status;
}

const char *yk_exchange_text(const struct yk_exchange *x, size_t *bytes)
{
	*bytes = x->out.n;
	return x->out.s ? x->out.s : "";
}
