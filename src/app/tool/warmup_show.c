// SPDX-License-Identifier: Apache-2.0
// Shows on stderr that kernels are compiled and tested: as a line that is redrawn on a terminal,
// otherwise as occasional lines. While text is written on the terminal, it uses separate lines.
// Work of less than half a second is not shown.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/warmup.h"
#include "tool/tool.h"

#define PATIENCE 0.5 // seconds before the first output
#define REDRAW 0.2
#define REPEAT 15. // seconds between lines, if the output is not a terminal

static const char *programs(uint64_t n)
{
	return n == 1 ? "program" : "programs";
}

static const char *kernels(uint64_t n)
{
	return n == 1 ? "kernel" : "kernels";
}

static void show(const struct yk_warmup *w, void *arg)
{
	struct yk_screen *s = arg;
	const char *clear = s->redraws ? "\r\033[K" : "";
	char line[320];

	if (w->over) {
		if (s->shown)
			fprintf(stderr, "%s%s: %" PRIu64 " %s compiled, %" PRIu64
				" %s tested, %.1f s\n", clear, w->device, w->compiled,
				programs(w->compiled), w->tested, kernels(w->tested), w->seconds);
		s->shown = false;
		return;
	}
	double now = yk_seconds();
	if (w->seconds < PATIENCE || (s->shown && now - s->last < (s->redraws ? REDRAW : REPEAT)))
		return;
	if (s->text && !s->shown)
		fputc('\n', stderr);
	if (!s->started)
		fprintf(stderr,
			"%s%s: compiling and testing the required kernels; this happens once per "
			"device and driver\n",
			clear, w->device);
	snprintf(line, sizeof line, "%s: %s kernels, %" PRIu64 " of %" PRIu64 " %s%s%s", w->device,
		 w->doing, w->at, w->of, w->items, *w->what ? ": " : "", w->what);
	if (s->redraws) // a line that wraps cannot be redrawn in place
		fprintf(stderr, "\r%.*s\033[K", yk_log_columns() - 1, line);
	else
		fprintf(stderr, "%s\n", line);
	fflush(stderr);
	s->started = s->shown = true;
	s->last = now;
}

void yk_warmup_show(struct yk_screen *s, bool text)
{
	bool terminal = isatty(STDERR_FILENO);

	s->text = text && terminal && isatty(STDOUT_FILENO);
	s->redraws = terminal && !s->text;
	yk_warmup_to(show, s);
}
