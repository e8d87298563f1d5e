// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the tests of hostile files: resource limits, checks for open files, error
// checks, crafted files.
#ifndef YK_HOSTILE_H
#define YK_HOSTILE_H

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "hostile_safetensors.h"
#include "tap.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1 // their shadow memory needs the whole address space
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

// At most `more` MiB beyond what the process has now; 0: no limit.
static inline void limit(int more)
{
	struct rlimit r;
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	if (SANITIZED || !pages || getrlimit(RLIMIT_AS, &r) < 0)
		return;
	r.rlim_cur = more ? pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)more << 20) :
			    r.rlim_max;
	setrlimit(RLIMIT_AS, &r);
}

static inline int entries_of(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static inline int open_files(void)
{
	return entries_of("/proc/self/fd");
}

// Is it this error, in one line that contains `part`? Clears it.
static inline bool is_error(int e, int code, const char *part)
{
	const char *text = yoke_error();
	bool good = e == code && yoke_error_code() == code && strstr(text, part) &&
		    !strpbrk(text, "\n\r\033");

	if (!good)
		diag("got %s '%s', wanted %s with '%s'", yoke_error_name(e), text,
		     yoke_error_name(code), part);
	return good;
}

// Makes a file of a header, its length (`said`, or the real one if NULL) and data; returns its
// bytes, which the caller frees.
static inline char *craft(const char *header, size_t n, const uint64_t *said, size_t data,
		   size_t *bytes)
{
	uint64_t length = said ? *said : n;
	char *file = calloc(1, 8 + n + data + 1);

	memcpy(file, &length, 8);
	memcpy(file + 8, header, n);
	*bytes = 8 + n + data;
	return file;
}

// Writes a file of FOLDER/KIND as a seed for fuzzing.
static inline void seed(const char *to, const char *kind, int n, const void *data, size_t bytes)
{
	char file[512];

	snprintf(file, sizeof file, "%s/%s", to, kind);
	if (yk_dir_make(file) == 0) {
		snprintf(file, sizeof file, "%s/%s/%03d", to, kind, n);
		yk_file_write(file, data, bytes);
	}
}

#endif
