// SPDX-License-Identifier: Apache-2.0
// Text to token files: the same tokens, the same vocabulary and the same split as training on the text has.
// The text is read in blocks by several threads, first to count tokens and to learn words, then to write each block's
// tokens where they belong.  What the first pass met is kept in a file without a name, as far as there is room, so that the
// second one looks ids up rather than words.  Memory: a few blocks, the different words, and 56 bytes a block of text.
#ifndef YK_DATA_PREPARE_H
#define YK_DATA_PREPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "text/tokenizer.h"

struct yk_prepare {
	const char *paths;     // as training takes them, without standard input
	const char *out;       // the token file
	const char *tokenizer; // "byte", "word"
	const char *field;     // as in yk_data_spec
	double valid;          // the split: share, and a window's tokens, which each part has at least
	int64_t context;
	int64_t workers;       // threads; 0: one for each processor that may be used
	uint64_t block;        // bytes of text that a thread takes at once; 0: 4 MiB
	const atomic_int *stop; // not 0: ends, with EPERM and nothing written; NULL: nobody asks
};

struct yk_prepared {
	bool reused; // the file is there, made of these sources in this way: nothing was done
	int64_t tokens, train, documents, files, skipped, vocab;
	uint64_t bytes; // of text
};

// Writes the file, or leaves it as it was.  ENOENT, EIO, EFORMAT, ERANGE with the file of text or the one that is
// written; EINVAL: an option.
int yk_prepare(const struct yk_prepare *, struct yk_prepared *);

// ---- blocks.c ----

struct yk_text_file {
	char *path;
	uint64_t bytes, begin; // of all; where the text begins, behind the mark of UTF-8 if it has one
};

// A part of a file.  A token, or a line of JSON, belongs to the block in which it begins.
struct yk_block {
	int64_t file;
	uint64_t begin, end;
	int64_t tokens, documents; // in it
	bool kept;                 // what was met is: tokens by the ids of worker `by`, then where documents begin
	int by, width;
	uint64_t at;               // in the kept file
};

// What counting met.
struct yk_kept {
	struct yk_file_writer file; // fd -1: there is none
	_Atomic uint64_t end;
	int workers;
	int32_t **id; // of each worker's words, in the vocabulary; NULL: ids are what they were
};

struct yk_blocks {
	const struct yk_prepare *options;
	const struct yk_text_file *file;
	struct yk_block *block;
	int64_t count;
	int workers;
	struct yk_kept *kept; // NULL: nothing is
};

void yk_kept_open(struct yk_kept *);
void yk_kept_close(struct yk_kept *);
// Counts tokens and documents of each block; the tokenizer, where it learns, gets the words of the first tokens, as
// many as split(arg, tokens in all) says.
int yk_blocks_count(struct yk_blocks *, struct yk_tokenizer *, int64_t (*split)(void *arg, int64_t tokens), void *arg);
// Writes all tokens from byte `tokens` of the file on, and where each document begins, I64, from `documents` on.
int yk_blocks_write(struct yk_blocks *, struct yk_tokenizer *, const struct yk_file_writer *, uint64_t tokens,
		    uint64_t documents);

#endif
