// SPDX-License-Identifier: Apache-2.0
// ZeRO (Rajbhandari et al. 2020): shards what need not be replicated on every rank. For each bucket
// of gradients a rank receives the sums of its shard, updates that shard of the parameters, and
// sends it to the others. Stage 1 shards the optimizer's state: a rank's gradients are accumulated
// over micro-batches and reduced once. Stage 2 also shards the gradients: those of each micro-batch
// are reduced, and only shards are accumulated. Stage 3 also shards the parameters: they are
// gathered one block ahead of use, and again in the backward pass (plan/regather.c). The bits are
// those of ranks that each update all.
#ifndef YK_ZERO_H
#define YK_ZERO_H

#include "parallel/host_list.h"
#include "parallel/replica.h"

// For a trainer with a network and a group, before its optimizer is created.
int yk_zero_new(struct yk_replica *);
void yk_zero_free(struct yk_zero *); // NULL is allowed
const struct yk_optim_sharding *yk_zero_sharding(const struct yk_zero *);

// How to gather a network's parameters if they are sharded among ranks (zero=3): `enter` before a
// pass and `leave` after it, recorded by all ranks.
struct yk_gathered {
	int (*enter)(void *arg);
	void (*leave)(void *arg);
	void *arg;
};

// ---- stage 3; no effect in other stages ----

// Sets the values of parameters first .. end - 1 of the network.
typedef int yk_zero_fill(struct yk_replica *, int first, int end);
// Call once: replaces the parameters by this rank's shards, one bucket at a time, each filled
// first; fill NULL: they have values already.
int yk_zero_hold(struct yk_replica *, yk_zero_fill *);
// The shards: these are updated, and persist between steps.
const struct yk_parameters *yk_zero_held(const struct yk_zero *);
// Called by all ranks: records the gathering of the network's parameters, as handles of the
// innermost scope. leave: drops them.
int yk_zero_enter(struct yk_replica *);
void yk_zero_leave(struct yk_replica *);
// The same two functions for a validation; NULL: parameters are complete.
const struct yk_gathered *yk_zero_gathered(const struct yk_replica *);

// ---- all stages ----

// Number of buckets, and for each the elements of this rank's shard, at least 1.
int yk_zero_buckets(const struct yk_zero *, const int64_t **elements);
// Records the reduction of t->grad. Returns this rank's shard of each bucket, flat; the caller
// may replace the entries, by sums over micro-batches, before it calls yk_zero_take.
yoke_tensor **yk_zero_reduce(struct yk_replica *);
// Splits these shards by parameter: t->grad become the ranges that this rank updates, flat; NULL:
// an empty range.
void yk_zero_take(struct yk_replica *);
// The same for gradients that are already reduced.
void yk_zero_take_reduced(struct yk_replica *);
// Bytes of the parameters updated by the rank that has most of them.
uint64_t yk_zero_max(const struct yk_replica *);

// Stores this rank's shard of the optimizer's state k, of which `data` is the complete tensor.
int yk_zero_put(void *replica, int k, const void *data, uint64_t bytes);
// Names and shapes of states, or of the shards, as stored in files: tensors of no parameter first,
// then `each` per parameter.
int yk_zero_list(const struct yk_replica *, const struct yk_parameters *, int each,
		 struct yk_host_list *to);

#endif
