// SPDX-License-Identifier: Apache-2.0
// What `yoke simulate` was asked.
#ifndef YK_TOOL_SIMULATE_H
#define YK_TOOL_SIMULATE_H

#include "comm/simulate.h"

struct yk_simulation {
	struct yk_wire_model m;
	uint64_t first, last; // ranks, by doubling
	uint64_t bytes;
	const char *algorithm; // "": all
	const char *run;       // folder of a run whose step is simulated; NULL: an all_reduce is
};
// The next number of ranks, 0: there is none.
uint64_t yk_simulation_next(const struct yk_simulation *, uint64_t ranks);
// A training step of a run of one rank that was profiled.
int yk_simulate_run(const struct yk_simulation *);

#endif
