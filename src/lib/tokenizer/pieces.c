// SPDX-License-Identifier: Apache-2.0
// Growing byte strings, pieces, and checks of UTF-8.
#include "config.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/scan.h"
#include "tokenizer/pieces.h"

bool yk_string_reserve(struct yk_string *t, size_t more)
{
	size_t n;

	if (t->failed || __builtin_add_overflow(t->n, more, &n) ||
	    yk_grow(&t->s, &t->cap, n, 1) < 0)
		t->failed = true;
	return !t->failed;
}

void yk_string_char(struct yk_string *t, uint32_t c)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		s[n++] = (char)(0x80 | (c & 0x3f));
	yk_string_add(t, s, n);
}

void yk_string_fini(struct yk_string *t)
{
	free(t->s);
	*t = (struct yk_string){ 0 };
}

void yk_pieces_clear(struct yk_pieces *p)
{
	p->text.n = 0;
	p->count = 0;
}

void yk_pieces_begin(struct yk_pieces *p, bool first)
{
	if (yk_grow(&p->piece, &p->cap, p->count + 1, sizeof *p->piece) < 0) {
		p->text.failed = true;
		return;
	}
	p->piece[p->count++] = (struct yk_piece){ .at = p->text.n, .first = first };
}

void yk_pieces_end(struct yk_pieces *p)
{
	if (p->text.failed)
		return;
	p->piece[p->count - 1].n = p->text.n - p->piece[p->count - 1].at;
}

void yk_pieces_add(struct yk_pieces *p, const char *s, size_t n, bool first)
{
	yk_pieces_begin(p, first);
	yk_string_add(&p->text, s, n);
	yk_pieces_end(p);
}

void yk_pieces_fini(struct yk_pieces *p)
{
	yk_string_fini(&p->text);
	free(p->piece);
	*p = (struct yk_pieces){ 0 };
}

bool yk_char_is_begun(const char *s, size_t n)
{
	const unsigned char lead = n ? (unsigned char)s[0] : 0;
	bool begun = lead >= 0xc2 && lead < 0xf5 && n < yk_char_size(s[0]);
	for (size_t i = 1; i < n; i++)
		begun = begun && ((unsigned char)s[i] & 0xc0) == 0x80;
	return begun;
}

size_t yk_utf8_check(const char *s, size_t n)
{
	const unsigned char *at = (const unsigned char *)s, *end = at + n;

	while (at < end) {
		const int more = *at < 0x80 ? 1 : yk_utf8(at, end);
		if (!more)
			break;
		at += more;
	}
	return (size_t)(at - (const unsigned char *)s);
}

// Length of the longest prefix of a character, at least 1: the "maximal subpart" of Unicode 3.9.
static size_t broken(const unsigned char *s, size_t n)
{
	unsigned lo = 0x80, hi = 0xbf;
	size_t need = 0, i = 1;

	if (*s >= 0xc2 && *s < 0xe0)
		need = 1;
	else if (*s >= 0xe0 && *s < 0xf0)
		need = 2;
	else if (*s >= 0xf0 && *s < 0xf5)
		need = 3;
	if (*s == 0xe0)
		lo = 0xa0;
	else if (*s == 0xed)
		hi = 0x9f;
	else if (*s == 0xf0)
		lo = 0x90;
	else if (*s == 0xf4)
		hi = 0x8f;
	while (i <= need && i < n && s[i] >= lo && s[i] <= hi) {
		lo = 0x80;
		hi = 0xbf;
		i++;
	}
	return i;
}

void yk_utf8_lossy(struct yk_string *to, const char *s, size_t n)
{
	while (n) {
		size_t good = yk_utf8_check(s, n);
		yk_string_add(to, s, good);
		s += good;
		n -= good;
		if (n) {
			good = broken((const unsigned char *)s, n);
			yk_string_add(to, "\xef\xbf\xbd", 3);
			s += good;
			n -= good;
		}
	}
}
