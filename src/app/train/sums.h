// SPDX-License-Identifier: Apache-2.0
// Sums over the parts of a step, in one of two orders.  Tree, of a binary tree: neighbours, then neighbours of these.  Ranks
// that have blocks of 2^k parts and then add their sums in that order get the bits of one that had all; n parts take
// log2(n) copies of the gradients.  Fast: each part is added to the sum of those before it, which takes one copy.
#ifndef YK_TRAIN_SUMS_H
#define YK_TRAIN_SUMS_H

#include <stdbool.h>

#include "yoke.h"

enum { YK_SUMS_MAX = 63 }; // places: of n parts log2(n), rounded down; in fast order one

struct yk_sums {
	int count; // gradients
	bool inside; // of one plan: they are values of the scope that is open, and no variables
	bool fast;   // the order
	yoke_tensor **grad[YK_SUMS_MAX], *loss[YK_SUMS_MAX]; // of each place
	int places;
};

// Before part k of n is added `*held` sums are held; this many of them, the last ones, it is added to.
int yk_sums_joined(bool fast, int64_t k, int64_t n, int *held);
// Allocates sums, in the order that is set, over `parts` micro-batches of `count` f32 gradients with the shapes of `like`, or with
// flat[i] elements if that is NULL; both NULL: the micro-batches are recorded in one plan.
int yk_sums_init(struct yk_sums *, int64_t parts, int count, yoke_tensor *const *like, const int64_t *flat);
void yk_sums_fini(struct yk_sums *);
uint64_t yk_sums_bytes(const struct yk_sums *); // of gradients
// Records that part k of n is added: its gradients and its loss become the sums behind the last part.
void yk_sums_add(struct yk_sums *, int64_t k, int64_t n, yoke_tensor **grad, yoke_tensor **loss);

#endif
