// SPDX-License-Identifier: Apache-2.0
// A trainer as one of several ranks: each has the whole model, and a share of every step's parts.  Where they stand: grid.h.
#ifndef YK_TRAIN_RANKS_H
#define YK_TRAIN_RANKS_H

#include "observe/profile.h"
#include "train/trainer.h"

// The trainer's place among the ranks of the current context; alone it has none.
int yk_ranks_join(struct yk_trainer *);
// All ranks get rank 0's parameters first .. end - 1.
int yk_ranks_start(const struct yk_trainer *, const struct yk_parameters *, int first, int end);
// Behind each part: what its gradients are added as, t->grad or, of stage 2, shares of all ranks' sums; the loss too is that
// of all then.
yoke_tensor **yk_ranks_part(struct yk_trainer *, yoke_tensor **loss);
// Records behind the last part that gradients and loss become those of all ranks, in buckets in the order in which they are made, so that
// the first ones travel while the others are computed.
int yk_ranks_reduce(struct yk_trainer *, yoke_tensor **loss);
// A gradient as it goes between ranks: wire=.
yoke_tensor *yk_ranks_narrow(const struct yk_trainer *, yoke_tensor *gradient);
// Before a step: whether this one wants to end behind it, and how long it has waited for the others.
void yk_ranks_say(struct yk_trainer *, bool ends);
// Behind a step: hears what all said in the one before it, for which it waits; sets t->ends.
int yk_ranks_hear(struct yk_trainer *);
// Since the run began: seconds that this rank waited for what all do together, bytes of tensors that it sent; and which
// rank waited least since the last call, so that the others waited for it.
void yk_ranks_released(struct yk_trainer *, double *seconds, uint64_t *sent, int *slowest);
// Bytes that a bucket ends behind; the first one that is summed is small, to begin early.
size_t yk_ranks_room(bool first);
// Parameters of one bucket, of one dtype, which ends before `end`: the first of them.
int yk_ranks_bucket(const struct yk_parameters *, int end);
// A rank that ends without returning to its caller has failed: the others get its error from the calls in which they wait.
void yk_ranks_failed(const struct yk_trainer *);
void yk_ranks_leave(struct yk_trainer *); // frees what the above have made
// EINVAL, ERANK: ranks are of unlike version, configuration or data.  Called by all of them.
int yk_ranks_agree(const struct yk_trainer *);
// EINVAL: since then some kernels were left out on one alone.  EMISMATCH: of parameters that several update for themselves they
// have other bits.  By all of them, behind a step.
int yk_ranks_alike(const struct yk_trainer *, bool parameters);

// Do `data` ranks add the parts of a step in the order of one rank, and so get its bits?  Else why not.
enum { YK_ORDER_WHY = 200 };
bool yk_ranks_in_order(const struct yk_config *, int64_t data, int64_t parts, char why[YK_ORDER_WHY]); // why: or NULL
// The same for a trainer, as a line of text; false if a step has one part.
bool yk_ranks_order_text(const struct yk_trainer *, char *to, size_t cap);

// By all ranks, at the end: of their profiles one trace, which rank 0 writes; path is its.
int yk_ranks_trace(const struct yk_trainer *, struct yk_profile *, const char *path);

// ranks=auto becomes a number: that of the devices like the best one, or the largest below that divides the parts
// that are given.  Sets the settings of the configuration then.
int yk_ranks_settle(struct yk_config *);

// ---- as threads or processes ----

// Is the command to start processes, as spawn=process asks, rather than to train?  These are such a command, too,
// and train.
bool yk_ranks_spawns(const struct yk_config *);
// Starts them, with the command's own words, hands signals to them and waits; with restarts=, starts as many of those
// that are left as keep the bits, from the last checkpoint.  ERANK: how the first one ended that did not end well.  A
// second signal ends the calling process.
int yk_ranks_spawn(const struct yk_config *, int argc, char *const argv[]);
// Trains, as ranks that are threads or alone; with restarts=, where devices of ranks fail, goes on as those do.
int yk_ranks_train(struct yk_config *, int argc, char *const argv[]);
// Is this process rank 0, or all ranks?
bool yk_ranks_leads(void);
// fn on each of so many ranks: threads, or as the one that this process is.
int yk_ranks_run(int64_t ranks, int (*fn)(yoke_group *, void *), void *arg);
// EINVAL: ranks that do not divide the parts of a step, or keys that do not go with several.
int yk_ranks_check(const struct yk_config *);

#endif
