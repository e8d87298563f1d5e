// SPDX-License-Identifier: Apache-2.0
// Content that the dashboard serves about runs: texts computed from the views of their files.
#ifndef YK_ANSWERS_H
#define YK_ANSWERS_H

#include "live/live.h"
#include "report/plots.h"

enum { YK_LIVE_POSITION = 2048, YK_LIVE_KEPT = 32 };

struct yk_live {
	int n;
	struct yk_view *view[YK_LIVE_RUNS];
	struct yk_live_seen { // per run: the state that was last sent to clients
		enum yk_view_state state;
		uint32_t generation;
		uint64_t lines;
	} seen[YK_LIVE_RUNS];
	uint64_t version; // counts changes of the runs; a cached plot is valid for one version
	struct yk_live_plot { // cache of plots, because drawing a plot costs more than sending it
		char key[320];
		char *text;
		uint64_t version;
		double made, cost; // time of drawing, and duration of drawing; seconds
	} plot[YK_LIVE_KEPT];
};

int yk_live_open(struct yk_live *, int n, const char *const *folder);
void yk_live_close(struct yk_live *);
// Writes how far the files of all runs have been read, as an event id.
void yk_live_position(const struct yk_live *, char to[YK_LIVE_POSITION]);

// The caller frees the text that each of these functions returns. NULL: out of memory, unless
// stated otherwise.

// Reads what was appended to the files of run i. Returns an event for the stream, or NULL if
// nothing changed.
char *yk_live_news(struct yk_live *, int i);
// Events that describe the current state of all runs.
char *yk_live_all(struct yk_live *);
char *yk_live_runs(struct yk_live *);    // run.json
char *yk_live_kernels(struct yk_live *); // kernels.json
char *yk_live_metrics(struct yk_live *); // Prometheus
// A plot as SVG, or its numbers as JSON; NULL: no plot has that name.
char *yk_live_plot(struct yk_live *, const char *name, const struct yk_plot_ask *, bool svg);

#endif
