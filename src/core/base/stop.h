// SPDX-License-Identifier: Apache-2.0
// Handles SIGINT, SIGTERM and SIGHUP: the first signal requests an orderly end, the second ends the
// process at once.  A dedicated thread waits for them, so no handler runs, and a long step or a
// hanging disk does not delay the second.
//
// GNU timeout, batch schedulers and some launchers signal a process and then its process group, so
// one request arrives twice.  A signal that arrives within the window below after a counted one is
// treated as part of it.
#ifndef YK_STOP_H
#define YK_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { YK_STOP_WINDOW_MS = 500 };

struct yk_stop {
	atomic_int signal; // the first one; 0: none yet
	sigset_t set, old;
	pthread_t thread;
	void (*notify)(void *arg, int signal, bool again);
	void *arg;
};

// Blocks the signals in this thread and in all threads that it creates later, so call it before
// creating any.  The waiting thread calls `notify` at the first signal, and with `again` at the
// second, after which the process ends with status 128 + signal.  `notify` may be NULL.  ENOMEM.
int yk_stop_begin(struct yk_stop *, void (*notify)(void *arg, int signal, bool again), void *arg);
// Restores the signal mask, after the window of a signal has closed: a repeated signal must not end
// the process.
void yk_stop_end(struct yk_stop *);

// The set of the signals.  SIGHUP, which a closing terminal sends, belongs to it unless the process
// ignores it, as under nohup.
void yk_stop_signals(sigset_t *);
// "SIGINT", "SIGTERM" or "SIGHUP"
const char *yk_stop_name(int signal);

// The state of the window, for a caller that reads signals itself and forwards them.
struct yk_stop_window {
	uint64_t end; // monotonic clock in ns; 0: closed
};

// Does a signal that was just read count?  If so, opens the window.
bool yk_stop_counts(struct yk_stop_window *);
// Call when no more signals are pending: closes the window if its time is over.  Signals that
// arrive while the caller is stopped or late thus still belong to the one before.
void yk_stop_drained(struct yk_stop_window *);
// Waits until the window is closed and discards the signals in it; the caller has blocked them.
void yk_stop_swallow(struct yk_stop_window *, const sigset_t *);

#endif
