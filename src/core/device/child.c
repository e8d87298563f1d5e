// SPDX-License-Identifier: Apache-2.0
// Runs a program in a child process, enforces a time limit and describes how it ended.
#include "config.h"

#include "device/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "base/system.h"
#include "device/installed.h"
#include "device/trusted.h"

YK_PARAM(helper_setting, "plugin.probe", YK_STRING, "",
	 "program that tries each plugin in a separate process; 0: none; empty: the installed one");
YK_PARAM(time_setting, "plugin.probe_time", YK_INT, "20",
	 "seconds a plugin may take in that process to load and to list its devices",
	 .min = 1, .max = 1000000);

int64_t yk_child_limit(void)
{
	return yk_param_int(&time_setting);
}

enum yk_helper yk_child_helper(char to[PATH_MAX], char *why, size_t cap)
{
	const char *set = yk_param_str(&helper_setting);
	char reason[400];

	if (!strcmp(set, "0")) {
		snprintf(why, cap, "YOKE_PLUGIN_PROBE=0");
		return YK_HELPER_OFF;
	}
	if (*set && set[0] != '/') {
		snprintf(why, cap, "YOKE_PLUGIN_PROBE=%s is no absolute path", set);
		return YK_HELPER_MISSING;
	}
	// in a build tree the helper lies beside the program
	char *slash = !*set && realpath(yk_program(), to) ? strrchr(to, '/') : NULL;
	bool there = slash && (size_t)(slash - to) + sizeof "/yoke-probe" <= PATH_MAX;
	if (there)
		memcpy(slash, "/yoke-probe", sizeof "/yoke-probe");
	there = there && !access(to, X_OK);
	if (!there && (*set || !(yk_beside("yoke-probe", to, PATH_MAX) ||
				 yk_installed(YK_PROBE, to, PATH_MAX))))
		snprintf(to, PATH_MAX, "%s", *set ? set : YK_PROBE);
	if (yk_trusted_file(to, reason, sizeof reason))
		return YK_HELPER_FOUND;
	snprintf(why, cap, "%s%s: %s", *set ? "YOKE_PLUGIN_PROBE=" : "helper ", to, reason);
	return YK_HELPER_MISSING;
}

static int64_t milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Starts a program in its own process group, with a pipe from its standard output; 0 or an errno.
static int start(const char *const *argv, int *from, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int ends[2], loud = yk_log_on(YOKE_LOG_DEBUG, "plugin");

	if (yk_pipe(ends) < 0)
		return errno;
	char **settings = yk_param_environment();
	sigemptyset(&none);
	sigfillset(&all);
	int code = posix_spawn_file_actions_init(&files);
	if (code)
		goto fail_files;
	if ((code = posix_spawnattr_init(&attributes)))
		goto fail_attributes;
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
						      POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	code = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&files, ends[1], 1);
	if (!code && !loud) // the parent logs its messages again
		code = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY,
							0);
	if (!code)
		code = posix_spawn(pid, argv[0], &files, &attributes,
				   (char *const *)(uintptr_t)argv,
				   settings ? settings : environ);
	posix_spawnattr_destroy(&attributes);
fail_attributes:
	posix_spawn_file_actions_destroy(&files);
fail_files:
	free(settings);
	close(ends[1]);
	if (code)
		close(ends[0]);
	else
		*from = ends[0];
	return code;
}

// VANISHED: its status was already collected, because this process ignores or reaps all its
// children.
enum end { SURVIVED, DIED, VANISHED, TOO_SLOW };

// Waits for an answer terminated by the NUL that means "survived", for the end, or for the time
// limit.  Does not reap the child, so its pid stays valid.
static enum end watch(pid_t pid, int from, int64_t limit, char *answer, size_t cap)
{
	int64_t until = milliseconds() + limit;
	struct pollfd p = { .fd = from, .events = POLLIN };
	size_t n = 0;

	answer[0] = '\0';
	for (bool open = true;;) {
		siginfo_t info = { 0 };
		int gone = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		// a grandchild may keep the pipe open, so the end of the pipe is not a sufficient
		// condition
		if (open && poll(&p, 1, gone || info.si_pid ? 0 : 10) > 0) {
			ssize_t got = read(from, answer + n, cap - 1 - n);
			if (got > 0)
				answer[n + (size_t)got] = '\0';
			if (got > 0 && memchr(answer + n, '\0', (size_t)got))
				return SURVIVED;
			n += got > 0 ? (size_t)got : 0;
			open = got > 0 && n < cap - 1; // an answer that does not fit is discarded
		}
		if (gone)
			return VANISHED;
		if (info.si_pid)
			return DIED;
		if (milliseconds() > until)
			return TOO_SLOW;
		if (!open)
			nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	}
}

const char *yk_signal_name(int number, char to[32])
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ SIGABRT, "SIGABRT" }, { SIGBUS, "SIGBUS" },   { SIGFPE, "SIGFPE" },
		{ SIGILL, "SIGILL" },   { SIGKILL, "SIGKILL" }, { SIGSEGV, "SIGSEGV" },
		{ SIGSYS, "SIGSYS" },   { SIGTERM, "SIGTERM" }, { SIGTRAP, "SIGTRAP" },
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == number)
			return names[i].name;
	snprintf(to, 32, "signal %d", number);
	return to;
}

int yk_child_watch(const char *const *argv, int64_t limit, const char *setting, char *answer,
		   size_t answer_cap, char *outcome, size_t cap)
{
	int from = -1, status = 0;
	pid_t pid;
	char name[32];

	if (limit < 1)
		limit = 1;
	int code = start(argv, &from, &pid);
	if (code) {
		snprintf(outcome, cap, "%.200s: %s", argv[0], strerror(code));
		return -1;
	}
	enum end end = watch(pid, from, limit * 1000, answer, answer_cap);
	close(from);
	if (end != VANISHED) {
		kill(-pid, SIGKILL); // including processes that the driver left running
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	outcome[0] = '\0';
	if (end == SURVIVED)
		return 1;
	if (end == TOO_SLOW) {
		yk_param_env(setting, name, sizeof name);
		snprintf(outcome, cap, "gave no answer within %lld s (%s)",
			 (long long)limit, name);
		return 1;
	}
	if (end == VANISHED) {
		snprintf(outcome, cap, "ended the process");
		return 0;
	}
	if (WIFEXITED(status)) {
		// 127: the loader could not even start the helper
		snprintf(outcome, cap, "ended the process with status %d",
			 WEXITSTATUS(status));
		return WEXITSTATUS(status) == 127 ? -1 : 1;
	}
	int number = WTERMSIG(status);
	snprintf(outcome, cap, "died of %s", yk_signal_name(number, name));
	return number != SIGKILL && number != SIGTERM; // these come from outside
}

int yk_child_run(const char *helper, const char *argument, const char *second, char *answer,
		 size_t answer_cap, char *outcome, size_t cap)
{
	const char *const argv[] = { helper, argument, second, NULL };

	return yk_child_watch(argv, yk_child_limit(), time_setting.name, answer,
			      answer_cap, outcome, cap);
}
