// SPDX-License-Identifier: Apache-2.0
// Refuses files that untrusted users could have written, before they are loaded or run.
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/trusted.h"

// The owner of libyoke may own plugins too, since that user could change the library itself.
static bool owns_libyoke(uid_t uid)
{
	Dl_info info;
	struct stat st;

	return dladdr((void *)(uintptr_t)yk_trusted_file, &info) && info.dli_fname &&
	       info.dli_fname[0] == '/' && !stat(info.dli_fname, &st) && st.st_uid == uid;
}

// A group whose number equals the owner's is the owner's
// private group, which by convention may have write permission.
bool yk_trusted_owner(const char *path, const struct stat *st, char *why, size_t cap)
{
	if (st->st_uid && st->st_uid != geteuid() && !owns_libyoke(st->st_uid)) {
		snprintf(why, cap, "%s is owned by user %u, who is neither root, nor the user, "
			 "nor the owner of libyoke", path, (unsigned)st->st_uid);
		return false;
	}
	if ((st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != st->st_uid)) {
		snprintf(why, cap, "%s may be written by others (mode %04o); chmod go-w",
			 path, (unsigned)st->st_mode & 07777);
		return false;
	}
	return true;
}

bool yk_trusted_file(const char *path, char *why, size_t cap)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		snprintf(why, cap, "%s", strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, cap, "not a regular file");
		return false;
	}
	if (!yk_trusted_owner(path, &st, why, cap))
		return false;

	// path may be a symbolic link: the directory of the file itself is checked as well
	char dir[PATH_MAX];
	snprintf(dir, sizeof dir, "%s", path);
	char *slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	if (stat(dir, &st) < 0) {
		snprintf(why, cap, "%s: %s", dir, strerror(errno));
		return false;
	}
	return yk_trusted_owner(dir, &st, why, cap);
}
