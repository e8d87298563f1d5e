// SPDX-License-Identifier: Apache-2.0
// Sums, largest and smallest of several arrays, element by element, in order T (schedule.h).
// f64 is added in f64, f32 in f32; f16 and bf16 in f32, and rounded once; integers wrap.  Largest and smallest
// are NaN where one is.
#ifndef YK_DIST_SUMS_H
#define YK_DIST_SUMS_H

#include <stddef.h>
#include <stdint.h>

// kind: enum yoke_reduce_kind, SUM, MAX or MIN; dtype: any but bool.  Each of the results may be one of the
// terms; else they do not overlap.
void yk_sums(int dtype, int kind, uint32_t terms, const void *const *in, uint32_t results, void *const *out,
	     size_t count);

#endif
