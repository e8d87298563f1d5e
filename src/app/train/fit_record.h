// SPDX-License-Identifier: Apache-2.0
// The records of a run of yoke_fit: those of `yoke train`, without anything on the screen. Without
// a directory, and on other ranks than rank 0, the functions do nothing, except that other ranks
// write their telemetry.
#ifndef YK_FIT_RECORD_H
#define YK_FIT_RECORD_H

#include "observe/profile.h"
#include "train/records.h"
#include "train/trainer.h"
#include "train/watch.h"
#include "yoke-fit.h"

struct yk_fit_record { // zero-initialized: none
	yoke_run *run;
	struct yk_profile *profile;
	struct yk_watch watch;
	const char *out;
	double waited;         // seconds in `next` since the run began; kept by the caller
	int64_t rows;          // of batches since the last logged step; kept by the caller
	double busy;           // seconds of steps since the last logged step; kept by the caller
	double files;          // seconds of saving, without copying from the device
	double saving, worked; // when the last saving began; seconds of activities before
	int64_t seen, epoch;   // step and epoch of the last line about memory
	double seen_at;        // and its time
	bool saved;            // the directory has a checkpoint
};

// EFORMAT, EINVAL: the program's settings are not a JSON object.
int yk_fit_record_check(const struct yoke_fit *);
// Begins the records of the trainer's run, or on other ranks the telemetry; the directory is
// locked.
int yk_fit_record_begin(struct yk_fit_record *, const struct yoke_fit *, const struct yk_trainer *,
			bool leads);
// After each step.
int yk_fit_record_step(struct yk_fit_record *, const struct yk_trainer *);
// After a logged step, before the callback; reads and resets rows and busy.
int yk_fit_record_logged(struct yk_fit_record *, struct yk_trainer *, const struct yoke_fit *,
			 const struct yoke_fit_step *);
int yk_fit_record_validated(struct yk_fit_record *, const struct yk_trainer *, double loss);
// Around the writing of a checkpoint.
void yk_fit_record_saving(struct yk_fit_record *);
int yk_fit_record_saved(struct yk_fit_record *, const struct yk_trainer *);
// Ends the records; code: 0, or that of the thread's error, which remains.
void yk_fit_record_end(struct yk_fit_record *, const struct yk_trainer *, const struct yoke_fit *,
		       const char *ended, int code);

#endif
