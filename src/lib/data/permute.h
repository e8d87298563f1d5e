// SPDX-License-Identifier: Apache-2.0
// The order of an epoch: a permutation that follows from (seed, epoch) alone and is computed element by element.
#ifndef YK_DATA_PERMUTE_H
#define YK_DATA_PERMUTE_H

#include <stdint.h>

// Element i of a permutation of 0 .. n - 1, i < n.
uint64_t yk_permuted(uint64_t i, uint64_t n, uint64_t key);
// The sample at place i of an epoch of n.  block 0: in their order; 1: all permuted; more: blocks of so many, each
// permuted by itself.
int64_t yk_order_at(int64_t i, int64_t n, int64_t block, uint64_t seed, int64_t epoch);

#endif
