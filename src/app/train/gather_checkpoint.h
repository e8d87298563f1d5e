// SPDX-License-Identifier: Apache-2.0
// Saves and loads checkpoints of sharded models. The files hold complete tensors, as for a single
// rank. On saving, ranks send their slices to rank 0 when the writer reaches them, so that rank 0
// buffers one window and never a whole tensor. On loading, one rank per machine reads the files and
// passes everything to the others there.
#ifndef YK_GATHER_CHECKPOINT_H
#define YK_GATHER_CHECKPOINT_H

#include "train/stages.h"

// Called by all ranks between two steps: creates t->whole.
int yk_checkpoint_gather_begin(struct yk_trainer *);
// Frees t->whole. On rank 0 it also tells the other ranks that there are no more requests.
void yk_checkpoint_gather_end(struct yk_trainer *);
// On all other ranks: answers rank 0's requests until there are no more.
int yk_checkpoint_gather_serve(struct yk_trainer *);

// On rank 0: the arrays of a checkpoint for yk_checkpoint_save_by. Names and shapes are valid until
// the end.
void yk_checkpoint_gather_arrays(const struct yk_checkpoint_gather *, struct yk_checkpoint_arrays[YK_CHECKPOINT_PARTS]);
int yk_checkpoint_gather_give(void *whole, int part, int i, uint64_t from, size_t bytes, void *to);

// Names and shapes of weights or states as stored in files: tensors of no parameter first, then
// `each` per parameter. Also the local index of each, -1: it belongs to another stage. Free with
// yk_stages_list_free.
int yk_checkpoint_gather_list(const struct yk_trainer *, const struct yk_parameters *, int each, struct yk_stages_list *to);
// As yk_checkpoint_load; called by all ranks with the same tensors.
int yk_checkpoint_gather_load(const struct yk_grid *, const char *folder, const struct yk_checkpoint *, int part, int n,
		  const struct yk_host_tensor *, yk_checkpoint_take_fn *, void *arg);

#endif
