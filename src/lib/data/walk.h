// SPDX-License-Identifier: Apache-2.0
// Walks a comma-separated list of files and folders in a reproducible order.
#ifndef YK_DATA_WALK_H
#define YK_DATA_WALK_H

#include <dirent.h>
#include <stdbool.h>

#define YK_STDIN "-" // as a path; "./-" is a file named "-"

// named: the path was given by the user, so an unusable file is an error instead of being skipped.
// Returns 1 if the file is used, 0 if it is skipped, or an error, which ends the walk.
typedef int yk_walk_fn(void *arg, const char *path, bool named);
// Calls fn for each file of `paths` (or one name that has a comma).  Folders are walked recursively
// in byte order of the names, without hidden names and links.  EINVAL, ENOENT, EIO; EFORMAT: no
// file of a folder is used.
int yk_walk(const char *paths, yk_walk_fn *, void *arg);
// Calls fn for each path of the list without checking its type.
int yk_walk_list(const char *paths, int (*fn)(void *arg, const char *path), void *arg);
// Lists a folder without hidden names, in byte order; returns the count.  The caller frees each
// entry and the array.
int yk_walk_entries(const char *path, struct dirent ***entries);
// Does the list read standard input, which a later command cannot read again?
bool yk_data_piped(const char *paths);

#endif
