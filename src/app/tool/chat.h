// SPDX-License-Identifier: Apache-2.0
// A conversation with a model: messages, which the chat template writes as a prompt, and answers.
#ifndef YK_CHAT_H
#define YK_CHAT_H

#include <jansson.h>

#include "models/generate.h"
#include "tool/model_open.h"
#include "yoke-tokenizer.h"

struct yk_chat {
	const struct yk_opened *o;
	const yoke_tokenizer *tokenizer;
	yoke_chat_template *template;
	json_t *messages; // [{"role":, "content":}, ..]
	// messages before it do not fit the context; the system message does not count
	size_t first;
	struct yk_generation *generation; // its cache holds the beginning of the next prompt
	int64_t answers;                  // so far; each has its own random numbers
	int64_t prompt;                   // tokens of the last one
	int64_t limit; // tokens of an answer; YK_AUTO: as many as the context has
};

// Receives a part of the answer, whole characters.  > 0 ends the answer, < 0 is an error.
typedef int yk_chat_emit_fn(void *arg, const char *text, size_t bytes);
// Why an answer ended.
enum yk_chat_end { YK_CHAT_ENDED, YK_CHAT_STOPPED, YK_CHAT_LIMIT, YK_CHAT_FULL };

int yk_chat_init(struct yk_chat *, const struct yk_opened *);
void yk_chat_fini(struct yk_chat *); // zero-initialized is allowed
// Appends a message.  EFORMAT: not UTF-8, or with a NUL.
int yk_chat_add(struct yk_chat *, const char *role, const char *text, size_t bytes);
// Sets the system message; an empty one removes it.
int yk_chat_system(struct yk_chat *, const char *text, size_t bytes);
// Forgets all messages but the system message.
int yk_chat_reset(struct yk_chat *);
// Removes the last message if it has that role; otherwise returns false.
bool yk_chat_pop(struct yk_chat *, const char *role);
// Answers the messages and appends the answer, even if it was stopped.  *dropped: the number of
// messages that the context is too short for, 0 if it is the same as before.  ERANGE: even the last
// one does not fit.
int yk_chat_answer(struct yk_chat *, yk_chat_emit_fn *, void *arg, enum yk_chat_end *,
		   size_t *dropped);
// Appends {"messages": ..} as a line to a file; reads the messages of the last line of a file.
int yk_chat_save(const struct yk_chat *, const char *path);
int yk_chat_load(struct yk_chat *, const char *path);

#endif
