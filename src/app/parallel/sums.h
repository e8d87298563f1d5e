// SPDX-License-Identifier: Apache-2.0
// Accumulates loss and gradients over the micro-batches of a step, in one of two orders. Tree:
// pairs of neighbours, then pairs of those sums, and so on. Ranks with 2^k micro-batches each,
// whose sums are then added in the same order, give the bits of a single rank; n micro-batches need
// log2(n) copies of the gradients. Fast: one after the other, with one copy.
#ifndef YK_TRAIN_SUMS_H
#define YK_TRAIN_SUMS_H

#include <stdbool.h>

#include "yoke.h"

// max number of pending sums: log2(n) for n micro-batches, rounded down; 1 in fast order
enum { YK_SUMS_MAX = 63 };

struct yk_sums {
	int count; // number of gradients
	bool inside; // within one plan: sums are values of the open scope, not variables
	bool fast;   // the order
	yoke_tensor **grad[YK_SUMS_MAX], *loss[YK_SUMS_MAX]; // the pending sums
	int places;
};

// Before micro-batch k of n is added, *held sums are pending. Returns how many of them, from the
// last, it is added to.
int yk_sums_joined(bool fast, int64_t k, int64_t n, int *held);
// Allocates sums, in the order set in `fast`, over `parts` micro-batches of `count` gradients with
// the shapes and dtypes of `like` or, if that is NULL, f32 with flat[i] elements. Both NULL: all
// micro-batches are recorded in one plan.
int yk_sums_init(struct yk_sums *, int64_t parts, int count, yoke_tensor *const *like,
		 const int64_t *flat);
void yk_sums_fini(struct yk_sums *);
uint64_t yk_sums_bytes(const struct yk_sums *); // bytes of gradients
// Records the addition of micro-batch k of n; after the last one, grad and *loss are the sums.
void yk_sums_add(struct yk_sums *, int64_t k, int64_t n, yoke_tensor **grad, yoke_tensor **loss);

#endif
