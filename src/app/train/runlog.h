// SPDX-License-Identifier: Apache-2.0
// training_log.tsv: a row for each run of `yoke train`, however it ended, in a file that
// all runs of a folder share.
//
//     start              UTC, as 2026-01-31T12:00:00Z
//     seconds            of the run
//     ended              done, SIGINT, SIGTERM, SIGINT twice, failed
//     device data tokenizer parameters
//     step steps         done when it ended, those of earlier runs included, and asked for
//     epochs             passes over the training part by this run
//     seconds_per_epoch  of training, without validation and saving
//     tokens_per_s loss val_loss peak_bytes
//     model              the folder, from the root
//     error              the line that was printed
//
// What is not known is '-'.  Tabs, newlines, backslashes and other control characters in
// a field are \t, \n, \\ and \xHH.
#ifndef YK_RUNLOG_H
#define YK_RUNLOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct yk_run_state { // what a row says; NAN where it is not known
	int64_t step, steps, parameters;
	double epochs, busy; // busy: seconds of training
	double tokens_per_s, loss, val_loss;
	uint64_t peak_bytes;
};

struct yk_runlog {
	pthread_mutex_t lock; // a second signal writes the row from another thread
	bool written;
	int fd; // -1: it cannot be written, which was said
	char *path, *device, *data, *tokenizer, *model;
	time_t start;
	double began;
	struct yk_run_state state;
};
#define YK_RUNLOG_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 } // not open

// `path` NULL or "": training_log.tsv in the folder that holds `model`.  A file that
// cannot be written is a warning: it is no reason not to train.  ENOMEM. The struct is
// YK_RUNLOG_INIT.
int yk_runlog_open(struct yk_runlog *, const char *path, const char *model, const char *device,
		   const char *data, const char *tokenizer);
// Another device goes on: its name joins the row's, "opencl:0,cpu:0".
void yk_runlog_device(struct yk_runlog *, const char *device);
void yk_runlog_set(struct yk_runlog *, const struct yk_run_state *);
// The row, once; of later calls nothing comes.  error NULL: none.
void yk_runlog_end(struct yk_runlog *, const char *ended, const char *error);
void yk_runlog_close(struct yk_runlog *);

#endif
