// SPDX-License-Identifier: Apache-2.0
// Records of runs: what `yoke dashboard`, `yoke top`, `yoke report` and `yoke doctor` read, written by any program.
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
// The folder holds run.json (what ran, where, with which settings), metrics.jsonl (a JSON object a line: step, the
// numbers, time in seconds since 1970, stage), events.jsonl (time, step, event, text) and, where asked for, a file of
// TensorBoard's.  While the run is open its folder is locked: a folder whose lock is held has a run that lives.
//
// Records never end what they are of: what cannot be written is one warning, and the calls go on returning 0.  NULL
// in place of a run is a run that is not recorded.  Calls may come from any thread.
#ifndef YOKE_RUN_H
#define YOKE_RUN_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_run yoke_run;

// ---- records of runs ----

struct yoke_run_options {
	size_t size;        // sizeof; set by the caller
	const char *device; // NULL: those of the thread's context, if it has one
	const char *driver;
	const char *config; // what the run is of, a JSON object; NULL: {}
	uint64_t data;      // fingerprint of what it reads; 0: not known
	int64_t step;       // steps done before: lines of later ones, which an earlier run left, are cut off
	int tensorboard;    // 1: a file events.out.tfevents.* besides, written every 2 seconds or so
};

// Makes the folder where there is none.  NULL: EBUSY, another run has it; EINVAL, EFORMAT for a configuration that
// is no object; ENOENT or EIO when the folder cannot be made; ENOMEM.
YOKE_API yoke_run *yoke_run_open(const char *folder, const struct yoke_run_options *);
// A line of metrics.jsonl: n numbers with their names, at a step from 0.  stage: "train", "valid", "memory",
// or a word of the program's own.  A number that is not finite is left out.  EINVAL: a name twice, empty, not
// UTF-8, or one of step, time and stage; no such step.
YOKE_API int yoke_run_log(yoke_run *, int64_t step, const char *stage, int n, const char *const *name,
			  const double *value);
// A line of events.jsonl; text NULL: "".
YOKE_API int yoke_run_event(yoke_run *, int64_t step, const char *event, const char *text);
// Notes a file that the run made, with its size and XXH64 as it is now; a second time: as it is now.  ENOENT, EIO:
// it cannot be read.
YOKE_API int yoke_run_artifact(yoke_run *, const char *path);
// The end, with how it came ("done", "failed") and the error, if there was one.  Frees the run and its lock.
YOKE_API void yoke_run_close(yoke_run *, const char *ended, const char *error);

#ifdef __cplusplus
}
#endif

#endif
