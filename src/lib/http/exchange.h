// SPDX-License-Identifier: Apache-2.0
// The state of a request and its reply, shared by the server's threads and those that reply.
#ifndef YK_HTTP_EXCHANGE_H
#define YK_HTTP_EXCHANGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/http.h"
#include "tokenizer/pieces.h"

enum { YK_EXCHANGE_HEADERS = 4 };

struct yk_exchange {
	atomic_int references;
	uint64_t id;
	double began;
	char *path;
	struct yk_string body;
	atomic_bool gone;

	pthread_mutex_t mutex; // protects the reply
	int status;            // 0: not decided
	const char *type;
	const char *header[YK_EXCHANGE_HEADERS];
	char *value[YK_EXCHANGE_HEADERS];
	int headers;
	struct yk_string out; // bytes to send
	size_t sent;          // of them
	bool streams, complete;
	bool asleep; // its connection is suspended

	// The connection; NULL in a local exchange.
	void *connection;
	void (*wake)(void *connection); // resumes it; the caller holds the mutex
	const char *(*lookup)(void *connection, const char *name);

	// Used by the server only.
	const struct yk_route *route;
	atomic_bool handled; // the handler was called
	bool expired;        // its request was too late; under the server's mutex
	struct yk_exchange *before, *after; // in the server's list
	int fd;
	char origin[200]; // that may read the reply; "": no other one
};

// An exchange with one reference.  NULL: no memory.
struct yk_exchange *yk_exchange_new(const char *path);

#endif
