// SPDX-License-Identifier: Apache-2.0
// The paths of a server and their handlers, which run on the threads of HTTP.
#ifndef YK_SERVE_ROUTES_H
#define YK_SERVE_ROUTES_H

#include "serve/state.h"

enum { YK_ROUTES = 10 };
// Fills the routes of a server.
void yk_routes_of(struct yk_serve *, struct yk_route to[YK_ROUTES]);
// Handles a request of a file by its path; the reply is in the exchange, at once or later.
void yk_route_local(struct yk_serve *, struct yk_exchange *);
// The path of a route, for metrics; "other" for a path without one.
const char *yk_route_name(const char *path);

#endif
