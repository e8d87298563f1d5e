// SPDX-License-Identifier: Apache-2.0
// Tokenizers of pretrained models in checkpoints: their files are copied into the folder
// "tokenizer" beside the manifest, since they may have many megabytes.
#ifndef YK_TOKENIZER_FILES_H
#define YK_TOKENIZER_FILES_H

#include "formats/checkpoint.h"
#include "text/tokenizer.h"

// Does a checkpoint need files for this tokenizer?
bool yk_tokenizer_has_files(const struct yk_tokenizer *);
// Copies the files of a tokenizer (of a Hugging Face folder, a GGUF file, a checkpoint's folder, or
// a tokenizer's file), or writes those of one that was trained, into a checkpoint's folder unless
// they are there, and adds their hash to the manifest's `json`.
int yk_tokenizer_files_save(const char *source, const struct yk_tokenizer *, const char *folder,
			    json_t *json);
// The tokenizer of a checkpoint, with or without files.  NULL: EFORMAT, also if the files are not
// those that were saved.
struct yk_tokenizer *yk_tokenizer_of_checkpoint(const struct yk_checkpoint *, const char *folder);
// The tokenizer that a source as above has, for a model trained from scratch.  NULL: ENOENT,
// EFORMAT, ..
struct yk_tokenizer *yk_tokenizer_of_files(const char *source);
// The tokenizer of a pretrained model of `vocab` ids.  If it has none, texts are ids, with a
// warning.
struct yk_tokenizer *yk_tokenizer_of_pretrained(const char *path, int64_t vocab);

#endif
