// SPDX-License-Identifier: Apache-2.0
// What a run would take of the device's memory, asked of dry contexts: nothing is computed.
#ifndef YK_MEMORY_ESTIMATE_H
#define YK_MEMORY_ESTIMATE_H

#include "train/trainer.h"

struct yk_memory_estimate {
	int64_t parameters; // elements
	// Bytes: of all parameters, gradients and states; sums over micro-batches; results that
	// wait for the way back; the largest workspace.
	uint64_t weights, gradients, states, sums, activations, workspace;
	// The pool's peaks: of the loss alone, with its gradients, in steps, in a validation; in
	// all of a run, where the drawing of first values counts, too.
	uint64_t forward, backward, step, validation, peak;
	bool fits; // all of it is found where no more than `room` bytes are reserved
};

// Bytes of all tensors of a list.
uint64_t yk_parameters_bytes(const struct yk_parameters *);
// For a trainer without a model (yk_trainer_plan): of the stage that needs most, which is the number that *stage gets; NULL: nobody
// asks.  fits: all do.
int yk_memory_estimate_of(const struct yk_trainer *, int64_t batch, uint64_t room, struct yk_memory_estimate *, int64_t *stage);
// Of one stage.
int yk_memory_estimate_of_stage(const struct yk_trainer *, int64_t stage, int64_t batch, uint64_t room, struct yk_memory_estimate *);
// The peak of a run alone, of the stage that needs most; 0 where that cannot be told.
uint64_t yk_memory_estimate_peak(const struct yk_trainer *, int64_t batch);

#endif
