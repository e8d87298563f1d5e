// SPDX-License-Identifier: Apache-2.0
// Benchmarks of the command: suites of cases, timing, and the limits of a device.
#ifndef YK_BENCH_H
#define YK_BENCH_H

#include "base/json.h"
#include "device/device.h"
#include "yoke.h"

// One case: the operands are created once; each run records, evaluates and synchronizes.
struct yk_bench_case {
	const char *suite, *name;
	// creates the operands; sets flops, bytes and tokens per run
	int (*make)(struct yk_bench_case *);
	int (*run)(struct yk_bench_case *);  // returns when the device has finished
	void (*drop)(struct yk_bench_case *);
	int64_t size[6]; // meaning depends on the suite
	double flops, bytes, tokens; // per run; 0: not counted
	void *state;
	double x;       // x coordinate in plots of its suite; 0: not plotted
	double samples; // per run; 0: not counted
	uint64_t peak;  // peak bytes of the device's pool; measured if the case has samples
	// NULL: always fits; false: the case does not fit, and it and the later cases of its suite
	// are skipped
	bool (*fits)(const struct yk_bench_case *);
	bool accelerator; // skipped on CPUs, where it would take minutes
	uint64_t launches; // per run; 0: not counted
};
extern struct yk_bench_case yk_cases[]; // ends with a NULL suite

// Copies between host and device and within the device (bench_memory.c). size: bytes, index of the
// queue, and whether the host memory is pinned.
int yk_bench_copy_make(struct yk_bench_case *);
int yk_bench_copy_run(struct yk_bench_case *);
void yk_bench_copy_drop(struct yk_bench_case *);
enum yk_bench_copy { YK_COPY_UP, YK_COPY_DOWN, YK_COPY_ON };

// A step of many small launches, bound by the host's overhead (bench_launches.c). size: order of
// its square matrices.
int yk_bench_launches_make(struct yk_bench_case *);
int yk_bench_launches_run(struct yk_bench_case *);
void yk_bench_launches_drop(struct yk_bench_case *);

// Writes an HTML page of the results in JSON (bench_page.c). ratios: ratios of times with their
// targets, or NULL.
int yk_bench_page(const char *path, const json_t *devices, const json_t *ratios,
		  const json_t *results);

// The command `bench ranks` (bench_ranks.c). Returns the exit status.
int yk_bench_ranks(int argc, char **argv);
// The command `bench fit` (bench_fit.c).
int yk_bench_fit(int argc, char **argv);
// The command `bench serve` (bench_serve.c).
int yk_bench_serve(int argc, char **argv);

struct yk_timing {
	double median, spread; // seconds; half the distance between the quartiles
	int samples;
};

// Times run(arg) after two warm-up calls: at least 5 samples and 0.3 s, at most 5 s; quick: 5
// samples.
int yk_bench_time(int (*run)(void *arg), void *arg, bool quick, struct yk_timing *);

// Peak rates of a device in FLOP/s and bytes/s, with a description of how each was measured.
struct yk_bench_limits {
	double flops, copy;
	const char *flops_of, *copy_of;
};
// Measures in the calling thread's context, which must be on that device. quick: tiny sizes; the
// results are meaningless.
int yk_limits_measure(struct yk_device *, bool quick, struct yk_bench_limits *);

#endif
