// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled character map: a double-array trie (Darts) of byte strings, each
// leading to its replacement.
#ifndef YK_CHARSMAP_H
#define YK_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_charsmap {
	uint32_t *unit;
	size_t units;
	char *text; // replacements, each terminated with NUL
	size_t bytes;
};

// From the bytes of the map, which are copied.  NULL: EFORMAT, ENOMEM.
struct yk_charsmap *yk_charsmap_new(const void *data, size_t bytes, const char *what);
// The same from base64.
struct yk_charsmap *yk_charsmap_base64(const char *s, size_t n, const char *what);
// The replacement of the longest, or the shortest, string of the map that begins at s; *n is the
// string's length.  NULL: none.
const char *yk_charsmap_find(const struct yk_charsmap *, const char *s, const char *end,
			     bool longest, size_t *n);
void yk_charsmap_free(struct yk_charsmap *);

#endif
