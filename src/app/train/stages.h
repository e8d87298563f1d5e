// SPDX-License-Identifier: Apache-2.0
// A trainer whose layers several ranks have one behind another (nn/stage.h).  A step is one plan: its parts' ways forward and back
// are recorded in the order in which the stage takes them (comm/turns.h).  The bits are those of one rank, but where the matrix
// of the embedding is that of the head as well: then first and last stage have it both, and add their gradients.
#ifndef YK_STAGES_H
#define YK_STAGES_H

#include "train/trainer.h"

// EINVAL: keys that do not go with stages, or do not share the blocks out.
int yk_stages_check(const struct yk_config *, const struct yk_model *, const struct yk_model_shape *);
// What of the network this rank has.
int yk_stages_place(const struct yk_trainer *, const struct yk_model *, const struct yk_model_shape *, struct yk_stage *);
// For a trainer with a network, before its optimizer is made; nothing where there is one stage.
int yk_stages_new(struct yk_trainer *);
// The parameter that first and last stage have both, -1: there is none here.
int yk_stages_copy(const struct yk_trainer *);
void yk_stages_free(struct yk_stages *); // NULL is fine
// What an optimizer has to know of it.
void yk_stages_share(const struct yk_trainer *, struct yk_optim_share *);
// The last stage's copy of the embedding becomes the first one's.
int yk_stages_start(const struct yk_trainer *);

// "stages=2: blocks 4, 4; 1f1b".
void yk_stages_text(const struct yk_trainer *, char *to, size_t room);

// Records all parts of a step: t->grad and, on the last stage, *loss become the sums over them.  share: a part's share of
// the step's loss.
int yk_stages_record(struct yk_trainer *, yoke_tensor *(*share)(const struct yk_trainer *, yoke_tensor *loss), yoke_tensor **loss);
// Records that the gradient of what two stages have is the sum of both; and that all stages have the last one's loss.
int yk_stages_reduce(struct yk_trainer *);
yoke_tensor *yk_stages_tell(const struct yk_trainer *, yoke_tensor *loss);

// Loads a list with `each` tensors of each parameter behind those of none, in which a file has those of all stages.
int yk_stages_load(const struct yk_grid *, const struct yk_network *, const char *folder, const struct yk_checkpoint *, int part, int each,
		   const struct yk_host_list *, yk_checkpoint_take_fn *, void *arg);
// A list of this stage's as one of all stages': names and shapes, and in `own` which of the list each is, -1: another stage's.
// Those of other parameters are named as those of the first one here.
struct yk_stages_list {
	struct yk_host_list l;
	int *own;
};
int yk_stages_list(const struct yk_network *, const struct yk_host_list *, int each, struct yk_stages_list *to);
void yk_stages_list_free(struct yk_stages_list *);

#endif
