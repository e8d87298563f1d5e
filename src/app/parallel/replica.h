// SPDX-License-Identifier: Apache-2.0
// One rank's copy of the model in training: its parameters, gradients and optimizer, and how they
// are sharded over the ranks. Every file of this directory operates on it; a trainer owns it.
#ifndef YK_REPLICA_H
#define YK_REPLICA_H

#include "config/conf.h"
#include "config/optim.h"
#include "parallel/grid.h"
#include "parallel/sums.h"
#include "yoke-dist.h"

// The micro-batches of a step.
struct yk_micro_batches {
	int64_t count;      // of all ranks
	int64_t accumulate; // of this rank
	// index of this rank's first one, and the distance between its micro-batches
	int64_t first, stride;
};

struct yk_replica {
	const struct yk_config *config;
	uint64_t seed;
	int64_t step; // completed steps
	struct yk_grid grid;
	// its data ranks, which compute the other micro-batches; NULL: this rank computes all
	yoke_group *group;
	int stage; // zero=; 0 for a single rank
	struct yk_micro_batches batches;
	struct yk_network *net; // NULL: an application's network is trained
	// the trained parameters; everything that checkpoints contain
	const struct yk_parameters *params, *kept;
	yoke_tensor **grad; // per parameter
	struct yk_sums sums; // if a step has several micro-batches
	struct yk_optim *optim;
	yoke_scaler *scaler; // NULL: no loss scaling
	struct yk_zero *zero; // NULL: each rank updates all parameters
	struct yk_tensor_parallel *tensor_parallel; // NULL: parameters are not sharded
	struct yk_stages *stages; // NULL: all layers are on this rank
	struct yk_compress *compress; // NULL: gradients are sent completely
	struct yk_checkpoint_gather *whole; // only while saving
	struct yk_ranks_status *status; // several ranks: what each reports to all after a step
	bool ends; // some rank requests a stop; all ranks see it at the same step
};

// Number of optimizer states per parameter.
static inline int yk_replica_states_each(const struct yk_replica *r)
{
	return r->net ? yk_optim_states_each(r->config) : yk_optim_each(r->optim);
}

#endif
