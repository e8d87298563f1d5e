// SPDX-License-Identifier: Apache-2.0
// Cache of compiled kernels, offered to backends: in memory, and in files that outlive the process.
#ifndef YK_CACHE_H
#define YK_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// Copies at most cap bytes and returns the entry's length, or ENOENT.  An invalid or unreadable
// entry counts as a miss.
int64_t yk_cache_get(const void *key, size_t key_bytes, void *to, size_t cap);
// Adds or replaces an entry.  0 if at least this process can find it again.
int yk_cache_put(const void *key, size_t key_bytes, const void *data, size_t bytes);

// ---- cache_folder.c ----

// A descriptor of the directory that holds the files, or -1 if there is none.  `make` creates a
// missing directory; if it cannot be used, a warning is logged once.
int yk_cache_folder(bool make);
// Does the stat result describe a file or directory that belongs to this user and that nobody else
// may write?
bool yk_cache_ours(const struct stat *);

struct yk_cache_state {
	char path[PATH_MAX]; // "" if there is none
	bool requested, usable;  // YOKE_CACHE names the path; files are or can be kept there
	char why[400];       // why files cannot be kept, else ""
	uint64_t files, bytes;
};
// Inspects the directory without changing anything.
void yk_cache_inspect(struct yk_cache_state *);

// ---- cache_sweep.c ----

// Counts the entries and their bytes.
uint64_t yk_cache_count(int folder, uint64_t *bytes);
// folder: a descriptor.  Removes the temporary files of killed writers, and old entries above the
// limit cache.max.
void yk_cache_sweep(int folder);

#endif
