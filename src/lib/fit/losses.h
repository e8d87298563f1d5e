// SPDX-License-Identifier: Apache-2.0
// Losses of a batch, built from yoke's operations.
#ifndef YK_FIT_LOSSES_H
#define YK_FIT_LOSSES_H

#include "fit/node.h"

// A batch: values of nodes, labels and weights, f32 [pixels].
struct yk_batch {
	struct yk_values v;
	yoke_tensor *label, *weight; // NULL, YOKE_NONE: the set has none
	yoke_tensor *label_u8;       // as the set has it
	yoke_tensor *count;          // f32: the sum of the weights, NaN where one is negative or NaN; NULL: the set has none
	int64_t pixels;
};

// Of a loader's tensors.
struct yk_batch yk_batch_of(const struct yk_set_fields *, yoke_tensor *const *, int64_t epoch, bool training);
// Do the channels of what losses are of fit?  EINVAL names the loss.
int yk_losses_shape(const yoke_pipeline *);
// How many numbers yk_losses gives: each loss, and behind them their weighted sum; without losses none.
int yk_loss_count(const yoke_pipeline *);
int yk_losses(yoke_pipeline *, struct yk_batch *, yoke_tensor **to);
// Is the loss of a node's state, the same for every batch, and not a mean over pixels?
bool yk_loss_of_state(const struct yk_loss *);
// The weighted sum of the losses that are means over pixels, or (states) of the others, of what yk_losses gave; NULL: there are none.
yoke_tensor *yk_losses_sum(const yoke_pipeline *, yoke_tensor *const *loss, bool states);

#endif
