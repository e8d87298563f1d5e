// SPDX-License-Identifier: Apache-2.0
// Warm-up: while plans are made, kernels that this device and driver have not had yet are compiled and
// tested, which may take minutes.  Who shows it is told of each, and how far the plan is.  All of
// it is of the calling thread, which makes its plans itself.
#ifndef YK_WARMUP_H
#define YK_WARMUP_H

#include <stdbool.h>
#include <stdint.h>

struct yk_warmup {
	const char *device;        // its id
	const char *doing, *items; // "tests", "operations"; "compiles", "launches"
	const char *what;          // tested last for this item, as "attention f32 by tiles"; or ""
	uint64_t at, of;           // which of how many of these items
	uint64_t tested, compiled; // implementations and programs, for this plan
	double seconds;            // since the plan was begun
	bool over;                 // the plan is made: the last call for it
};
typedef void yk_warmup_fn(const struct yk_warmup *, void *arg);

// fn is told from now on, only of plans for which something is tested or compiled; NULL: nobody.
void yk_warmup_to(yk_warmup_fn *fn, void *arg);
// Seconds that such plans took so far.
double yk_warmup_seconds(void);

// ---- for those who make plans, test and compile ----

void yk_warmup_begin(const char *device);
void yk_warmup_at(const char *doing, const char *items, uint64_t at, uint64_t of);
void yk_warmup_tests(const char *what); // what is tested now
void yk_warmup_compiled(uint32_t programs);
void yk_warmup_end(void);

#endif
