// SPDX-License-Identifier: Apache-2.0
// How much arithmetic a step is, by its op and shapes.
#ifndef YK_FLOPS_H
#define YK_FLOPS_H

#include "plan/plan.h"

// 2 M N K of a product, with its leading axes; 4 D a pair of query and key seen of attention, 10 D backward;
// instructions times elements of maps, and one more for each element that is reduced.  NaN: it is not counted.
double yk_op_flops(const struct yoke_op *);
// Of a step of a plan; 0 for one that only moves or fills.
double yk_step_flops(const struct yk_plan *, uint64_t step);
// The dtype in which it is done: of the first operand, or of the first result.
int yk_step_dtype(const struct yk_plan *, uint64_t step);

#endif
