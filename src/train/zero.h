// SPDX-License-Identifier: Apache-2.0
// The optimizer's state shared out among ranks (ZeRO, stage 1; Rajbhandari et al. 2020): each updates its share of every
// bucket of parameters, which the others get then.  The bits are those of ranks that update everything each.
#ifndef YK_ZERO_H
#define YK_ZERO_H

#include "train/trainer.h"

// For a trainer with a network and a group, before its optimizer is made.
int yk_zero_new(struct yk_trainer *);
void yk_zero_free(struct yk_zero *); // NULL is fine
const struct yk_optim_share *yk_zero_share(const struct yk_zero *);
// Bytes of state that the rank with most of it has.
uint64_t yk_zero_most(const struct yk_trainer *);

// Shares of the states of a checkpoint, which are whole tensors there.
int yk_zero_load(const struct yk_trainer *, const char *folder, const struct yk_checkpoint *);
// By all ranks: rank 0 has the whole states in host memory, until the next call.
int yk_zero_collect(struct yk_trainer *);
// A copy of those.
int yk_zero_states(const struct yk_zero *, struct yk_host_list *to);

#endif
