// SPDX-License-Identifier: Apache-2.0
// A client of plain HTTP/1.1: a connection, which is kept between requests.
#ifndef YK_CLIENT_H
#define YK_CLIENT_H

#include <stddef.h>

struct yk_client;

// Receives the body of a reply as it arrives.  A negative result ends the request, and is its
// result.
typedef int yk_client_fn(void *arg, const char *bytes, size_t n);

// url: "http://HOST[:PORT][/PREFIX]"; key: sent as a bearer token, or NULL; timeout: seconds
// without a byte. Nothing is sent yet.  EINVAL: the URL; ENOMEM.
int yk_client_new(const char *url, const char *key, double timeout, struct yk_client **);
// Sends a request, GET if body is NULL, else POST of JSON, and passes the reply's body to fn.
// Returns the status, or an error: EIO with the reason, EFORMAT if the reply is not HTTP.
int yk_client_request(struct yk_client *, const char *path, const char *body, size_t bytes,
		      yk_client_fn *fn, void *arg);
void yk_client_free(struct yk_client *); // NULL is allowed

#endif
