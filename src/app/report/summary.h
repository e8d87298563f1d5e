// SPDX-License-Identifier: Apache-2.0
// What `yoke report` says of runs, as one object out of which all of its forms are written, so that their numbers
// are the same: whole numbers as they are, others of six digits.
//
//   { format, yoke,
//     runs: [ { name, folder, state, how, error, host, device, driver, version, started, seconds, step, steps,
//               parameters, foreign_lines, settings {}, config {},
//               numbers: [ { stage, name, count, first, last, least, greatest, min_step } ],
//               phases: [ { device, phase, seconds, share, pieces, bytes, flops, bytes_per_s, flops_per_s } ],
//               bounds: [ { phase, at_best } ], counts {}, kernels: [ { op, implementation, device, scope, calls,
//               seconds, share, bytes, bytes_per_s, flops, flops_per_s, intensity } ], limits [],
//               events: [ { time, step, event, text } ] } ],
//     differences: [ { key, values [] } ],        of several runs: keys whose values differ
//     ratios: [ { quantity, values [], ratios [] } ]   to the first
//     plots: [ { name, title, x, y, log, curves: [ { name, x [], y [] } ] } ] }
//
// What is not known is null, or not there.
#ifndef YK_SUMMARY_H
#define YK_SUMMARY_H

#include "report/plots.h"

json_t *yk_summary_make(int n, struct yk_view *const *); // NULL: no memory
// A number of it as text, the same in every form; "n/a" for what is none.
const char *yk_summary_number(const json_t *, char to[32]);
// To six digits, as all of them are; null for what is not finite.
json_t *yk_summary_real(double);

int yk_summary_html(FILE *, const json_t *);
void yk_summary_markdown(FILE *, const json_t *);
void yk_summary_csv(FILE *, const json_t *);

#endif
