// SPDX-License-Identifier: Apache-2.0
// `yoke dashboard` as a child of a run: it reads the run's files, and ends when the run's process does, however that
// ends, since then the pipe it reads from is closed.
#ifndef YK_WATCHER_H
#define YK_WATCHER_H

#include <stdint.h>
#include <sys/types.h>

struct yk_watcher { // all zeros: none
	pid_t pid;
	int pipe;
};

// port 1: any that is free.  One that cannot be started is a warning; what it says itself goes to standard error.
void yk_watcher_start(struct yk_watcher *, const char *folder, int64_t port);
void yk_watcher_end(struct yk_watcher *);

#endif
