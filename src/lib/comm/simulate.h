// SPDX-License-Identifier: Apache-2.0
// How long schedules take in a model of messages (Hockney 1994), with machines of several ranks: a message holds its
// sender's port alpha + bytes * beta, then it is there; an addition takes bytes * gamma.  1: within a machine, 2:
// between machines, each of whose ranks has an equal part of the machine's link, whose beta2 is the whole link's.
#ifndef YK_SIMULATE_H
#define YK_SIMULATE_H

#include "comm/schedule.h"
#include "comm/turns.h"

struct yk_wire_model {
	double alpha1, beta1, alpha2, beta2, gamma; // seconds, a byte
	uint32_t node;                              // ranks of a machine
};

// Runs the schedules of all ranks, of which those that are alike by their places on their machines are run once.
// ENOMEM, EINVAL: there is no such schedule, or it is too long.
int yk_simulate(const struct yk_wire_model *, const struct yk_schedule_want *, double bytes, double *seconds);
// The closed form of an all_reduce; false: there is none for such ranks and machines.
bool yk_simulate_formula(const struct yk_wire_model *, const struct yk_schedule_want *, double bytes, double *seconds);
// No all_reduce takes less, whatever its schedule: each byte has to leave each rank, and each machine.
double yk_simulate_min(const struct yk_wire_model *, uint32_t ranks, double bytes);

// A step of a pipeline whose stages are alike, by the turns that ranks take; stage s is rank s.
struct yk_pipeline_want {
	enum yk_pipeline how;
	int64_t stages, parts;
	double forward, back; // seconds of a part
	double bytes;         // that go on to the next stage, and come back
};
// seconds: of the step; bubble: the share of it that stages are idle for, at the mean.  ENOMEM.
int yk_simulate_pipeline(const struct yk_wire_model *, const struct yk_pipeline_want *, double *seconds, double *bubble);

#endif
