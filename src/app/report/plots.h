// SPDX-License-Identifier: Apache-2.0
// Which plots there are of runs, and their curves.
#ifndef YK_PLOTS_H
#define YK_PLOTS_H

#include "report/svg.h"
#include "runs/read.h"

enum { YK_PLOT_CURVES = 32, YK_PLOT_MAX = 48 };

// A plot: columns of stages, all over the same axis.
struct yk_plot_kind {
	char name[128];     // "loss", or "train.recall" of a column that no kind of ours has
	const char *title, *y_label;
	enum yk_view_axis axis;
	const char *why;    // where there may be nothing to show: what it takes
	struct yk_plot_column {
		const char *stage, *column;
	} column[4];
};

// The kinds with numbers in one of these runs, at most YK_PLOT_MAX; with `all`, ours that have none as well.
int yk_plot_kinds(int n, struct yk_view *const *, bool all, struct yk_plot_kind to[YK_PLOT_MAX]);
bool yk_plot_find(int n, struct yk_view *const *, const char *name, struct yk_plot_kind *to);

struct yk_plot_ask {
	double from, to; // of x
	size_t points;   // of each curve, at most
	double smooth;   // 0 .. 0.999: share of what was before in a running mean
	bool log;        // the y axis
	int width;       // of the picture; 0: as usual
};
struct yk_plot_made {
	struct yk_plot plot;
	struct yk_curve curve[YK_PLOT_CURVES];
	char name[YK_PLOT_CURVES][160];
	double *numbers; // of all curves
};

// Its curves: of each run in its colour.  ENOMEM.
int yk_plot_make(int n, struct yk_view *const *, const struct yk_plot_kind *, const struct yk_plot_ask *,
		 struct yk_plot_made *);
void yk_plot_drop(struct yk_plot_made *);

#endif
