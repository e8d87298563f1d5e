// SPDX-License-Identifier: Apache-2.0
// Vocabularies of words, which are learned from a text and then fixed.  In a fixed one, id 0 is
// <pad>, 1 is <unk>, which stands for all unknown words, and the other words follow in byte order.
#ifndef YK_WORDS_H
#define YK_WORDS_H

#include <jansson.h>
#include <stdbool.h>

#include "text/tokens.h"

#define YK_WORD_PAD 0
#define YK_WORD_UNKNOWN 1

struct yk_word {
	char *s; // NUL-terminated
	size_t n;
};

struct yk_words {
	bool learning; // not fixed yet: ids count in order of first appearance
	struct yk_word *word;
	size_t count, capacity;
	uint32_t *table; // hash table with open addressing: id + 1
	size_t table_size;
};

// Appends the words of a text, which are separated by ASCII whitespace (space, tab, newline
// etc.).  EFORMAT while learning: a word is not UTF-8, so the vocabulary could
// not be saved.
int yk_words_encode(struct yk_words *, const char *text, size_t bytes,
		    struct yk_tokens *to);
// Makes a fixed vocabulary of n words, which it sorts in place; duplicates are allowed.  ERANGE:
// too large for a manifest.
int yk_words_make(struct yk_words *, struct yk_word *, size_t n);
// id [from->count]: the ids of the words of `from` in a fixed vocabulary.
void yk_words_map(const struct yk_words *fixed, const struct yk_words *from, int32_t *id);
// Ends learning: the vocabulary becomes the words of the first `train` tokens, limited to the most
// frequent ones (ties in byte order) so that it has at most `max` ids, 0: no limit; renumbers all
// tokens.  ERANGE: too large for a manifest.
int yk_words_settle(struct yk_words *, struct yk_tokens *, size_t train, size_t max);
// Converts a fixed vocabulary to an array of strings, and back.  EFORMAT: not sorted as settle does
// it.
json_t *yk_words_save(const struct yk_words *);
int yk_words_load(struct yk_words *, const json_t *array, const char *what);
void yk_words_fini(struct yk_words *);

#endif
