// SPDX-License-Identifier: Apache-2.0
// Inspects the processes of runs through /proc (Linux).
#include "config.h"

#include "live/process.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shared.h"
#include "base/system.h"

// Reads a file of /proc, whose size is not known in advance; NULL: unreadable.
static char *read_proc(const char *path, char *to, size_t room)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(to, 1, room - 1, f) : 0;
	if (f)
		fclose(f);
	to[n] = '\0';
	return f ? to : NULL;
}

// Returns the run's process id if the run was started on this machine since its last boot.
static pid_t pid_of(const struct yk_view *v)
{
	char boot[64], host[256] = "";
	const json_t *pid = json_object_get(v->about, "pid");
	if (v->state != YK_VIEW_LIVE || !json_is_integer(pid) || json_integer_value(pid) < 2 ||
	    json_integer_value(pid) > INT32_MAX)
		return 0;
	gethostname(host, sizeof host - 1);
	yk_boot_id(boot);
	return !*boot || strcmp(boot, yk_view_field(v, "boot")) ||
			       strcmp(host, yk_view_field(v, "host")) ?
		       0 :
		       (pid_t)json_integer_value(pid);
}

// proc(5): stat has the name in parentheses, which may contain any character; after the last ")"
// follow state, parent etc.
static bool read_stat(pid_t pid, pid_t *parent, double *cpu, int *threads)
{
	char path[64], text[2048];
	unsigned long long user, system;
	int got_parent, got_threads;
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	const char *at = read_proc(path, text, sizeof text) ? strrchr(text, ')') : NULL;
	if (!at ||
	    sscanf(at + 1,
		   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %d",
		   &got_parent, &user, &system, &got_threads) != 4)
		return false;
	*parent = got_parent;
	*cpu = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	*threads = got_threads;
	return true;
}

static int count_children(pid_t of)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;
	int n = 0;
	while (dir && (d = readdir(dir))) {
		pid_t parent;
		double cpu;
		int threads;
		if (isdigit((unsigned char)*d->d_name) &&
		    read_stat((pid_t)atol(d->d_name), &parent, &cpu, &threads))
			n += parent == of;
	}
	if (dir)
		closedir(dir);
	return n;
}

void yk_process_files(pid_t pid, void (*fn)(void *arg, const char *target), void *arg)
{
	char path[320], target[4096];
	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	DIR *dir = opendir(path);
	const struct dirent *d;
	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof path, "/proc/%ld/fd/%s", (long)pid, d->d_name);
		ssize_t n = readlink(path, target, sizeof target - 1);
		if (n <= 0 || *target != '/')
			continue;
		target[n] = '\0';
		fn(arg, target);
	}
	if (dir)
		closedir(dir);
}

static void count_checkpoint(void *arg, const char *target)
{
	// also matches the name of a file that is still being written
	const char *dot = strstr(target, ".safetensors");
	*(int *)arg += dot != NULL;
}

bool yk_process_read(pid_t pid, char name[32], double *cpu, double *rss)
{
	char path[64], text[64];
	pid_t parent;
	int threads;
	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	if (!read_proc(path, text, sizeof text) || !read_stat(pid, &parent, cpu, &threads))
		return false;
	text[strcspn(text, "\n")] = '\0';
	snprintf(name, 32, "%.31s", text);
	*rss = yk_process_memory(pid);
	return true;
}

void yk_process_inspect(const struct yk_view *v, struct yk_process *to)
{
	struct yk_process now = { .pid = pid_of(v), .share = NAN };
	pid_t parent;
	if (now.pid && read_stat(now.pid, &parent, &now.cpu, &now.threads)) {
		now.since = yk_seconds();
		if (to->pid == now.pid && now.since > to->since)
			now.share = (now.cpu - to->cpu) / (now.since - to->since);
		const double rss = yk_process_memory(now.pid);
		now.rss = isnan(rss) ? 0 : (uint64_t)rss;
		now.children = count_children(now.pid);
		yk_process_files(now.pid, count_checkpoint, &now.checkpoints);
	} else {
		now.pid = 0;
	}
	*to = now;
}

// ---- runs of the user ----

struct found {
	int n, max;
	char **folder;
};

static void add_run(void *arg, const char *target)
{
	struct found *f = arg;
	struct stat st;
	char path[4200];
	snprintf(path, sizeof path, "%s/run.json", target);
	if (f->n == f->max || stat(target, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    access(path, R_OK) < 0 || !yk_dir_locked(target))
		return;
	for (int i = 0; i < f->n; i++)
		if (!strcmp(f->folder[i], target))
			return;
	if ((f->folder[f->n] = strdup(target)))
		f->n++;
}

int yk_process_runs(int max, char **folder)
{
	struct found f = { .max = max, .folder = folder };
	DIR *dir = opendir("/proc");
	const struct dirent *d;
	struct stat st;
	char path[320];
	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof path, "/proc/%s", d->d_name);
		if (isdigit((unsigned char)*d->d_name) && stat(path, &st) == 0 &&
		    st.st_uid == geteuid())
			yk_process_files((pid_t)atol(d->d_name), add_run, &f);
	}
	if (dir)
		closedir(dir);
	return f.n;
}
