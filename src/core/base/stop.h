// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first one requests an orderly end, the second one ends the process at once.
// A thread waits for them: no handler runs, and a long step or a hanging disk does not delay the second one.
//
// GNU timeout, batch schedulers and some launchers signal a process and then its process group, so one request arrives
// twice.  Signals that follow one that was counted within the window below belong to it, whichever of the two they are.
#ifndef YK_STOP_H
#define YK_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { YK_STOP_WINDOW_MS = 500 };

struct yk_stop {
	atomic_int signal; // the first one; 0 before it
	sigset_t set, old;
	pthread_t thread;
	void (*told)(void *arg, int signal, bool again);
	void *arg;
};

// Blocks both signals in this thread and in every thread that it creates later, so call it before creating any.
// The waiting thread calls `told` at the first signal, and with `again` at the second, after which the process ends
// with status 128 + signal.  `told` may be NULL.  ENOMEM.
int yk_stop_begin(struct yk_stop *, void (*told)(void *arg, int signal, bool again), void *arg);
// Restores the signal mask, after the window of a signal that came: what belongs to it must not end the process.
void yk_stop_end(struct yk_stop *);

// The set of the two signals.
void yk_stop_signals(sigset_t *);

// The window, for a caller that reads signals itself and passes them on.
struct yk_stop_window {
	uint64_t end; // monotonic clock in ns; 0: closed
};

// Whether a signal that was just read counts; if so, the window opens.
bool yk_stop_counts(struct yk_stop_window *);
// After all signals that had arrived were read: closes the window when its time is over.  What arrives while the caller
// is stopped or late thus still belongs to the signal before.
void yk_stop_drained(struct yk_stop_window *);
// Waits until the window is closed and takes the signals that belong to it; the caller has blocked them.
void yk_stop_swallow(struct yk_stop_window *, const sigset_t *);

#endif
