// SPDX-License-Identifier: Apache-2.0
// Decides from path, method, key, host and origin whether a request is handled.
#include "config.h"

#include <string.h>

#include "base/number.h"
#include "http/server.h"

static const struct yk_route *find_route(const struct yk_http *h, const char *path,
					 const char *method, const char **allowed)
{
	*allowed = NULL;
	for (size_t i = 0; i < h->routes; i++) {
		const struct yk_route *r = &h->route[i];
		if (strcmp(r->path, path))
			continue;
		if (!strcmp(r->method, method) ||
		    (!strcmp(r->method, "GET") && !strcmp(method, "HEAD")))
			return r;
		*allowed = r->method;
	}
	return NULL;
}

static bool is_own_origin(const struct yk_http *h, const char *origin, const char *host)
{
	return yk_guard_origin(&h->guard, origin) ||
	       (host && !strncmp(origin, "http://", 7) && yk_same_word(origin + 7, host));
}

static bool is_known(const struct yk_http *h, const char *authorization)
{
	return authorization && yk_same_words(authorization, "Bearer ", 7) &&
	       yk_token_equal(h->key, authorization + 7);
}

// Answers a CORS preflight: whether a page of another site may send a request.
static void preflight(struct yk_http *h, struct yk_exchange *x, const char *origin)
{
	if (!*h->key || !origin || strlen(origin) >= sizeof x->origin) {
		yk_exchange_error(x, 403, NULL, NULL,
				  "requests from other sites' pages are refused");
		return;
	}
	strcpy(x->origin, origin);
	yk_exchange_set(x, "Access-Control-Allow-Methods", "GET, POST");
	yk_exchange_set(x, "Access-Control-Allow-Headers", "Authorization, Content-Type");
	yk_exchange_set(x, "Access-Control-Max-Age", "600");
	yk_exchange_reply(x, 204, "text/plain", strdup(""), 0);
}

// Replies with an error unless the request may be handled.
void yk_http_admit(struct yk_http *h, struct yk_exchange *x, const char *method)
{
	const char *host = yk_exchange_header(x, "Host"), *origin = yk_exchange_header(x, "Origin"),
		   *allowed;
	const bool foreign = origin && !is_own_origin(h, origin, host);
	x->route = find_route(h, x->path, method, &allowed);
	// A page that a name server has led to this machine sends its own name.
	if (!*h->key && !h->is.open && !yk_guard_host(&h->guard, host)) {
		yk_exchange_error(x, 403, NULL, NULL, "the request's host name is not allowed");
	} else if (!strcmp(method, "OPTIONS")) {
		preflight(h, x, origin);
	} else if (*h->key && !(x->route && x->route->open) &&
		   !is_known(h, yk_exchange_header(x, "Authorization"))) {
		yk_exchange_set(x, "WWW-Authenticate", "Bearer");
		yk_exchange_error(x, 401, NULL, "invalid_api_key",
				  "the API key is missing or wrong; send it as "
				  "Authorization: Bearer KEY");
	} else if (foreign && (!*h->key || strlen(origin) >= sizeof x->origin)) {
		yk_exchange_error(
			x, 403, NULL, NULL,
			"requests from other sites' pages are refused without an API key");
	} else if (!x->route && allowed) {
		yk_exchange_set(x, "Allow", allowed);
		yk_exchange_error(x, 405, NULL, NULL, "%.100s: the method must be %s", x->path,
				  allowed);
	} else if (!x->route) {
		yk_exchange_error(x, 404, NULL, "unknown_url", "%.100s: no such path", x->path);
	} else if (atomic_load(&h->draining) && !x->route->open) {
		yk_exchange_set(x, "Retry-After", "5");
		yk_exchange_error(x, 503, NULL, NULL, "the server is shutting down");
	} else if (foreign) {
		strcpy(x->origin, origin);
	}
}
