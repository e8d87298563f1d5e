// SPDX-License-Identifier: Apache-2.0
// JSON by jansson: files with limits on size and depth, and errors that name file and line.
#ifndef YK_JSON_H
#define YK_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/file.h"

// A regular file of 64 MiB at most.  The caller gives the result to json_decref.  NULL with
// EFORMAT, ENOENT, EIO.
json_t *yk_json_load(const char *path);
json_t *yk_json_parse(const char *text, size_t bytes, const char *what);
// Of text of our own, by jansson's flags, whatever the locale is; NULL: it is none, or there is no memory.
json_t *yk_json_of(const char *text, size_t flags);
char *yk_json_text(const json_t *, size_t flags);
// Indented by two, keys in their order, written atomically.
int yk_json_save(const char *path, const json_t *);
// The same into a file that was begun; commits it, or aborts it.
int yk_json_write(struct yk_file_writer *, const json_t *);
// A member of an object with its type checked; errors name `what` and key.
int yk_json_int(const json_t *, const char *what, const char *key, int64_t least, int64_t most,
		int64_t *to);
int yk_json_real(const json_t *, const char *what, const char *key, double *to);
int yk_json_str(const json_t *, const char *what, const char *key, const char **to);

#endif
