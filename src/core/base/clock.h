// SPDX-License-Identifier: Apache-2.0
// The monotonic clock, for measuring durations: it never goes back; its origin is arbitrary.  And
// the wall clock, for dates.
#ifndef YK_CLOCK_H
#define YK_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t yk_nanoseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The same, up to 10 ms late, at a tenth of the cost.
static inline uint64_t yk_nanoseconds_about(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double yk_seconds(void)
{
	return 1e-9 * (double)yk_nanoseconds();
}

// Wall clock: seconds since 1970, UTC.
static inline double yk_unix_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
