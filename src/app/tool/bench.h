// SPDX-License-Identifier: Apache-2.0
// Benchmarks inside the command: suites of cases, the clock, and the machine's limits.
#ifndef YK_BENCH_H
#define YK_BENCH_H

#include "base/json.h"
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
	double x;       // its size among those of its suite, for plots; 0: it has none
	double samples; // of one run; 0: not counted
	uint64_t peak;  // bytes of the device's pool, of those with samples; set when it was timed
	bool (*fits)(const struct yk_case *); // NULL: it does; false: this one is left out, and those behind it in its
					      // suite
	bool accelerator; // left out on processors, which would take minutes
	uint64_t launches; // of one run; 0: not counted
};
extern struct yk_case yk_cases[]; // ends with a NULL suite

// Copies between host and device and on it (bench_memory.c).  size: what is copied, bytes; the queue it runs on, and
// whether the host's memory is pinned.
int yk_bench_copy_make(struct yk_case *);
int yk_bench_copy_run(struct yk_case *);
void yk_bench_copy_drop(struct yk_case *);
enum yk_bench_copy { YK_COPY_UP, YK_COPY_DOWN, YK_COPY_ON };

// A step of many small launches (bench_launches.c), whose time is the host's.  size: the side of its matrices.
int yk_bench_launches_make(struct yk_case *);
int yk_bench_launches_run(struct yk_case *);
void yk_bench_launches_drop(struct yk_case *);

// A page of the results, as they are in JSON (bench_page.c).  ratios: of times, beside their targets, or NULL.
int yk_bench_page(const char *path, const json_t *devices, const json_t *ratios, const json_t *results);

// The command `bench ranks` (bench_ranks.c): an exit status.
int yk_bench_ranks(int argc, char **argv);
// The command `bench fit` (bench_fit.c).
int yk_bench_fit(int argc, char **argv);
// MPI's own all_reduce by an mpirun (bench_mpi.c).  n 0: it or its module is not there.
enum { YK_BENCH_SIZES = 16 };
struct yk_bench_peer {
	int n;
	uint64_t bytes[YK_BENCH_SIZES];
	double seconds[YK_BENCH_SIZES];
};
int yk_bench_mpi(const char *name, int ranks, int sizes, const uint64_t *bytes, struct yk_bench_peer *);
// .. as one of the ranks that it starts.
int yk_bench_mpi_rank(int sizes, const uint64_t *bytes);

// The command `bench resolvent` (bench_resolvent.c): an exit status.
int yk_bench_resolvent(int argc, char **argv);

struct yk_timing {
	double median, spread; // seconds; half the distance between the quartiles
	int samples;
};

// Times run(arg) after two calls for warming up: 5 samples and 0.3 s or more, 5 s at
// most; quick: 5 samples.
int yk_bench_time(int (*run)(void *arg), void *arg, bool quick, struct yk_timing *);

// What a device reaches at most, in FLOP/s and bytes a second, and what that is a measure of.
struct yk_bench_limits {
	double flops, copy;
	const char *flops_of, *copy_of;
};
// By the calling thread's context, which is on that device.  quick: of tiny sizes, which say nothing.
int yk_limits_measure(struct yk_device *, bool quick, struct yk_bench_limits *);

#endif
