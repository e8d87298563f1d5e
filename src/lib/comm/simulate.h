// SPDX-License-Identifier: Apache-2.0
// Predicts how long schedules take, with a linear cost model of messages (Hockney 1994) and several
// ranks per machine. A message occupies its sender's port for alpha + bytes * beta seconds and then
// has arrived; an addition takes bytes * gamma. Index 1: within a machine; 2: between machines.
// beta2 is for a machine's whole link, which its ranks share equally.
#ifndef YK_SIMULATE_H
#define YK_SIMULATE_H

#include "comm/schedule.h"
#include "comm/turns.h"

struct yk_wire_model {
	double alpha1, beta1, alpha2, beta2, gamma; // seconds, and seconds per byte
	uint32_t node;                              // ranks per machine
};

// Simulates the schedules of all ranks; ranks with equivalent positions on their machines are
// simulated once. Errors: ENOMEM; EINVAL if there is no such schedule or it is too long.
int yk_simulate(const struct yk_wire_model *, const struct yk_schedule_request *, double bytes,
		double *seconds);
// Closed form for an all_reduce; false: none is known for these ranks and machines.
bool yk_simulate_formula(const struct yk_wire_model *, const struct yk_schedule_request *,
			 double bytes, double *seconds);
// Lower bound for any all_reduce schedule: each byte has to leave each rank, and each machine.
double yk_simulate_min(const struct yk_wire_model *, uint32_t ranks, double bytes);

// A training step of a pipeline with identical stages, in the order of turns.h; stage s is rank s.
struct yk_pipeline_request {
	enum yk_pipeline how;
	int64_t stages, parts;
	double forward, back; // seconds per micro-batch
	double bytes;         // sent to the next stage, and back as gradients
};
// seconds: of the step; bubble: mean fraction of the step during which a stage is idle. ENOMEM.
int yk_simulate_pipeline(const struct yk_wire_model *, const struct yk_pipeline_request *,
			 double *seconds, double *bubble);

#endif
