// SPDX-License-Identifier: Apache-2.0
// The report of a profile: where the wall time went, how much data moved, and an upper bound on
// possible gains.  The rows in seconds and `idle` add up to `wall`.
#ifndef YK_REPORT_H
#define YK_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "observe/misaligned.h"
#include "yoke-data.h"

enum yk_busy {
	YK_BUSY_CONTRACT,  // matrix products, with the maps fused into them
	YK_BUSY_ATTENTION, // forward and backward: products and softmax fused
	YK_BUSY_OTHER,     // every other kernel
	YK_BUSY_TRANSFER,  // copies between host and device, both ways, including fallbacks'
	YK_BUSY_WAIT,      // the host waits for a device whose steps are not timed
	YK_BUSY_PLAN,      // the host is planning
	YK_BUSY_KINDS
};

struct yk_busy_sum {
	uint64_t ns, count, bytes;
	double flops;
};

struct yk_report {
	char device[2][48]; // the context's, and the CPU if the context's is another; "" for none
	bool timed[2];      // whether its steps are timed
	struct yk_busy_sum sum[2][YK_BUSY_KINDS];
	double wall;  // seconds
	double files; // seconds of `wall` spent writing checkpoints; set by the caller
	double idle;  // the remainder: the host records, reads data or logs while no device works.
		      // Negative: two devices worked at once
	uint64_t launches, plan_hits, plan_misses, fallbacks, fallback_bytes;
	uint64_t bytes_up, bytes_down;
	uint64_t programs_compiled, programs_found; // since the process began
	uint64_t bytes; // read and written by steps
	int nfallback;  // number of kinds; the list holds the first of them
	struct yoke_fallback fallback[16];
	struct yk_layers layers;    // layers with misaligned products
	struct yoke_loader_stats data; // of the run's loader, set by the caller; workers' seconds
				       // overlap the rest
	const struct yk_device *of; // the context's; its self-test failures are listed
};

typedef void yk_line_fn(void *arg, const char *line);

// Amdahl 1967: the speedup if work of `part` seconds took no time: wall / (wall - part); infinity
// if part is all.
double yk_amdahl(double wall, double part);
// Prints the report for people.
void yk_report_print(const struct yk_report *, yk_line_fn *, void *arg);
// The report as JSON; NULL: out of memory.
json_t *yk_report_json(const struct yk_report *);

#endif
