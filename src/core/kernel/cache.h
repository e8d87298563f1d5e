// SPDX-License-Identifier: Apache-2.0
// The cache of compiled kernels, lent to backends: in memory, and in files that outlive the process.
#ifndef YK_CACHE_H
#define YK_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// Copies at most cap bytes, returns the length of the entry, or ENOENT.  Anything wrong with an
// entry is a miss.
int64_t yk_cache_get(const void *key, size_t key_bytes, void *to, size_t cap);
// Replaces.  0 when at least this process will find it again.
int yk_cache_put(const void *key, size_t key_bytes, const void *data, size_t bytes);

// ---- cache_folder.c ----

// The folder of the files, a descriptor; -1: there is none.  It is made when it is not there and
// `make`; when it cannot be had, that is warned of once.
int yk_cache_folder(bool make);
// May we believe, and may nobody else write, what this describes?
bool yk_cache_ours(const struct stat *);

struct yk_cache_state {
	char path[PATH_MAX]; // "" when there is none
	bool asked, usable;  // YOKE_CACHE names it; files are kept, or will be
	char why[400];       // of what is not as it could be, else ""
	uint64_t files, bytes;
};
// Looks and changes nothing.
void yk_cache_look(struct yk_cache_state *);

// ---- cache_sweep.c ----

// Number and bytes of the entries.
uint64_t yk_cache_count(int folder, uint64_t *bytes);
// Removes from the folder, a descriptor, what killed writers left and what is above the limit cache.max.
void yk_cache_sweep(int folder);

#endif
