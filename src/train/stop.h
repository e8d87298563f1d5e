// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first asks for an end behind the step, the second ends at once.
// They are waited for by a thread of their own: no handler runs, and a step that takes
// long, or a disk that hangs, does not keep the second one from being seen.
#ifndef YK_STOP_H
#define YK_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

struct yk_stop {
	atomic_int signal; // the first one, 0: none came
	sigset_t set, old;
	pthread_t thread;
	void (*last)(void *arg, int signal);
	void *arg;
};

// Blocks both in this thread and in all that it makes.  At the second one `last` is
// called on the thread that waits, and the process ends with status 128 + signal.
// ENOMEM.
int yk_stop_begin(struct yk_stop *, void (*last)(void *arg, int signal), void *arg);
void yk_stop_end(struct yk_stop *); // what was blocked before is again

#endif
