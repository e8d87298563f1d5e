// SPDX-License-Identifier: Apache-2.0
// Problems of a run, found by rules from its records alone. The first tenth of its steps is
// ignored.
//
//   killed        no longer running, without an end in its records
//   failed        ended by an error for which no other condition is found
//   memory        ended by ENOMEM, allocations retried, killed for lack of memory, or a run without
//                 an end that came close to its limit
//   slow          waits for data, idle, transfers, saving, repeated planning, fallbacks, slowing
//                 down, throttled, processors that other programs used
//   leak          memory that grows steadily (Theil 1950, Sen 1968; Mann 1945, Kendall 1938)
//   loss          not finite, growing, or overfitted
//   low use       the device computes less than half of the time
//   inconsistent  two runs with equal settings whose losses differ in at least one bit
//   launch        ended by a device failure
//   hang          the process is alive but no longer writes
#ifndef YK_CONDITIONS_H
#define YK_CONDITIONS_H

#include "runs/read.h"

// Returns [ { condition, run, what, evidence: [ { file, from, to, text } ], change, needs, gain }
// ]. from and to are line numbers; gain is the largest possible speed-up, null if the condition
// does not affect speed. other: NULL, or the second run. now: seconds since 1970. The views must be
// exact. NULL: out of memory.
json_t *yk_conditions(struct yk_view *, struct yk_view *other, double now);
// Names of all conditions ("memory", "slow" etc.), terminated by NULL.
extern const char *const yk_condition_names[];

// Theil-Sen slope of y over x: the median of the slopes of all pairs. z: Mann-Kendall statistic,
// corrected for ties.
double yk_trend(int n, const double *x, const double *y, double *z);

#endif
