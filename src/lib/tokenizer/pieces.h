// SPDX-License-Identifier: Apache-2.0
// Growing byte strings, and texts that are divided into pieces.  Running out of memory sets a flag
// that is checked once at the end of a pass, so that adding needs no checks.
#ifndef YK_TOKENIZER_PIECES_H
#define YK_TOKENIZER_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct yk_string {
	char *s; // not NUL-terminated
	size_t n, cap;
	bool failed; // ENOMEM
};

bool yk_string_reserve(struct yk_string *, size_t more);
static inline void yk_string_add(struct yk_string *t, const char *s, size_t n)
{
	if (n <= t->cap - t->n || yk_string_reserve(t, n)) {
		if (n)
			memcpy(t->s + t->n, s, n);
		t->n += n;
	}
}
void yk_string_char(struct yk_string *, uint32_t c); // appends a code point as UTF-8
void yk_string_fini(struct yk_string *);

// A piece is an interval of the text.  `first`: it begins where the original text began.
struct yk_piece {
	size_t at, n;
	bool first;
};

struct yk_pieces {
	struct yk_string text;
	struct yk_piece *piece;
	size_t count, cap;
};

void yk_pieces_clear(struct yk_pieces *);
// Appends a piece with its text; an empty one is left out by `split` and kept by `add`.
void yk_pieces_add(struct yk_pieces *, const char *s, size_t n, bool first);
static inline void yk_pieces_split(struct yk_pieces *p, const char *s, size_t n, bool first)
{
	if (n)
		yk_pieces_add(p, s, n, first);
}
// Opens a piece at the end of the text; yk_pieces_end closes it with what was appended since.
void yk_pieces_begin(struct yk_pieces *, bool first);
void yk_pieces_end(struct yk_pieces *);
void yk_pieces_fini(struct yk_pieces *);

// Reads a code point of valid UTF-8 and advances.
static inline uint32_t yk_char_next(const char **at)
{
	const unsigned char *s = (const unsigned char *)*at;

	if (s[0] < 0x80) {
		*at += 1;
		return s[0];
	}
	if (s[0] < 0xe0) {
		*at += 2;
		return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
	}
	if (s[0] < 0xf0) {
		*at += 3;
		return (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
	}
	*at += 4;
	return (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
}
// Bytes of the UTF-8 character that begins with this byte.
static inline size_t yk_char_size(char c)
{
	const unsigned char b = (unsigned char)c;

	return 1 + (b >= 0xc0) + (b >= 0xe0) + (b >= 0xf0);
}
// Can these bytes be the incomplete beginning of a character?
bool yk_char_is_begun(const char *s, size_t n);
// Position of the first byte that is not UTF-8; `n` if all of it is.
size_t yk_utf8_check(const char *s, size_t n);
// Appends the text with each maximal invalid subpart replaced by U+FFFD.
void yk_utf8_lossy(struct yk_string *to, const char *s, size_t n);

#endif
