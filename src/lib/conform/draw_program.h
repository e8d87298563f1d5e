// SPDX-License-Identifier: Apache-2.0
// Draws random map programs into a case's map; the caller adds the operands.
#ifndef YK_DRAW_PROGRAM_H
#define YK_DRAW_PROGRAM_H

#include "conform/case.h"

// Up to four instructions of the dtype, each a result; the case's number cycles through all
// instructions.  Inputs: two of the dtype, plus a bool unless the dtype is bool.  Returns true if
// the operands should be tame.
bool yk_draw_each(struct yk_case *, int dtype);
// One instruction with two operands (add, sub, mul, ...), for backends that support only those.
void yk_draw_one(struct yk_case *, int dtype, uint32_t which);
// `count` instructions on inputs of these dtypes; the last nout are the results.
void yk_draw_mixture(struct yk_case *, int nin, const int *dtypes, int count, int nout);
// A program that feeds a reduction: one result of the dtype, computed without rounding error.
void yk_draw_front(struct yk_case *, int dtype, bool near_one);
// An epilogue of a matrix product of the dtype; the product is the first input.
void yk_draw_epilogue(struct yk_case *, int dtype);
// appends an input; returns its instruction
uint16_t yk_program_input(struct yoke_map *, int dtype);

// Values for functions: moderate, sometimes 0, infinite or NaN.
struct yk_num yk_draw_tame(struct yk_case *, int dtype, int64_t index);
// Values for exact operations: anything.
struct yk_num yk_draw_wild(struct yk_case *, int dtype, int64_t index);

#endif
