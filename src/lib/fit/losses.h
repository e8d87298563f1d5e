// SPDX-License-Identifier: Apache-2.0
// Losses of a batch, built from yoke's operations.
#ifndef YK_FIT_LOSSES_H
#define YK_FIT_LOSSES_H

#include "fit/node.h"

// A batch: values of nodes, labels and weights, f32 [pixels].
struct yk_fit_batch {
	struct yk_values v;
	yoke_tensor *label, *weight; // NULL, YOKE_NONE: not in the data set
	yoke_tensor *label_u8;       // as stored in the data set
	yoke_tensor *count;          // f32: sum of the weights, NaN if any is negative or NaN;
				     // NULL: no weights
	int64_t pixels;
};

// Builds the batch from a loader's tensors.
struct yk_fit_batch yk_batch_of(const struct yk_set_fields *, yoke_tensor *const *, int64_t epoch,
				bool training);
// Checks that the channels of the losses' operands match; EINVAL names the loss.
int yk_losses_shape(const yoke_pipeline *);
// Number of values that yk_losses returns: each loss, then their weighted sum; 0 without losses.
int yk_loss_count(const yoke_pipeline *);
int yk_losses(yoke_pipeline *, struct yk_fit_batch *, yoke_tensor **to);
// Whether the loss depends on a node's state only: the same for every batch, not a mean over
// pixels.
bool yk_loss_of_state(const struct yk_loss *);
// The weighted sum of the losses that are means over pixels or, if `states`, of the losses of
// states, from the results of yk_losses; NULL: there are none.
yoke_tensor *yk_losses_sum(const yoke_pipeline *, yoke_tensor *const *loss, bool states);

#endif
