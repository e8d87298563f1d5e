// SPDX-License-Identifier: Apache-2.0
// Appends to files and locks directories that several processes share.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/shared.h"

int yk_file_append_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		return fd;
	return yk_fail(errno == ENOENT ? YOKE_ENOENT : YOKE_EIO, "cannot write '%s': %s", path,
		       strerror(errno));
}

// flock, retried after a signal.  False: another process has the lock; a file system without locks
// counts as true.
static bool lock(int fd, int how)
{
	int e;
	while ((e = flock(fd, how)) < 0 && errno == EINTR)
		;
	return e == 0 || errno != EWOULDBLOCK;
}

static int write_once(int fd, const char *path, const char *text)
{
	struct stat before;
	size_t n = strlen(text);
	ssize_t got;
	if (fstat(fd, &before) < 0)
		return yk_fail(YOKE_EIO, "cannot write '%s': %s", path, strerror(errno));
	while ((got = write(fd, text, n)) < 0 && errno == EINTR)
		;
	if (got == (ssize_t)n)
		return 0;
	int reason = got < 0 ? errno : ENOSPC;
	if (got > 0 && ftruncate(fd, before.st_size) < 0)
		yk_warn("file", "%s: a line was written only partially: %s", path, strerror(errno));
	return yk_fail(YOKE_EIO, "cannot write '%s': %s", path, strerror(reason));
}

int yk_file_append(int fd, const char *path, const char *header, const char *text)
{
	struct stat st;
	char *both = NULL;
	int e = 0;
	lock(fd, LOCK_EX);
	if (header && fstat(fd, &st) == 0 && st.st_size == 0 &&
	    asprintf(&both, "%s%s", header, text) < 0) {
		both = NULL;
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for a line", path);
	}
	if (e == 0)
		e = write_once(fd, path, both ? both : text);
	lock(fd, LOCK_UN);
	free(both);
	return e;
}

int yk_dir_lock(const char *path, int *to)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return yk_fail(errno == ENOENT ? YOKE_ENOENT : YOKE_EIO, "cannot open '%s': %s",
			       path, strerror(errno));
	// yk_dir_locked briefly takes the lock itself, so try again
	bool has = lock(fd, LOCK_EX | LOCK_NB);
	for (int i = 0; !has && i < 5; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		has = lock(fd, LOCK_EX | LOCK_NB);
	}
	if (!has) {
		close(fd);
		return yk_fail(YOKE_EBUSY, "'%s' is in use by another process", path);
	}
	*to = fd;
	return 0;
}

void yk_dir_unlock(int fd)
{
	if (fd < 0)
		return;
	lock(fd, LOCK_UN);
	close(fd);
}

bool yk_dir_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool held = fd >= 0 && !lock(fd, LOCK_SH | LOCK_NB);
	if (fd >= 0)
		close(fd);
	return held;
}
