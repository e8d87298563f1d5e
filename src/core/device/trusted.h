// SPDX-License-Identifier: Apache-2.0
// Plugins, the probe program and MPI modules run only if no untrusted user could have written them.
#ifndef YK_TRUSTED_H
#define YK_TRUSTED_H

#include <stdbool.h>
#include <stddef.h>

struct stat;

// Can only trusted users write this file or directory, by its owner and mode?  If not, why.
bool yk_trusted_owner(const char *path, const struct stat *, char *why, size_t cap);
// Can only trusted users have written this file, a resolved path?  If not, why.
bool yk_trusted_file(const char *path, char *why, size_t cap);

#endif
