// SPDX-License-Identifier: Apache-2.0
// Converts text to token files with the tokens, vocabulary and split that training on the text
// itself would use.  Several threads read the text in blocks, first to count tokens and learn
// words, then to write each block's tokens to their final offsets.  The first pass stores the ids
// it met in an unnamed file, as far as space allows, so that the second pass need not look up
// words.  Memory: a few blocks, the distinct words, and 56 bytes per block of text.
#ifndef YK_DATA_PREPARE_H
#define YK_DATA_PREPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "text/tokenizer.h"

struct yk_prepare {
	const char *paths;     // a list of paths as for training, without standard input
	const char *out;       // the token file
	const char *tokenizer; // "byte", "word"
	const char *field;     // as in yk_data_spec
	double valid;          // split: fraction for validation; each side has at least one window
	int64_t context;
	int64_t workers;       // threads; 0: one per available processor
	uint64_t block;        // bytes of text that a thread processes at a time; 0: 4 MiB
	const atomic_int *stop; // nonzero: stop with EPERM and write nothing; NULL: cannot be
				// stopped
};

struct yk_prepared_text {
	bool reused; // an up-to-date file made from the same sources and options exists: nothing
		     // was done
	int64_t tokens, train, documents, files, skipped, vocab;
	uint64_t bytes; // of text
};

// Writes the file, or leaves the old one unchanged.  ENOENT, EIO, EFORMAT and ERANGE name the text
// or output file; EINVAL: a bad option.
int yk_prepare(const struct yk_prepare *, struct yk_prepared_text *);

// ---- blocks.c ----

struct yk_text_file {
	char *path;
	uint64_t bytes, begin; // size of the file; offset of the text after a UTF-8 byte order mark
};

// A byte range of a file.  A token, or a line of JSON, belongs to the block in which it begins.
struct yk_text_block {
	int64_t file;
	uint64_t begin, end;
	int64_t tokens, documents; // in the block
	bool kept;                 // its ids are in the kept file: tokens as ids of worker `by`,
				   // then document offsets
	int by, width;
	uint64_t at;               // offset in the kept file
};

// Results of the counting pass, kept for the writing pass.
struct yk_ids_cache {
	struct yk_file_writer file; // fd -1: not open
	_Atomic uint64_t end;
	int workers;
	int32_t **id; // per worker: vocabulary ids of its words; NULL: ids did not change
};

struct yk_blocks {
	const struct yk_prepare *options;
	const struct yk_text_file *file;
	struct yk_text_block *block;
	int64_t count;
	int workers;
	struct yk_ids_cache *kept; // NULL: nothing is kept
};

void yk_ids_cache_open(struct yk_ids_cache *);
void yk_ids_cache_close(struct yk_ids_cache *);
// Counts tokens and documents of each block.  A tokenizer that learns gets the words of the first
// split(arg, total tokens) tokens.
int yk_blocks_count(struct yk_blocks *, struct yk_tokenizer *,
		    int64_t (*split)(void *arg, int64_t tokens), void *arg);
// Writes all tokens from byte `tokens` of the file, and the first token index of each document,
// I64, from byte `documents`.
int yk_blocks_write(struct yk_blocks *, struct yk_tokenizer *, const struct yk_file_writer *,
		    uint64_t tokens, uint64_t documents);

#endif
