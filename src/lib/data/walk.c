// SPDX-License-Identifier: Apache-2.0
// Walks lists of files and folders.
#include "config.h"

#include "data/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

struct walk {
	yk_walk_fn *fn;
	void *arg;
	bool used; // a file of the current folder is used
};

static int give(struct walk *w, const char *path, bool named)
{
	const int e = w->fn(w->arg, path, named);
	w->used |= e > 0;
	return e < 0 ? e : 0;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name); // in byte order, whatever the locale
}

int yk_walk_entries(const char *path, struct dirent ***entries)
{
	const int n = scandir(path, entries, visible, by_name);
	return n >= 0 ? n :
			yk_fail(errno == ENOMEM ? YOKE_ENOMEM :
				errno == ENOENT ? YOKE_ENOENT :
						  YOKE_EIO,
				"%s: %s", path, strerror(errno));
}

static int walk_folder(struct walk *w, const char *path);

static int walk_entry(struct walk *w, const char *folder, const char *name)
{
	struct stat st;
	char *path;
	int e = 0;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return yk_fail(YOKE_ENOMEM, "out of memory for a path in %s", folder);
	if (lstat(path, &st) < 0)
		e = yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		e = walk_folder(w, path);
	else if (S_ISREG(st.st_mode))
		e = give(w, path, false);
	free(path);
	return e;
}

// Links are not followed, so a walk terminates; the system bounds the depth of a path.
static int walk_folder(struct walk *w, const char *path)
{
	struct dirent **entries;
	int e = 0, n = yk_walk_entries(path, &entries);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (e == 0)
			e = walk_entry(w, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return e;
}

static int walk_path(void *arg, const char *path)
{
	struct walk *w = arg;
	struct stat st;
	int e;

	if (!strcmp(path, YK_STDIN) && isatty(STDIN_FILENO))
		return yk_fail(YOKE_EINVAL, "data=-: standard input is a terminal; give text by a "
			       "pipe, or name files");
	if (!strcmp(path, YK_STDIN))
		return give(w, path, true);
	if (stat(path, &st) < 0)
		return yk_fail(errno == ENOENT ? YOKE_ENOENT : YOKE_EIO, "data: %s: %s",
			       path, strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return yk_fail(YOKE_EINVAL, "data: %s: neither a file nor a folder",
			       path);
	if (!S_ISDIR(st.st_mode))
		return give(w, path, true);
	w->used = false;
	e = walk_folder(w, path);
	if (e == 0 && !w->used)
		return yk_fail(YOKE_EFORMAT, "data: %s: no file of text in this folder",
			       path);
	return e;
}

int yk_walk_list(const char *paths, int (*fn)(void *arg, const char *path), void *arg)
{
	struct stat st;
	char *copy, *rest, *path;
	int e = 0;

	if (!*paths)
		return yk_fail(YOKE_EINVAL,
			       "data: not given; name files or folders of text");
	if (stat(paths, &st) == 0)
		return fn(arg, paths);
	rest = copy = strdup(paths);
	if (!copy)
		return yk_fail(YOKE_ENOMEM, "out of memory for the list of data");
	while (e == 0 && (path = strsep(&rest, ",")))
		e = *path ? fn(arg, path) :
			    yk_fail(YOKE_EINVAL, "data: an empty name in '%s'", paths);
	free(copy);
	return e;
}

int yk_walk(const char *paths, yk_walk_fn *fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	return yk_walk_list(paths, walk_path, &w);
}

bool yk_data_piped(const char *paths)
{
	struct stat st;
	if (strcmp(paths, YK_STDIN) && stat(paths, &st) == 0) // a single name that has a comma
		return false;
	for (size_t n; *paths; paths += n + (paths[n] == ','))
		if ((n = strcspn(paths, ",")) == strlen(YK_STDIN) && !strncmp(paths, YK_STDIN, n))
			return true;
	return false;
}
