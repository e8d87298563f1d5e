// SPDX-License-Identifier: Apache-2.0
// Unicode through utf8proc, with shortcuts for ASCII.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "tokenizer/unicode.h"

#ifdef HAVE_UTF8PROC
#include <utf8proc.h>

#include "tokenizer/unicode_newer.h"
#endif

bool yk_is_space(uint32_t c)
{
	if (c < 0x80)
		return c == ' ' || (c >= '\t' && c <= '\r');
	return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
	       c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

#ifdef HAVE_UTF8PROC

int yk_unicode_require(const char *what)
{
	(void)what;
	return 0;
}

static bool within(uint32_t c, utf8proc_category_t lo, utf8proc_category_t hi)
{
	const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

	return k >= lo && k <= hi;
}

static bool found(uint32_t c, const uint32_t (*range)[2], size_t n)
{
	while (n) {
		const size_t half = n / 2;
		if (c < range[half][0]) {
			n = half;
		} else if (c > range[half][1]) {
			range += half + 1;
			n -= half + 1;
		} else {
			return true;
		}
	}
	return false;
}
#define FOUND(c, table) found(c, table, sizeof(table) / sizeof *(table))

bool yk_is_punctuation(uint32_t c)
{
	return within(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) &&
	       !FOUND(c, newer_punctuation);
}

bool yk_is_mark(uint32_t c)
{
	return c >= 0x300 && within(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME) &&
	       !FOUND(c, newer_mark);
}

bool yk_is_nonspacing(uint32_t c)
{
	return c >= 0x300 && within(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MN) &&
	       !FOUND(c, newer_nonspacing);
}

bool yk_is_numeric(uint32_t c)
{
	return within(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool yk_is_letter(uint32_t c)
{
	return within(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) ||
	       within(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PC);
}

bool yk_is_other(uint32_t c)
{
	return within(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO);
}

void yk_char_lower(struct yk_string *to, uint32_t c)
{
	if (c == 0x130) { // the only character whose lower case has two
		yk_string_add(to, "i\xcc\x87", 3);
		return;
	}
	yk_string_char(to, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

void yk_char_upper(struct yk_string *to, uint32_t c)
{
	if (c == 0xdf) // the most frequent character whose upper case has two
		yk_string_add(to, "SS", 2);
	else
		yk_string_char(to, (uint32_t)utf8proc_toupper((utf8proc_int32_t)c));
}

int yk_unicode_normal(struct yk_string *to, const char *s, size_t n, enum yk_unicode_form form)
{
	static const int options[] = {
		[YK_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
		[YK_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
		[YK_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
		[YK_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
	};
	utf8proc_uint8_t *done = NULL;
	size_t ascii = 0;

	while (ascii < n && !((unsigned char)s[ascii] & 0x80))
		ascii++;
	if (ascii == n) {
		yk_string_add(to, s, n);
		return 0;
	}
	const utf8proc_ssize_t got = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n,
						  &done, (utf8proc_option_t)options[form]);
	if (got < 0)
		return yk_fail(got == UTF8PROC_ERROR_NOMEM ? YOKE_ENOMEM : YOKE_EFORMAT,
			       "Unicode normal form: %s", utf8proc_errmsg(got));
	yk_string_add(to, (char *)done, (size_t)got);
	free(done);
	return 0;
}

size_t yk_grapheme(const char *s, size_t n)
{
	const char *at = s, *end = s + n;
	utf8proc_int32_t state = 0, before = (utf8proc_int32_t)yk_char_next(&at);

	while (at < end) {
		const char *next = at;
		const utf8proc_int32_t c = (utf8proc_int32_t)yk_char_next(&next);
		if (utf8proc_grapheme_break_stateful(before, c, &state))
			break;
		before = c;
		at = next;
	}
	return (size_t)(at - s);
}

#else

int yk_unicode_require(const char *what)
{
	return yk_fail(YOKE_EUNSUPPORTED,
		       "%s: this tokenizer needs Unicode tables, and yoke was built without "
		       "utf8proc (libutf8proc-dev)",
		       what);
}

bool yk_is_punctuation(uint32_t c)
{
	return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
	       (c >= '{' && c <= '~');
}

bool yk_is_mark(uint32_t c)
{
	(void)c;
	return false;
}

bool yk_is_nonspacing(uint32_t c)
{
	(void)c;
	return false;
}

bool yk_is_numeric(uint32_t c)
{
	return c >= '0' && c <= '9';
}

bool yk_is_letter(uint32_t c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

bool yk_is_other(uint32_t c)
{
	return c < ' ' || c == 0x7f;
}

void yk_char_lower(struct yk_string *to, uint32_t c)
{
	yk_string_char(to, c >= 'A' && c <= 'Z' ? c + 32 : c);
}

void yk_char_upper(struct yk_string *to, uint32_t c)
{
	yk_string_char(to, c >= 'a' && c <= 'z' ? c - 32 : c);
}

int yk_unicode_normal(struct yk_string *to, const char *s, size_t n, enum yk_unicode_form form)
{
	(void)form;
	yk_string_add(to, s, n);
	return 0;
}

size_t yk_grapheme(const char *s, size_t n)
{
	(void)n;
	return yk_char_size(*s);
}

#endif
