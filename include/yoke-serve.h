// SPDX-License-Identifier: Apache-2.0
// Serves functions of arrays, such as the forward pass of a network, by HTTP.  Requests that wait
// are computed in one batch.
//
//	static int twice(void *user, const struct yoke_serve_array *in,
//			 struct yoke_serve_array *out)
//	{
//		const int64_t n = in->dims[0] * in->dims[1];
//		float *y = malloc((size_t)n * sizeof *y);
//		for (int64_t i = 0; y && i < n; i++)
//			y[i] = 2 * ((const float *)in->data)[i];
//		*out = (struct yoke_serve_array){ yoke_f32, 2, { in->dims[0], in->dims[1] }, y };
//		return y ? 0 : YOKE_ENOMEM;
//	}
//	..
//	yoke_server *s = yoke_server_new(NULL);
//	yoke_serve_function(s, "/twice", twice, NULL, NULL);
//	int port = yoke_server_start(s);
//	yoke_server_run(s);                        // until yoke_server_stop
//	yoke_server_free(s);
//
//	curl http://127.0.0.1:PORT/twice -d '[[1, 2], [3, 4]]'         -> [[2.0, 4.0], [6.0, 8.0]]
//
// A request is an array whose first axis counts samples: nested lists of JSON, or with Content-Type
// application/x-npy a .npy file.  The reply has the same form.  Errors are JSON objects as those of
// OpenAI's API.  Clients that hang up are not computed.
#ifndef YOKE_SERVE_H
#define YOKE_SERVE_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_server yoke_server;

struct yoke_server_options {
	size_t size;       // sizeof, set by the caller
	const char *host;  // address to listen on; NULL: 127.0.0.1
	int port;          // 0: any free one
	const char *key;   // that clients must send as Authorization: Bearer KEY, 16 characters or
			   // more; NULL: none
	int open;          // 1: other machines may connect without a key
	int connections;   // max; 0: 256
	int64_t body;      // max bytes of a request; 0: 4 MiB
	int64_t queue;     // max waiting requests, more get status 429; 0: 64
	int64_t timeout;   // seconds until a request is ended; 0: 600
};
// Creates a server, which does not listen yet.  options may be NULL.  EINVAL: an option out of
// range; ENOMEM.
YOKE_API yoke_server *yoke_server_new(const struct yoke_server_options *options);
// Stops listening; requests without a reply get status 503.  Not while yoke_server_run is running.
// NULL is fine.
YOKE_API void yoke_server_free(yoke_server *);

struct yoke_serve_array {
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK];
	void *data; // row-major
};
// A function of a batch.  in->dims[0] is its number of samples, of one or several requests, and all
// other dims are those of each request.  The function sets *out, with as many samples, to data that
// it allocated with malloc and the server frees.  0, or an error, with which all requests of the
// batch fail: EINVAL, EFORMAT, ERANGE, ESHAPE and EDTYPE with status 400, others with 500.
typedef int yoke_serve_call(void *user, const struct yoke_serve_array *in,
			    struct yoke_serve_array *out);

struct yoke_serve_options {
	size_t size;   // sizeof, set by the caller
	int dtype;     // of what the function gets: yoke_f32 (0, the default), yoke_f64, yoke_i32
		       // or yoke_i64
	int rank;      // of what it gets, with the axis of samples; 0: any
	int64_t batch; // max samples of a batch, unless one request has more; 0: 64
};
// Serves a function under a path such as "/predict", by POST.  Before yoke_server_start.  options
// may be NULL.  EINVAL: the path does not begin with / or has a function, or an option is out of
// range; EBUSY: the server listens; ENOMEM.
YOKE_API int yoke_serve_function(yoke_server *, const char *path, yoke_serve_call *,
				 const struct yoke_serve_options *options, void *user);
// Begins to listen, and returns the port.  EINVAL: the address, or one that other machines reach
// without a key; EIO: the port is in use; EBUSY: it listens; EUNSUPPORTED: a build without
// libmicrohttpd.
YOKE_API int yoke_server_start(yoke_server *);
// Calls functions, on this thread, until yoke_server_stop, after which it answers what has arrived.
// Returns 0.  EINVAL: the server does not listen.
YOKE_API int yoke_server_run(yoke_server *);
// Ends yoke_server_run, or the next one.  From any thread, also from a function.
YOKE_API void yoke_server_stop(yoke_server *);

#ifdef __cplusplus
}
#endif
#endif
