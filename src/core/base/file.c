// SPDX-License-Identifier: Apache-2.0
// Reads whole files and writes them atomically; creates, syncs and removes directories.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/kind.h"

enum { MAX_POINTER = 1024 }; // size limit of a Git LFS pointer, by its specification

static int fail(const char *verb, const char *path, int reason)
{
	int code = YOKE_EIO;
	if (reason == ENOENT)
		code = YOKE_ENOENT;
	else if (reason == ENOMEM)
		code = YOKE_ENOMEM;
	return yk_fail(code, "cannot %s '%s': %s", verb, path, strerror(reason));
}

// ---- reading ----

// Reads fd to its end.  `guess`: expected bytes; a pipe or a /proc file may have more.
static int read_all(int fd, const char *path, uint64_t guess, uint64_t max, char **data,
		    size_t *bytes)
{
	size_t cap = guess + 2, n = 0; // a NUL, and one more byte to detect the end
	char *to = malloc(cap);
	if (!to)
		return fail("read", path, ENOMEM);
	for (;;) {
		ssize_t got = read(fd, to + n, cap - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int reason = errno;
			free(to);
			return fail("read", path, reason);
		}
		if (!got)
			break;
		n += (size_t)got;
		if (n > max) {
			free(to);
			return yk_fail(YOKE_EFORMAT, "'%s' is larger than %llu bytes",
				       path, (unsigned long long)max);
		}
		if (n == cap - 1) {
			char *more = cap > SIZE_MAX / 2 ? NULL : realloc(to, cap *= 2);
			if (!more) {
				free(to);
				return fail("read", path, ENOMEM);
			}
			to = more;
		}
	}
	to[n] = 0;
	*data = to;
	*bytes = n;
	return 0;
}

int yk_file_read(const char *path, uint64_t max, char **data, size_t *bytes)
{
	struct stat st;

	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail("read", path, errno);
	int e;
	if (fstat(fd, &st) < 0)
		e = fail("read", path, errno);
	else if (S_ISDIR(st.st_mode))
		e = fail("read", path, EISDIR);
	else if ((uint64_t)st.st_size > max)
		e = yk_fail(YOKE_EFORMAT, "'%s' has %lld bytes, more than %llu", path,
			    (long long)st.st_size, (unsigned long long)max);
	else if ((uint64_t)st.st_size > SIZE_MAX / 2)
		e = fail("read", path, ENOMEM);
	else
		e = read_all(fd, path, (uint64_t)st.st_size, max, data, bytes);
	close(fd);
	return e;
}

int yk_file_read_at(int fd, const char *path, uint64_t at, void *to, uint64_t bytes)
{
	char *p = to;

	while (bytes) {
		// A single call takes at most 2 GiB on Linux.
		size_t some = bytes < 1 << 30 ? bytes : 1 << 30;
		ssize_t n = pread(fd, p, some, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return yk_fail(YOKE_EIO, "cannot read '%s' at byte %llu: %s", path,
				       (unsigned long long)at, strerror(errno));
		if (!n)
			return yk_fail(YOKE_EIO,
				       "'%s' ends at byte %llu: cut short while it was read",
				       path, (unsigned long long)at);
		p += n;
		at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

int yk_file_each(int fd, const char *path, uint64_t at, uint64_t bytes,
		 int (*fn)(void *arg, const char *block, size_t n, uint64_t at), void *arg)
{
	enum { BLOCK = 1 << 18 };
	char *block = malloc(BLOCK);
	int e = block ? 0 : fail("read", path, ENOMEM);

	for (uint64_t n; bytes && e == 0; at += n, bytes -= n) {
		n = bytes < BLOCK ? bytes : BLOCK;
		e = yk_file_read_at(fd, path, at, block, n);
		if (e == 0)
			e = fn(arg, block, n, at);
	}
	free(block);
	return e;
}

static int hash_block(void *arg, const char *block, size_t n, uint64_t at)
{
	(void)at;
	yk_hash_add(arg, block, n);
	return 0;
}

int yk_file_hash(int fd, const char *path, uint64_t at, uint64_t bytes, uint64_t *hash)
{
	struct yk_hash_state *h = yk_hash_new(0);
	const int e =
		h ? yk_file_each(fd, path, at, bytes, hash_block, h) : fail("read", path, ENOMEM);
	const uint64_t sum = h ? yk_hash_end(h) : 0;

	if (e == 0)
		*hash = sum;
	return e;
}

bool yk_file_is_same(const char *a, const char *b)
{
	struct stat s[2];
	return stat(a, &s[0]) == 0 && stat(b, &s[1]) == 0 && s[0].st_dev == s[1].st_dev &&
	       s[0].st_ino == s[1].st_ino;
}

int yk_file_open(const char *path, uint64_t *bytes)
{
	struct stat st;
	// O_NONBLOCK: do not block on a pipe of that name
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), e;

	if (fd < 0)
		return fail("read", path, errno);
	if (fstat(fd, &st) < 0) {
		e = fail("read", path, errno);
	} else if (!S_ISREG(st.st_mode)) {
		e = yk_fail(YOKE_EFORMAT, "%s: not a regular file", path);
	} else {
		*bytes = (uint64_t)st.st_size;
		char begin[YK_KIND_BEGIN];
		const ssize_t n = st.st_size < MAX_POINTER ? pread(fd, begin, sizeof begin, 0) : 0;
		if (n <= 0 || !yk_is_pointer(begin, (size_t)n))
			return fd;
		e = yk_fail(YOKE_EFORMAT, "%s: is %s", path, yk_file_kind(begin, (size_t)n));
	}
	close(fd);
	return e;
}

int yk_file_read_stdin(uint64_t max, char **data, size_t *bytes)
{
	return read_all(STDIN_FILENO, "standard input", 0, max, data, bytes);
}

// ---- writing ----

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

// Resolves symbolic links, so that a link stays a link; a nonexistent path is used as it is.  An
// existing path that is not a regular file is refused: a rename would replace the device.
static int find_target(const char *path, char **target)
{
	struct stat st;

	char *real = realpath(path, NULL);
	if (!real && errno == ENOENT)
		real = strdup(path);
	if (!real)
		return fail("write", path, errno);
	if (!stat(real, &st) && !S_ISREG(st.st_mode)) {
		free(real);
		return yk_fail(YOKE_EIO, "cannot write '%s': not a regular file", path);
	}
	*target = real;
	return 0;
}

// Creates a uniquely named file beside the target, with the permissions that the umask allows.
static int open_temporary(struct yk_file_writer *w)
{
	for (int i = 0; i < 1000; i++) {
		if (asprintf(&w->temporary, "%s.%d-%d.tmp", w->path, (int)getpid(), i) < 0) {
			w->temporary = NULL;
			return fail("write", w->path, ENOMEM);
		}
		w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (w->fd >= 0)
			return 0;
		int reason = errno;
		free(w->temporary);
		w->temporary = NULL;
		if (reason != EEXIST)
			return fail("write", w->path, reason);
	}
	return fail("write", w->path, EEXIST);
}

// Uses the path itself, even if it is a symbolic link.
static int take_name(const char *path, char **target)
{
	struct stat st;

	if (!lstat(path, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return yk_fail(YOKE_EIO, "cannot write '%s': not a regular file", path);
	*target = strdup(path);
	return *target ? 0 : fail("write", path, ENOMEM);
}

static int begin(struct yk_file_writer *w, const char *path,
		 int target(const char *path, char **target))
{
	*w = (struct yk_file_writer){ .fd = -1 };
	int e = target(path, &w->path);
	if (!e)
		e = open_temporary(w);
	if (e < 0)
		yk_file_abort(w);
	return e;
}

int yk_file_begin(struct yk_file_writer *w, const char *path)
{
	return begin(w, path, find_target);
}

int yk_file_begin_here(struct yk_file_writer *w, const char *path)
{
	return begin(w, path, take_name);
}

int yk_file_add(struct yk_file_writer *w, const void *data, size_t bytes)
{
	const char *from = data;

	while (bytes) {
		ssize_t n = write(w->fd, from, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail("write", w->path, errno);
		from += n;
		bytes -= (size_t)n;
		w->bytes += (uint64_t)n;
	}
	return 0;
}

int yk_file_put(const struct yk_file_writer *w, uint64_t at, const void *data, size_t bytes)
{
	const char *from = data;

	while (bytes) {
		ssize_t n = pwrite(w->fd, from, bytes, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail("write", w->path, errno);
		from += n;
		at += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

int yk_file_beyond(const char *path, uint64_t bytes)
{
	return yk_fail(YOKE_ERANGE,
		       "%s: %llu bytes are more than a program of %zu bits can address", path,
		       (unsigned long long)bytes, 8 * sizeof(void *));
}

int yk_file_put_numbers(const struct yk_file_writer *w, uint64_t at, const void *data, size_t width,
			size_t n)
{
	const char *from = data;
	char block[4096];
	int e = 0;

	if (!YK_HOST_BIG)
		return yk_file_put(w, at, data, n * width);
	for (size_t left = n * width, some; left && e == 0;
	     left -= some, from += some, at += some) {
		some = left < sizeof block ? left : sizeof block;
		memcpy(block, from, some);
		yk_swap_bytes(block, width, some / width);
		e = yk_file_put(w, at, block, some);
	}
	return e;
}

int yk_file_nameless(struct yk_file_writer *w, const char *what)
{
	const char *folder = getenv("TMPDIR");
	*w = (struct yk_file_writer){ .fd = -1 };
	if (asprintf(&w->path, "%s/yoke.XXXXXX", folder && *folder ? folder : "/var/tmp") < 0) {
		w->path = NULL;
		return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	}
	w->fd = mkostemp(w->path, O_CLOEXEC);
	if (w->fd < 0)
		return yk_fail(YOKE_EIO, "%s: cannot make a file to unpack it to: %s: %s", what,
			       w->path, strerror(errno));
	unlink(w->path);
	return 0;
}

void yk_file_nameless_close(struct yk_file_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->path);
	*w = (struct yk_file_writer){ .fd = -1 };
}

// Syncs and closes the temporary file.
static int finish(struct yk_file_writer *w)
{
	int e = fsync(w->fd) < 0 ? fail("write", w->path, errno) : 0;
	int fd = w->fd;
	w->fd = -1;
	if (close(fd) < 0 && !e)
		e = fail("write", w->path, errno);
	return e;
}

static int replace(struct yk_file_writer *w)
{
	if (rename(w->temporary, w->path) < 0)
		return fail("write", w->path, errno);
	free(w->temporary);
	w->temporary = NULL;
	char *folder = folder_of(w->path);
	const int e = folder ? yk_dir_sync(folder) : fail("write", w->path, ENOMEM);
	free(folder);
	return e;
}

int yk_file_commit(struct yk_file_writer *w)
{
	int e = finish(w);
	if (!e)
		e = replace(w);
	yk_file_abort(w);
	return e;
}

// Adds a second name to the file at the writer's path; *kept is NULL if there is no file. On file
// systems without hard links the file is renamed instead.
static int keep(const struct yk_file_writer *w, char **kept)
{
	if (asprintf(kept, "%s.old", w->temporary) < 0) {
		*kept = NULL;
		return fail("write", w->path, ENOMEM);
	}
	if (!link(w->path, *kept) || !rename(w->path, *kept))
		return 0;
	const int reason = errno;
	free(*kept);
	*kept = NULL;
	return reason == ENOENT ? 0 : fail("write", w->path, reason);
}

int yk_file_commit_both(struct yk_file_writer *first, struct yk_file_writer *second)
{
	char *kept = NULL;
	int e = finish(first);
	if (!e)
		e = finish(second);
	if (!e)
		e = keep(first, &kept);
	if (!e)
		e = replace(first);
	if (!e)
		e = replace(second);
	const bool restores = e < 0 && second->temporary;
	if (restores && kept)
		rename(kept, first->path); // if that fails, the old contents stay in `kept`
	else if (restores && !first->temporary)
		unlink(first->path);
	else if (kept)
		unlink(kept);
	free(kept);
	yk_file_abort(first);
	yk_file_abort(second);
	return e;
}

void yk_file_abort(struct yk_file_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->temporary)
		unlink(w->temporary);
	free(w->temporary);
	free(w->path);
	*w = (struct yk_file_writer){ .fd = -1 };
}

void yk_file_sweep(const char *path)
{
	char *folder = folder_of(path);
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	DIR *dir = folder ? opendir(folder) : NULL;
	struct dirent *d;
	while (dir && (d = readdir(dir))) {
		const size_t n = strlen(name);
		int pid, number, end = 0;
		if (!strncmp(d->d_name, name, n) &&
		    sscanf(d->d_name + n, ".%d-%d.tmp%n", &pid, &number, &end) == 2 && end &&
		    !d->d_name[n + (size_t)end] && pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			unlinkat(dirfd(dir), d->d_name, 0);
	}
	if (dir)
		closedir(dir);
	free(folder);
}

int yk_file_write(const char *path, const void *data, size_t bytes)
{
	struct yk_file_writer w;

	int e = yk_file_begin(&w, path);
	if (e < 0)
		return e;
	e = yk_file_add(&w, data, bytes);
	if (e < 0) {
		yk_file_abort(&w);
		return e;
	}
	return yk_file_commit(&w);
}

// ---- directories ----

static int make_one(const char *path)
{
	struct stat st;

	if (!mkdir(path, 0777))
		return 0;
	int reason = errno;
	if (reason != EEXIST && reason != EISDIR)
		return fail("make folder", path, reason);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return 0;
	return fail("make folder", path, ENOTDIR);
}

int yk_dir_make(const char *path)
{
	struct stat st;

	if (!*path)
		return fail("make folder", path, ENOENT);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return 0;
	char *copy = strdup(path);
	if (!copy)
		return fail("make folder", path, ENOMEM);
	int e = 0;
	for (char *slash = copy + 1; !e && (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		// an existing parent may be searchable but not writable
		if (stat(copy, &st) < 0 || !S_ISDIR(st.st_mode))
			e = make_one(copy);
		*slash = '/';
	}
	if (!e)
		e = make_one(copy);
	free(copy);
	return e;
}

int yk_dir_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail("sync folder", path, errno);
	// some file systems do not support fsync of directories
	int e = fsync(fd) < 0 && errno != EINVAL ? fail("sync folder", path, errno) : 0;
	close(fd);
	return e;
}

int yk_dir_remove(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail("remove", path, errno);
	DIR *dir = fdopendir(fd);
	if (!dir) {
		int reason = errno;
		close(fd);
		return fail("remove", path, reason);
	}
	int e = 0;
	struct dirent *d;
	while (!e && (d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (unlinkat(dirfd(dir), d->d_name, 0) < 0)
			e = yk_fail(YOKE_EIO, "cannot remove '%s/%s': %s", path,
				    d->d_name, strerror(errno));
	}
	closedir(dir);
	if (!e && rmdir(path) < 0)
		e = fail("remove", path, errno);
	return e;
}
