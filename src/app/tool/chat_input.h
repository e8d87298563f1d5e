// SPDX-License-Identifier: Apache-2.0
// Input of a conversation: messages of one or several lines, and Ctrl-C.
#ifndef YK_CHAT_INPUT_H
#define YK_CHAT_INPUT_H

#include "tool/chat_edit.h"

// The part of the current line that was read: its length, and its first and last bytes.
struct yk_chat_part {
	size_t n;
	char head[3], tail[4];
	bool ended;
};

struct yk_chat_input {
	struct yk_interrupts *interrupts;
	struct yk_chat_edit *edit; // NULL: lines are read as they are
	bool terminal;
	bool ended;
	int line;              // number of the last one that was read
	struct yk_string read; // bytes of standard input that were not used yet
	// the message that is being read; Ctrl-C on a terminal forgets it
	struct yk_string message;
	struct yk_chat_part part;
	bool quoted,
		continued; // its first line began with """; the last one ended with a backslash
	bool begun;        // the last interrupt threw away what had been typed
	bool over;         // it is too long, and skipped to its end
};

void yk_chat_input_begin(struct yk_chat_input *, struct yk_interrupts *);
void yk_chat_input_end(struct yk_chat_input *);
// Reads a message: a line; several, each but the last with a backslash at its end; or the lines
// between """ and """.  Prompts on a terminal.  ERANGE: it has more than 1 MiB, and was skipped;
// EIO.
int yk_chat_read(struct yk_chat_input *, struct yk_string *to, enum yk_chat_read *what);

#endif
