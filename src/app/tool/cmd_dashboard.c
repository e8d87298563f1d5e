// SPDX-License-Identifier: Apache-2.0
// yoke dashboard: serves a web page that shows runs while they progress.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "live/live.h"
#include "tool/tool.h"

#ifdef HAVE_MICROHTTPD
static int serve(const struct yk_dashboard *d)
{
	return yk_dashboard_serve(d);
}
#else
static int serve(const struct yk_dashboard *d)
{
	(void)d;
	return yk_fail(YOKE_EUNSUPPORTED,
		       "this yoke was built without libmicrohttpd, which serves the page; use "
		       "`yoke report` or `yoke dashboard terminal`");
}
#endif

int yk_cmd_dashboard(int argc, char **argv)
{
	struct yk_dashboard d = { 0 };
	const char *value;
	uint64_t port;
	for (int i = 1; i < argc; i++) {
		const char *twice = yk_option_twice(argv, i);
		if (twice)
			return yk_usage("dashboard", "argument '%s' repeats '%s'; give it once",
					argv[i], twice);
		if (!strncmp(argv[i], "port=", 5)) {
			if (yk_option_number(argv[i] + 5, &port) < 0 || port > 65535)
				return yk_usage("dashboard",
						"'%s': must be a port number up to 65535, or 0 for "
						"any free port",
						argv[i]);
			d.port = (int)port;
		} else if (!strncmp(argv[i], "bind=", 5)) {
			d.bind = argv[i] + 5;
		} else if (!strncmp(argv[i], "token_file=", 11)) {
			d.token_file = argv[i] + 11;
		} else if (!strcmp(argv[i], "--until-eof")) {
			d.until_eof = true;
		} else if (argv[i][0] == '-' ||
			   ((value = strchr(argv[i], '=')) && !strchr(argv[i], '/'))) {
			return yk_usage("dashboard",
					"unknown argument '%s'; the arguments are port=, bind=, "
					"token_file= and --until-eof",
					argv[i]);
		} else if (d.n == YK_LIVE_RUNS) {
			return yk_usage("dashboard",
					"'%s': more than %d runs; give the folder above them",
					argv[i], YK_LIVE_RUNS);
		} else {
			d.folder[d.n++] = argv[i];
		}
	}
	if (!d.n)
		return yk_usage(
			"dashboard",
			"no run given; name the folder of a run, the out= of `yoke train`, or a folder of runs");
	return serve(&d) < 0 ? yk_failed("dashboard") : YK_DONE;
}
