// SPDX-License-Identifier: Apache-2.0
// Saves checkpoints of sharded models. The files hold complete tensors, as for a single rank. Ranks
// send their slices to rank 0 when the writer reaches them, so that rank 0 buffers one window and
// never a whole tensor.
#ifndef YK_GATHER_CHECKPOINT_H
#define YK_GATHER_CHECKPOINT_H

#include "parallel/stages.h"

// Called by all ranks between two steps: creates t->whole.
int yk_checkpoint_gather_begin(struct yk_replica *);
// Frees t->whole. On rank 0 it also notifies the other ranks that there are no more requests.
void yk_checkpoint_gather_end(struct yk_replica *);
// On all other ranks: answers rank 0's requests until there are no more.
int yk_checkpoint_gather_serve(struct yk_replica *);

// On rank 0: the arrays of a checkpoint for yk_checkpoint_save_by. Names and shapes are valid until
// the end.
void yk_checkpoint_gather_arrays(const struct yk_checkpoint_gather *,
				 struct yk_checkpoint_arrays[YK_CHECKPOINT_PARTS]);
int yk_checkpoint_gather_source(void *whole, int part, int i, uint64_t from, size_t bytes,
				void *to);

#endif
