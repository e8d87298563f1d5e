// SPDX-License-Identifier: Apache-2.0
// Predicts the device memory of a run by rehearsing it in dry contexts, which compute nothing.
#ifndef YK_MEMORY_ESTIMATE_H
#define YK_MEMORY_ESTIMATE_H

#include "train/trainer.h"

struct yk_memory_estimate {
	int64_t parameters; // number of elements
	// Bytes of all parameters, gradients and states; of sums over micro-batches; of activations
	// kept for the backward pass; of the largest workspace.
	uint64_t weights, gradients, states, sums, activations, workspace;
	// Peak of the pool: during the forward pass, with the backward pass, in steps, in a
	// validation; and over the whole run, including the drawing of initial values.
	uint64_t forward, backward, step, validation, peak;
	bool fits; // the run succeeds if at most `room` bytes may be reserved
};

// Total bytes of a list of tensors.
uint64_t yk_parameters_bytes(const struct yk_parameters *);
// For a trainer without a model (yk_trainer_plan): the estimate of the stage that needs most
// memory; *stage receives its number (NULL is allowed). fits: all stages fit.
int yk_memory_estimate_of(const struct yk_trainer *, int64_t batch, uint64_t room,
			  struct yk_memory_estimate *, int64_t *stage);
// The estimate of one stage.
int yk_memory_estimate_of_stage(const struct yk_trainer *, int64_t stage, int64_t batch,
				uint64_t room, struct yk_memory_estimate *);
// Only the peak of a run, for the stage that needs most; 0 if unknown.
uint64_t yk_memory_estimate_peak(const struct yk_trainer *, int64_t batch);

#endif
