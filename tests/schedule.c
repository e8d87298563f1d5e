// SPDX-License-Identifier: Apache-2.0
// Tests learning-rate schedules against their definitions: warm-up, each kind, and edge cases.
#include "config.h"

#include "optim/schedule.h"
#include "tap.h"

static void is(const struct yk_lr_schedule *s, int64_t t, double want)
{
	double got = yk_schedule_lr(s, t);
	char what[96];

	snprintf(what, sizeof what, "%s, warmup %lld of %lld, step %lld",
		 yk_schedule_names[s->kind], (long long)s->warmup, (long long)s->steps,
		 (long long)t);
	near(&got, &want, 1, 1e-13, fabs(want), what);
}

static void cosine(void)
{
	struct yk_lr_schedule s = {
		.kind = YK_SCHEDULE_COSINE, .peak = 0.5, .min = 0.05, .warmup = 10, .steps = 110
	};

	is(&s, 1, 0.05);
	is(&s, 9, 0.45);
	is(&s, 10, 0.5);
	is(&s, 60, 0.275); // half way
	is(&s, 35, 0.05 + 0.225 * (1 + sqrt(0.5)));
	is(&s, 85, 0.05 + 0.225 * (1 - sqrt(0.5)));
	is(&s, 110, 0.05);
	is(&s, 1000000000000, 0.05);
	bool falls = true;
	for (int64_t t = 10; t < 110; t++)
		falls = falls && yk_schedule_lr(&s, t + 1) < yk_schedule_lr(&s, t);
	ok(falls, "a cosine decreases at every step");

	s.kind = YK_SCHEDULE_CONSTANT;
	is(&s, 5, 0.25);
	is(&s, 10, 0.5);
	is(&s, 500, 0.5);

	s = (struct yk_lr_schedule){
		.kind = YK_SCHEDULE_COSINE, .peak = 1, .min = 0.1, .steps = 2
	};
	is(&s, 1, 1); // also without a warm-up the first step has the full rate
	is(&s, 2, 0.1);
	s.steps = 3;
	is(&s, 1, 1);
	is(&s, 2, 0.55);
	is(&s, 3, 0.1);
	s.steps = 1;
	is(&s, 1, 1);
	is(&s, 2, 0.1);
	s.warmup = 100, s.steps = 10; // ends while it rises
	is(&s, 10, 0.1);
	is(&s, 11, 0.11);
}

// Restarts, counted out step by step.
static void cycles(double grow)
{
	struct yk_lr_schedule s = { .kind = YK_SCHEDULE_COSINE,
				    .peak = 2,
				    .min = 0.5,
				    .warmup = 4,
				    .steps = 40,
				    .cycle = 7,
				    .grow = grow };
	double begin = 4, length = 7, worst = 0;
	for (int64_t t = 4; t < 2000; t++) {
		while ((double)t >= begin + length * (1 - 1e-12)) {
			begin += length;
			length *= grow;
		}
		double want = 0.5 + 0.75 * (1 + cos(M_PI * fmax((double)t - begin, 0) / length));
		worst = fmax(worst, fabs(yk_schedule_lr(&s, t) - want));
	}
	ok(worst < 1e-9, "cosine with restarts, each %g times as long: error %.2g", grow, worst);
	is(&s, 11, 2); // the first restart
}

// Each kind at points where its definition is simple; the rest by the formula.
static void others(void)
{
	static const int64_t warmups[] = { 0, 1, 20 };
	for (int k = 0; k < 3; k++) {
		const int64_t w = warmups[k], b = w > 1 ? w : 1;
		struct yk_lr_schedule s = { .peak = 0.8,
					    .min = 0.2,
					    .warmup = w,
					    .steps = 100,
					    .factor = 0.5,
					    .every = 10,
					    .grow = 1 };
		for (int kind = YK_SCHEDULE_LINEAR; kind < YK_SCHEDULES; kind++) {
			s.kind = (enum yk_schedule_kind)kind;
			is(&s, b, 0.8);
			if (w > 1 && kind != YK_SCHEDULE_ONECYCLE)
				is(&s, 5, 0.2);
		}
		for (int64_t t = b + 1; t <= 130; t += 3) {
			double x = fmin((double)(t - b) / (double)(100 - b), 1);
			s.kind = YK_SCHEDULE_LINEAR;
			is(&s, t, 0.8 - 0.6 * x);
			s.kind = YK_SCHEDULE_STEP;
			is(&s, t, 0.8 * pow(0.5, (double)((t - b) / 10)));
			s.kind = YK_SCHEDULE_EXPONENTIAL;
			is(&s, t, 0.8 * pow(0.5, (double)(t - b)));
			s.kind = YK_SCHEDULE_INVERSE_SQRT;
			is(&s, t, 0.8 * sqrt((double)b) / sqrt((double)t));
			s.kind = YK_SCHEDULE_ONECYCLE;
			is(&s, t, 0.2 + 0.3 * (1 + cos(M_PI * x)));
		}
	}
	struct yk_lr_schedule s = {
		.kind = YK_SCHEDULE_ONECYCLE, .peak = 1, .min = 4e-6, .warmup = 31, .steps = 100
	};
	is(&s, 1, 0.04);
	is(&s, 16, 0.52);
	is(&s, 31, 1);
	is(&s, 100, 4e-6);
	ok(yk_schedule_warmup(YK_SCHEDULE_ONECYCLE, 100) == 30 &&
		   yk_schedule_min(YK_SCHEDULE_ONECYCLE, 1) == 4e-6 &&
		   yk_schedule_min(YK_SCHEDULE_COSINE, 3) == 3 / 10.0,
	   "invalid settings are refused");
}

int main(void)
{
	cosine();
	cycles(1);
	cycles(2);
	cycles(1.5);
	others();
	return done();
}
