// SPDX-License-Identifier: Apache-2.0
// yoke top, yoke dashboard terminal: current state of the machine, of runs and of their processes.
#include "config.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "live/top.h"
#include "tool/tool.h"

#ifndef HAVE_NCURSES
int yk_top_screen(struct yk_top *t)
{
	(void)t;
	return yk_fail(YOKE_EUNSUPPORTED,
		       "this yoke was built without ncurses; --once prints the table");
}
#endif

static void print_line(void *arg, const char *text)
{
	(void)arg;
	puts(text);
}

static int print(struct yk_top *t, bool json)
{
	yk_top_sample(t);
	if (t->all) { // the use of processors is measured over a while
		nanosleep(&(struct timespec){ .tv_nsec = 250000000 }, NULL);
		yk_top_sample(t);
	}
	if (!json) {
		setlocale(LC_CTYPE, "");
		t->plain = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
		setlocale(LC_CTYPE, "C");
		yk_top_lines(t, YK_TOP_COLUMNS, print_line, NULL);
		return 0;
	}
	json_t *o = yk_top_json(t);
	char *text = o ? json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(o);
	if (!text)
		return yk_fail(YOKE_ENOMEM, "out of memory for the runs");
	puts(text);
	free(text);
	return 0;
}

int yk_dashboard_terminal(int argc, char **argv)
{
	const char *folder[YK_LIVE_RUNS] = { NULL };
	struct yk_top t = { .n = 0 };
	bool once = false, json = false;
	const char *command = strcmp(argv[0], "top") ? "dashboard terminal" : "top";
	int n = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--once"))
			once = true;
		else if (!strcmp(argv[i], "--json"))
			json = true;
		else if (argv[i][0] == '-')
			return yk_usage(command,
					"unknown option '%s'; the options are --once and --json",
					argv[i]);
		else if (n == YK_LIVE_RUNS)
			return yk_usage(command, "'%s': more than %d runs", argv[i],
					YK_LIVE_RUNS);
		else
			folder[n++] = argv[i];
	}
	int e = yk_top_open(&t, n, folder);
	if (e == 0)
		e = once || json ? print(&t, json) : yk_top_screen(&t);
	yk_top_close(&t);
	return e < 0 ? yk_failed(command) : YK_DONE;
}
