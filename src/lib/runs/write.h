// SPDX-License-Identifier: Apache-2.0
// The files of a run, as yoke-run.h says: written by one process, whole lines, while others read them.
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
	uint64_t data;               // fingerprint; 0: not known
	int64_t step;
	bool tensorboard;
	bool locked; // the caller holds the folder's lock, and keeps it
};

// Opens or makes them.  NULL: no memory, or, where it is not locked, EBUSY.
yoke_run *yk_runs_open(const char *folder, const struct yk_runs_options *);
// A line of metrics.jsonl, which takes the object over (NULL: one that there was no memory for), with so many digits of
// its numbers; stage and time stand behind what is in it.
void yk_runs_line(yoke_run *, const char *stage, int digits, json_t *line);
void yk_runs_event(yoke_run *, int64_t step, const char *event, const char *text);
// A member of run.json, set anew; takes the value over.
void yk_runs_set(yoke_run *, const char *key, json_t *value);
// Lines of metrics.jsonl of later steps are cut off: they are done again.
void yk_runs_cut(yoke_run *, int64_t step);

// Seconds since 1970.
double yk_runs_time(void);

#endif
