// SPDX-License-Identifier: Apache-2.0
// Models that `yoke train` made, in the checkpoints of their runs: opened as published ones are.
#ifndef YK_RUN_FILES_H
#define YK_RUN_FILES_H

#include "models/weights.h"
#include "yoke-tokenizer.h"

struct yk_checkpoint;

// The decoder that computes what yoke's GPT of that shape does: a gpt2.
void yk_gpt_as_decoder(const struct yk_model_shape *gpt, struct yk_model_shape *to);
// Names and layout of the weights of yoke's GPT in checkpoints.
extern const struct yk_family yk_family_gpt;

// Opens the weights of a checkpoint without adapters, whose checksum is verified.  *family: of the
// decoder; *stored: names and layout of the file.  EUNSUPPORTED: a model of another kind; ENOENT,
// EFORMAT.  The caller releases the weights, also after an error.
int yk_run_files(const char *path, const struct yk_checkpoint *, struct yk_weights *,
		 const struct yk_family **family, const struct yk_family **stored,
		 struct yk_model_shape *);

// The tokenizer of a run's model of `vocab` ids, with which texts are encoded as in its training.
// NULL: ENOENT: it was trained on ids; EFORMAT.
yoke_tokenizer *yk_run_tokenizer(const char *path, int64_t vocab);

// The model of a tokenizer.json for words between blanks, which are joined by blanks; NULL: no
// memory.
struct yk_tokenizer;
json_t *yk_run_words(const struct yk_tokenizer *);

#endif
