// SPDX-License-Identifier: Apache-2.0
// How long a run has taken and will take, from its records.
#ifndef YK_PACE_H
#define YK_PACE_H

#include "runs/read.h"

// Seconds since the run's last start: until `now` (since 1970) while it runs, otherwise until its
// end or its last record. NaN: unknown.
double yk_pace_elapsed(const struct yk_view *, double now);
// Seconds from `now` until the last step of a running training, at the mean rate of its steps since
// the last start. NaN: unknown.
double yk_pace_remaining(const struct yk_view *, double now);
// Time of the newest record of any kind, since 1970; NaN: there is none.
double yk_pace_newest(const struct yk_view *);

#endif
