// SPDX-License-Identifier: Apache-2.0
// The report of a profile: where the wall time went, what moved, and what could be gained
// at best. The rows of seconds and `idle` add up to `wall`.
#ifndef YK_REPORT_H
#define YK_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "observe/misaligned.h"
#include "yoke-data.h"

enum yk_busy {
	YK_BUSY_CONTRACT,  // matrix products, with the maps behind them
	YK_BUSY_ATTENTION, // forward and backward: products and softmax in one
	YK_BUSY_OTHER,     // every other kernel
	YK_BUSY_TRANSFER,  // copies between host and device, both ways, fallbacks' too
	YK_BUSY_WAIT,      // the host waits for a device whose steps are not timed
	YK_BUSY_PLAN,      // the host makes plans
	YK_BUSY_KINDS
};

struct yk_busy_sum {
	uint64_t ns, pieces, bytes;
	double flops;
};

struct yk_report {
	char device[2][48]; // the context's, and the CPU when that is another; "" for none
	bool timed[2];      // are its steps?
	struct yk_busy_sum sum[2][YK_BUSY_KINDS];
	double wall;  // seconds
	double files; // of them, writing checkpoints; set by the caller
	double idle;  // what is left: the host records, reads data and logs, no device works.
		      // Below 0: two devices worked at once
	uint64_t launches, plan_hits, plan_misses, fallbacks, fallback_bytes;
	uint64_t bytes_up, bytes_down;
	uint64_t programs_compiled, programs_found; // since the process began
	uint64_t bytes; // read and written by steps
	int nfallback;  // kinds, of which the list has the first
	struct yoke_fallback fallback[16];
	struct yk_layers layers;    // with misaligned products
	struct yoke_loader_stats data; // of the run's loader, set by the caller; workers' seconds overlap with all else
	const struct yk_device *of; // the context's; what failed its self-test is listed
};

typedef void yk_line_fn(void *arg, const char *line);

// Amdahl 1967: what a part of s seconds costs: with it infinitely fast, wall becomes wall
// - s, that is wall / (wall - s) times as fast; infinity when it is all.
double yk_amdahl(double wall, double part);
// Lines for people.
void yk_report_print(const struct yk_report *, yk_line_fn *, void *arg);
// The same as an object; NULL: no memory.
json_t *yk_report_json(const struct yk_report *);

#endif
