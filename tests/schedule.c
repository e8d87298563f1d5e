// SPDX-License-Identifier: Apache-2.0
// Schedules of the learning rate: warm-up, cosine, constant, and their edges.
#include "config.h"

#include "tap.h"
#include "optim/schedule.h"

static void is(const struct yk_schedule *s, int64_t t, double want)
{
	double got = yk_schedule_lr(s, t);
	char what[64];

	snprintf(what, sizeof what, "warmup %lld of %lld, step %lld", (long long)s->warmup,
		 (long long)s->steps, (long long)t);
	near(&got, &want, 1, 1e-15, fabs(want), what);
}

int main(void)
{
	struct yk_schedule s = { YK_SCHEDULE_COSINE, 0.5, 0.05, 10, 110 };

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
	ok(falls, "a cosine falls at every step");

	s.kind = YK_SCHEDULE_CONSTANT;
	is(&s, 5, 0.25);
	is(&s, 10, 0.5);
	is(&s, 500, 0.5);

	s = (struct yk_schedule){ YK_SCHEDULE_COSINE, 1, 0.1, 0, 2 };
	is(&s, 1, 0.55);
	is(&s, 2, 0.1);
	s.steps = 1;
	is(&s, 1, 0.1);
	s = (struct yk_schedule){ YK_SCHEDULE_COSINE, 1, 0.1, 100, 10 }; // ends while it rises
	is(&s, 10, 0.1);
	is(&s, 11, 0.11);
	return done();
}
