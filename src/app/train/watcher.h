// SPDX-License-Identifier: Apache-2.0
// Runs `yoke dashboard` as a child process of a run. It reads the run's files and ends when its
// input pipe closes, that is, when the run's process ends for any reason.
#ifndef YK_WATCHER_H
#define YK_WATCHER_H

#include <stdint.h>
#include <sys/types.h>

struct yk_watcher { // zero-initialized: none
	pid_t pid;
	int pipe;
};

// port 1: any free port. Failure to start causes a warning; the child's own messages go to standard
// error.
void yk_watcher_start(struct yk_watcher *, const char *folder, int64_t port);
void yk_watcher_end(struct yk_watcher *);

#endif
