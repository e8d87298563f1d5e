// SPDX-License-Identifier: Apache-2.0
// Folds a chain of affine nodes into one matrix product: A (b - mu) + t of its base b (flow.h); mu
// is the base's mean.
#ifndef YK_FIT_FOLD_H
#define YK_FIT_FOLD_H

#include "fit/flow.h"

struct yk_fit_fold {
	int node, base;
	yoke_tensor *mean, *a, *t; // f32 variables
};

struct yk_folds {
	int n;
	struct yk_fit_fold fold[YK_NODES]; // indexed by node
};

// Folds the nodes whose results these bases need, where the product costs no more than the nodes
// and the mean is known. All those nodes must be fitted. `of` is indexed by base, NULL: not
// collected. Free the result even after an error.
int yk_folds_make(struct yk_folds *, const yoke_pipeline *, const struct yk_flows *,
		  yoke_statistic *const *of, int bases, const int *base);
void yk_folds_free(struct yk_folds *);
// Records the products and stores their results as the nodes' values.
void yk_folds_put(const struct yk_folds *, yoke_pipeline *, struct yk_values *);

#endif
