// SPDX-License-Identifier: Apache-2.0
// Counts the floating-point operations of a step from its op and shapes.
#ifndef YK_FLOPS_H
#define YK_FLOPS_H

#include "plan/plan.h"

// FLOPs of one step of a plan; 0 for a step that only moves or fills. Matrix product: 2 M N K times
// the batch axes. Attention: 4 D per visible pair of query and key, 10 D backward. Maps:
// instructions times elements, plus one per element for a reduction. NaN: not counted.
double yk_step_flops(const struct yk_plan *, uint64_t step);
// The dtype of the computation: that of the first operand, or of the first result.
int yk_step_dtype(const struct yk_plan *, uint64_t step);

#endif
