// SPDX-License-Identifier: Apache-2.0
// Handles Ctrl-C, which ends an answer or a line but not the program.
#ifndef YK_INTERRUPTS_H
#define YK_INTERRUPTS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

// A thread waits for SIGINT, so that no signal handler is needed.  Until `ready`, SIGINT ends the
// process.
struct yk_interrupts {
	atomic_bool ready;
	atomic_uint count;
	unsigned taken; // number of signals that were handled
	int wake[2];    // a pipe; wake[0] is readable after a signal
	pthread_t thread;
	sigset_t set, old;
};
// Call it before any other thread is created.  ENOMEM.
int yk_interrupts_begin(struct yk_interrupts *);
void yk_interrupts_end(struct yk_interrupts *);
// Has a signal arrived since the last call of take?
bool yk_interrupts_pending(const struct yk_interrupts *);
void yk_interrupts_take(struct yk_interrupts *);

#endif
