// SPDX-License-Identifier: Apache-2.0
// Input of a conversation: messages of one or several lines, and Ctrl-C.
#ifndef YK_CHAT_INPUT_H
#define YK_CHAT_INPUT_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tokenizer/pieces.h"

// SIGINT, awaited by a thread, so that no handler runs.  Until `ready` it ends the process.
struct yk_interrupts {
	atomic_bool ready;
	atomic_uint count;
	unsigned taken; // those that were acted on
	int wake;       // an eventfd, readable after a signal
	pthread_t thread;
	sigset_t set, old;
};
// Call it before any other thread is created.  ENOMEM.
int yk_interrupts_begin(struct yk_interrupts *);
void yk_interrupts_end(struct yk_interrupts *);
// Has a signal arrived since the last call of take?
bool yk_interrupts_pending(const struct yk_interrupts *);
void yk_interrupts_take(struct yk_interrupts *);

struct yk_chat_input {
	struct yk_interrupts *interrupts;
	bool terminal;
	int line;              // number of the last one that was read
	struct yk_string read; // bytes of standard input that were not used yet
	bool ended;
};

enum yk_chat_read { YK_READ_MESSAGE, YK_READ_INTERRUPT, YK_READ_END };
// Reads a message: a line; several, each but the last with a backslash at its end; or the lines between
// """ and """.  Prompts on a terminal.  ERANGE: it has more than 1 MiB, and was skipped; EIO.
int yk_chat_read(struct yk_chat_input *, struct yk_string *to, enum yk_chat_read *what);

#endif
