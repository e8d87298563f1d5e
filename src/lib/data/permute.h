// SPDX-License-Identifier: Apache-2.0
// Sample order of an epoch: a permutation determined by (seed, epoch) and computed element by
// element, without a table.
#ifndef YK_DATA_PERMUTE_H
#define YK_DATA_PERMUTE_H

#include <stdint.h>

// The sample at position i of an epoch of n.  block 0: not shuffled; 1: fully shuffled; larger:
// shuffled within blocks of that many samples.
int64_t yk_order_at(int64_t i, int64_t n, int64_t block, uint64_t seed, int64_t epoch);

#endif
