// SPDX-License-Identifier: Apache-2.0
// Views of active runs: a page in a browser, a table in a terminal. They read the files in RUN and
// never modify them; the dashboard only adds RUN/dashboard.json.
#ifndef YK_LIVE_H
#define YK_LIVE_H

#include <stdbool.h>

#include "runs/read.h"

enum { YK_LIVE_RUNS = 16 };

// ---- the page (server.c) ----

struct yk_dashboard {
	int n;
	const char *folder[YK_LIVE_RUNS]; // runs, or folders with runs below them
	const char *bind;       // an address; NULL: 127.0.0.1
	const char *token_file; // NULL: a random token is drawn
	int port;               // 0: any free port
	bool until_eof;         // stop at the end of standard input
};

// Serves until a signal of base/stop.h or the end of standard input; prints one line with the
// address and the token. EIO: the port, named in the error, is in use. EINVAL: an address without
// token_file.
int yk_dashboard_serve(const struct yk_dashboard *);

#endif
