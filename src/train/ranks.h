// SPDX-License-Identifier: Apache-2.0
// A trainer as one of several ranks: each has the whole model, and a share of every step's parts.
#ifndef YK_TRAIN_RANKS_H
#define YK_TRAIN_RANKS_H

#include "train/trainer.h"

// The trainer's place among the ranks of the current context; alone it has none.
int yk_ranks_join(struct yk_trainer *);
// All ranks get rank 0's parameters.
int yk_ranks_start(const struct yk_trainer *);
// Records that gradients and loss become those of all ranks, in buckets in the order in which they are made, so that
// the first ones travel while the others are computed.
int yk_ranks_reduce(struct yk_trainer *, yoke_tensor **loss);
// Behind a step: hears what all wished in the one before it, for which it waits; sets t->ends.
int yk_ranks_hear(struct yk_trainer *);
void yk_ranks_leave(struct yk_trainer *); // frees what the above have made
// EINVAL: ranks that do not divide the parts of a step, or keys that do not go with several.
int yk_ranks_check(const struct yk_config *);

#endif
