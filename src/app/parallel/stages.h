// SPDX-License-Identifier: Apache-2.0
// Pipeline parallelism: a trainer whose layers are distributed over several ranks (nn/stage.h). A
// step is one plan, in which the forward and backward passes of its micro-batches are recorded in
// the order of comm/turns.h. The bits are those of a single rank, unless embedding and head share
// one matrix: then the first and the last stage each have a copy and add its gradients.
#ifndef YK_STAGES_H
#define YK_STAGES_H

#include "parallel/host_list.h"
#include "parallel/replica.h"

// EINVAL: keys that are incompatible with stages, or do not distribute the blocks.
int yk_stages_check(const struct yk_config *, const struct yk_model *,
		    const struct yk_model_shape *);
// Determines this rank's stage and its blocks.
int yk_stages_assign(const struct yk_replica *, const struct yk_model *,
		     const struct yk_model_shape *, struct yk_stage *);
// For a trainer with a network, before its optimizer is created. Does nothing if there is only one
// stage.
int yk_stages_new(struct yk_replica *);
// The parameter of which first and last stage both have a copy; -1: not on this stage.
int yk_stages_copy(const struct yk_replica *);
void yk_stages_free(struct yk_stages *); // NULL is allowed
// Fills in the optimizer's sharding information.
void yk_stages_sharding(const struct yk_replica *, struct yk_optim_sharding *);
// Copies the first stage's embedding to the last stage.
int yk_stages_start(const struct yk_replica *);

// Writes "stages=2: blocks 4, 4; 1f1b".
void yk_stages_text(const struct yk_replica *, char *to, size_t cap);

// The inputs of a step.
struct yk_stages_step {
	int64_t random_step; // of the step's first micro-batch
	double dropout;
	yoke_tensor *const *ids; // per micro-batch of this rank
	// scales a micro-batch's loss to its share of the step's loss
	yoke_tensor *(*share)(const void *arg, yoke_tensor *loss);
	const void *arg;
};
// Records all micro-batches of a step: grad and, on the last stage, *loss become the sums over
// them.
int yk_stages_record(struct yk_replica *, const struct yk_stages_step *, yoke_tensor **loss);
// Records the sum of both copies' gradients; and the broadcast of the last stage's loss to all
// stages.
int yk_stages_reduce(struct yk_replica *);
yoke_tensor *yk_stages_broadcast_loss(const struct yk_replica *, yoke_tensor *loss);

// Loads a list of this stage's tensors from a file that holds those of all stages: tensors of no
// parameter first, then `each` per parameter.
int yk_stages_load(const struct yk_grid *, const struct yk_network *, const char *folder,
		   const struct yk_checkpoint *, int part, int each, const struct yk_host_list *,
		   yk_checkpoint_sink_fn *, void *arg);
// Converts a list of this stage's tensors to one of all stages: names and shapes, and in `own` the
// local index of each, -1: another stage's. Tensors of parameters that are not here are named after
// those of the first parameter here.
struct yk_stages_list {
	struct yk_host_list l;
	int *own;
};
int yk_stages_list(const struct yk_network *, const struct yk_host_list *, int each,
		   struct yk_stages_list *to);
void yk_stages_list_free(struct yk_stages_list *);

#endif
