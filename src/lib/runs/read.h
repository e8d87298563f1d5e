// SPDX-License-Identifier: Apache-2.0
// The files of a run, read while others may write them.  They are hostile: what is no line of ours is counted and
// passed over, and bounds hold for everything that is kept.
#ifndef YK_RUNS_READ_H
#define YK_RUNS_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

enum {
	YK_VIEW_CHUNK = 4096, // rows
	YK_VIEW_COLUMNS = 64, // of a table
	YK_VIEW_TABLES = 16,
	YK_VIEW_NAME = 96,    // bytes
	YK_VIEW_EVENTS = 4096 // kept, the last ones
};

struct yk_view_column {
	char name[YK_VIEW_NAME];
	uint64_t count; // of numbers
	double first, last, least, greatest;
	int64_t min_step;
};

// The lines of a stage: "train", "valid", "memory", "telemetry" (of rank 0), "telemetry.1", ..
struct yk_view_table {
	char stage[YK_VIEW_NAME];
	size_t rows, chunks;
	int columns;
	struct yk_view_column column[YK_VIEW_COLUMNS];
	struct yk_view_chunk {
		int64_t step[YK_VIEW_CHUNK];
		double time[YK_VIEW_CHUNK]; // since 1970; NaN: not known
		uint32_t line[YK_VIEW_CHUNK]; // of its file, from 1
		void *value[YK_VIEW_COLUMNS]; // float or double; NULL: no number of this column
	} **chunk;
};

struct yk_view_event {
	double time;
	int64_t step;
	char *event, *text;
};

// LOST: it did not end, and nobody holds its lock.  UNKNOWN: there is no run.json.
enum yk_view_state { YK_VIEW_UNKNOWN, YK_VIEW_LIVE, YK_VIEW_ENDED, YK_VIEW_LOST };

struct yk_view_file;
struct yk_view {
	char *folder, *name; // name: the last part of it, or more where asked for
	bool exact;          // numbers are kept as double; else as float
	enum yk_view_state state;
	json_t *about;       // run.json, or NULL
	json_t *kernels;     // kernels.json, or NULL
	json_t *report;      // of the last line that has one, or NULL
	int tables;
	struct yk_view_table *table[YK_VIEW_TABLES];
	size_t events;
	struct yk_view_event *event;
	uint64_t lines, foreign; // read so far; of those passed over
	uint32_t generation;     // another when something was read anew
	int files;
	struct yk_view_file *file;
};

// ENOENT: no folder, or none with a run.json or a metrics.jsonl.
int yk_view_open(const char *folder, bool exact, struct yk_view **);
void yk_view_close(struct yk_view *); // NULL is fine
// Runs whose folders have the same name are told apart by more of their paths.
void yk_view_names(int n, struct yk_view *const *);
// Takes in what was written since; how many lines.  ENOMEM.
int64_t yk_view_poll(struct yk_view *);

const struct yk_view_table *yk_view_table(const struct yk_view *, const char *stage); // NULL: none
int yk_view_column(const struct yk_view_table *, const char *name);                   // -1: none; NULL is fine
double yk_view_value(const struct yk_view *, const struct yk_view_table *, int column, size_t row); // NaN: none
int64_t yk_view_step(const struct yk_view_table *, size_t row);
double yk_view_time(const struct yk_view_table *, size_t row);
uint32_t yk_view_line(const struct yk_view_table *, size_t row);
// A member of run.json as text, "" where there is none.
const char *yk_view_about(const struct yk_view *, const char *key);
const char *yk_view_state_name(enum yk_view_state);

// What a curve shows: of each of `points` / 2 parts of the range of x the least and the greatest number, in their
// order.  All where there are no more.
enum yk_view_axis { YK_VIEW_BY_STEP, YK_VIEW_BY_SECONDS }; // since the first line
size_t yk_view_series(const struct yk_view *, const struct yk_view_table *, int column, enum yk_view_axis,
		      double from, double to, size_t points, double *x, double *y);

// How far each file was read: "0:1234,1:99"; and back, 0 or -1.
void yk_view_position(const struct yk_view *, char *to, size_t cap);

// Lines that were read are given to this function as they are, without their newline, by name of their file.
typedef void yk_view_line_fn(void *arg, const char *file, const char *line, size_t bytes);
void yk_view_listen(struct yk_view *, yk_view_line_fn *, void *arg);

#endif
