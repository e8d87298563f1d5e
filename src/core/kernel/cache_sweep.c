// SPDX-License-Identifier: Apache-2.0
// Limits the size of the directory of compiled kernels: removes the temporary files of killed
// writers and, above the limit, the least recently used entries.  Other files are not touched.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/param.h"
#include "kernel/cache.h"

YK_PARAM(cache_max, "cache.max", YK_BYTES, "512M",
	 "maximum bytes of compiled kernels kept in files; 0: no limit");

enum { HASH = 32 };                // hexadecimal digits in a name
static const long LONGEST = 86400; // seconds until a writer counts as dead; its pid may be reused

struct file {
	char name[HASH + 5]; // "0123456789abcdef0123456789abcdef.krn"
	struct timespec used;
	uint64_t bytes;
};

// Does the name begin with an entry's name?
static bool is_entry(const char *name)
{
	return strspn(name, "0123456789abcdef") == HASH && !strncmp(name + HASH, ".krn", 4);
}

// Is the process gone that wrote this temporary file, "HASH.krn.PID.N"?
static bool abandoned(const char *name, const struct stat *st)
{
	struct timespec now;
	char *end;
	long pid = strtol(name + HASH + 5, &end, 10);
	if (pid <= 0 || pid > INT32_MAX || *end != '.')
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	return (kill((pid_t)pid, 0) < 0 && errno == ESRCH) ||
	       now.tv_sec - st->st_mtim.tv_sec > LONGEST;
}

static int by_use(const void *x, const void *y)
{
	const struct file *a = x, *b = y;
	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

static DIR *open_again(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

uint64_t yk_cache_count(int folder, uint64_t *bytes)
{
	uint64_t n = 0;
	struct stat st;
	DIR *dir = open_again(folder);

	*bytes = 0;
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (is_entry(d->d_name) && !d->d_name[HASH + 4] &&
		    !fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			n++;
			*bytes += (uint64_t)st.st_size;
		}
	if (dir)
		closedir(dir);
	return n;
}

void yk_cache_sweep(int folder)
{
	struct file *file = NULL;
	size_t n = 0, cap = 0;
	uint64_t total = 0, max = (uint64_t)yk_param_int(&cache_max);
	DIR *dir = open_again(folder);
	if (!dir)
		return;
	int fd = dirfd(dir);
	for (struct dirent *d; (d = readdir(dir));) {
		struct stat st;
		if (!is_entry(d->d_name) ||
		    fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (d->d_name[HASH + 4] == '.') {
			if (abandoned(d->d_name, &st))
				unlinkat(fd, d->d_name, 0);
		} else if (!d->d_name[HASH + 4] && !yk_grow(&file, &cap, n + 1, sizeof *file)) {
			file[n] =
				(struct file){ .used = st.st_mtim, .bytes = (uint64_t)st.st_size };
			memcpy(file[n++].name, d->d_name, HASH + 5);
			total += (uint64_t)st.st_size;
		}
	}
	if (max && total > max) {
		uint64_t before = total;
		qsort(file, n, sizeof *file, by_use);
		for (size_t i = 0; i < n && total > max; i++)
			if (!unlinkat(fd, file[i].name, 0))
				total -= file[i].bytes;
		yk_info("cache", "%llu of %llu bytes removed (cache.max)",
			(unsigned long long)(before - total), (unsigned long long)before);
	}
	free(file);
	closedir(dir);
}
