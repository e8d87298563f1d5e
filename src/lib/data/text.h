// SPDX-License-Identifier: Apache-2.0
// Training text: files and folders read once, kept as tokens, or files of tokens that are read by position; cut into
// windows.
// A window has context + 1 tokens: inputs are its first `context`, targets its last.
// Windows lie side by side and share one token with the next.
#ifndef YK_DATA_TEXT_H
#define YK_DATA_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/source.h"
#include "data/walk.h"
#include "text/tokenizer.h"
#include "yoke-data.h"

struct yk_data_spec {
	int64_t context;    // tokens
	double valid;       // share of the tokens, at the end, to validate; 0: none, 1: all
	bool valid_given;   // else the split that a token file was prepared with comes first
	const char *format; // of raw tokens, as u16:1024; NULL or "": text, or token files
	int64_t vocab;      // of raw tokens and of ids; of words the most ids, 3 at least; 0: not given
	int64_t limit;      // tokens of text that count, from its beginning; 0: all
	int64_t shuffle;    // of a pipe: windows of a block that are mixed, for which it is kept; else as it comes
	const char *field;  // of files named .jsonl: this string of each line is text; NULL or "": they are plain text
};

#define YK_DATA_ENDLESS ((int64_t)1 << 60)

struct yk_data;

// `paths` is a comma-separated list of files and folders (or one name that has a comma); "-" is
// standard input.
// Folders are walked down in the order of byte values; hidden names, links, empty files
// and files with a NUL byte are passed over there, while a file named itself must be
// text.  ENOENT, EIO, EFORMAT, and ERANGE when there is less than one window (two with a
// split), each naming path and numbers.  A tokenizer that learns is settled on the training part.
// Files of tokens are each split and cut into windows on their own; they must be of this tokenizer (EINVAL).  A pipe of
// raw tokens, or "-" with a format, stands alone, is not split, and is read as its windows are.
struct yk_data *yk_data_new(const char *paths, struct yk_tokenizer *,
			    const struct yk_data_spec *);
void yk_data_free(struct yk_data *); // NULL is fine

// Are these files of tokens, whose tokenizer is given by them?
bool yk_data_prepared(const char *paths, const struct yk_data_spec *);
// The tokenizer of the first of them; NULL: an error.
struct yk_tokenizer *yk_data_tokenizer(const char *paths, const struct yk_data_spec *);

int64_t yk_data_tokens(const struct yk_data *);
int64_t yk_data_files(const struct yk_data *);
int64_t yk_data_train_windows(const struct yk_data *); // of a pipe YK_DATA_ENDLESS
bool yk_data_endless(const struct yk_data *);
int64_t yk_data_valid_windows(const struct yk_data *);
// XXH64 of the text and of how it is split; of files that are not prepared, of blocks spread over them.
uint64_t yk_data_fingerprint(const struct yk_data *);
// Share of the text to validate: the one that was asked for, or that of the token file.
double yk_data_share(const struct yk_data *);
const struct yk_sources *yk_data_sources(const struct yk_data *);
// Of prepared sources that are not the very files of that list: are their tokens those that they were prepared with?
// Each of them is read whole.  EFORMAT names the one that was altered.
int yk_data_verify(const struct yk_data *, const json_t *then);

// Room for so many windows, for free(); NULL: ENOMEM.
int32_t *yk_data_windows(const struct yk_data *, int64_t batch);
// The training windows as a set, in the order of the text: field "ids" i32 [context + 1].  The data has to outlive
// it.  There must be training windows.
yoke_dataset *yk_data_set(struct yk_data *);
// Validation windows first .. first + batch - 1 in the order of the text; returns how
// many there were (the rows behind are left alone).  EIO, EFORMAT.
int64_t yk_data_valid(const struct yk_data *, int64_t first, int64_t batch, int32_t *to);

// ---- within the room ----

// Of n tokens, the first that is to validate.  ERANGE: too few for a window of each part that there is.
int yk_data_split(const char *what, int64_t n, const struct yk_data_spec *, int64_t *start);
// Of files of tokens: both sets (NULL: no window), tokens, fingerprint; files are added to the sources.
struct yk_token_sets {
	yoke_dataset *train, *valid;
	int64_t tokens, files;
	uint64_t fingerprint;
	double share; // by which the first is split
	bool endless; // it is a pipe
};
int yk_token_sets_open(const char *paths, const struct yk_tokenizer *, const struct yk_data_spec *,
		       struct yk_sources *, struct yk_token_sets *);

#endif
