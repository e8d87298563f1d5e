// SPDX-License-Identifier: Apache-2.0
// The state of a server, and what its files share.
#ifndef YK_HTTP_SERVER_H
#define YK_HTTP_SERVER_H

#include <microhttpd.h>

#include "http/exchange.h"
#include "http/guard.h"

struct yk_connection {
	int fd;
	bool busy;    // with a request whose headers are complete
	double since; // when it was connected, or its last request ended
	uint64_t received; // bytes until then
	struct yk_connection *before, *after;
};

struct yk_http {
	struct yk_http_options is;
	char host[128], key[YK_TOKEN_BYTES], url[200];
	struct yk_guard guard;
	const struct yk_route *route;
	size_t routes;
	struct MHD_Daemon *daemon;
	int port;
	pthread_t watch;
	atomic_bool draining, ends;
	pthread_mutex_t mutex; // protects the members below; locked before that of an exchange
	pthread_cond_t changed, ending;
	struct yk_exchange
		*first; // requests without a complete reply, or whose reply is being sent
	struct yk_connection *connections;
	int active;
};

// Finds the route of a request whose headers are complete; replies with an error unless the request
// may be handled.
void yk_http_admit(struct yk_http *, struct yk_exchange *, const char *method);
// Passes the reply on to the connection, or suspends that until there is one.
enum MHD_Result yk_http_pass_reply(struct yk_exchange *);

#endif
