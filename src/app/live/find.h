// SPDX-License-Identifier: Apache-2.0
// Finds the runs below a folder.
#ifndef YK_FIND_H
#define YK_FIND_H

// Calls `found` for each run in or below a folder, by name; `name` is its path from there, or the
// last component of the folder's own path. Symbolic links and hidden folders are not followed.
// Stops if `found` returns other than 0, and returns that value.
typedef int yk_find_fn(void *arg, const char *folder, const char *name);
int yk_find_runs(const char *folder, yk_find_fn *found, void *arg);

#endif
