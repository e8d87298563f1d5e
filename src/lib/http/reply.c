// SPDX-License-Identifier: Apache-2.0
// Replies on their way to libmicrohttpd.  While there is nothing to send the connection is
// suspended, so that it costs no thread.
#include "config.h"

#include <string.h>

#include "http/server.h"

static ssize_t read_stream(void *arg, uint64_t at, char *to, size_t room)
{
	struct yk_exchange *x = arg;
	ssize_t n = 0;
	(void)at;
	pthread_mutex_lock(&x->mutex);
	if (atomic_load(&x->gone)) {
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	} else if (x->sent < x->out.n) {
		n = (ssize_t)(x->out.n - x->sent < room ? x->out.n - x->sent : room);
		memcpy(to, x->out.s + x->sent, (size_t)n);
		x->sent += (size_t)n;
	} else if (x->complete) {
		n = MHD_CONTENT_READER_END_OF_STREAM;
	} else {
		x->asleep = true;
		MHD_suspend_connection(x->connection);
	}
	pthread_mutex_unlock(&x->mutex);
	return n;
}

enum MHD_Result yk_http_pass_reply(struct yk_exchange *x)
{
	struct MHD_Connection *c = x->connection;
	enum MHD_Result done = MHD_YES;
	pthread_mutex_lock(&x->mutex);
	if (!x->complete && !x->streams) {
		x->asleep = true;
		MHD_suspend_connection(c);
		pthread_mutex_unlock(&x->mutex);
		return MHD_YES;
	}
	// The text stays in the exchange, which lives until the request has ended.
	struct MHD_Response *r =
		x->streams ?
			MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, x,
							  NULL) :
			MHD_create_response_from_buffer(x->out.n, x->out.s, MHD_RESPMEM_PERSISTENT);
	if (r) {
		MHD_add_response_header(r, "Content-Type", x->type);
		MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
		MHD_add_response_header(r, "Cache-Control", "no-store");
		for (int i = 0; i < x->headers; i++)
			MHD_add_response_header(r, x->header[i], x->value[i]);
		if (*x->origin) {
			MHD_add_response_header(r, "Access-Control-Allow-Origin", x->origin);
			MHD_add_response_header(r, "Vary", "Origin");
		}
	}
	const unsigned status = (unsigned)x->status;
	pthread_mutex_unlock(&x->mutex);
	done = r ? MHD_queue_response(c, status, r) : MHD_NO;
	if (r)
		MHD_destroy_response(r);
	return done;
}
