// SPDX-License-Identifier: Apache-2.0
// Schedules: the learning rate as a function of the step only, in double precision.
#ifndef YK_OPTIM_SCHEDULE_H
#define YK_OPTIM_SCHEDULE_H

#include <stdint.h>

enum yk_schedule_kind {
	YK_SCHEDULE_CONSTANT, YK_SCHEDULE_COSINE, YK_SCHEDULE_LINEAR, YK_SCHEDULE_STEP,
	YK_SCHEDULE_EXPONENTIAL, YK_SCHEDULE_INVERSE_SQRT, YK_SCHEDULE_ONECYCLE,
	YK_SCHEDULES
};
extern const char *const yk_schedule_names[YK_SCHEDULES];

struct yk_lr_schedule {
	enum yk_schedule_kind kind;
	double peak, min;    // learning rate after warm-up, and the final one of kinds that have
			       // one
	int64_t warmup, steps; // steps of warm-up; total steps
	double factor, grow;   // STEP, EXPONENTIAL: decay factor; COSINE: ratio of successive cycle
			       // lengths
	int64_t every, cycle;  // STEP: steps between decays; COSINE: steps of the first cycle, 0: a
			       // single cycle
};

// The rate of step t = 1, 2, ..: peak t/warmup up to t = warmup; after it, with k = t - max(warmup,
// 1):
//   constant      the peak
//   cosine        half a cosine from the peak to `min` at t = steps (Loshchilov and Hutter 2017),
//                 then `min`; with cycles, one after the other, each starting at the peak
//   linear        a line to `min` at t = steps
//   step          peak factor^floor(k/every)
//   exponential   peak factor^k
//   inverse_sqrt  peak sqrt(max(warmup, 1)/t) (Vaswani et al. 2017)
//   onecycle      half a cosine from peak/25 up to the peak at t = warmup, then half a cosine down
//                 to `min` at t = steps (Smith and Topin 2018)
double yk_schedule_lr(const struct yk_lr_schedule *, int64_t t);
// Does the kind depend on `steps`?
int yk_schedule_ends(enum yk_schedule_kind);
// Defaults of `min` and, for onecycle, of `warmup`.
double yk_schedule_min(enum yk_schedule_kind, double peak);
int64_t yk_schedule_warmup(enum yk_schedule_kind, int64_t steps);

#endif
