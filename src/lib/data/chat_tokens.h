// SPDX-License-Identifier: Apache-2.0
// From the bytes of a rendered conversation to its tokens.
#ifndef YK_DATA_CHAT_TOKENS_H
#define YK_DATA_CHAT_TOKENS_H

#include <stdbool.h>

#include "text/tokenizer.h"

struct yk_chat_text; // template/template.h

struct yk_chat_tokens {
	int32_t *id;
	unsigned char *target; // [n]: 1: the assistant wrote it
	size_t n;
};

// Bytes of the text that the assistant wrote.  turn: found by comparing texts, so it may have a
// line end after the token that ends the turn.
struct yk_answer_span {
	size_t from, to;
	bool turn;
};

struct yk_answers {
	struct yk_answer_span *at; // in order and apart from each other
	size_t n, cap;
};

// Tokenizes the text and marks the answers, those that begin within `limit` tokens.  Special tokens
// in bytes that come from messages are text.
int yk_chat_tokens_make(struct yk_tokenizer *, const struct yk_chat_text *,
			const struct yk_answers *, size_t limit, struct yk_chat_tokens *to);
void yk_chat_tokens_fini(struct yk_chat_tokens *);

#endif
