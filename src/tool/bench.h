// SPDX-License-Identifier: Apache-2.0
// Benchmarks inside the command: suites of cases, the clock, and the machine's limits.
#ifndef YK_BENCH_H
#define YK_BENCH_H

#include "device/device.h"
#include "yoke.h"

// One case: operands are made once, then each run is recorded, evaluated and waited for.
struct yk_case {
	const char *suite, *name;
	int (*make)(struct yk_case *); // sets flops, bytes and tokens of one run
	int (*run)(struct yk_case *);  // up to the end of the work
	void (*drop)(struct yk_case *);
	int64_t size[6]; // what the suite understands
	double flops, bytes, tokens; // of one run; 0: not counted
	void *state;
};
extern struct yk_case yk_cases[]; // ends with a NULL suite

struct yk_timing {
	double median, spread; // seconds; half the distance between the quartiles
	int samples;
};

// Times run(arg) after two calls for warming up: 5 samples and 0.3 s or more, 5 s at
// most.
int yk_bench_time(int (*run)(void *arg), void *arg, struct yk_timing *);

// What a device reaches at most, in FLOP/s and bytes a second, and what that is a measure of.
struct yk_bench_limits {
	double flops, copy;
	const char *flops_of, *copy_of;
};
// By the calling thread's context, which is on that device.
int yk_limits_measure(struct yk_device *, struct yk_bench_limits *);

#endif
