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
// Parameters that are whole become those of the first rank.
int yk_cuts_start(const struct yk_trainer *);

// By all ranks, behind yk_zero_collect: rank 0 has the whole parameters and states in host memory, until ..
int yk_cuts_collect(struct yk_trainer *);
// .. this.
void yk_cuts_drop(struct yk_trainer *);
int yk_cuts_weights(const struct yk_cuts *, struct yk_host_list *to); // a copy
int yk_cuts_states(const struct yk_cuts *, struct yk_host_list *to);

#endif
