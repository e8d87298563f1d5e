// SPDX-License-Identifier: Apache-2.0
// A training run (`yoke train`): its state and the functions of its parts.
#ifndef YK_TRAIN_RUN_H
#define YK_TRAIN_RUN_H

#include "base/stop.h"
#include "observe/profile.h"
#include "train/data_errors.h"
#include "train/progress.h"
#include "train/runlog.h"
#include "train/snapshot.h"
#include "train/steps.h"
#include "train/trainer.h"
#include "train/watch.h"
#include "train/watcher.h"

// Steps at which something was last done.
struct yk_run_done {
	int64_t first; // steps of earlier runs
	int64_t logged, validated;
	int64_t saved; // -1: there is no checkpoint
};

struct yk_epoch_log {
	int64_t done;   // completed epochs that were logged
	int64_t logged; // the step at which that was
	double began;   // time when the epoch after these began
};

// Seconds of training, without validation and saving.
struct yk_run_clock {
	double busy;    // since the last log
	double resumed; // time when the clock was last started
	double files;   // seconds of saving, without copying from the device
};

// The checkpoint with the lowest validation loss, and the end of a run whose loss does not fall.
struct yk_run_best {
	bool saves;            // keep_best=1
	struct yk_best saved;  // the checkpoint in out/best
	int64_t stop_after;    // 0: never
};

struct yk_run {
	const char *_Atomic out; // also read by the signal thread
	struct yk_trainer *trainer;
	struct yk_corpus *corpus; // shared by all ranks; NULL: a single rank
	struct yk_stop *stop;     // of the process
	bool leads;               // the only rank, or rank 0: does all output
	// directory of the checkpoint that this run resumes, `out` or out/best; NULL: none
	char *from;
	bool saves;               // saves checkpoints
	struct yk_intervals every;
	struct yk_run_done done;
	struct yk_epoch_log epochs;
	struct yk_run_clock clock;
	struct yk_run_best best;
	struct yk_snapshot snapshot;
	struct yk_data_errors data_errors;

	// Output.
	struct yk_progress progress;
	struct yk_profile *profile;
	struct yk_runlog log;
	struct yk_run_state state; // for the training log
	yoke_run *record;          // NULL: not yet begun, or ended
	const char *report;        // value of the key `report`
	struct yk_watcher watcher;
	struct yk_watch watch;
};

// ---- run.c ----

// Trains to the last step, or to the end of the step during which SIGINT, SIGTERM or SIGHUP
// arrives; then saves and returns 0. When resuming, keys that were not given are taken from the
// checkpoint. lost: NULL, or receives the number of ranks (threads of this process) whose devices
// failed; these devices are excluded from now on.
int yk_train(struct yk_config *, int *lost);

// ---- loop.c ----

// Runs to the last step, or until the step during which a signal arrived, which is stored in
// *signal.
int yk_run_steps(struct yk_run *, int *signal);
// Reads the state of keep_best and stop_after, on every rank. EINVAL: there is nothing to validate
// on.
int yk_run_best_begin(struct yk_run *, const struct yk_config *);
// Whether stop_after ends the run after this step.
bool yk_run_stopped_early(const struct yk_run *);
// Completed passes over the training data, including earlier runs.
int64_t yk_run_epochs(const struct yk_trainer *);

// ---- failover.c ----

// Creates the trainer on the first device on which that succeeds.
int yk_run_make(struct yk_run *, struct yk_config *, const struct yk_checkpoint *);
// If a device failed, continues on the next device from the last snapshot or checkpoint; otherwise
// returns the error `code`.
int yk_run_rescue(struct yk_run *, struct yk_config *, int code);
// Whether the error was caused by a failure of the current context's device, in this rank or in a
// collective with others.
bool yk_run_device_failed(int code);
// Extends the thread's error by what has been saved of the run. Returns code.
int yk_run_ended(const struct yk_run *, int code, const char *why);

// ---- run_print.c ----

// sets up the output from now on
void yk_run_print_progress(struct yk_run *, const struct yk_config *);
// Reports device, text and memory; from: the checkpoint being resumed, NULL: none.
int yk_run_print_start(struct yk_run *, const struct yk_config *, const struct yk_checkpoint *from);
// plot=1: draws the learning rate over all steps in text.
void yk_run_plot(const struct yk_lr_schedule *, int64_t steps, struct yk_progress *);
// Writes why stop_after ended the run.
void yk_run_early_text(const struct yk_run *, char *to, size_t cap);
// Reports the model's location, the last losses, and what to run next.
void yk_run_print_end(struct yk_run *);

// ---- run_record.c: files that describe the run ----

// Creates them; the directory must be locked. ENOMEM; files that cannot be written cause a warning.
int yk_run_record_begin(struct yk_run *, const struct yk_config *);
// Records that another device continues at the trainer's step, and why.
void yk_run_record_device(struct yk_run *, const char *why);
// A checkpoint in out/best.
void yk_run_record_best(struct yk_run *, double seconds);
// Records why the run ended before its last step.
void yk_run_record_early(struct yk_run *);
// Records the trace, and the profile's table as kernels.json.
void yk_run_record_profile(struct yk_run *, const char *trace);
// code: 0, or that of the thread's error. Only the first call has an effect.
void yk_run_record_end(struct yk_run *, const char *ended, int code);

#endif
