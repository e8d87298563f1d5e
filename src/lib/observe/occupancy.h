// SPDX-License-Identifier: Apache-2.0
// Occupancy of kernels: resident warps over the maximum that a multiprocessor can hold.
#ifndef YK_OCCUPANCY_H
#define YK_OCCUPANCY_H

#include "plan/plan.h"

// Uses the driver's value where there is one.  Otherwise, for NVIDIA generations ("sm_90"),
// computes it from the multiprocessor's limits on warps, groups, registers and local memory.  NaN:
// not available.
double yk_occupancy(const char *generation, const struct yoke_occupancy *);
// Occupancy of a step, queried from its backend; NaN: not available.
double yk_step_occupancy(const struct yoke_context *, const struct yk_plan *, uint64_t step);

#endif
