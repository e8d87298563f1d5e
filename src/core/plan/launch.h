// SPDX-License-Identifier: Apache-2.0
// Runs a plan: binds its leaves and blocks, launches its steps, and checks before and after a step.
#ifndef YK_LAUNCH_H
#define YK_LAUNCH_H

#include "plan/planner.h"

// Binds leaves and blocks, runs every step and gives the roots' handles their storages.  An error
// before the first step has no effect (*started false); a later error becomes the context's
// failure, and the results are lost.
int yk_launch(struct yk_planner *, struct yk_plan *, bool *started);
// Can the pool provide the plan's memory now?  Tries to allocate all of it and frees it again.
bool yk_launch_fits(struct yk_planner *, struct yk_plan *);

// ---- indices that are host scalars (ranges.c) ----

// Checks that host scalars used as indices by marked nodes are in range.  ERANGE names the op and
// the value.
int yk_check_scalars(const struct yk_planner *, const struct yk_plan *);
// Does a marked node use a number as an index?
bool yk_is_ranged(const struct yk_planner *);
// Is each leaf's block large enough for the plan's accesses?
int yk_check_leaves(const struct yk_planner *, const struct yk_plan *);
// The bits of a scalar leaf, given by its number among the marked leaves.
uint64_t yk_scalar_bits(const struct yk_planner *, uint32_t index);

// ---- results (check.c) ----

// EINVAL: YOKE_CHECK has an unknown value.
int yk_check_setting(bool *nan);
// Checks a finished step: ERANGE if its results have NaN although its operands have none, or
// infinities although its operands are finite.
int yk_check_step(struct yk_planner *, const struct yk_plan *, const struct yk_step *,
		  struct yk_queue *);

// ---- descriptions (where.c) ----

// Describes a step of the plan being launched: "matmul f32 [5,3] from f32 [5,7], f32 [7,3] in
// "step/layer", recorded at ..".
void yk_step_text(const struct yk_planner *, const struct yk_step *, char *to, size_t cap);
// The recorded node from which the step's last node was lowered; NULL: none.
const struct yk_node *yk_step_recorded(const struct yk_planner *, const struct yk_step *);

#endif
