// SPDX-License-Identifier: Apache-2.0
// Sums over the parts of a step, in the order of a binary tree: neighbours, then neighbours of these.  2^k ranks that
// share the parts out and then add what they have in that order get the bits of one that had all.
#ifndef YK_SUMS_H
#define YK_SUMS_H

#include "nn/params.h"

enum { YK_SUMS_MOST = 63 }; // places: of n parts log2(n), rounded down

struct yk_sums {
	struct yk_parameters grad; // of each place as many as there are parameters
	yoke_tensor *loss[YK_SUMS_MOST];
	int places;
};

// Before part k of n is added `*held` sums are held; this many of them, the last ones, it is added to.
int yk_sums_joined(int64_t k, int64_t n, int *held);
// Room for sums over so many parts.
int yk_sums_init(struct yk_sums *, const struct yk_parameters *, int64_t parts);
void yk_sums_fini(struct yk_sums *);
// Records that part k of n is added: its gradients and its loss become the sums behind the last part.
void yk_sums_add(struct yk_sums *, int64_t k, int64_t n, int count, yoke_tensor **grad, yoke_tensor **loss);

#endif
