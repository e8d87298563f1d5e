// SPDX-License-Identifier: Apache-2.0
// Statistics over the times of a benchmark's rounds.
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static inline int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

enum { MAX_ROUNDS = 999 };

// Median of n numbers, at most MAX_ROUNDS; for an even n, the mean of the two middle ones.
static inline double median(const double *from, int n)
{
	double v[MAX_ROUNDS];

	memcpy(v, from, (size_t)n * sizeof *v);
	qsort(v, (size_t)n, sizeof *v, by_value);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}
#endif
