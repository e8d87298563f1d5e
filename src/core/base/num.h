// SPDX-License-Identifier: Apache-2.0
// Numbers of any dtype, one at a time, held in wide types: rounding, wrapping and bit patterns.
#ifndef YK_NUM_H
#define YK_NUM_H

#include <stdbool.h>

#include "yoke-plugin.h"

// f for floating dtypes, i for integers and bool.
struct yk_num {
	double f;
	int64_t i;
};

static inline bool yk_num_real(int dtype)
{
	return dtype >= yoke_f32 && dtype <= yoke_bf16;
}

// The accumulator dtype of sums: f64, f32 or i64.
int yk_num_acc(int dtype);
// Largest relative rounding error of a floating dtype, e.g. 2^-24 for f32.
double yk_num_unit(int dtype);
// Smallest normal number of the dtype.
double yk_num_min(int dtype);
// Rounds to the nearest number of a floating dtype, ties to even; subnormals are kept.
double yk_num_round(double x, int dtype);
// Wraps an integer or bool to the range of its dtype.
int64_t yk_num_wrap(uint64_t x, int dtype);
struct yk_num yk_num_load(const void *, int dtype);
struct yk_num yk_num_of_bits(uint64_t bits, int dtype); // the reverse of yk_num_bits
// The bits of a number in the dtype, low bytes first, as in the offset of a SCALAR yoke_view.
uint64_t yk_num_bits(struct yk_num, int dtype);
void yk_num_store(void *, struct yk_num, int dtype);

#endif
