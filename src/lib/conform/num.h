// SPDX-License-Identifier: Apache-2.0
// Numbers of any dtype in wide types, one at a time: what references compute with.
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

// The dtype sums are made in: f64, f32 or i64.
int yk_num_acc(int dtype);
// Largest relative error of rounding to a floating dtype: 2^-24 of f32.
double yk_num_unit(int dtype);
// Its smallest normal number.
double yk_num_min(int dtype);
// To the nearest number of a floating dtype, ties to even, subnormals kept.
double yk_num_round(double x, int dtype);
// An integer or bool as its dtype keeps it.
int64_t yk_num_wrap(uint64_t x, int dtype);
struct yk_num yk_num_load(const void *, int dtype);
// The bits of a number that the dtype holds; low bytes first, as yoke_view's offset of a SCALAR.
uint64_t yk_num_bits(struct yk_num, int dtype);
void yk_num_store(void *, struct yk_num, int dtype);

#endif
