// SPDX-License-Identifier: Apache-2.0
// A trainer whose layers are computed by several ranks, each with its cuts of the parameters (nn/shard.h): sums over whole
// tensors for the optimizer, and checkpoints, which are those of one rank.
#ifndef YK_TENSOR_H
#define YK_TENSOR_H

#include "train/trainer.h"

// For a trainer with a network, before its optimizer is made; nothing where none of its parameters is cut.
int yk_cuts_new(struct yk_trainer *);
void yk_cuts_free(struct yk_cuts *); // NULL is fine
// What an optimizer has to know of it.
void yk_cuts_share(const struct yk_trainer *, struct yk_optim_share *);
// Parameters first .. end - 1 that are whole become those of the first rank.
int yk_cuts_start(const struct yk_trainer *, int first, int end);

#endif
