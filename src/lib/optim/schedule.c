// SPDX-License-Identifier: Apache-2.0
// Computes the learning rate of each schedule.
#include "config.h"

#include "optim/schedule.h"

#include <math.h>

const char *const yk_schedule_names[YK_SCHEDULES] = {
	"constant", "cosine", "linear", "step", "exponential", "inverse_sqrt", "onecycle"
};

#define ONECYCLE_START 25.0  // PyTorch's div_factor,
#define ONECYCLE_END 1e4     // final_div_factor
#define ONECYCLE_RISE 0.3    // and pct_start

// Half a cosine from a, at done = 0, to b, at done = 1.
static double half_cosine(double a, double b, double done)
{
	return b + 0.5 * (a - b) * (1 + cos(M_PI * done));
}

// The fraction of its cycle that step k after the peak has completed.
static double of_cycle(const struct yk_lr_schedule *s, double k)
{
	const double first = (double)s->cycle;
	if (s->grow <= 1)
		return fmod(k, first) / first;
	// cycles before number n take first (grow^n - 1) / (grow - 1) steps
	double n = floor(log1p(k / first * (s->grow - 1)) / log(s->grow));
	double length = first * pow(s->grow, n), begin = (length - first) / (s->grow - 1);
	if (k < begin) // rounding made n too large, or too small
		length /= s->grow, begin -= length;
	else if (k >= begin + length)
		begin += length, length *= s->grow;
	return (k - begin) / length;
}

double yk_schedule_lr(const struct yk_lr_schedule *s, int64_t t)
{
	const int64_t begin = s->warmup > 1 ? s->warmup : 1;
	const double k = (double)(t - begin), all = (double)(s->steps - begin);
	if (t < s->warmup && s->kind == YK_SCHEDULE_ONECYCLE)
		return half_cosine(s->peak / ONECYCLE_START, s->peak,
				   (double)(t - 1) / (double)(s->warmup - 1));
	if (t < s->warmup)
		return s->peak * (double)t / (double)s->warmup;
	if (s->kind == YK_SCHEDULE_CONSTANT || t <= begin)
		return s->peak;
	switch (s->kind) {
	case YK_SCHEDULE_STEP: return s->peak * pow(s->factor, floor(k / (double)s->every));
	case YK_SCHEDULE_EXPONENTIAL: return s->peak * pow(s->factor, k);
	case YK_SCHEDULE_INVERSE_SQRT: return s->peak * sqrt((double)begin / (double)t);
	case YK_SCHEDULE_COSINE:
		if (s->cycle > 0)
			return half_cosine(s->peak, s->min, of_cycle(s, k));
		break;
	default: break;
	}
	if (t >= s->steps)
		return s->min;
	if (s->kind == YK_SCHEDULE_LINEAR)
		return s->peak + (s->min - s->peak) * (k / all);
	return half_cosine(s->peak, s->min, k / all); // also for the second half of onecycle
}

int yk_schedule_ends(enum yk_schedule_kind kind)
{
	return kind == YK_SCHEDULE_COSINE || kind == YK_SCHEDULE_LINEAR ||
	       kind == YK_SCHEDULE_ONECYCLE;
}

double yk_schedule_min(enum yk_schedule_kind kind, double peak)
{
	return kind == YK_SCHEDULE_ONECYCLE ? peak / (ONECYCLE_START * ONECYCLE_END) :
	       yk_schedule_ends(kind)       ? peak / 10 :
					      peak;
}

int64_t yk_schedule_warmup(enum yk_schedule_kind kind, int64_t steps)
{
	return kind == YK_SCHEDULE_ONECYCLE ? (int64_t)(ONECYCLE_RISE * (double)steps) : 0;
}
