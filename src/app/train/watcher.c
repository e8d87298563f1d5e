// SPDX-License-Identifier: Apache-2.0
// Starts the dashboard process of a run.
#include "config.h"

#include "train/watcher.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system.h"

enum { PATIENCE_MS = 2000 };

// The child gets its own process group: an interrupt from the terminal is for the run, which then
// ends it.
static int spawn(struct yk_watcher *w, const char *const *argv, int from)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int code = posix_spawn_file_actions_init(&files);
	if (code)
		return code;
	if ((code = posix_spawnattr_init(&attributes)) == 0) {
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
							      POSIX_SPAWN_SETSIGMASK |
							      POSIX_SPAWN_SETSIGDEF);
		posix_spawnattr_setpgroup(&attributes, 0);
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setsigdefault(&attributes, &all);
		code = posix_spawn_file_actions_adddup2(&files, from, 0);
		if (!code)
			code = posix_spawn_file_actions_adddup2(&files, 2, 1);
		if (!code)
			code = posix_spawn(&w->pid, argv[0], &files, &attributes,
					   (char *const *)(uintptr_t)argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&files);
	return code;
}

void yk_watcher_start(struct yk_watcher *w, const char *folder, int64_t port)
{
	char path[PATH_MAX], text[32], run[PATH_MAX];
	int ends[2];
	*w = (struct yk_watcher){ .pid = 0 };
	if (!realpath(yk_program(), path) || yk_pipe(ends) < 0) {
		yk_warn("train", "no dashboard: %s", strerror(errno));
		return;
	}
	snprintf(text, sizeof text, "port=%lld", (long long)(port == 1 ? 0 : port));
	// prefix "./", so that a name like an option or key=value is read as a path
	snprintf(run, sizeof run, "%s%s", *folder == '/' ? "" : "./", folder);
	const char *const argv[] = { path, "dashboard", run, text, "--until-eof", NULL };
	int code = spawn(w, argv, ends[0]);
	close(ends[0]);
	if (code) {
		close(ends[1]);
		*w = (struct yk_watcher){ .pid = 0 };
		yk_warn("train", "no dashboard: %s: %s", path, strerror(code));
		return;
	}
	w->pipe = ends[1];
}

void yk_watcher_end(struct yk_watcher *w)
{
	int status;
	pid_t got = 0;
	if (!w->pid)
		return;
	close(w->pipe);
	for (int ms = 0; ms < PATIENCE_MS && (got = waitpid(w->pid, &status, WNOHANG)) == 0;
	     ms += 10)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	if (got == 0) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	*w = (struct yk_watcher){ .pid = 0 };
}
