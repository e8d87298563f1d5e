// SPDX-License-Identifier: Apache-2.0
// How well a kernel fills a device's multiprocessors: warps that are resident over the most there can be.
#ifndef YK_OCCUPANCY_H
#define YK_OCCUPANCY_H

#include "plan/plan.h"

// By what is known of the kernel: the driver's share where it has one, else, of NVIDIA's generations ("sm_90"), by
// what a multiprocessor has of warps, groups, registers and local memory.  NaN: n/a.
double yk_occupancy(const char *generation, const struct yoke_occupancy *);
// Of a step, asked of its backend; NaN: n/a.
double yk_step_occupancy(const struct yoke_context *, const struct yk_plan *, uint64_t step);

#endif
