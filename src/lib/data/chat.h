// SPDX-License-Identifier: Apache-2.0
// A conversation as samples: texts in tokens, with those that the assistant wrote marked.
#ifndef YK_DATA_CHAT_H
#define YK_DATA_CHAT_H

#include <jansson.h>

#include "data/chat_tokens.h"

struct yk_conversation {
	struct yk_tokenizer *tokenizer; // of a pretrained model
	yoke_chat_template *template;
	json_t *messages, *tools; // tools NULL: none
	size_t from;              // answers before this message are not to be learned
	size_t limit;             // tokens of a sample beyond it need not be marked
};

// Receives a sample, which is released after it.
typedef int yk_chat_sample_fn(void *arg, const struct yk_chat_tokens *);

// Applies the template and calls fn with each sample.
//
// If the template has generation blocks, they are the targets, and the sample is the rendering of
// all messages.
//
// Otherwise each answer is learned after the prompt that a model is given for it: message i after
// P, the rendering of messages[..i] with the generation prompt.  The answer is what A, the
// rendering of messages[..i + 1], has after P.  If A does not begin with P, the two are compared
// from the end of the bytes that stem from messages[..i]; what they have in common there still
// belongs to the prompt, and the rest of A is the answer.  Answers share a sample as long as each
// of these texts begins with the one before; where a template renders earlier turns in another way
// than the last one, each answer has a sample of its own.  The sample of the last answer is
// continued to the rendering of all messages, if that begins with it.  Samples after one that
// exceeds `limit` are left out.
//
// EFORMAT: the template fails, or an answer is not at the end of its rendering; ERANGE; ENOMEM; or
// an error of fn.
int yk_chat_encode(const struct yk_conversation *, yk_chat_sample_fn *, void *arg);

#endif
