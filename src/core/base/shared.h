// SPDX-License-Identifier: Apache-2.0
// Files and folders that several processes use at once: appended to whole, locked.
#ifndef YK_SHARED_H
#define YK_SHARED_H

#include <stdbool.h>

// Opens a file for yk_file_append, made if need be; a descriptor, or EIO, ENOENT.
int yk_file_append_open(const char *path);
// Appends the text whole, by one write: of what fits only in part nothing stays (EIO).  Others who
// append so wait meanwhile.  An empty file gets the header (NULL: none) first.
int yk_file_append(int fd, const char *path, const char *header, const char *text);

// Locks a folder until the descriptor is closed, or the process ends however it does.  EBUSY: another
// has the lock.  Where the file system knows no locks
// there is none.
int yk_dir_lock(const char *path, int *fd);
// Does another process hold that lock?
bool yk_dir_locked(const char *path);

#endif
