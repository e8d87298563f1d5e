// SPDX-License-Identifier: Apache-2.0
// Models that were trained: networks and variables out of checkpoints, and what is saved of them in
// host memory.
#ifndef YK_TRAINED_H
#define YK_TRAINED_H

#include "formats/checkpoint.h"
#include "nn/model.h"
#include "text/tokenizer.h"
#include "train/grid.h"

// A folder's model, all but its optimizer.
struct yk_trained {
	struct yk_checkpoint checkpoint;
	struct yk_tokenizer *tokenizer;
	struct yk_network *net;
};

int yk_trained_open(const char *folder, struct yk_trained *);
void yk_trained_close(struct yk_trained *); // all zeros is fine

// The network of a checkpoint with its weights, which are in memory once, and one of them twice; as a rank at its place among
// others, by all of them, or, NULL, alone; all of its blocks, NULL, or a stage's.
int yk_trained_network(const char *folder, const struct yk_checkpoint *, const struct yk_grid *, const struct yk_stage *,
		       struct yk_network **);
// Variables from the part's arrays, likewise: of cuts, theirs.
int yk_trained_load(const char *folder, const struct yk_checkpoint *, int part,
		    const struct yk_parameters *);

// Parameters in host memory, as checkpoints take them.
struct yk_host_list {
	int count;
	struct yk_host_tensor *tensor;
};
size_t yk_host_bytes(const struct yk_host_tensor *); // of its elements

// Names and shapes alone, of cuts their own or those of the whole; and what takes the arrays of a list, `ps`.
int yk_host_list_describe(const struct yk_parameters *ps, bool whole, struct yk_host_list *);
int yk_host_list_take(void *ps, int i, const void *data, uint64_t bytes);
// The parameters as they are now.
int yk_host_list_read(const struct yk_parameters *, struct yk_host_list *);
void yk_host_list_free(struct yk_host_list *);
int yk_host_list_put(const struct yk_host_list *, const struct yk_parameters *);

#endif
