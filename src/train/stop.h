// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first asks for an end behind the step, the second ends at once.
// They are waited for by a thread of their own: no handler runs, and a step that takes
// long, or a disk that hangs, does not keep the second one from being seen.
#ifndef YK_STOP_H
#define YK_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

struct yk_stop {
	atomic_int signal; // the first one, 0: none came
	sigset_t set, old;
	pthread_t thread;
	bool echo; // set before: a launcher hands on what the terminal sends to all as well, so that one comes twice
	void (*told)(void *arg, int signal, bool again);
	void *arg;
};

// Blocks both in this thread and in all that it makes.  `told` is called on the thread that
// waits, at the first one and (again) at the second, behind which the process ends with status
// 128 + signal.  ENOMEM.
int yk_stop_begin(struct yk_stop *, void (*told)(void *arg, int signal, bool again), void *arg);
void yk_stop_end(struct yk_stop *); // what was blocked before is again

#endif
