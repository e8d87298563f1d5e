// SPDX-License-Identifier: Apache-2.0
// First contact with a plugin, in a child process, and the memory of how it went. What is
// remembered counts for the same plugin file, helper, driver files, environment and boot;
// normally nothing has changed and no child is started.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "device/cache.h"
#include "device/plugin.h"
#include "device/probe.h"

YK_PARAM(helper_setting, "plugin.probe", YK_STRING, "",
	 "program that tries each plugin in a process of its own; 0: none; empty: the "
	 "installed one");
YK_PARAM(time_setting, "plugin.probe_time", YK_INT, "20",
	 "seconds a plugin may take there to load and to list its devices");

// ---- what an outcome depends on ----

static void add_file(FILE *to, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		fprintf(to, "%s: %d\n", path, errno);
	else
		fprintf(to, "%s: %llu %llu %lld %lld.%09ld\n", path,
			(unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			(long long)st.st_size, (long long)st.st_mtim.tv_sec,
			st.st_mtim.tv_nsec);
}

static void add_text(FILE *to, const char *path)
{
	char line[256] = "";
	FILE *f = fopen(path, "re");

	if (f && !fgets(line, sizeof line, f))
		line[0] = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	fprintf(to, "%s: %s\n", path, line);
	if (line[0] == '/') // an .icd file names its library
		add_file(to, line);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

// The files that name the OpenCL drivers of a machine, and the libraries they name by
// path; those named otherwise come and go with the linker's cache.
static void add_vendors(FILE *to, const char *folder)
{
	char path[PATH_MAX];
	struct dirent **entry = NULL;

	add_file(to, folder);
	int n = scandir(folder, &entry, NULL, by_name);
	for (int i = 0; i < n; i++) {
		size_t length = strlen(entry[i]->d_name);
		if (length > 4 && !strcmp(entry[i]->d_name + length - 4, ".icd") &&
		    snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name) <
			    (int)sizeof path) {
			add_file(to, path);
			add_text(to, path);
		}
		free(entry[i]);
	}
	free(entry);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// Variables that drivers, the linker and plugins read.
static void add_environment(FILE *to)
{
	static const char *const prefixes[] = {
		"AMD_", "CL_",     "CUDA_", "GPU_",  "HIP_",  "HSA_",  "LD_", "NVIDIA_",
		"OCL_", "OPENCL_", "POCL_", "ROCR_", "ROCM_", "SYCL_", "ZE_", "YOKE_",
	};
	size_t n = 0, kept = 0;

	while (environ[n])
		n++;
	char **list = malloc((n + 1) * sizeof *list);
	for (size_t i = 0; list && i < n; i++)
		for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
			// the core's own say nothing about a plugin
			if (!strncmp(environ[i], prefixes[k], strlen(prefixes[k])) &&
			    strncmp(environ[i], "YOKE_LOG", 8) &&
			    strncmp(environ[i], "YOKE_TEST_", 10) &&
			    strncmp(environ[i], "YOKE_BACKEND", 12))
				list[kept++] = environ[i];
	if (list)
		qsort(list, kept, sizeof *list, by_text);
	for (size_t i = 0; i < kept; i++)
		fprintf(to, "%s\n", list[i]);
	free(list);
}

// The caller frees it; NULL: no memory.
static char *make_key(const char *file, const char *helper, size_t *bytes)
{
	const char *vendors = getenv("OCL_ICD_VENDORS");
	char *key = NULL;
	FILE *to = open_memstream(&key, bytes);

	if (!to)
		return NULL;
	fprintf(to, "probe 1 of yoke %s, ABI %x\n", PACKAGE_VERSION, YOKE_ABI);
	add_file(to, file);
	add_file(to, helper);
	add_file(to, "/etc/ld.so.cache");
	add_vendors(to, "/etc/OpenCL/vendors");
	if (vendors && vendors[0] == '/')
		add_vendors(to, vendors);
	// what a driver did to a device, or a kernel's module to a driver, ends with the
	// boot
	add_text(to, "/proc/sys/kernel/random/boot_id");
	add_environment(to);
	if (fclose(to) == 0)
		return key;
	free(key);
	return NULL;
}

// ---- the helper ----

// The helper's path; false: there is none, and why.
static bool find_helper(char to[PATH_MAX], char *why, size_t cap)
{
	const char *set = yk_param_str(&helper_setting);

	if (!strcmp(set, "0")) {
		snprintf(why, cap, "YOKE_PLUGIN_PROBE=0");
		return false;
	}
	if (*set) {
		snprintf(to, PATH_MAX, "%s", set);
		if (set[0] != '/') {
			snprintf(why, cap, "YOKE_PLUGIN_PROBE=%s is no absolute path",
				 set);
			return false;
		}
		return yk_trusted_file(to, why, cap);
	}
	// where both were built they lie side by side
	ssize_t n = readlink("/proc/self/exe", to, PATH_MAX - 1);
	to[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(to, '/');
	if (slash && (size_t)(slash - to) + sizeof "/yoke-probe" <= PATH_MAX) {
		memcpy(slash, "/yoke-probe", sizeof "/yoke-probe");
		if (!access(to, X_OK))
			return yk_trusted_file(to, why, cap);
	}
	snprintf(to, PATH_MAX, "%s", YK_PROBE);
	return yk_trusted_file(to, why, cap);
}

static int64_t milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Starts the helper in a process group of its own, with a pipe from its standard output;
// 0 or an errno.
static int start(const char *helper, const char *file, int *from, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int ends[2], loud = yk_log_on(YOKE_LOG_DEBUG, "plugin");
	char *const argv[] = { (char *)(uintptr_t)helper, (char *)(uintptr_t)file, NULL };

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
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
	if (!code && !loud) // what it logs is logged again here
		code = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY,
							0);
	if (!code)
		code = posix_spawn(pid, helper, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
fail_attributes:
	posix_spawn_file_actions_destroy(&files);
fail_files:
	close(ends[1]);
	if (code)
		close(ends[0]);
	else
		*from = ends[0];
	return code;
}

// VANISHED: somebody else took its status; a process may ignore or collect all its
// children.
enum end { SURVIVED, DIED, VANISHED, TOO_SLOW };

// Waits for the byte that says "survived", for the end, or for the time limit.  Leaves
// the status, and so the number, to be taken.
static enum end watch(pid_t pid, int from, int64_t limit)
{
	int64_t until = milliseconds() + limit;
	struct pollfd p = { .fd = from, .events = POLLIN };
	char byte;

	for (bool open = true;;) {
		siginfo_t info = { 0 };
		int gone = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		// a grandchild may hold the pipe open, so its end is not all there is to
		// look for
		if (open && poll(&p, 1, gone || info.si_pid ? 0 : 10) > 0) {
			open = false;
			if (read(from, &byte, 1) == 1)
				return SURVIVED;
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

static const char *signal_name(int number, char to[32])
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

// How a try went: 1 it is known now (*outcome "" for well, else why not), 0 it says
// nothing for the next time, -1 there was no try.
static int try_file(const char *helper, const char *file, char *outcome, size_t cap)
{
	int from = -1, status = 0;
	pid_t pid;
	char name[32];
	int64_t limit = yk_param_int(&time_setting);

	if (limit < 1)
		limit = 1;
	int code = start(helper, file, &from, &pid);
	if (code) {
		snprintf(outcome, cap, "%.200s: %s", helper, strerror(code));
		return -1;
	}
	enum end end = watch(pid, from, limit * 1000);
	close(from);
	if (end != VANISHED) {
		kill(-pid, SIGKILL); // and whatever the driver left running
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	outcome[0] = '\0';
	if (end == SURVIVED)
		return 1;
	if (end == TOO_SLOW) {
		snprintf(outcome, cap,
			 "gave no answer within %lld s (YOKE_PLUGIN_PROBE_TIME)",
			 (long long)limit);
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
	snprintf(outcome, cap, "died of %s", signal_name(number, name));
	return number != SIGKILL && number != SIGTERM; // somebody else's doing
}

int yk_probe(const char *file, char *why, size_t cap)
{
	char helper[PATH_MAX], outcome[256];
	size_t bytes = 0;

	if (!find_helper(helper, outcome, sizeof outcome)) {
		yk_log(YOKE_LOG_DEBUG, "plugin", "%s: tried in this process: %s", file,
		       outcome);
		return 0;
	}
	char *key = make_key(file, helper, &bytes);
	int64_t n = key ? yk_cache_get(key, bytes, outcome, sizeof outcome - 1) : -1;
	bool known = n >= 0 && n < (int64_t)sizeof outcome;
	if (known) {
		outcome[n] = '\0';
	} else {
		int told = try_file(helper, file, outcome, sizeof outcome);
		yk_log(YOKE_LOG_DEBUG, "plugin", "%s: tried by %s: %s", file, helper,
		       *outcome ? outcome : "came through");
		if (told > 0 && key)
			yk_cache_put(key, bytes, outcome, strlen(outcome));
		if (told < 0)
			outcome[0] = '\0';
	}
	free(key);
	if (!*outcome)
		return 0;
	snprintf(why, cap,
		 "%s when it was tried%s; left alone until it or its driver changes "
		 "(YOKE_PLUGIN_PROBE=0 loads it all the same)",
		 outcome, known ? " before" : "");
	return YOKE_EPLUGIN;
}
