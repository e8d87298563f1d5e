// SPDX-License-Identifier: Apache-2.0
// The summary of runs that `yoke report` prints. All its formats are written from this one object,
// so that their numbers agree: integers are exact, other numbers have six significant digits.
//
//   { format, yoke,
//     runs: [ { name, folder, state, how, error, host, device, driver, version, started, seconds,
//               step, steps, parameters, foreign_lines, settings {}, config {},
//               numbers: [ { stage, name, count, first, last, least, greatest, min_step } ],
//               phases: [ { device, phase, seconds, share, intervals, bytes, flops, bytes_per_s,
//                           flops_per_s } ],
//               bounds: [ { phase, at_best } ], counts {},
//               kernels: [ { op, implementation, device, scope, calls, seconds, share, bytes,
//                            bytes_per_s, flops, flops_per_s, intensity } ], limits [],
//               events: [ { time, step, event, text } ] } ],
//     differences: [ { key, values [] } ],             for several runs: keys whose values differ
//     ratios: [ { quantity, values [], ratios [] } ],  relative to the first run
//     plots: [ { name, title, x, y, unit, dashes [], curves: [ { name, color, dash, legend, x [], y [] } ] } ] }
//
// An unknown value is null, or its key is missing.
#ifndef YK_SUMMARY_H
#define YK_SUMMARY_H

#include "report/plots.h"

json_t *yk_summary_make(int n, struct yk_view *const *); // NULL: out of memory
// Formats a number of the summary, equally for all formats; "n/a" for other values.
const char *yk_summary_number(const json_t *, char to[32]);
// Rounds to six digits, like all numbers of the summary; null if not finite.
json_t *yk_summary_real(double);

int yk_summary_html(FILE *, const json_t *);
void yk_summary_markdown(FILE *, const json_t *);
void yk_summary_csv(FILE *, const json_t *);

#endif
