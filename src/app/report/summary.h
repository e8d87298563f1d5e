// SPDX-License-Identifier: Apache-2.0
// The summary of runs that `yoke report` prints. All its formats are written from this one object,
// so that their numbers agree: integers are exact, other numbers have six significant digits.
//
//   { format, yoke,
//     runs: [ { name, folder, state, how, error, host, device, driver, version, started, seconds,
//               step, steps, parameters, foreign_lines, settings {}, config {},
//               summary { state, what, verdict, healthy, figures: [ { label, text, note } ] },
//               findings: [ see conditions.h ], changed: [ { key, value, default } ],
//               numbers: [ { stage, name, count, first, last, least, greatest, min_step } ],
//               phases: [ { device, phase, seconds, share, intervals, bytes, flops, bytes_per_s,
//                           flops_per_s } ],
//               bounds: [ { phase, at_best } ], counts {},
//               kernels: [ { op, implementation, device, scope, calls, seconds, share, bytes,
//                            bytes_per_s, flops, flops_per_s, intensity } ], limits [],
//               events: [ { time, step, event, text } ] } ],
//     differences: [ { key, values [] } ],             for several runs: keys whose values differ
//     ratios: [ { quantity, column, values [], ratios [] } ],  relative to the first run
//     plots: [ { name, title, x, y, unit, dashes [],
//                curves: [ { name, color, dash, legend, x [], y [] } ] } ] }
//
// An unknown value is null, or its key is missing.
#ifndef YK_SUMMARY_H
#define YK_SUMMARY_H

#include "report/plots.h"
#include "report/quantity.h"

json_t *yk_summary_make(int n, struct yk_view *const *); // NULL: out of memory

int yk_summary_html(FILE *, const json_t *);
void yk_summary_markdown(FILE *, const json_t *);
void yk_summary_csv(FILE *, const json_t *);

#endif
