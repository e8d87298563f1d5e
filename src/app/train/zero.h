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

// For a trainer with a network and a group, before its optimizer is made.
int yk_zero_new(struct yk_trainer *);
void yk_zero_free(struct yk_zero *); // NULL is fine
const struct yk_optim_share *yk_zero_share(const struct yk_zero *);

// ---- stage 3; nothing where it is another ----

// Gives parameters first .. end - 1 of the network their values.
typedef int yk_zero_fill(struct yk_trainer *, int first, int end);
// Of stage 3, once: parameters give way to the cuts that are this rank's, a bucket at a time, each filled before that; NULL:
// they have their values.
int yk_zero_hold(struct yk_trainer *, yk_zero_fill *);
// Those cuts: what is updated, and there between steps.
const struct yk_parameters *yk_zero_held(const struct yk_zero *);
// By all ranks: records that the network's parameters are gathered, handles of the innermost scope; and they are no more.
int yk_zero_enter(struct yk_trainer *);
void yk_zero_leave(struct yk_trainer *);
// The two for a validation; NULL: parameters are there.
const struct yk_gathered *yk_zero_gathered(const struct yk_trainer *);

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
uint64_t yk_zero_max(const struct yk_trainer *);

// Shares of the states of a checkpoint, which are whole tensors there.
int yk_zero_load(const struct yk_trainer *, const char *folder, const struct yk_checkpoint *);
// Names and shapes of states, or of what is held, as files have them: `each` of each parameter behind those of none.
int yk_zero_list(const struct yk_trainer *, const struct yk_parameters *, int each, struct yk_host_list *to);

#endif
