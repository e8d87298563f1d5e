// SPDX-License-Identifier: Apache-2.0
// Loads networks from checkpoints.
#ifndef YK_TRAINED_H
#define YK_TRAINED_H

#include "formats/checkpoint.h"
#include "nn/model.h"
#include "parallel/grid.h"
#include "parallel/host_list.h"
#include "text/tokenizer.h"
#include "yoke-model.h"

// A directory's model without its optimizer, or a pretrained model.
struct yk_trained {
	struct yk_checkpoint checkpoint; // of a pretrained model: empty
	struct yk_tokenizer *tokenizer;
	struct yk_network *net;
	bool pretrained;
};

// Options as those of yoke_model_open, or NULL.  A model that yoke trained has the context and the
// dtype of its training: EINVAL for others.
int yk_trained_open(const char *path, const struct yoke_model_options *, struct yk_trained *);
void yk_trained_close(struct yk_trained *); // zero-initialized is allowed

// Loads the network of a checkpoint. Weights are in memory once, plus one of them a second time.
// grid: called by all ranks, this one loads its shards; NULL: a single rank. stage: the blocks to
// load, NULL: all.
int yk_trained_network(const char *folder, const struct yk_checkpoint *, const struct yk_grid *, const struct yk_stage *,
		       struct yk_network **);
#endif
