// SPDX-License-Identifier: Apache-2.0
// Building blocks of the rules that find problems of a run: findings, their evidence, and advice
// that names only changes the run has not already made.
#ifndef YK_FINDING_H
#define YK_FINDING_H

#include "runs/read.h"

enum { YK_FOUND_QUARTER = 4 }; // min number of values for a median or a mean

// Collects the findings of a run.
struct yk_found {
	json_t *list;
	const struct yk_view *v;
	const struct yk_view_table *train; // NULL: no such records
	size_t first; // first row of `train` after the first tenth of the steps
	double wall;  // seconds from that row to the last; NaN: unknown
};

// A list of changes, joined by ", or ". Initialize it with zeros.
struct yk_advice {
	char text[600];
};

// Appends a change, unless `applies` is false: the run already does it, or cannot do it.
__attribute__((format(printf, 3, 4))) void yk_advise(struct yk_advice *, bool applies,
						     const char *fmt, ...);
json_t *yk_advice_text(const struct yk_advice *);

__attribute__((format(printf, 1, 2))) json_t *yk_finding_text(const char *fmt, ...);
// Lines from .. to of a file, 0: the file as a whole. Takes the text.
json_t *yk_evidence(const char *file, uint32_t from, uint32_t to, json_t *text);
json_t *yk_evidence_train(const struct yk_found *,
			  json_t *text);  // the lines of training after `first`
json_t *yk_evidence_report(json_t *text); // the report at the end of the run

// Adds a finding and returns its list of evidence. gain: max speedup; 1 or less: none. Takes the
// texts.
json_t *yk_find(struct yk_found *, const char *condition, json_t *what, json_t *change,
		const char *needs, double gain);
bool yk_found_any(const struct yk_found *, const char *condition); // NULL: of any condition

// The run's value of a key, "n/a": not recorded; whether it has that value.
const char *yk_found_key(const struct yk_view *, const char *key);
bool yk_found_is(const struct yk_view *, const char *key, const char *value);
bool yk_found_set(const struct yk_view *,
		  const char *setting); // a YOKE_ setting other than the default
bool yk_found_on_cpu(const struct yk_view *);
double yk_found_report(const struct yk_view *,
		       const char *key); // a number of the report; NaN: none
// Seconds of a phase in the report, summed over devices. *timed: false if a device was not timed.
double yk_found_phase(const struct yk_view *, const char *name, bool *timed);
uint32_t yk_found_line(const struct yk_view_table *, size_t row);
double yk_found_gain(double share); // speedup if that share of the time took none; 0: unknown
int yk_found_by_value(const void *, const void *); // compares doubles, for qsort

// The rules, by what they look at.
void yk_find_end(struct yk_found *);   // how the run ended: killed, memory, launch, failed
void yk_find_speed(struct yk_found *); // slow, low use
// The step of the checkpoint in the run's folder from which resume=1 continues; -1: none.
int64_t yk_found_checkpoint(const struct yk_view *);

#endif
