// SPDX-License-Identifier: Apache-2.0
// Progress: metrics.jsonl in the model's folder, and a bar on a terminal or a line each
// logged step.  A line of metrics.jsonl is an object with `time`, in seconds since 1970, and `stage`: a logged step
// (train) has step, loss, lr,
// grad_norm, tokens_per_s, peak_bytes and tokens (seen in all), with a loss scale that and steps skipped, and of the data,
// since the run began: data_wait_s, the time that steps waited for it, data_read_s and data_pad_s, of all threads,
// data_send_s, handing copies to the device, data_ready, batches that are read and not used, and data_errors; with ranks how many they are,
// sent_bytes and ranks_wait_s, what rank 0 sent to others and waited for them since the run began, and slowest_rank, which waited
// least since the line before;
// numbers that are not finite left out; a validation (valid) has step,
// val_loss and perplexity; the start and the ends of epochs (memory) have step, epoch, seconds since the epoch
// before, pool_allocated, pool_peak, pool_reserved and rss (bytes), pool_retries, pending_nodes; the end of a run (report) has
// step and report (observe/report.h).
#ifndef YK_PROGRESS_H
#define YK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "observe/memory.h"
#include "observe/report.h"
#include "runs/write.h"
#include "yoke-data.h"

struct yk_metrics {
	int64_t step, tokens;
	double loss, lr, grad_norm, tokens_per_s;
	uint64_t peak_bytes;
	struct yoke_loader_stats data;
	double scale;    // of the loss, for the next step; 0: none
	int64_t skipped; // steps for which it was too large
	bool leaks;           // the model sees what it has to predict
	const float *shares;  // of tokens, of each layer's experts; NULL: there are none
	int64_t layers, experts;
	int64_t ranks;        // 0: alone
	uint64_t sent;        // bytes of tensors that this rank sent others since the run began ..
	double waited;        // .. and seconds that it waited for them
	int slowest;          // the rank that waited least since the last line
	const char *overflow; // this one is: whose gradient is not finite; NULL: it is not
};

struct yk_progress {
	yoke_run *record;
	bool bar, lines; // what is shown of each step; neither: nothing
	bool drawn;      // is the bar on the last line?
	int64_t steps, first; // in all; done when the time that ETA counts began
	double began, drew;   // seconds; began: 0 until the first step of this run is done
	double warmed;        // seconds of warming up before that
	struct yk_metrics last; // logged; its step is 0 before the first
};

// show: "1", a bar; "0", nothing of steps; "auto", a bar on a terminal, else lines.  The record is the caller's.
void yk_progress_open(struct yk_progress *, yoke_run *record, const char *show, int64_t steps);
void yk_progress_logged(struct yk_progress *, const struct yk_metrics *);
// A validation has come so far: draws it now and then.
void yk_progress_validating(struct yk_progress *, int64_t step, int64_t done, int64_t windows);
void yk_progress_validated(struct yk_progress *, int64_t step, double loss);
// Epochs done, and the seconds of the last; before training: 0.
void yk_progress_memory(struct yk_progress *, int64_t step, int64_t epochs, double seconds,
			const struct yk_memory *);
// Into metrics.jsonl, and shown as well, or not.
void yk_progress_report(struct yk_progress *, int64_t step, bool show, const struct yk_report *);
// "1:02:03", or "2:03" of less than an hour.
void yk_progress_time(char *to, size_t cap, double seconds);
// Writing failed with this code: is it worth another try?  Says so, clears the error, and
// waits a second, in which the other end may come back or somebody make room.
bool yk_progress_again(struct yk_progress *, int code);
// It failed again: the thread's error with what can be done about it.
int yk_progress_gave_up(int code, const char *advice);
// A step that is not logged: moves the bar now and then.
void yk_progress_tick(struct yk_progress *, int64_t step);
// A line of its own.
void yk_progress_say(struct yk_progress *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// The same for a struct yk_progress and a line of any length, which is carried over at blanks.
void yk_progress_line(void *, const char *line);
void yk_progress_close(struct yk_progress *); // may be all zeros

#endif
