// SPDX-License-Identifier: Apache-2.0
// What is wrong with a run, by its records alone, past the first tenth of its steps.
//
//   memory        ended by ENOMEM, allocations tried again, killed for memory, or near its limit without an end
//   slow          waiting for data, idle, transfers, saving, plans made anew, fallbacks, slower and slower, throttled
//   leak          memory that grows all along (Theil 1950, Sen 1968; Mann 1945, Kendall 1938)
//   low use       the device computes less than half of the time
//   inconsistent  of two runs: all equal, and a loss that differs in a bit
//   launch        ended by a device that failed
//   hang          it lives, and writes no more
#ifndef YK_CONDITIONS_H
#define YK_CONDITIONS_H

#include "runs/read.h"

// [ { condition, run, what, evidence: [ { file, from, to, text } ], change, needs, gain } ]: from and to are lines;
// gain: so many times as fast at best, null where it is none of speed.  other: NULL, or the second run.  now: seconds
// since 1970.  The views are exact.  NULL: no memory.
json_t *yk_conditions(struct yk_view *, struct yk_view *other, double now);
// What was looked at and how: "memory", ..; ends with NULL.
extern const char *const yk_condition_names[];

// Theil and Sen's slope of y over x, the median of those of all pairs; z: Mann and Kendall's, ties counted.
double yk_trend(int n, const double *x, const double *y, double *z);

#endif
