// SPDX-License-Identifier: Apache-2.0
// Training text: files and folders read once, kept as tokens, cut into windows.
// A window has context + 1 tokens: inputs are its first `context`, targets its last.
// Windows lie side by side and share one token with the next.
#ifndef YK_DATA_TEXT_H
#define YK_DATA_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "text/tokenizer.h"
#include "yoke-data.h"

struct yk_data_spec {
	int64_t context; // tokens
	double valid;    // share of the tokens, at the end, to validate; 0: none, 1: all
	int64_t limit;   // tokens from the beginning that count; 0: all
	int64_t vocab;   // ids that a tokenizer that learns may have, 3 at least; 0: any number
};

struct yk_data;

// `paths` is a comma-separated list of files and folders (or one name that has a comma); "-" is
// standard input.
// Folders are walked down in the order of byte values; hidden names, links, empty files
// and files with a NUL byte are passed over there, while a file named itself must be
// text.  ENOENT, EIO, EFORMAT, and ERANGE when there is less than one window (two with a
// split), each naming path and numbers.  A tokenizer that learns is settled on the training part.
struct yk_data *yk_data_new(const char *paths, struct yk_tokenizer *,
			    const struct yk_data_spec *);
void yk_data_free(struct yk_data *); // NULL is fine

// Does that list read standard input, which a later command cannot read again?
bool yk_data_piped(const char *paths);
int64_t yk_data_tokens(const struct yk_data *);
int64_t yk_data_files(const struct yk_data *);
int64_t yk_data_train_windows(const struct yk_data *);
int64_t yk_data_valid_windows(const struct yk_data *);
// XXH64 of the text and of how it is split.
uint64_t yk_data_fingerprint(const struct yk_data *);

// Room for so many windows, for free(); NULL: ENOMEM.
int32_t *yk_data_windows(const struct yk_data *, int64_t batch);
// The training windows as a set, in the order of the text: field "ids" i32 [context + 1].  The data has to outlive
// it.  There must be training windows.
yoke_dataset *yk_data_set(struct yk_data *);
// Validation windows first .. first + batch - 1 in the order of the text; returns how
// many there were (the rows behind are left alone).
int64_t yk_data_valid(const struct yk_data *, int64_t first, int64_t batch, int32_t *to);

#endif
