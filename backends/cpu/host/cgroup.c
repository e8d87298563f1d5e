// SPDX-License-Identifier: Apache-2.0
// Limits of Linux control groups (versions 1 and 2) on this process: processors and memory. A group
// is also limited by each ancestor. In a container the outer path may not be visible, so every path
// is tried, from the group itself up to the mount's root.
#include "config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

enum { PATH = 1024 };

// Reads the first line of dir/file.
static bool first_line(const char *dir, const char *file, char *to, size_t cap)
{
	char path[PATH + 64];
	bool got = false;
	FILE *f;

	if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path)
		return false;
	f = fopen(path, "re");
	if (f) {
		got = fgets(to, (int)cap, f) != NULL;
		fclose(f);
	}
	return got;
}

// True if `word` is in the comma-separated list.
static bool listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, word, n) && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

// Calls fn(dir, arg) for the group's directory of a controller and its ancestors. A line of
// /proc/self/cgroup is "id:controllers:path"; version 2 has no controllers.
static void each_group(const char *groups, const char *mount, const char *controller,
		       void (*fn)(const char *dir, bool v2, void *arg), void *arg)
{
	char line[PATH];
	FILE *f = fopen(groups, "re");

	if (!f)
		return;
	while (fgets(line, sizeof line, f)) {
		char dir[2 * PATH], *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;
		size_t root;
		bool v2;

		if (!path)
			continue;
		*path++ = 0;
		names++;
		path[strcspn(path, "\n")] = 0;
		v2 = !*names;
		if (!v2 && !listed(names, controller))
			continue;
		root = (size_t)snprintf(dir, sizeof dir, "%.*s%s%s", PATH / 2, mount,
					v2 ? "" : "/", v2 ? "" : controller);
		snprintf(dir + root, sizeof dir - root, "%s", path);
		for (;;) {
			char *slash;
			fn(dir, v2, arg);
			if (strlen(dir) <= root)
				break;
			slash = strrchr(dir + root, '/');
			*(slash ? slash : dir + root) = 0;
		}
	}
	fclose(f);
}

static void min_cpus(const char *dir, bool v2, void *arg)
{
	char text[64], period_text[64];
	int64_t quota = 0, period = 0, cpus;
	int *min = arg;

	if (v2) {
		if (!first_line(dir, "cpu.max", text, sizeof text) ||
		    sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
			return; // "max 100000": no limit
	} else {
		if (!first_line(dir, "cpu.cfs_quota_us", text, sizeof text) ||
		    !first_line(dir, "cpu.cfs_period_us", period_text,
				sizeof period_text))
			return;
		quota = strtoll(text, NULL, 10);
		period = strtoll(period_text, NULL, 10);
	}
	if (quota <= 0 || period <= 0)
		return;
	cpus = quota / period + (quota % period != 0);
	if (cpus < INT16_MAX && (!*min || cpus < *min))
		*min = (int)cpus;
}

static void min_memory(const char *dir, bool v2, void *arg)
{
	char text[64], *end;
	uint64_t *min = arg, bytes;

	if (!first_line(dir, v2 ? "memory.max" : "memory.limit_in_bytes", text,
			sizeof text))
		return;
	bytes = strtoull(text, &end, 10);
	// version 1 represents "no limit" by the largest multiple of a page
	if (end == text || bytes >= (uint64_t)1 << 62)
		return;
	if (!*min || bytes < *min)
		*min = bytes;
}

int yk_cgroup_cpus(const char *groups, const char *mount)
{
	int min = 0;

	each_group(groups, mount, "cpu", min_cpus, &min);
	return min;
}

uint64_t yk_cgroup_memory(const char *groups, const char *mount)
{
	uint64_t min = 0;

	each_group(groups, mount, "memory", min_memory, &min);
	return min;
}
