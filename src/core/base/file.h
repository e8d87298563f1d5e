// SPDX-License-Identifier: Apache-2.0
// Files: read as a whole, written atomically (temporary file in the same directory, fsync, rename,
// fsync of the directory).  A reader sees either the old file or the new one, complete.
#ifndef YK_FILE_H
#define YK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads a whole file and appends a NUL, which is not counted; the caller frees the data.  ENOENT,
// EIO, ENOMEM; EFORMAT if it has more than `max` bytes.  Error messages name the path and the
// reason.
int yk_file_read(const char *path, uint64_t max, char **data, size_t *bytes);
// Are both paths the same existing file or folder, also through links?
bool yk_file_is_same(const char *a, const char *b);
// Opens a regular file for reading; returns its descriptor and size.  ENOENT, EIO; EFORMAT for
// other file types and for pointer files of Git LFS or git-annex.
int yk_file_open(const char *path, uint64_t *bytes);
// ERANGE: the file is too large to be mapped by a program of 32 bits.
int yk_file_beyond(const char *path, uint64_t bytes);
// Reads exactly `bytes` bytes from position `at`.  EIO names path and position, also if the file
// ends early.
int yk_file_read_at(int fd, const char *path, uint64_t at, void *to, uint64_t bytes);
// The same in consecutive blocks: fn receives each block and its position; a nonzero result stops
// and is returned.
int yk_file_each(int fd, const char *path, uint64_t at, uint64_t bytes,
		 int (*fn)(void *arg, const char *block, size_t n, uint64_t at), void *arg);
// XXH64 of an interval of a file.
int yk_file_hash(int fd, const char *path, uint64_t at, uint64_t bytes, uint64_t *hash);
// Reads standard input to its end, like yk_file_read.
int yk_file_read_stdin(uint64_t max, char **data, size_t *bytes);
int yk_file_write(const char *path, const void *data, size_t bytes);

// Writes incrementally: begin, add.., then commit, or abort, which keeps the old file.  A failed
// begin or commit cleans up after itself; after a failed add, call abort.
struct yk_file_writer {
	int fd;
	char *path, *temporary;
	uint64_t bytes;
};
int yk_file_begin(struct yk_file_writer *, const char *path);
// The same, but a symbolic link is replaced; begin writes through it to its target.
int yk_file_begin_here(struct yk_file_writer *, const char *path);
int yk_file_add(struct yk_file_writer *, const void *data, size_t bytes);
// Writes at a position, from several threads at once; gaps read as zeros.  Not counted in the
// writer's `bytes`.
int yk_file_put(const struct yk_file_writer *, uint64_t at, const void *data, size_t bytes);
// The same for n numbers of 1, 2, 4 or 8 bytes, which the file has in little-endian order.
int yk_file_put_numbers(const struct yk_file_writer *, uint64_t at, const void *data, size_t width,
			size_t n);
// An unnamed file in TMPDIR, else /var/tmp, into which `what` is unpacked; read and written by
// position, and removed when its descriptor is closed.  EIO, ENOMEM.
int yk_file_nameless(struct yk_file_writer *, const char *what);
void yk_file_nameless_close(struct yk_file_writer *);
int yk_file_commit(struct yk_file_writer *);
// Commits two files that belong together: after an error both paths are as before, unless both
// were replaced and only writing the directory to the disk failed.
int yk_file_commit_both(struct yk_file_writer *first, struct yk_file_writer *second);
void yk_file_abort(struct yk_file_writer *);
// Removes temporary files beside it of processes that were killed while writing this file.
void yk_file_sweep(const char *path);

// mkdir -p; the last component may exist.
int yk_dir_make(const char *path);
int yk_dir_sync(const char *path); // fsync of a directory
// Removes a directory and the files directly in it.  ENOENT is no error.
int yk_dir_remove(const char *path);

#endif
