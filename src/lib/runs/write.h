// SPDX-License-Identifier: Apache-2.0
// Writes the files of a run, which yoke-run.h describes: one process appends whole lines while
// others read.
#ifndef YK_RUNS_WRITE_H
#define YK_RUNS_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "yoke-run.h"

#define YK_RUNS_FORMAT 1

struct yk_runs_options {
	const char *device, *driver; // NULL: ""
	const json_t *config;        // an object; NULL: {}
	uint64_t data;               // fingerprint; 0: unknown
	int64_t step;
	bool tensorboard;
	bool locked; // the caller holds the folder's lock, and keeps it
};

// Opens or creates the files.  NULL: out of memory, or, unless `locked`, EBUSY.
yoke_run *yk_runs_open(const char *folder, const struct yk_runs_options *);
// Appends a line to metrics.jsonl and takes ownership of the object (NULL: allocation failed);
// `digits` is the precision of its numbers.  stage and time are added at the end.
void yk_runs_line(yoke_run *, const char *stage, int digits, json_t *line);
void yk_runs_event(yoke_run *, int64_t step, const char *event, const char *text);
// Sets a member of run.json and rewrites the file; takes ownership of the value.
void yk_runs_set(yoke_run *, const char *key, json_t *value);
// Removes the lines of metrics.jsonl after `step`, because these steps are run again.
void yk_runs_truncate(yoke_run *, int64_t step);

#endif
