// SPDX-License-Identifier: Apache-2.0
// A build without libmicrohttpd has no server.
#include "config.h"

#include "base/error.h"
#include "http/http.h"

int yk_http_start(const struct yk_http_options *options, const struct yk_route *route,
		  size_t routes, struct yk_http **to)
{
	(void)options;
	(void)route;
	(void)routes;
	(void)to;
	return yk_fail(YOKE_EUNSUPPORTED,
		       "this yoke was built without libmicrohttpd, which serves HTTP");
}

int yk_http_port(const struct yk_http *h)
{
	(void)h;
	return 0;
}

const char *yk_http_url(const struct yk_http *h)
{
	(void)h;
	return "";
}

void yk_http_watch(struct yk_http *h)
{
	(void)h;
}

void yk_http_drain(struct yk_http *h)
{
	(void)h;
}

void yk_http_stop(struct yk_http *h)
{
	(void)h;
}
