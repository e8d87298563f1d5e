// SPDX-License-Identifier: Apache-2.0
// Walks a folder's tree in the order of its names, to a limited depth.
#include "config.h"

#include "live/find.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runs/read.h"

enum { DEPTH = 8 };

static int is_shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int walk(char path[PATH_MAX], size_t root, int depth, yk_find_fn *found, void *arg)
{
	struct dirent **entry;
	struct stat st;
	const size_t n = strlen(path);
	int e = yk_view_is_run(path) ? found(arg, path, path + root) : 0;
	const int entries =
		e == 0 && depth < DEPTH ? scandir(path, &entry, is_shown, alphasort) : -1;
	for (int i = 0; i < entries; i++) {
		const int more = snprintf(path + n, PATH_MAX - n, "/%s", entry[i]->d_name);
		// a folder of many files costs no stat for each of them
		const bool maybe = entry[i]->d_type == DT_DIR || entry[i]->d_type == DT_UNKNOWN;
		if (e == 0 && maybe && more < (int)(PATH_MAX - n) && lstat(path, &st) == 0 &&
		    S_ISDIR(st.st_mode))
			e = walk(path, root, depth + 1, found, arg);
		free(entry[i]);
	}
	if (entries >= 0)
		free(entry);
	path[n] = '\0';
	return e;
}

int yk_find_runs(const char *folder, yk_find_fn *found, void *arg)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
		return 0;
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	if (yk_view_is_run(path)) {
		const char *slash = strrchr(path, '/');
		return found(arg, path, slash && slash[1] ? slash + 1 : path);
	}
	return walk(path, n + 1, 0, found, arg);
}
