// SPDX-License-Identifier: Apache-2.0
// Vocabularies of words: learnt from a text, then fixed.  Fixed, id 0 is <pad>, 1 is
// <unk>, which stands for every word that is not in it, and the others follow sorted by
// their bytes.
#ifndef YK_WORDS_H
#define YK_WORDS_H

#include <jansson.h>
#include <stdbool.h>

#include "text/tokens.h"

#define YK_WORD_PAD 0
#define YK_WORD_UNKNOWN 1

struct yk_word {
	char *s; // with a NUL behind it
	size_t n;
};

struct yk_words {
	bool learning; // ids are those of first appearance, for now
	struct yk_word *word;
	size_t count, capacity;
	uint32_t *table; // open addressing: id + 1
	size_t table_size;
};

// Appends the words of a text: what stands between blanks (space, tab, newline and their
// like in ASCII).  EFORMAT while learning: a word is not UTF-8, which a vocabulary cannot
// be saved with.
int yk_words_encode(struct yk_words *, const char *text, size_t bytes,
		    struct yk_tokens *to);
// The fixed vocabulary of n words, which are sorted on the way and may be there several times.  ERANGE: more than fits
// a manifest.
int yk_words_make(struct yk_words *, struct yk_word *, size_t n);
// What words are in a fixed vocabulary, [from->count].
void yk_words_map(const struct yk_words *fixed, const struct yk_words *from, int32_t *id);
// Ends learning: the vocabulary is the words of the first `train` tokens, or so many of the most frequent
// ones (of equals those that come first by their bytes) that it has `most` ids, 0: all; all tokens are
// renumbered. ERANGE: more than fits a manifest.
int yk_words_settle(struct yk_words *, struct yk_tokens *, size_t train, size_t most);
// A fixed vocabulary as an array of strings, and back.  EFORMAT: not as settle leaves it.
json_t *yk_words_save(const struct yk_words *);
int yk_words_load(struct yk_words *, const json_t *array, const char *what);
void yk_words_fini(struct yk_words *);

#endif
