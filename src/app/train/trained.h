// SPDX-License-Identifier: Apache-2.0
// Loads networks from checkpoints.
#ifndef YK_TRAINED_H
#define YK_TRAINED_H

#include "formats/checkpoint.h"
#include "nn/model.h"
#include "parallel/grid.h"
#include "parallel/host_list.h"
#include "text/tokenizer.h"

// A directory's model without its optimizer, or a pretrained model.
struct yk_trained {
	struct yk_checkpoint checkpoint; // of a pretrained model: empty
	struct yk_tokenizer *tokenizer;
	struct yk_network *net;
	bool pretrained;
};

// context: max tokens of a pretrained model's windows; 0: what its files say.  A model that yoke
// trained has the context of its training, and must be given 0.
int yk_trained_open(const char *path, int64_t context, struct yk_trained *);
void yk_trained_close(struct yk_trained *); // zero-initialized is allowed

// Loads the network of a checkpoint. Weights are in memory once, plus one of them a second time.
// grid: called by all ranks, this one loads its shards; NULL: a single rank. stage: the blocks to
// load, NULL: all.
int yk_trained_network(const char *folder, const struct yk_checkpoint *, const struct yk_grid *, const struct yk_stage *,
		       struct yk_network **);
#endif
