// SPDX-License-Identifier: Apache-2.0
// Timing for the benchmarks: warm-up, samples, median and spread.
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tool/bench.h"

enum { MAX_SAMPLES = 1000 };

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

int yk_bench_time(int (*run)(void *arg), void *arg, bool quick, struct yk_timing *to)
{
	double sample[MAX_SAMPLES], start = 0;
	int n = -2; // the first two calls plan, compile and touch memory

	for (;;) {
		double t = yk_seconds();
		int e = run(arg);
		if (e < 0)
			return e;
		t = yk_seconds() - t;
		if (n == 0)
			start = yk_seconds() - t;
		if (n >= 0)
			sample[n] = t;
		n++;
		if (n <= 0)
			continue;
		double all = yk_seconds() - start;
		if (n == MAX_SAMPLES || (n >= 5 && (quick || all > 0.3)) || all > 5)
			break;
	}
	qsort(sample, (size_t)n, sizeof *sample, by_value);
	to->median = sample[n / 2];
	to->spread = (sample[n * 3 / 4] - sample[n / 4]) / 2;
	to->samples = n;
	return 0;
}
