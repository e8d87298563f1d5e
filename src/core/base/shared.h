// SPDX-License-Identifier: Apache-2.0
// Files and directories shared by several processes: atomic appends, locks.
#ifndef YK_SHARED_H
#define YK_SHARED_H

#include <stdbool.h>

// Opens a file for yk_file_append and creates it if needed; a descriptor, or EIO, ENOENT.
int yk_file_append_open(const char *path);
// Appends the text with one write; a partial write is undone (EIO).  Concurrent appends of other
// processes wait.  An empty file first gets the header (NULL: none).
int yk_file_append(int fd, const char *path, const char *header, const char *text);

// Locks a directory until the descriptor is closed or the process ends in any way.  EBUSY: another
// process has the lock.  On a file system without locks it succeeds without locking.
int yk_dir_lock(const char *path, int *fd);
// Releases the lock and closes the descriptor, -1: none.  A child that was forked meanwhile and
// still has the descriptor does not keep the lock.
void yk_dir_unlock(int fd);
// Does another process hold that lock?
bool yk_dir_locked(const char *path);

#endif
