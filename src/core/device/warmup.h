// SPDX-License-Identifier: Apache-2.0
// Progress of warm-up: while plans are made, kernels new to this device and driver are compiled and
// tested, which may take minutes.  A callback reports each of them and how far the plan is.  All
// state belongs to the calling thread, which makes its plans itself.
#ifndef YK_WARMUP_H
#define YK_WARMUP_H

#include <stdbool.h>
#include <stdint.h>

struct yk_warmup {
	const char *device;        // its id
	const char *doing, *items; // "tests", "operations"; "compiles", "launches"
	const char *what;          // last tested for this item, as "attention f32 by tiles"; or ""
	uint64_t at, of;           // the current item and the number of items
	uint64_t tested, compiled; // implementations and programs, for this plan
	double seconds;            // since the plan was begun
	bool over;                 // the plan is complete: the last call for it
};
typedef void yk_warmup_fn(const struct yk_warmup *, void *arg);

// Calls fn from now on for plans that test or compile something; NULL: stop.
void yk_warmup_to(yk_warmup_fn *fn, void *arg);
// Total seconds that such plans have taken.
double yk_warmup_seconds(void);

// ---- for code that makes plans, tests and compiles ----

void yk_warmup_begin(const char *device);
void yk_warmup_at(const char *doing, const char *items, uint64_t at, uint64_t of);
void yk_warmup_tests(const char *what); // the current test
void yk_warmup_compiled(uint32_t programs);
void yk_warmup_end(void);

#endif
