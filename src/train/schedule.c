// SPDX-License-Identifier: Apache-2.0
// Schedules of the learning rate.
#include "config.h"

#include "train/schedule.h"

#include <math.h>

double yk_schedule_lr(const struct yk_schedule *s, int64_t t)
{
	if (t < s->warmup)
		return s->peak * (double)t / (double)s->warmup;
	if (s->kind == YK_SCHEDULE_CONSTANT || t == s->warmup)
		return s->peak;
	if (t >= s->steps)
		return s->least;
	double done = (double)(t - s->warmup) / (double)(s->steps - s->warmup);
	return s->least + 0.5 * (s->peak - s->least) * (1 + cos(M_PI * done));
}
