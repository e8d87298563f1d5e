// SPDX-License-Identifier: Apache-2.0
// What the page is told of runs: texts, made of what was read of their files.
#ifndef YK_ANSWERS_H
#define YK_ANSWERS_H

#include "live/live.h"
#include "report/plots.h"

enum { YK_LIVE_POSITION = 2048, YK_LIVE_KEPT = 32 };

struct yk_live {
	int n;
	struct yk_view *view[YK_LIVE_RUNS];
	struct yk_live_seen { // of each, when something was last told of it
		enum yk_view_state state;
		uint32_t generation;
		uint64_t lines;
	} seen[YK_LIVE_RUNS];
	uint64_t version; // of all of it: plots that were drawn are as old as this
	struct yk_live_plot { // plots that were drawn, to be given again: they cost more than to be sent
		char key[320];
		char *text;
		uint64_t version;
		double made, cost; // seconds
	} plot[YK_LIVE_KEPT];
};

int yk_live_open(struct yk_live *, int n, const char *const *folder);
void yk_live_close(struct yk_live *);
// How far all files were read.
void yk_live_position(const struct yk_live *, char to[YK_LIVE_POSITION]);

// All of these are the caller's, for free(); NULL: no memory, or what is said.

// Takes in what is new of run i: an event of the stream, or NULL where there is nothing.
char *yk_live_news(struct yk_live *, int i);
// Events of all runs as they are.
char *yk_live_all(struct yk_live *);
char *yk_live_runs(struct yk_live *);    // run.json
char *yk_live_kernels(struct yk_live *); // kernels.json
char *yk_live_metrics(struct yk_live *); // Prometheus
// A plot as SVG, or its numbers as JSON; NULL: there is none of that name.
char *yk_live_plot(struct yk_live *, const char *name, const struct yk_plot_ask *, bool svg);

#endif
