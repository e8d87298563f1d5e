// SPDX-License-Identifier: Apache-2.0
// Chat templates for the library itself: messages as JSON trees, and which of the text the assistant wrote.
#ifndef YK_CHAT_TEMPLATE_H
#define YK_CHAT_TEMPLATE_H

#include "template/eval.h"
#include "yoke-tokenizer.h"

// Renders an array of messages.  spans: NULL, or receives the intervals of the text that the template encloses
// in generation blocks; the caller frees spans->at.
int yk_chat_render(const yoke_chat_template *, const json_t *messages, const struct yoke_chat_options *, struct yk_spans *spans,
		   char **text, size_t *bytes);

#endif
