// SPDX-License-Identifier: Apache-2.0
// A conversation as tokens, with those that the assistant wrote marked.
#ifndef YK_DATA_CHAT_H
#define YK_DATA_CHAT_H

#include <jansson.h>

#include "text/tokenizer.h"

struct yk_chat {
	struct yk_tokenizer *tokenizer; // of a pretrained model
	yoke_chat_template *template;
	json_t *messages, *tools; // tools NULL: none
	size_t from;              // answers before this message are not to be learned
	size_t limit;             // tokens beyond it need not be marked
};

struct yk_chat_tokens {
	int32_t *id;
	unsigned char *target; // [n]: 1: the assistant wrote it
	size_t n;
};

// Applies the template.  Targets are the template's generation blocks, or else each answer with the token
// that ends it: the text that render(messages[..i + 1]) has after render(messages[..i]) with the prompt for
// an answer.  EFORMAT: the template fails, or these texts do not begin alike; ERANGE; ENOMEM.
int yk_chat_encode(const struct yk_chat *, struct yk_chat_tokens *to);
void yk_chat_tokens_fini(struct yk_chat_tokens *);

#endif
