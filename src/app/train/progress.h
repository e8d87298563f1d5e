// SPDX-License-Identifier: Apache-2.0
// Progress output: the run's records (records.h), and on the screen a progress bar or one line per
// logged step.
#ifndef YK_PROGRESS_H
#define YK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "train/records.h"

struct yk_progress {
	yoke_run *record;
	bool bar, lines; // what is shown per step; neither: nothing
	bool drawn;      // the bar is on the last line of the screen
	int64_t steps, first; // total steps; steps done when the ETA clock started
	double began, drew;   // seconds; began: 0 until this run's first step is done
	double warmed;        // seconds of warm-up before that
	struct yk_step_metrics last; // last logged step; its step is 0 before the first
};

// show: "1": a bar; "0": nothing per step; "auto": a bar on a terminal, else lines. The caller owns
// the record.
void yk_progress_open(struct yk_progress *, yoke_run *record, const char *show, int64_t steps);
void yk_progress_logged(struct yk_progress *, const struct yk_step_metrics *);
// Progress within a validation; redraws the bar at intervals.
void yk_progress_validating(struct yk_progress *, int64_t step, int64_t done, int64_t windows);
// skipped: windows that could not be read.
void yk_progress_validated(struct yk_progress *, int64_t step, double loss, int64_t skipped);
// epochs: completed; seconds: of the last one; both 0 before training.
void yk_progress_memory(struct yk_progress *, int64_t step, int64_t epochs, double seconds,
			const struct yk_memory *);
// Writes the report to metrics.jsonl and, if `show`, to the screen.
void yk_progress_report(struct yk_progress *, int64_t step, bool show, const struct yk_report *);
// "1:02:03", or "2:03" if less than an hour.
void yk_progress_time(char *to, size_t cap, double seconds);
// After a failed write: whether it is worth trying again. If so, logs it, clears the error, and
// waits a second, in which the other end may come back or space be freed.
bool yk_progress_again(struct yk_progress *, int code);
// After a second failure: the thread's error, extended by advice.
int yk_progress_gave_up(int code, const char *advice);
// A step that is not logged: redraws the bar at intervals.
void yk_progress_tick(struct yk_progress *, int64_t step);
// Prints a separate line.
void yk_progress_print(struct yk_progress *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// The same for a line of any length, which is wrapped at blanks; the first argument is a struct
// yk_progress.
void yk_progress_line(void *, const char *line);
void yk_progress_close(struct yk_progress *); // may be zero-initialized

#endif
