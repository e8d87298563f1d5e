// SPDX-License-Identifier: Apache-2.0
// The cache of compiled kernels, lent to backends: in memory, and in files that outlive the process.
#ifndef YK_CACHE_H
#define YK_CACHE_H

#include <stddef.h>
#include <stdint.h>

// Copies at most cap bytes, returns the length of the entry, or ENOENT.  Anything wrong with an
// entry is a miss.
int64_t yk_cache_get(const void *key, size_t key_bytes, void *to, size_t cap);
// Replaces.  0 when at least this process will find it again.
int yk_cache_put(const void *key, size_t key_bytes, const void *data, size_t bytes);
// Removes from the folder, a descriptor, what killed writers left and what is above the limit cache.max.
void yk_cache_sweep(int folder);

#endif
