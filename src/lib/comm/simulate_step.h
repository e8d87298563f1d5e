// SPDX-License-Identifier: Apache-2.0
// How long a training step of data ranks takes in the simulator's model, of what one rank's step takes alone.
#ifndef YK_SIMULATE_STEP_H
#define YK_SIMULATE_STEP_H

#include "comm/simulate.h"

struct yk_step_bucket {
	double ready; // seconds from the step's begin until the last of its gradients is computed
	double bytes;
};

struct yk_step_times {
	double computed; // seconds until all gradients are
	double update;   // seconds of the optimizer, behind all sums
	int buckets;
	const struct yk_step_bucket *bucket; // in the order in which they are summed
};

// Sums of buckets go one behind another, beside what is still computed: f_k = max(f_{k-1}, ready_k) + c_k; then those of the
// step's record, and the update.  c_k is by the schedule that ranks take, run by the simulator; of *formula, by
// its closed form, which is NAN where there is none.
int yk_simulate_step(const struct yk_wire_model *, uint32_t ranks, const struct yk_step_times *, double *seconds,
		     double *formula);

#endif
