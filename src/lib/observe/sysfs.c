// SPDX-License-Identifier: Apache-2.0
// Reads small files of /proc and /sys, or of a tree recorded from another machine.
#include "config.h"

#include "observe/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/param.h"

YK_PARAM(root, "telemetry.root", YK_STRING, "",
	 "path prefix of /proc and /sys, for tests with recorded trees",
	 .debug = true);

static bool whole_path(const char *path, char *to, size_t cap)
{
	int n = snprintf(to, cap, "%s%s", yk_param_str(&root), path);
	return n >= 0 && (size_t)n < cap;
}

bool yk_sys_recorded(const char *name, char *to, size_t cap)
{
	const int n = snprintf(to, cap, "%s/%s", yk_param_str(&root), name);
	return *yk_param_str(&root) && n >= 0 && (size_t)n < cap;
}

int yk_sys_read(const char *path, char *to, size_t cap)
{
	char name[2 * YK_SYS_PATH];
	size_t n = 0;
	*to = 0;
	if (!whole_path(path, name, sizeof name))
		return ENAMETOOLONG;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno;
	int code = 0;
	while (n + 1 < cap) {
		ssize_t k = read(fd, to + n, cap - 1 - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			code = errno;
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	close(fd);
	while (n && to[n - 1] == '\n')
		n--;
	to[n] = 0;
	return code;
}

static double number(const char *text, double unit)
{
	char *end;
	double x = yk_strtod(text, &end);
	return end == text || !isfinite(x) ? NAN : x * unit;
}

double yk_sys_number(const char *path, double unit)
{
	char text[64];
	return yk_sys_read(path, text, sizeof text) ? NAN : number(text, unit);
}

double yk_sys_number_in(const char *folder, const char *name, double unit)
{
	char path[2 * YK_SYS_PATH];
	int n = snprintf(path, sizeof path, "%s/%s", folder, name);
	return n < 0 || (size_t)n >= sizeof path ? NAN : yk_sys_number(path, unit);
}

// Numbers at the end of one name are in order.
static int by_name(const struct dirent **a, const struct dirent **b)
{
	const size_t m = strlen((*a)->d_name), n = strlen((*b)->d_name);
	return m != n ? (m > n) - (m < n) : strcmp((*a)->d_name, (*b)->d_name);
}

bool yk_sys_entry(const char *folder, const char *prefix, int index, char to[YK_SYS_PATH])
{
	char name[2 * YK_SYS_PATH];
	struct dirent **all = NULL;
	int n = whole_path(folder, name, sizeof name) ? scandir(name, &all, NULL, by_name) : 0,
	    found = 0;
	bool good = false;
	for (int i = 0; i < n; i++) {
		if (!strncmp(all[i]->d_name, prefix, strlen(prefix)) && all[i]->d_name[0] != '.' &&
		    found++ == index) {
			int k = snprintf(to, YK_SYS_PATH, "%s/%s", folder, all[i]->d_name);
			good = k >= 0 && k < YK_SYS_PATH;
		}
		free(all[i]);
	}
	free(all);
	return good;
}

double yk_sys_field(const char *text, const char *word, double unit)
{
	const size_t n = strlen(word);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, word, n) && strchr(" \t:=", line[n]))
			return number(line + n + strspn(line + n, " \t:="), unit);
	}
	return NAN;
}
