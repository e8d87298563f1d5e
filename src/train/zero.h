// SPDX-License-Identifier: Apache-2.0
// What ranks need not have each, shared out among them (ZeRO; Rajbhandari et al. 2020): every one gets the sums of its
// share of each bucket of gradients, updates that share of the parameters, and hands it to the others.  Stage 1 shares out
// the state of the optimizer: gradients of a rank's parts are added first, and reduced once.  Stage 2, also the gradients:
// those of each part are reduced, so that a rank's sums over parts are of its share.  Stage 3, also the parameters: they are
// gathered where a pass reads them, a block ahead, and again for the way back (plan/regather.c).  The bits are those of ranks that update
// everything each.
#ifndef YK_ZERO_H
#define YK_ZERO_H

#include "train/trainer.h"

// For a trainer with a network, whose parameters have their values, and a group, before its optimizer is made.
int yk_zero_new(struct yk_trainer *);
void yk_zero_free(struct yk_zero *); // NULL is fine
const struct yk_optim_share *yk_zero_share(const struct yk_zero *);

// ---- stage 3; nothing where it is another ----

// The cuts of parameters that are this rank's: what is updated, and there between steps.
const struct yk_parameters *yk_zero_held(const struct yk_zero *);
// By all ranks: records that the network's parameters are gathered, handles of the innermost scope; and they are no more.
int yk_zero_enter(struct yk_trainer *);
void yk_zero_leave(struct yk_trainer *);
// They are gathered at once, until ..
int yk_zero_whole(struct yk_trainer *);
void yk_zero_apart(struct yk_trainer *);

// ---- all stages ----

// Buckets, and of each the elements that are this rank's, at least 1.
int yk_zero_buckets(const struct yk_zero *, const int64_t **elements);
// Records that t->grad are reduced: this rank's share of each bucket, flat, which others may take the place of until ..
yoke_tensor **yk_zero_reduce(struct yk_trainer *);
// .. t->grad become the cuts of them that this rank updates: flat, NULL where there is nothing of a parameter.
void yk_zero_take(struct yk_trainer *);
// The same of gradients that are those of all ranks already.
void yk_zero_cut(struct yk_trainer *);
// Bytes of the parameters that the rank with most of them updates.
uint64_t yk_zero_most(const struct yk_trainer *);

// Shares of the states of a checkpoint, which are whole tensors there.
int yk_zero_load(const struct yk_trainer *, const char *folder, const struct yk_checkpoint *);
// By all ranks: rank 0 has the whole states, of stage 3 parameters too, in host memory, until the next call.
int yk_zero_collect(struct yk_trainer *);
// A copy of those.
int yk_zero_states(const struct yk_zero *, struct yk_host_list *to);
int yk_zero_weights(const struct yk_zero *, struct yk_host_list *to);

#endif
