// SPDX-License-Identifier: Apache-2.0
// Chat templates for the library itself: messages as JSON trees, and which of the text the
// assistant wrote.
#ifndef YK_CHAT_TEMPLATE_H
#define YK_CHAT_TEMPLATE_H

#include "template/eval.h"
#include "yoke-tokenizer.h"

// Parses a template with the variables of a tokenizer, as yoke_chat_template_of.
yoke_chat_template *yk_chat_template_for(const yoke_tokenizer *, const char *source, size_t bytes,
					 const char *name);

struct yk_chat_text {
	char *text; // ends with a NUL that `bytes` does not count
	size_t bytes;
	struct yk_spans written;    // what comes from messages
	struct yk_spans generation; // what the template encloses in generation blocks; message: -1
};
// Renders an array of messages.  The caller calls yk_chat_text_fini.
int yk_chat_render(const yoke_chat_template *, const json_t *messages,
		   const struct yoke_chat_options *, struct yk_chat_text *);
void yk_chat_text_fini(struct yk_chat_text *);

#endif
