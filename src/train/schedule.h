// SPDX-License-Identifier: Apache-2.0
// Schedules: the learning rate as a function of the step alone, in double precision.
#ifndef YK_SCHEDULE_H
#define YK_SCHEDULE_H

#include <stdint.h>

enum yk_schedule_kind { YK_SCHEDULE_CONSTANT, YK_SCHEDULE_COSINE };

struct yk_schedule {
	enum yk_schedule_kind kind;
	double peak, least;    // learning rate behind warm-up, at the end of a cosine
	int64_t warmup, steps; // steps of linear rise; steps in all
};

// Of step t = 1, 2, ..: peak t/warmup up to t = warmup; behind it the peak, or half a
// cosine from the peak to `least` at t = steps (Loshchilov and Hutter 2017, without
// restarts), and `least` after that.
double yk_schedule_lr(const struct yk_schedule *, int64_t t);

#endif
