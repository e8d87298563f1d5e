// SPDX-License-Identifier: Apache-2.0
// Element-wise sum, maximum and minimum of several arrays in order T (schedule.h). f64 is added in
// f64, f32 in f32; f16 and bf16 are added in f32 and rounded once; integers wrap. Maximum and
// minimum are NaN if an operand is NaN.
#ifndef YK_DIST_SUMS_H
#define YK_DIST_SUMS_H

#include <stddef.h>
#include <stdint.h>

// kind: enum yoke_reduce_kind, SUM, MAX or MIN; dtype: any but bool. A result may be the same array
// as a term; otherwise arrays must not overlap.
void yk_sums(int dtype, int kind, uint32_t terms, const void *const *in, uint32_t results,
	     void *const *out, size_t count);

#endif
