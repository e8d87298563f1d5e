// SPDX-License-Identifier: Apache-2.0
// Arguments of `yoke plan scaling`.
#ifndef YK_TOOL_SIMULATE_H
#define YK_TOOL_SIMULATE_H

#include "comm/simulate.h"

struct yk_simulation {
	struct yk_wire_model m;
	uint64_t first, last; // range of rank counts, doubled from first to last
	uint64_t bytes;
	const char *algorithm; // "": all
	const char *run;       // directory of the run to simulate; NULL: an all_reduce
};
// Returns the next number of ranks, or 0 after the last.
uint64_t yk_simulation_next(const struct yk_simulation *, uint64_t ranks);
// Simulates a training step from the profile of a run with one rank.
int yk_plan_scaling_run(const struct yk_simulation *);

#endif
