// SPDX-License-Identifier: Apache-2.0
// Recognizes common files that a reader does not expect: a pointer whose data were not fetched, an
// error page, a pickle, an archive.  A reader that rejects a file reports this through
// yk_file_refused; Git LFS pointers are rejected whenever a file is opened (base/file.h).
#ifndef YK_KIND_H
#define YK_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_KIND_BEGIN = 512 }; // bytes examined

// Describes the file that starts with these n bytes and what to do: "a Python pickle, which is
// never loaded; .."; NULL: unknown.
const char *yk_file_kind(const void *begin, size_t n);
// Is the file a pointer of Git LFS or git-annex?
bool yk_is_pointer(const void *begin, size_t n);
// EFORMAT: "PATH: is not WHAT: it is a zip archive; ..", or for an unknown kind "PATH: is not WHAT:
// WHY".
int yk_file_refused(const char *path, const void *begin, size_t n, const char *what,
		    const char *why);
// The same for an open file; a file that cannot be read counts as unknown.
int yk_file_refused_at(const char *path, int fd, const char *what, const char *why);

// Removes the UTF-8 byte-order mark from a text in memory, which ends in a NUL.  EFORMAT: UTF-16,
// UTF-32, a pointer.
int yk_text_begin(const char *path, char *text, size_t *n);
// Length of the byte-order mark of a text file, 3 or 0.  EFORMAT: the file is not text or, for a
// table, is an HTML page.
int yk_text_mark(const char *path, int fd, bool table, uint64_t *mark);

#endif
