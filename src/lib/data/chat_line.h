// SPDX-License-Identifier: Apache-2.0
// A line of conversations in JSON (chats.h), checked.
#ifndef YK_DATA_CHAT_LINE_H
#define YK_DATA_CHAT_LINE_H

#include <jansson.h>
#include <stddef.h>

// Either messages or a text; strings lie in `root`.
struct yk_chat_line {
	json_t *root;
	json_t *messages; // an array of at least one, whose contents are strings; NULL: a text
	json_t *tools;    // NULL: none
	size_t from; // messages before this one are a prompt, whose answers are not to be learned
	const char *prompt, *text; // prompt NULL: none; text: also the completion of a prompt
	size_t prompt_bytes, text_bytes;
};

// `what` names the line in messages.  EFORMAT: not JSON, or not such a line.
int yk_chat_line_parse(const char *text, size_t bytes, const char *what, struct yk_chat_line *to);
void yk_chat_line_fini(struct yk_chat_line *);

#endif
