// SPDX-License-Identifier: Apache-2.0
// The directory of compiled kernels: it must belong to the user and be writable by nobody else.
// Without such a directory kernels are cached in memory only, and a warning is logged once.
#include "config.h"

#include "kernel/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "base/system.h"

YK_PARAM(cache_setting, "cache", YK_STRING, "",
	 "folder of compiled kernels; 0: no files; empty: $XDG_CACHE_HOME/yoke or ~/.cache/yoke");

bool yk_cache_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static bool off(void)
{
	return !strcmp(yk_param_str(&cache_setting), "0");
}

static bool folder_path(char to[PATH_MAX], char *why, size_t cap)
{
	const char *set = yk_param_str(&cache_setting);
	const char *xdg = yk_getenv_secure("XDG_CACHE_HOME"), *home = yk_getenv_secure("HOME");
	int n = 0;

	to[0] = '\0';
	if (off())
		snprintf(why, cap, "switched off (YOKE_CACHE=0)");
	else if (*set && *set != '/')
		snprintf(why, cap, "YOKE_CACHE=%.200s is no absolute path", set);
	else if (*set)
		n = snprintf(to, PATH_MAX, "%s", set);
	else if (xdg && xdg[0] == '/')
		n = snprintf(to, PATH_MAX, "%s/yoke", xdg);
	else if (home && home[0] == '/')
		n = snprintf(to, PATH_MAX, "%s/.cache/yoke", home);
	else
		snprintf(why, cap, "neither XDG_CACHE_HOME nor HOME is set");
	if (n >= PATH_MAX)
		snprintf(why, cap, "its path is too long");
	return n > 0 && n < PATH_MAX;
}

static int open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// Creates the directory and its parent, but no further ancestors.
static int make_folder(char *path)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	int err = *path && mkdir(path, 0700) < 0 && errno != EEXIST;
	*slash = '/';
	if (err || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return -1;
	return open_folder(path);
}

// Opens the directory.  -1: it does not exist (why is "") or cannot be used (why gives the reason).
static int folder(char path[PATH_MAX], bool make, char *why, size_t cap)
{
	struct stat st;

	why[0] = '\0';
	if (!folder_path(path, why, cap))
		return -1;
	int fd = open_folder(path);
	if (fd < 0 && errno == ENOENT && !make)
		return -1;
	if (fd < 0 && errno == ENOENT)
		fd = make_folder(path);
	if (fd < 0) {
		bool link = errno == ELOOP ||
			    (errno == ENOTDIR && !lstat(path, &st) && S_ISLNK(st.st_mode));
		snprintf(why, cap, "%s", link ? "a link is not followed" : strerror(errno));
		return -1;
	}
	if (!fstat(fd, &st) && yk_cache_ours(&st))
		return fd;
	snprintf(why, cap, st.st_uid == geteuid() ?
		 "others may write there (mode %04o); chmod go-w" :
		 "it is not this user's (mode %04o)", (unsigned)st.st_mode & 07777);
	close(fd);
	return -1;
}

int yk_cache_folder(bool make)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;
	char path[PATH_MAX], why[400];

	int fd = folder(path, make, why, sizeof why);
	if (fd < 0 && *why && !off() && !atomic_flag_test_and_set(&warned))
		yk_warn("cache", "no kernels are kept in files: %s%s%s", path, *path ? ": " : "",
			why);
	return fd;
}

// Could the missing directory be created?
static bool can_make(const char *path, char *why, size_t cap)
{
	char above[PATH_MAX];

	snprintf(above, sizeof above, "%s", path);
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(above, '/');
		slash[slash == above] = '\0';
		if (!faccessat(AT_FDCWD, above, W_OK | X_OK, AT_EACCESS))
			return true;
		if (errno != ENOENT)
			break;
	}
	snprintf(why, cap, "it cannot be made in %.300s: %s", above, strerror(errno));
	return false;
}

void yk_cache_inspect(struct yk_cache_state *to)
{
	memset(to, 0, sizeof *to);
	to->requested = *yk_param_str(&cache_setting) && !off();
	int fd = folder(to->path, false, to->why, sizeof to->why);
	to->usable = fd >= 0 || (!*to->why && can_make(to->path, to->why, sizeof to->why));
	if (fd < 0)
		return;
	to->files = yk_cache_count(fd, &to->bytes);
	close(fd);
}
