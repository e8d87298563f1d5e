// SPDX-License-Identifier: Apache-2.0
// Training data for language models: text that is read once and kept as tokens, or token files that
// are read in place. A window has context + 1 tokens: its first `context` tokens are the inputs,
// its last the targets. Adjacent windows share one token. Windows of conversations have another
// layout (chats.h).
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
	double valid;       // fraction of the tokens, at the end, for validation; 0: none, 1: all
	bool valid_given;   // valid was set by the user; else the split of a prepared token file
			    // has priority
	bool apart;         // other data are for validation (yk_data_validate_on): `valid` is 0,
			    // and token files are not split
	const char *format; // of raw tokens, as u16:1024; NULL or "": text, or token files
	int64_t vocab;      // size for raw tokens and ids; max ids for words, at least 3; 0: not
			    // given
	int64_t limit;      // tokens of text to use, from the beginning; 0: all
	int64_t shuffle;    // for a pipe: windows per block that are buffered and shuffled; 0:
			    // stream order
	const char *field;  // of .jsonl files: the member of each line that holds the text; NULL or
			    // "": conversations, if `chats`, else plain text
	bool chats;         // the model takes windows of separate texts (chats.h), and has a
			    // pretrained tokenizer
	bool pack;          // such windows hold several texts
	// Data in memory instead of files, with `paths` as its name.  text: a text, or the lines
	// of a .jsonl file if the name ends in .jsonl; ids: tokens.  NULL: read files.
	const char *text;
	size_t text_bytes;
	const int32_t *ids;
	int64_t id_count;
};

#define YK_DATA_ENDLESS ((int64_t)1 << 60)

struct yk_data;

// `paths` is a comma-separated list of files and folders (or one name that has a comma); "-" is
// standard input.
// Folders are walked recursively in byte order of the names; hidden names, links, empty files and
// files with a NUL byte are skipped there, while a file named in the list must be text.  ENOENT,
// EIO, EFORMAT, and ERANGE if there is less than one window (two with a split); each names path and
// numbers.  A tokenizer that learns takes its vocabulary from the training split.  Token files are
// each split and cut into windows separately; they must have been made with this tokenizer
// (EINVAL).  A pipe of raw tokens, or "-" with a format, must be the only path; it is not split,
// and is read while training.
struct yk_data *yk_data_new(const char *paths, struct yk_tokenizer *,
			    const struct yk_data_spec *);
void yk_data_free(struct yk_data *); // NULL is allowed
// Validates on all windows of `other`, which was opened with valid=1 and belongs to the data then,
// also after an error.  EINVAL: its windows have another layout.
int yk_data_validate_on(struct yk_data *, struct yk_data *other, const char *name);
// Calls fn with each text that yk_data_new would tokenize: a file, or a record of a .jsonl file. A
// result other than 0 ends the loop. EINVAL: standard input, which could not be read again.
int yk_data_each_text(const char *paths, const struct yk_data_spec *,
		      int (*fn)(void *arg, const char *text, size_t n), void *arg);

struct yk_chats_prepared; // chat_store.h
// Tokenizes conversations into a file (chat_store.h), which yk_data_new reads in place of `paths`
// with the same windows.
int yk_data_prepare_chats(const char *paths, struct yk_tokenizer *, const char *out,
			  struct yk_chats_prepared *);

// Are the paths token files, which define the tokenizer?
bool yk_data_prepared(const char *paths, const struct yk_data_spec *);
// The tokenizer of the first token file; NULL: an error.
struct yk_tokenizer *yk_data_tokenizer(const char *paths, const struct yk_data_spec *);

int64_t yk_data_tokens(const struct yk_data *);
int64_t yk_data_chats(const struct yk_data *); // conversations, or other separate texts; 0: none
// Numbers in a window: context + 1; for conversations, see chats.h.
int64_t yk_data_width(const struct yk_data *);
// Number of targets of windows that were read; and of a window, given by its number.
int64_t yk_data_targets(const struct yk_data *, const int32_t *windows, int64_t count);
int64_t yk_data_train_targets(const struct yk_data *, int64_t window);
int64_t yk_data_valid_targets(const struct yk_data *, int64_t window);
int64_t yk_data_files(const struct yk_data *);
int64_t yk_data_train_windows(const struct yk_data *); // YK_DATA_ENDLESS for a pipe
bool yk_data_endless(const struct yk_data *);
int64_t yk_data_valid_windows(const struct yk_data *);
// XXH64 of the text and its split; files that are not prepared contribute hashes of blocks spread
// over them.
uint64_t yk_data_fingerprint(const struct yk_data *);
// The same including other data for validation.
uint64_t yk_data_fingerprint_all(const struct yk_data *);
// Fraction of the text for validation: the user's, or that of the token file.
double yk_data_val_fraction(const struct yk_data *);
const struct yk_sources *yk_data_sources(const struct yk_data *);
// Checks the tokens of prepared sources that changed since `then` against their stored hashes,
// which reads these files completely.  EFORMAT names the altered file.
int yk_data_verify(const struct yk_data *, const json_t *then);

// Allocates memory for `batch` windows, which the caller frees; NULL: ENOMEM.
int32_t *yk_data_windows(const struct yk_data *, int64_t batch);
// The training windows as a dataset in text order: field "ids" i32 [width].  The data must
// outlive it.  There must be training windows.
yoke_dataset *yk_data_set(struct yk_data *);
// Reads validation windows first .. first + batch - 1 in text order; returns how
// many exist (the other rows stay unchanged).  EIO, EFORMAT.
int64_t yk_data_valid(const struct yk_data *, int64_t first, int64_t batch, int32_t *to);
// Name of the dataset that has them, for messages; "" if there are none.
const char *yk_data_valid_name(const struct yk_data *);

// ---- internal ----

// Sets *start to the first of n tokens that is for validation.  ERANGE: a side of the split has
// less than one window.
int yk_data_split(const char *what, int64_t n, const struct yk_data_spec *, int64_t *start);
// Result of opening token files: both datasets (NULL: no window), tokens, fingerprint; the files
// are added to the sources.
struct yk_token_sets {
	yoke_dataset *train, *valid;
	int64_t tokens, files;
	uint64_t fingerprint;
	double share; // validation fraction of the first file
	bool endless; // the data is a pipe
};
int yk_token_sets_open(const char *paths, const struct yk_tokenizer *, const struct yk_data_spec *,
		       struct yk_sources *, struct yk_token_sets *);

#endif
