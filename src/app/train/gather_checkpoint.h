// SPDX-License-Identifier: Apache-2.0
// A trainer's weights and states as files have them: those of one rank, whatever its ranks have of them.  Whoever has a slice
// sends it to rank 0 when the file comes to it, so that rank 0 holds a window and what is sent for it, and no tensor.  Files
// are read by one rank of a machine, which hands all of it to the others there.
#ifndef YK_GATHER_CHECKPOINT_H
#define YK_GATHER_CHECKPOINT_H

#include "train/stages.h"

// By all ranks, between two steps: t->whole, until ..
int yk_checkpoint_gather_begin(struct yk_trainer *);
// .. this.  Of rank 0: the others are told that it asks no more.
void yk_checkpoint_gather_end(struct yk_trainer *);
// Of other ranks: sends what rank 0 asks for until it asks no more.
int yk_checkpoint_gather_serve(struct yk_trainer *);

// Of rank 0: the arrays of a checkpoint, as yk_checkpoint_save_by takes them, their names and shapes until the end.
void yk_checkpoint_gather_arrays(const struct yk_checkpoint_gather *, struct yk_checkpoint_arrays[YK_CHECKPOINT_PARTS]);
int yk_checkpoint_gather_give(void *whole, int part, int i, uint64_t from, size_t bytes, void *to);

// Names and shapes of weights or states as files have them, `each` of each parameter behind those of none, and which of the list
// each is, -1: another stage's.  For yk_stages_list_free.
int yk_checkpoint_gather_list(const struct yk_trainer *, const struct yk_parameters *, int each, struct yk_stages_list *to);
// As yk_checkpoint_load, by all ranks with the same tensors.
int yk_checkpoint_gather_load(const struct yk_grid *, const char *folder, const struct yk_checkpoint *, int part, int n,
		  const struct yk_host_tensor *, yk_checkpoint_take_fn *, void *arg);

#endif
