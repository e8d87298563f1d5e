// SPDX-License-Identifier: Apache-2.0
// Files: read whole, written atomically (temporary beside it, fsync, rename, fsync of the folder).
// A reader sees the old file or the new one, never a part.
#ifndef YK_FILE_H
#define YK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The whole file, with a NUL behind it that is not counted; the caller frees it.  ENOENT, EIO, ENOMEM;
// EFORMAT when it is larger than `most` bytes.  Errors name path and reason.
int yk_file_read(const char *path, uint64_t most, char **data, size_t *bytes);
// Opens a regular file for reading and returns its descriptor and size.  ENOENT, EIO; EFORMAT for a file of another type,
// and for a pointer of Git LFS or git-annex.
int yk_file_open(const char *path, uint64_t *bytes);
// So many bytes from a position on.  EIO names path and position, also where the file ends before.
int yk_file_read_at(int fd, const char *path, uint64_t at, void *to, uint64_t bytes);
// The same in blocks, in their order: fn gets each, and where it begins; what it returns ends it if it is not 0.
int yk_file_each(int fd, const char *path, uint64_t at, uint64_t bytes,
		 int (*fn)(void *arg, const char *block, size_t n, uint64_t at), void *arg);
// XXH64 of that part of a file.
int yk_file_hash(int fd, const char *path, uint64_t at, uint64_t bytes, uint64_t *hash);
// All of standard input, in the same way.
int yk_file_read_stdin(uint64_t most, char **data, size_t *bytes);
int yk_file_write(const char *path, const void *data, size_t bytes);

// Writes piece by piece: begin, add.., then commit, or abort, which leaves the old file.  After a
// failed begin or commit nothing is left to do; after a failed add, abort.
struct yk_file_writer {
	int fd;
	char *path, *temporary;
	uint64_t bytes;
};
int yk_file_begin(struct yk_file_writer *, const char *path);
// The same, but a link is replaced where begin writes through it to the file behind.
int yk_file_begin_here(struct yk_file_writer *, const char *path);
int yk_file_add(struct yk_file_writer *, const void *data, size_t bytes);
// From a byte on, by any thread at once; what is between pieces reads as zeros.  `bytes` of the writer does not count it.
int yk_file_put(const struct yk_file_writer *, uint64_t at, const void *data, size_t bytes);
// A file without a name, in TMPDIR, else /var/tmp, to unpack `what` to, read and written by position: it goes with its
// descriptor.  EIO, ENOMEM.
int yk_file_nameless(struct yk_file_writer *, const char *what);
void yk_file_nameless_close(struct yk_file_writer *);
int yk_file_commit(struct yk_file_writer *);
void yk_file_abort(struct yk_file_writer *);
// Removes what processes that were killed in the middle of writing this file have left beside it.
void yk_file_sweep(const char *path);

// mkdir -p; the last component may exist.
int yk_dir_make(const char *path);
int yk_dir_sync(const char *path); // fsync of a folder
// Removes a folder with the files in it, one level deep.  ENOENT is no error.
int yk_dir_remove(const char *path);

#endif
