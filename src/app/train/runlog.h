// SPDX-License-Identifier: Apache-2.0
// Writes training_log.tsv: one row per run of `yoke train`, however it ended, in a file shared by
// all runs of a directory.
//
// start              UTC, as 2026-01-31T12:00:00Z
// seconds            duration of the run
// ended              done, SIGINT, SIGTERM, SIGHUP, SIGINT twice, failed
// device data tokenizer parameters
// step steps         completed, including earlier runs, and requested
// epochs             passes over the training data in this run
// seconds_per_epoch  of training, without validation and saving
// tokens_per_s loss val_loss peak_bytes
// model              absolute path of the directory
// error              the message that was printed
//
// Unknown values are '-'. Tabs, newlines, backslashes and other control characters in a field are
// written as \t, \n, \\ and \xHH.
#ifndef YK_RUNLOG_H
#define YK_RUNLOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct yk_run_state { // the values of a row; NAN: unknown
	int64_t step, steps, parameters;
	double epochs, busy; // busy: seconds of training
	double tokens_per_s, loss, val_loss;
	uint64_t peak_bytes;
};

struct yk_runlog {
	pthread_mutex_t lock; // a second signal writes the row from another thread
	bool written;
	int fd; // -1: not writable, which was logged
	char *path, *device, *data, *tokenizer, *model;
	time_t start;
	double began;
	struct yk_run_state state;
};
#define YK_RUNLOG_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 } // not open

// Opens the log. path NULL or "": training_log.tsv in the parent directory of `model`. A file that
// cannot be written causes a warning, not an error. ENOMEM. The struct must be initialized with
// YK_RUNLOG_INIT.
int yk_runlog_open(struct yk_runlog *, const char *path, const char *model, const char *device,
		   const char *data, const char *tokenizer);
// Appends the next device to the row's list after a failover, as "opencl:0,cpu:0".
void yk_runlog_device(struct yk_runlog *, const char *device);
void yk_runlog_set(struct yk_runlog *, const struct yk_run_state *);
// Writes the row; only the first call has an effect. error NULL: none.
void yk_runlog_end(struct yk_runlog *, const char *ended, const char *error);
void yk_runlog_close(struct yk_runlog *);

#endif
