// SPDX-License-Identifier: Apache-2.0
// A line editor with a history, by libedit.
#ifndef YK_CHAT_EDIT_H
#define YK_CHAT_EDIT_H

#include "tokenizer/pieces.h"
#include "tool/interrupts.h"

enum yk_chat_read { YK_READ_MESSAGE, YK_READ_INTERRUPT, YK_READ_END };
struct yk_chat_edit;

// NULL: yoke was built without libedit, standard input or standard error is no terminal, or the
// editor cannot be set up; then lines are read as they are.
struct yk_chat_edit *yk_chat_edit_new(struct yk_interrupts *);
void yk_chat_edit_free(struct yk_chat_edit *); // NULL is allowed
// Replaces *to by a line without its end, and adds it to the history.  YK_READ_MESSAGE: a line was
// read; YK_READ_INTERRUPT: *to is what had been typed.  EIO, ENOMEM.
int yk_chat_edit_line(struct yk_chat_edit *, const char *prompt, struct yk_string *to,
		      enum yk_chat_read *what);

#endif
