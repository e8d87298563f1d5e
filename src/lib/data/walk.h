// SPDX-License-Identifier: Apache-2.0
// Lists of data: files and folders, comma-separated, walked in one order.
#ifndef YK_DATA_WALK_H
#define YK_DATA_WALK_H

#include <dirent.h>
#include <stdbool.h>

#define YK_STDIN "-" // as a path; "./-" is a file of that name

// named: given by the user, so what cannot be used is an error rather than passed over.  1: it is used, 0: passed
// over, or an error, which ends the walk.
typedef int yk_walk_fn(void *arg, const char *path, bool named);
// Calls fn for each file of `paths` (or one name that has a comma).  Folders are walked down in the order of byte
// values, without hidden names and links.  EINVAL, ENOENT, EIO; EFORMAT: a folder of which nothing is used.
int yk_walk(const char *paths, yk_walk_fn *, void *arg);
// Calls fn for each path of the list, without looking at what it is.
int yk_walk_list(const char *paths, int (*fn)(void *arg, const char *path), void *arg);
// What a folder has but hidden names, in the order of byte values: how many, in memory for free(), each and all.
int yk_walk_entries(const char *path, struct dirent ***entries);
// Does that list read standard input, which a later command cannot read again?
bool yk_data_piped(const char *paths);

#endif
