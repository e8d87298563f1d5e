// SPDX-License-Identifier: Apache-2.0
// Shows on stderr that kernels are compiled and tested: a line that is drawn over on a terminal, else
// one now and then.  Nothing is shown of what takes less than half a second.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/warmup.h"
#include "tool/tool.h"

#define PATIENCE 0.5 // seconds
#define REDRAW 0.2
#define REPEAT 15. // where lines stay

static struct {
	bool terminal, said; // said: the first line, once in a process
	bool shown;          // something of this plan
	double last;         // when a line was written or drawn
} screen;

static int columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void show(const struct yk_warmup *w, void *arg)
{
	char line[320];

	(void)arg;
	if (w->over) {
		if (screen.shown)
			fprintf(stderr, "%s%s: %" PRIu64 " programs of kernels compiled, %" PRIu64
				" kernels tested, %.1f s\n", screen.terminal ? "\r\033[K" : "",
				w->device, w->compiled, w->tested, w->seconds);
		screen.shown = false;
		return;
	}
	double now = yk_seconds();
	if (w->seconds < PATIENCE ||
	    (screen.shown && now - screen.last < (screen.terminal ? REDRAW : REPEAT)))
		return;
	if (!screen.said)
		fprintf(stderr, "%s%s: compiles and tests the kernels that are needed, once for "
			"this device and driver\n", screen.terminal ? "\r\033[K" : "", w->device);
	snprintf(line, sizeof line, "%s: %s kernels, %" PRIu64 " of %" PRIu64 " %s%s%s", w->device,
		 w->doing, w->at, w->of, w->items, *w->what ? ": " : "", w->what);
	if (screen.terminal) // a line that wraps cannot be drawn over
		fprintf(stderr, "\r%.*s\033[K", columns() - 1, line);
	else
		fprintf(stderr, "%s\n", line);
	fflush(stderr);
	screen.said = screen.shown = true;
	screen.last = now;
}

void yk_warmup_show(void)
{
	screen.terminal = isatty(STDERR_FILENO);
	yk_warmup_to(show, NULL);
}
