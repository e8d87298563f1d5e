// SPDX-License-Identifier: Apache-2.0
// Layers of tensor parallelism (shard.h): the operations that a model's forward pass uses for
// parameters that may be sharded.  If nothing is sharded they are the plain operations.
#ifndef YK_SHARD_LAYERS_H
#define YK_SHARD_LAYERS_H

#include "nn/model.h"

// x w' + b for a matrix sharded by outputs: x is the same on all ranks, y is sharded.
yoke_tensor *yk_shard_column(const struct yk_network *, yoke_tensor *x, yoke_tensor *w,
			     yoke_tensor *b);
// The same for one sharded by inputs: x is sharded, y is the same on all ranks.
yoke_tensor *yk_shard_row(const struct yk_network *, yoke_tensor *x, yoke_tensor *w,
			  yoke_tensor *b);
// This rank's shard, along its last axis, of an x that all ranks have.
yoke_tensor *yk_shard_part(const struct yk_network *, yoke_tensor *x);
// Looks up rows of an embedding that is sharded by tokens; the same result on all ranks.
yoke_tensor *yk_shard_embedding(const struct yk_network *, yoke_tensor *w, yoke_tensor *ids);
// As yoke_cross_entropy, for logits sharded by tokens; ids refer to the whole vocabulary.
yoke_tensor *yk_shard_cross_entropy(const struct yk_network *, yoke_tensor *logits,
				    yoke_tensor *ids);
// The loss of most models: the mean of -log p(target).
yoke_tensor *yk_network_loss(const struct yk_network *, yoke_tensor *ids, yoke_tensor *targets,
			     double dropout);
// The same for windows of several texts (yk_model.packed): the mean over targets that are not -1.
yoke_tensor *yk_network_packed_loss(const struct yk_network *, yoke_tensor *ids,
				    yoke_tensor *targets, yoke_tensor *positions, double dropout);
// Random numbers between begin and end differ between ranks; NULL if nothing is sharded.
yoke_scope *yk_shard_begin(const struct yk_network *);
// Ends it; the tensor, computed there, outlives it.
yoke_tensor *yk_shard_end(yoke_scope *, yoke_tensor *);

#endif
