// SPDX-License-Identifier: Apache-2.0
// Predicts the duration of a data-parallel training step from the measured step of a single rank.
#ifndef YK_SIMULATE_STEP_H
#define YK_SIMULATE_STEP_H

#include "comm/simulate.h"

struct yk_step_bucket {
	// seconds from the start of the step until the bucket's last gradient is computed
	double ready;
	double bytes;
};

struct yk_step_times {
	double computed; // seconds until all gradients are computed
	double update;   // seconds of the optimizer, after all sums
	int buckets;
	const struct yk_step_bucket *bucket; // in the order of summation
};

// Buckets are summed one after the other while the backward pass still runs: f_k = max(f_{k-1},
// ready_k) + c_k. Then come the sum of the step's record and the update. c_k is the simulated time
// of the default schedule for *seconds, and its closed form for *formula, which is NAN where there
// is none.
int yk_simulate_step(const struct yk_wire_model *, uint32_t ranks, const struct yk_step_times *,
		     double *seconds, double *formula);

#endif
