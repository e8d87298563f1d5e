// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism: a trainer whose layers are sharded over several ranks (nn/shard.h). Provides
// the sums over complete tensors that the optimizer needs.
#ifndef YK_TENSOR_H
#define YK_TENSOR_H

#include "parallel/replica.h"

// For a trainer with a network, before its optimizer is created. Does nothing if no parameter is
// sharded.
int yk_tensor_parallel_new(struct yk_replica *);
void yk_tensor_parallel_free(struct yk_tensor_parallel *); // NULL is allowed
// Fills in the optimizer's sharding information.
void yk_tensor_parallel_sharding(const struct yk_replica *, struct yk_optim_sharding *);
// Copies the first rank's values of unsharded parameters first .. end - 1 to all tensor ranks.
int yk_tensor_parallel_start(const struct yk_replica *, int first, int end);

#endif
