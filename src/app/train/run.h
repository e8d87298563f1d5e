// SPDX-License-Identifier: Apache-2.0
// A run of training: `yoke train`.
#ifndef YK_TRAIN_RUN_H
#define YK_TRAIN_RUN_H

#include "base/stop.h"
#include "observe/profile.h"
#include "train/data_errors.h"
#include "train/progress.h"
#include "train/runlog.h"
#include "train/snapshot.h"
#include "train/trainer.h"
#include "train/watch.h"
#include "train/watcher.h"

struct yk_run {
	const char *_Atomic out; // who waits for signals reads it, too
	struct yk_trainer *trainer;
	struct yk_corpus *corpus; // that all ranks train on; NULL: it trains alone
	struct yk_progress progress;
	struct yk_profile *profile;
	struct yk_runlog log;
	yoke_run *record; // NULL: not begun, or ended
	struct yk_watcher watcher;
	struct yk_run_state state; // for its row
	struct yk_stop *stop; // of the process
	struct yk_watch watch;
	bool keeps;   // checkpoints
	bool leads;   // alone, or rank 0: what is said and written is its
	const char *report; // is it shown?
	struct yk_snapshot snapshot;
	int64_t log_every, eval_every, save_every, snapshot_every;
	int64_t first;                    // steps before this run
	int64_t logged, saved, validated; // steps at which it was last done
	int64_t epochs, told; // passes done, and the step at which one was last told of
	double epoch_began;
	double busy; // seconds of steps since the last log, without validation and saving
	double resumed; // when the clock of `busy` was last started
	struct yk_data_errors data_errors;
	double files;   // seconds of saving, without the copies from the device
};

// ---- run.c ----

// Runs the configuration to its last step, or to the end of the step in which SIGINT or
// SIGTERM arrives; saves then, and returns 0.  The keys that were not given are taken
// from the checkpoint when resuming.
// lost: NULL, or gets the number of ranks, threads of this process, whose devices failed, which are chosen no more.
int yk_train(struct yk_config *, int *lost);

// ---- loop.c: its steps ----

// To the last one, or behind the one in which a signal came, which is *signal then.
int yk_run_steps(struct yk_run *, int *signal);
// Passes over the training part, by all runs.
int64_t yk_run_epochs(const struct yk_trainer *);

// ---- lost.c: its trainer, and its device ----

// The trainer, on the first device on which it can be made.
int yk_run_make(struct yk_run *, struct yk_config *, const struct yk_checkpoint *);
// Goes on with the next device when one failed, from the last snapshot or checkpoint; or returns the error, code.
int yk_run_rescue(struct yk_run *, struct yk_config *, int code);
// Is it because of the device of the current context that this rank, or what it did with others, ended by that error?
bool yk_run_lost(int code);
// It cannot go on: the thread's error, with what is saved of it.  Returns code.
int yk_run_ended(const struct yk_run *, int code, const char *why);

// ---- run_say.c ----

void yk_run_say_progress(struct yk_run *, const struct yk_config *); // from now on
// The device, the text and the memory; from: the checkpoint it goes on from, NULL: none.
int yk_run_say_start(struct yk_run *, const struct yk_config *, const struct yk_checkpoint *from);
// plot=1: the learning rate of all steps, as a curve of characters.
void yk_run_plot(const struct yk_lr_schedule *, int64_t steps, struct yk_progress *);
// Where the model is, the last losses, what to run next.
void yk_run_say_end(struct yk_run *);

// ---- run_record.c: its files in RUN ----

// Begins them, with the folder locked.  ENOMEM; what cannot be written is a warning.
int yk_run_record_begin(struct yk_run *, const struct yk_config *);
// Another device goes on, at the trainer's step; why.
void yk_run_record_device(struct yk_run *, const char *why);
void yk_run_record_saved(struct yk_run *, double seconds);
// The trace, and the rows of the profile as kernels.json.
void yk_run_record_profile(struct yk_run *, const char *trace);
// code: 0, or that of the thread's error.  Once; later calls do nothing.
void yk_run_record_end(struct yk_run *, const char *ended, int code);

#endif
