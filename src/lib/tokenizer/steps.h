// SPDX-License-Identifier: Apache-2.0
// The components of a tokenizer besides its model, each a list of steps: normalizers change a text,
// pre-tokenizers divide it into pieces, decoders change the list of tokens.  A component "Sequence"
// is flattened into the list.
#ifndef YK_TOKENIZER_STEPS_H
#define YK_TOKENIZER_STEPS_H

#include "tokenizer/charsmap.h"
#include "tokenizer/pieces.h"
#include "tokenizer/regex.h"

// What becomes of the matches of a pattern that splits a text.
enum yk_behavior { YK_REMOVED, YK_ISOLATED, YK_WITH_PREVIOUS, YK_WITH_NEXT, YK_CONTIGUOUS };

enum yk_token_step_kind {
	// normalizers
	YK_BERT,
	YK_STRIP,
	YK_STRIP_ACCENTS,
	YK_FORM,
	YK_LOWERCASE,
	YK_NMT,
	YK_CHARSMAP,
	YK_REPLACE,
	YK_PREPEND,
	YK_BYTES,
	// pre-tokenizers
	YK_SPLIT,
	YK_SPLIT_SPACE,
	YK_SPLIT_CHAR,
	YK_SPLIT_BERT,
	YK_SPLIT_DIGITS,
	YK_SPLIT_PUNCTUATION,
	YK_SPLIT_LENGTH,
	YK_SPLIT_METASPACE,
	YK_SPLIT_BYTES,
	// decoders
	YK_DECODE_BYTES,
	YK_DECODE_WORDPIECE,
	YK_DECODE_METASPACE,
	YK_DECODE_BPE,
	YK_DECODE_CTC,
	YK_DECODE_REPLACE,
	YK_DECODE_FUSE,
	YK_DECODE_STRIP,
	YK_DECODE_FALLBACK,
};

enum yk_prepend { YK_NEVER, YK_FIRST, YK_ALWAYS };

// Members have the meaning that the kind gives them; strings belong to the tokenizer's arena.
struct yk_token_step {
	enum yk_token_step_kind kind;
	struct yk_regex *regex; // of a pattern; NULL: the pattern is the string a
	const char *a, *b;      // pattern and replacement, prefix, ..
	size_t na, nb;
	struct yk_charsmap *map;
	uint32_t c;    // delimiter, replacement
	size_t length; // characters
	enum yk_behavior behavior;
	enum yk_prepend prepend;
	int form;                          // enum yk_unicode_form
	bool invert, individual, cut;      // of split, digits, metaspace
	bool clean, chinese, strip, lower; // of BERT
	bool left, right;                  // of strip
	bool space, regexed;               // of byte-level: prefix space; split by a pattern
	size_t start, stop;                // characters that the decoder "Strip" removes
};

struct yk_steps {
	struct yk_token_step *step;
	size_t count, cap;
};

// Normalizes a text into `to`, which is replaced; `swap` is for intermediate results.
int yk_normalize(const struct yk_steps *, const char *s, size_t n, struct yk_string *to,
		 struct yk_string *swap);
// Divides the pieces further; `swap` is for intermediate results.
int yk_split(const struct yk_steps *, struct yk_pieces *, struct yk_pieces *swap);
// Converts tokens to texts, which are to be joined; `raw` keeps bytes that are not UTF-8.
int yk_decode(const struct yk_steps *, struct yk_pieces *, struct yk_pieces *swap, bool raw);
void yk_steps_fini(struct yk_steps *);

// The character that stands for a byte in byte-level vocabularies (GPT-2).
uint32_t yk_byte_char(unsigned char);
// The byte that a character stands for, -1: none.
int yk_char_byte(uint32_t);
// Appends the characters of the bytes.
void yk_bytes_add(struct yk_string *, const char *s, size_t n);
// Calls fn for each interval between and of the matches of the step's pattern (a regular expression
// or a string), in order.
int yk_matches(const struct yk_token_step *, const char *s, size_t n,
	       void (*fn)(void *arg, const char *s, size_t n, bool match), void *arg);

#endif
