// SPDX-License-Identifier: Apache-2.0
// Training text: files and folders read once, kept as tokens, cut into windows.
// A window has context + 1 tokens: inputs are its first `context`, targets its last.
// Windows lie side by side and share one token with the next.  The order of an epoch is a
// permutation that depends on (seed, epoch) alone, so a position is two numbers and a
// resumed run sees what an unbroken one sees.
#ifndef YK_DATA_TEXT_H
#define YK_DATA_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "text/tokenizer.h"

struct yk_data_spec {
	int64_t context; // tokens
	double valid;    // share of the tokens, at the end, to validate; 0: none, 1: all
	uint64_t seed;   // of the order
};

struct yk_data_position {
	int64_t epoch, index; // the next window: index-th of the epoch's order
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
// The next `batch` training windows, [batch, context + 1], and the position behind them.
// Epochs follow each other without a gap, so every batch is full.  There must be training
// windows.
void yk_data_train(const struct yk_data *, struct yk_data_position *, int64_t batch,
		   int32_t *to);
// Validation windows first .. first + batch - 1 in the order of the text; returns how
// many there were (the rows behind are left alone).
int64_t yk_data_valid(const struct yk_data *, int64_t first, int64_t batch, int32_t *to);

#endif
