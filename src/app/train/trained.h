// SPDX-License-Identifier: Apache-2.0
// Loads networks and variables from checkpoints, and copies parameters to and from host memory.
#ifndef YK_TRAINED_H
#define YK_TRAINED_H

#include "formats/checkpoint.h"
#include "nn/model.h"
#include "text/tokenizer.h"
#include "train/grid.h"

// A directory's model without its optimizer.
struct yk_trained {
	struct yk_checkpoint checkpoint;
	struct yk_tokenizer *tokenizer;
	struct yk_network *net;
};

int yk_trained_open(const char *folder, struct yk_trained *);
void yk_trained_close(struct yk_trained *); // zero-initialized is allowed

// Loads the network of a checkpoint. Weights are in memory once, plus one of them a second time.
// grid: called by all ranks, this one loads its shards; NULL: a single rank. stage: the blocks to
// load, NULL: all.
int yk_trained_network(const char *folder, const struct yk_checkpoint *, const struct yk_grid *, const struct yk_stage *,
		       struct yk_network **);
// Loads variables from the part's arrays in the same way; sharded ones get their shard.
int yk_trained_load(const char *folder, const struct yk_checkpoint *, int part,
		    const struct yk_parameters *);

// Parameters in host memory, in the form that checkpoints use.
struct yk_host_list {
	int count;
	struct yk_host_tensor *tensor;
};
size_t yk_host_bytes(const struct yk_host_tensor *); // of its elements

// Fills in names and shapes only; for sharded parameters the shard's shape or, if `whole`, the
// complete one. take: the callback that stores a list's arrays in the parameters `ps`.
int yk_host_list_describe(const struct yk_parameters *ps, bool whole, struct yk_host_list *);
int yk_host_list_take(void *ps, int i, const void *data, uint64_t bytes);
// Copies the current values of the parameters.
int yk_host_list_read(const struct yk_parameters *, struct yk_host_list *);
void yk_host_list_free(struct yk_host_list *);
int yk_host_list_put(const struct yk_host_list *, const struct yk_parameters *);

#endif
