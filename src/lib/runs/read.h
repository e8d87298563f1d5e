// SPDX-License-Identifier: Apache-2.0
// Reads the files of a run, even while it writes them.  The files are untrusted: lines that yoke
// did not write are counted and skipped, and all stored data is bounded.
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
	YK_VIEW_EVENTS = 4096 // the last ones are kept
};

struct yk_view_column {
	char name[YK_VIEW_NAME];
	uint64_t count; // of non-null values
	double first, last, min, max;
	int64_t min_step;
};

// The lines of one stage: "train", "valid", "memory", "telemetry" (of rank 0), "telemetry.1" and so
// on.
struct yk_view_table {
	char stage[YK_VIEW_NAME];
	size_t rows, chunks;
	int columns;
	struct yk_view_column column[YK_VIEW_COLUMNS];
	struct yk_view_chunk {
		int64_t step[YK_VIEW_CHUNK];
		double time[YK_VIEW_CHUNK]; // since 1970; NaN: unknown
		uint32_t line[YK_VIEW_CHUNK]; // number in its file, from 1
		void *value[YK_VIEW_COLUMNS]; // float or double; NULL: the chunk has no values of
					      // this column
	} **chunk;
};

struct yk_view_event {
	double time;
	int64_t step;
	char *event, *text;
};

// LOST: it did not end, but no process holds its lock.  UNKNOWN: there is no run.json.
enum yk_view_state { YK_VIEW_UNKNOWN, YK_VIEW_LIVE, YK_VIEW_ENDED, YK_VIEW_LOST };

struct yk_view_file;
struct yk_view {
	char *folder, *name; // name: last component of the path, or more to make it unique
	bool exact;          // values are stored as double; else as float
	enum yk_view_state state;
	json_t *about;       // run.json, or NULL
	json_t *kernels;     // kernels.json, or NULL
	json_t *report;      // of the last line with a report, or NULL
	int tables;
	struct yk_view_table *table[YK_VIEW_TABLES];
	size_t events;
	struct yk_view_event *event;
	uint64_t lines, foreign; // lines read; how many of them were skipped
	uint32_t generation;     // changes when a file is read again from the beginning
	int files;
	struct yk_view_file *file;
};

bool yk_view_is_run(const char *folder); // has it a run.json or a metrics.jsonl?
// ENOENT: no folder, or none with a run.json or a metrics.jsonl.
int yk_view_open(const char *folder, bool exact, struct yk_view **);
void yk_view_close(struct yk_view *); // NULL is allowed
// Extends the names of runs whose folders have the same name by more of their paths.
void yk_view_names(int n, struct yk_view *const *);
// Reads lines written since the last call; returns their number.  ENOMEM.
int64_t yk_view_poll(struct yk_view *);

const struct yk_view_table *yk_view_table(const struct yk_view *, const char *stage); // NULL: none
// -1: none; the table may be NULL
int yk_view_column(const struct yk_view_table *, const char *name);
double yk_view_value(const struct yk_view *, const struct yk_view_table *, int column, size_t row);
double yk_view_last(const struct yk_view *, const char *stage, const char *column); // NaN: none
int64_t yk_view_step(const struct yk_view_table *, size_t row);
int64_t yk_view_last_step(const struct yk_view *); // of stage "train"; 0: none
double yk_view_time(const struct yk_view_table *, size_t row);
uint32_t yk_view_line(const struct yk_view_table *, size_t row);
// A member of run.json as text, "" if there is none.
const char *yk_view_field(const struct yk_view *, const char *key);
const char *yk_view_state_name(enum yk_view_state);

// Data of a curve, downsampled: the minimum and maximum of each of `points` / 2 intervals of the x
// range, in row order.  Returns all values if there are no more than `points`.
enum yk_view_axis { YK_VIEW_BY_STEP, YK_VIEW_BY_SECONDS }; // since the first line
struct yk_view_range {
	enum yk_view_axis axis;
	double from, to; // of x
	size_t points;
	// 0 .. 1: weight of the previous value in a running mean. The mean starts at the first row,
	// whatever `from` is, so that a part of a curve looks like the whole curve there.
	double smooth;
};
size_t yk_view_series(const struct yk_view *, const struct yk_view_table *, int column,
		      const struct yk_view_range *, double *x, double *y);

// Formats the byte offset up to which each file was read, comma-separated: "1234,99".
void yk_view_position(const struct yk_view *, char *to, size_t cap);

// Sets a function that receives each line as read, without its newline, and the name of its file.
typedef void yk_view_line_fn(void *arg, const char *file, const char *line, size_t bytes);
void yk_view_listen(struct yk_view *, yk_view_line_fn *, void *arg);

#endif
