// SPDX-License-Identifier: Apache-2.0
// Content that the dashboard serves about runs: texts computed from the views of their files.
#ifndef YK_ANSWERS_H
#define YK_ANSWERS_H

#include "live/live.h"
#include "report/plots.h"

enum {
	YK_LIVE_MAX = 500,           // runs; those of a folder beyond it are counted only
	YK_LIVE_DRAWN = YK_SVG_COLORS, // runs with curves at the same time
	YK_LIVE_KEPT = 32,           // plots
	YK_LIVE_ID = 17
};

struct yk_live_run {
	bool gone; // its folder was removed; its number is not used again
	enum yk_view_state state; // state, generation and lines that were last sent to clients
	uint32_t generation;
	uint64_t lines;
	json_t *findings;        // of yk_conditions, or NULL
	uint64_t findings_lines; // lines and state of the view at that time
	enum yk_view_state findings_state;
	double found, cost;      // time when they were computed, and the duration of that; seconds
};

struct yk_live_state {
	int n;
	struct yk_view *view[YK_LIVE_MAX];
	struct yk_live_run run[YK_LIVE_MAX];
	int hidden; // runs beyond YK_LIVE_MAX
	int folders;
	const char *folder[YK_LIVE_RUNS]; // where runs are searched for; from the caller
	double searched, search_cost; // time of the last search, and its duration; seconds
	unsigned looks;   // rounds in which yk_live_news was called
	uint64_t version; // counts changes of the runs; a cached plot is valid for one version
	struct yk_live_plot { // cache of plots, because drawing a plot costs more than sending it
		char key[384];
		char *text;
		uint64_t version;
		double made, cost; // time of drawing, and duration of drawing; seconds
	} plot[YK_LIVE_KEPT];
};

// The runs that a client draws. The position in the list is the color.
struct yk_live_choice {
	int n;
	int run[YK_LIVE_DRAWN], color[YK_LIVE_DRAWN];
};

// ENOENT: a folder is neither a run nor contains one.
int yk_live_open(struct yk_live_state *, int n, const char *const *folder);
void yk_live_close(struct yk_live_state *);
// Writes a hash of how far the files of all runs have been read, as an event id.
void yk_live_position(const struct yk_live_state *, char to[YK_LIVE_ID]);
// Parses "3,,7": run 3 with color 0, run 7 with color 2. NULL: running ones and the newest.
struct yk_live_choice yk_live_choose(const struct yk_live_state *, const char *text);

// Looks for new and removed runs, at most every two seconds, and less often if that takes long;
// true: there are some.
bool yk_live_search(struct yk_live_state *);

// The caller frees the text that each of these functions returns. NULL: out of memory, unless
// stated otherwise.

// Reads what was appended to the files of run i. Returns an event for the stream, or NULL if
// nothing changed.
char *yk_live_news(struct yk_live_state *, int i);
// Events that describe the current state of all runs.
char *yk_live_all(struct yk_live_state *);
char *yk_live_runs(struct yk_live_state *, const struct yk_live_choice *);    // run.json
char *yk_live_kernels(struct yk_live_state *, const struct yk_live_choice *); // kernels.json
// Prometheus, all runs
char *yk_live_metrics(struct yk_live_state *, const struct yk_live_choice *);
// A plot as SVG, or its numbers as JSON; NULL: no plot has that name.
char *yk_live_plot(struct yk_live_state *, const struct yk_live_choice *, const char *name,
		   const struct yk_plot_options *, bool svg);

#endif
