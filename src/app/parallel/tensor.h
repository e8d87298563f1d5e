// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism: a trainer whose layers are sharded over several ranks (nn/shard.h). Provides
// the sums over complete tensors that the optimizer needs.
#ifndef YK_TENSOR_H
#define YK_TENSOR_H

#include "parallel/replica.h"

// For a trainer with a network, before its optimizer is created. Does nothing if no parameter is
// sharded.
int yk_cuts_new(struct yk_replica *);
void yk_cuts_free(struct yk_cuts *); // NULL is allowed
// Fills in the optimizer's sharding information.
void yk_cuts_share(const struct yk_replica *, struct yk_optim_share *);
// Copies the first rank's values of unsharded parameters first .. end - 1 to all tensor ranks.
int yk_cuts_start(const struct yk_replica *, int first, int end);

#endif
