// SPDX-License-Identifier: Apache-2.0
// Loads networks from checkpoints.
#ifndef YK_TRAINED_H
#define YK_TRAINED_H

#include "formats/checkpoint.h"
#include "nn/lora.h"
#include "config/conf.h"
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

// Options as those of yoke_model_open, or NULL.  A model that yoke trained has the dtype of its
// training and, unless it was started from a pretrained one, the context: EINVAL for others.
int yk_trained_open(const char *path, const struct yoke_model_options *, struct yk_trained *);
// Lets the windows of a model that was trained from a pretrained one be as long as its own.
void yk_trained_widen(struct yk_trained *);
// Sets the context of a decoder's shape; 0: keeps it.  EINVAL: the model can have fewer tokens.
int yk_trained_limit(const char *path, int64_t context, struct yk_model_shape *);
void yk_trained_close(struct yk_trained *); // zero-initialized is allowed

// Adapts an opened model (`path`) with a folder of PEFT or of a run.
int yk_trained_attach(struct yk_trained *, const char *path, const char *adapter);
// As yk_trained_adapt, with the layers and the values of an adapter's folder.
int yk_trained_adapt_as(const char *path, const struct yk_model_shape *,
			const struct yoke_model_options *, const char *adapter,
			struct yk_network **);
// Opens a pretrained model, or one that yoke trained, and adapts layers of it, whose matrices have
// no values then.  shape: of the model.  In a dry context nothing has values.
int yk_trained_adapt(const char *path, const struct yk_model_shape *,
		     const struct yoke_model_options *, size_t n, const struct yk_lora_layer *,
		     struct yk_network **);
// Loads the network of a checkpoint. Weights are in memory once, plus one of them a second time.
// grid: called by all ranks, this one loads its shards; NULL: a single rank. stage: the blocks to
// load, NULL: all.
int yk_trained_network(const char *folder, const struct yk_checkpoint *, const struct yk_grid *,
		       const struct yk_stage *, struct yk_network **);
#endif
