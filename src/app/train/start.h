// SPDX-License-Identifier: Apache-2.0
// The model with which a run starts: a new one that the keys describe, or the one that init= names.
#ifndef YK_START_H
#define YK_START_H

#include "config/conf.h"
#include "formats/checkpoint.h"

// Does the run start from a model that exists?
bool yk_starts_from_model(const struct yk_config *);
// Where the run's tokenizer comes from: init=, or tokenizer=.
const char *yk_start_source(const struct yk_config *);
// Replaces the paths of init=, adapter= and tokenizer= by absolute ones, since checkpoints store
// them. resumes: the run has the adapter's values, and its folder may be gone.  ENOENT.
int yk_start_settle(struct yk_config *, bool resumes);
// The model and its shape: of the checkpoint in `folder` that is resumed (NULL: none), of init=, or
// of the keys, for a vocabulary of that many tokens.
int yk_start_shape(const struct yk_config *, int64_t vocab, const struct yk_checkpoint *from,
		   const char *folder, const struct yk_model **, struct yk_model_shape *);
// The network of init=, of a shape as above, with its weights.
int yk_start_network(const struct yk_config *, const struct yk_model_shape *, struct yk_network **);
// The tokenizer of init=.  NULL: an error.
struct yk_tokenizer *yk_start_tokenizer(const struct yk_config *);

#endif
