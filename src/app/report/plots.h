// SPDX-License-Identifier: Apache-2.0
// The plots that runs offer, and the data of their curves.
#ifndef YK_PLOTS_H
#define YK_PLOTS_H

#include "report/svg.h"
#include "runs/read.h"

enum { YK_PLOT_CURVES = 32, YK_PLOT_MAX = 48 };

// A plot: columns of one or more stages over a common axis.
struct yk_plot_kind {
	char name[128];     // "loss", or e.g. "train.recall" for a column without a predefined plot
	const char *title, *y_label;
	enum yk_unit unit;  // of y
	enum yk_view_axis axis;
	const char *why;    // what a run must record for this plot, if it may be empty
	bool exact;         // never smoothed: a setting or a counter, not a measurement with noise
	struct yk_plot_column {
		const char *stage;  // "telemetry" includes the telemetry of all ranks
		const char *column; // "devices.*.util": one curve for each device
		const char *per;    // a column whose last value divides this one, or NULL
		bool otherwise;     // only for runs without the columns before it
	} column[4];
};

// Lists the plots with numbers in at least one of these runs, at most YK_PLOT_MAX; with `all`, also
// predefined plots without numbers.
int yk_plot_kinds(int n, struct yk_view *const *, bool all, struct yk_plot_kind to[YK_PLOT_MAX]);
bool yk_plot_find(int n, struct yk_view *const *, const char *name, struct yk_plot_kind *to);
// Max number of values of a curve of this plot; *zeros: whether all of them are 0.
uint64_t yk_plot_values(int n, struct yk_view *const *, const struct yk_plot_kind *, bool *zeros);

struct yk_plot_options {
	double from, to; // range of x
	size_t points;   // max number of points per curve
	// 0 .. 0.999: weight of the previous value in the running mean over all rows
	double smooth;
	bool log;        // logarithmic y axis
	bool plain;      // several runs: no legend of their names
	int width;       // of the picture; 0: the default
	const int *color; // of each run; NULL: 0, 1, ..
};
struct yk_plot_result {
	struct yk_plot plot;
	struct yk_curve curve[YK_PLOT_CURVES];
	char name[YK_PLOT_CURVES][160];
	char dash_name[YK_SVG_DASHES][64];
	double *numbers; // storage of all curves
};

// Computes the curves. Curves of one run of several have the same color and differ in their
// dashes, as do training and validation of a single run. ENOMEM.
int yk_plot_make(int n, struct yk_view *const *, const struct yk_plot_kind *,
		 const struct yk_plot_options *, struct yk_plot_result *);
void yk_plot_drop(struct yk_plot_result *);

#endif
