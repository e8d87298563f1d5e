// SPDX-License-Identifier: Apache-2.0
// Run records, written by any program and read by `yoke dashboard`, `yoke dashboard terminal`,
// `yoke report` and `yoke doctor`.
//
//	struct yoke_run_options o = { .size = sizeof o, .config = "{\"lr\": 0.01}" };
//	yoke_run *r = yoke_run_open("runs/a", &o);
//	const char *name[] = { "loss", "lr" };
//	for (int64_t t = 1; t <= steps; t++) {
//		..
//		yoke_run_log(r, t, "train", 2, name, (double[]){ loss, lr });
//	}
//	yoke_run_artifact(r, "runs/a/weights.safetensors");
//	yoke_run_close(r, "done", NULL);
//
// yoke_fit (yoke-fit.h) writes them for its runs.
//
// The directory contains run.json (program, machine and settings), metrics.jsonl (one JSON object
// per line: step, values, time in seconds since 1970, stage), events.jsonl (time, step, event,
// text) and optionally a TensorBoard file, whose tags are STAGE/NAME: train/loss.  Exceptions:
// data_wait_s is data/wait_s, val_loss is valid/loss, and memory is in system/.  The directory is
// locked while the run is open, so a held lock means that the run is alive.
//
// Recording errors never stop the recorded program: if a record cannot be written, one warning is
// logged, and the calls still return 0.  A NULL run records nothing.  Calls may come from any
// thread.
#ifndef YOKE_RUN_H
#define YOKE_RUN_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_run yoke_run;

// ---- run records ----

struct yoke_run_options {
	size_t size;        // sizeof; set by the caller
	const char *device; // device and driver of the run; NULL: those of the thread's context, if
			    // any
	const char *driver;
	const char *config; // the run's configuration, a JSON object; NULL: {}
	uint64_t data;      // fingerprint of the run's data; 0: unknown
	int64_t step;       // steps done before: later lines, written by an interrupted run, are
			    // removed
	int tensorboard;    // 1: also writes a file events.out.tfevents.*, about every 2 seconds
};

// Opens a run, creating the directory if necessary.  NULL: EBUSY, another run is using it; EINVAL,
// EFORMAT: the configuration is not a JSON object; ENOENT or EIO: the directory cannot be created;
// ENOMEM.
YOKE_API yoke_run *yoke_run_open(const char *folder, const struct yoke_run_options *);
// Appends a line to metrics.jsonl: n values with their names, at a step from 0.  stage: "train",
// "valid", "memory", or another word.  Values that are not finite are omitted.  EINVAL: a name
// occurs twice, is empty, is not UTF-8, or is step, time or stage; the step is negative.
YOKE_API int yoke_run_log(yoke_run *, int64_t step, const char *stage, int n,
			  const char *const *name, const double *value);
// Appends a line to events.jsonl; text NULL: "".
YOKE_API int yoke_run_event(yoke_run *, int64_t step, const char *event, const char *text);
// Records a file that the run produced, with its current size and XXH64 hash; a second call updates
// them.  ENOENT, EIO: it cannot be read.
YOKE_API int yoke_run_artifact(yoke_run *, const char *path);
// Ends the run with its outcome ("done", "failed") and the error, or NULL.  Frees the run and its
// lock.
YOKE_API void yoke_run_close(yoke_run *, const char *ended, const char *error);

#ifdef __cplusplus
}
#endif

#endif
