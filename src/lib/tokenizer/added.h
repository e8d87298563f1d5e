// SPDX-License-Identifier: Apache-2.0
// Added tokens: strings that are cut out of a text before the model sees it, leftmost and longest
// first.
#ifndef YK_ADDED_H
#define YK_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/trie.h"
#include "yoke-tokenizer.h"

struct yk_added_token {
	int32_t id;
	bool special;
	bool word;        // only where no word character is beside it
	bool left, right; // takes the white space on that side
};

struct yk_added {
	struct yk_added_token *token;
	size_t count, cap;
	struct yk_trie raw;        // sought in the text as it is
	struct yk_trie normalized; // sought in the normalized text
};

// Which special tokens of a text are parsed as tokens.
struct yk_special_rule {
	bool parse; // those outside of the intervals; false: none
	const struct yoke_text_span *plain; // intervals of the text
	size_t n;
};

// Calls fn for each interval of the text, in order; id < 0: no token.  Stops at a nonzero result of
// fn, which is returned.
int yk_added_split(const struct yk_added *, const struct yk_trie *, const char *s, size_t n,
		   const struct yk_special_rule *,
		   int (*fn)(void *arg, const char *s, size_t n, int32_t id), void *arg);
// Is there a special token in the text?
bool yk_added_special(const struct yk_added *, const struct yk_trie *, const char *s, size_t n);
void yk_added_fini(struct yk_added *);

#endif
