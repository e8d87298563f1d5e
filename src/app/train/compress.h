// SPDX-License-Identifier: Apache-2.0
// Gradients that go between ranks in part, compress=topk (Aji and Heafield 2017; Stich et al. 2018): of each tensor a rank
// sends the elements of largest modulus of its gradient and of what it has not sent before, and keeps the rest for the next
// step.  So it is with one rank, too, which sends them to itself.
#ifndef YK_COMPRESS_H
#define YK_COMPRESS_H

#include "train/trainer.h"

// EINVAL: keys that do not go with compress=topk.
int yk_compress_check(const struct yk_config *);
// For a trainer with a network, behind yk_ranks_join; NULL without compress.
int yk_compress_new(struct yk_trainer *);
void yk_compress_free(struct yk_compress *); // NULL is fine
// What was not sent, of each parameter that is sent in part: "error.NAME".
const struct yk_parameters *yk_compress_errors(const struct yk_compress *);
// Is the step that is recorded sent in part?  The first ones, compress_after, are not.
bool yk_compress_now(const struct yk_trainer *);
// Records that gradients first .. end - 1 become those of all ranks, as one message.
int yk_compress_reduce(struct yk_trainer *, int first, int end);
// Of a step whose gradients are scaled, behind all of them: what was not sent is kept, over the scale, or if `skip` is not 0
// what was kept before.
void yk_compress_keep(const struct yk_trainer *, yoke_tensor *skip);
// By all ranks: each has the mean of what they had.
int yk_compress_mean(struct yk_trainer *);

// Loads a checkpoint's states, which `l` describes and `put` takes, and what was not sent of each parameter where that is there
// and wanted: so much of it that ranks have as much of it together as before.
int yk_compress_load(const struct yk_trainer *, const char *folder, const struct yk_checkpoint *,
		     const struct yk_host_list *l, yk_checkpoint_take_fn *put, void *arg);
// The same of a trainer that has the whole states.
int yk_compress_load_whole(const struct yk_trainer *, const char *folder, const struct yk_checkpoint *);

#endif
