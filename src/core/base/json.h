// SPDX-License-Identifier: Apache-2.0
// JSON through jansson, with limits on size and depth; errors name file and line.
#ifndef YK_JSON_H
#define YK_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/file.h"

// Loads a regular file of at most 64 MiB.  The caller releases the result with json_decref.  NULL
// with EFORMAT, ENOENT, EIO.
json_t *yk_json_load(const char *path);
json_t *yk_json_parse(const char *text, size_t bytes, const char *what);
// Parses text from this program with jansson's flags, independent of the locale; NULL: invalid, or
// no memory.
json_t *yk_json_of(const char *text, size_t flags);
char *yk_json_text(const json_t *, size_t flags);
// Writes atomically, indented by two, with keys in their order.
int yk_json_save(const char *path, const json_t *);
// The same into a file already begun; commits or aborts it.
int yk_json_write(struct yk_file_writer *, const json_t *);
// The object with a member whose name has n bytes; the value's reference is taken. NULL, and the
// object is released: no memory, or the name is not UTF-8 or has a NUL.
json_t *yk_json_with(json_t *, const char *name, size_t n, json_t *value);
// null if x is not finite.
json_t *yk_json_of_real(double x);
// The number without its fraction; null if x is not finite.
json_t *yk_json_of_int(double x);
// "?" if the text is not UTF-8, as names of directories may be.
json_t *yk_json_of_text(const char *);
// Reads a member of an object and checks its type; errors name `what` and the key.
int yk_json_int(const json_t *, const char *what, const char *key, int64_t min, int64_t max,
		int64_t *to);
int yk_json_real(const json_t *, const char *what, const char *key, double *to);
int yk_json_str(const json_t *, const char *what, const char *key, const char **to);

#endif
