// SPDX-License-Identifier: Apache-2.0
// Trains byte-level BPE as BpeTrainer of the library `tokenizers` does, with the pre-tokenizer of
// GPT-2: the same vocabulary and merges, in the same order.
#ifndef YK_TOKENIZER_TRAIN_H
#define YK_TOKENIZER_TRAIN_H

#include "base/arena.h"
#include "tokenizer/regex.h"
#include "yoke-tokenizer.h"

#define YK_END_OF_TEXT "<|endoftext|>"            // the special token, id 0
enum { YK_BPE_MIN = 257, YK_BPE_VOCAB = 4096 }; // ids of the special token and all bytes; default

// Unique words of the training text, as the pre-tokenizer divides it.
struct yk_bpe_word {
	uint64_t hash;
	size_t at, n; // bytes
	int64_t count;
};

// All zeros, then `what`, is empty.
struct yk_bpe_words {
	const char *what; // for messages
	struct yk_regex *regex;
	char *bytes;
	size_t used, bytes_cap;
	struct yk_bpe_word *word; // in order of first appearance
	size_t count, cap;
	uint32_t *table; // index + 1, open addressing
	size_t table_size;
};

// Counts the words of a text, which is independent of other texts.  EFORMAT: not UTF-8;
// EUNSUPPORTED: a build without Oniguruma; ERANGE: more than 2^31 words, or 2^31 bytes without a
// blank or line end; ENOMEM.
int yk_bpe_words_add(struct yk_bpe_words *, const char *text, size_t n);
void yk_bpe_words_fini(struct yk_bpe_words *);

// Learns a vocabulary of `vocab` ids, or fewer if no pair of symbols is left.  NULL: ERANGE,
// ENOMEM.
yoke_tokenizer *yk_bpe_train(const struct yk_bpe_words *, int64_t vocab);

#endif
