// SPDX-License-Identifier: Apache-2.0
// Random map programs, into a case's map; its operands are added by the caller.
#ifndef YK_DRAW_PROGRAM_H
#define YK_DRAW_PROGRAM_H

#include "conform/case.h"

// Up to four instructions of the dtype, each a result: with the case's number all have their turn.
// Inputs: two of the dtype, and a bool unless that is the dtype.  True: for tame numbers.
bool yk_draw_each(struct yk_case *, int dtype);
// One instruction of two operands, for backends that know no more: add, sub, mul, ..
void yk_draw_one(struct yk_case *, int dtype, uint32_t which);
// `count` instructions on inputs of these dtypes; the last nout are results.
void yk_draw_mixture(struct yk_case *, int nin, const int *dtypes, int count, int nout);
// What stands in front of a reduction: one result of the dtype, without an error of its own.
void yk_draw_front(struct yk_case *, int dtype, bool near_one);
// What stands behind a product of the dtype, which is the first input.
void yk_draw_epilogue(struct yk_case *, int dtype);
uint16_t yk_program_input(struct yoke_map *, int dtype); // appended; its instruction

// Numbers for functions: moderate, now and then 0, infinite or none.
struct yk_num yk_draw_tame(struct yk_case *, int dtype, int64_t index);
// Numbers for what is exact: anything.
struct yk_num yk_draw_wild(struct yk_case *, int dtype, int64_t index);

#endif
