// SPDX-License-Identifier: Apache-2.0
// The JSON scanner, which builds no tree.
#include "config.h"

#include <string.h>

#include "base/scan.h"

static bool refuse(struct yk_scan *s, const char *why)
{
	if (!s->why)
		s->why = why;
	return false;
}

static void blanks(struct yk_scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' ||
				  *s->at == '\r'))
		s->at++;
}

bool yk_scan_is(struct yk_scan *s, char c)
{
	blanks(s);
	if (s->why || s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

bool yk_scan_expect(struct yk_scan *s, char c)
{
	static const char *const missing[] = {
		['"'] = "expected a string",
		[','] = "expected ','",
		[':'] = "expected ':'",
		['['] = "expected '['",
		[']'] = "expected ']'",
		['{'] = "expected '{'",
		['}'] = "expected '}'",
	};

	return yk_scan_is(s, c) || refuse(s, missing[(unsigned char)c]);
}

bool yk_scan_end(struct yk_scan *s)
{
	blanks(s);
	return !s->why && (s->at == s->end || refuse(s, "unexpected text after the end"));
}

// ---- strings ----

// Unicode 15, table 3-7: well-formed UTF-8 byte sequences.
int yk_utf8(const unsigned char *s, const unsigned char *end)
{
	unsigned char low = 0x80, high = 0xbf;
	int n;

	if (*s >= 0xc2 && *s <= 0xdf)
		n = 2;
	else if (*s >= 0xe0 && *s <= 0xef)
		n = 3;
	else if (*s >= 0xf0 && *s <= 0xf4)
		n = 4;
	else
		return 0;
	if (end - s < n)
		return 0;
	switch (*s) { // no overlong forms, no surrogates, nothing above U+10FFFF
	case 0xe0: low = 0xa0; break;
	case 0xed: high = 0x9f; break;
	case 0xf0: low = 0x90; break;
	case 0xf4: high = 0x8f; break;
	}
	if (s[1] < low || s[1] > high)
		return 0;
	for (int i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

// The four hexadecimal digits after "\u" at s->at; -1 if there are not four.
static int32_t hex4(struct yk_scan *s)
{
	int32_t x = 0;

	if (s->end - s->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = *s->at++;
		int digit = c >= '0' && c <= '9' ? c - '0' :
			    c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			    c >= 'A' && c <= 'F' ? c - 'A' + 10 :
						   -1;
		if (digit < 0)
			return -1;
		x = x * 16 + digit;
	}
	return x;
}

static char *put_utf8(char *to, int32_t x)
{
	int more = x < 0x80 ? 0 : x < 0x800 ? 1 : x < 0x10000 ? 2 : 3;
	static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };

	*to++ = (char)(lead[more] | x >> 6 * more);
	while (more--)
		*to++ = (char)(0x80 | (x >> 6 * more & 0x3f));
	return to;
}

// Decodes the rest of an escape after its backslash.  The result is never longer than the escape.
static bool escape(struct yk_scan *s, char **to)
{
	static const char pairs[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	char c = s->at < s->end ? *s->at++ : 0;

	if (c != 'u') {
		for (const char *p = pairs; *p; p += 2)
			if (c == *p) {
				*(*to)++ = p[1];
				return true;
			}
		return refuse(s, "an unknown escape");
	}
	int32_t x = hex4(s);
	if (x >= 0xd800 && x <= 0xdbff) {
		int32_t low = -1;
		if (s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u') {
			s->at += 2;
			low = hex4(s);
		}
		x = low >= 0xdc00 && low <= 0xdfff ?
			    0x10000 + ((x - 0xd800) << 10) + (low - 0xdc00) :
			    -1;
	} else if (x >= 0xdc00 && x <= 0xdfff) {
		x = -1;
	}
	if (x <= 0)
		return refuse(s, x ? "a bad \\u escape" : "a NUL in a string");
	*to = put_utf8(*to, x);
	return true;
}

// Copies unescaped one-byte characters.
static void plain(struct yk_scan *s, char **to)
{
	char *at = s->at;

	while (at < s->end && *at != '"' && *at != '\\' && (signed char)*at >= ' ')
		at++;
	if (*to != s->at)
		memmove(*to, s->at, (size_t)(at - s->at));
	*to += at - s->at;
	s->at = at;
}

char *yk_scan_string(struct yk_scan *s)
{
	if (!yk_scan_expect(s, '"'))
		return NULL;
	char *first = s->at, *to = first;
	for (plain(s, &to); s->at < s->end && *s->at != '"'; plain(s, &to)) {
		unsigned char c = (unsigned char)*s->at;
		if (c < ' ') {
			refuse(s, "a control character in a string");
			return NULL;
		}
		if (c == '\\') {
			s->at++;
			if (!escape(s, &to))
				return NULL;
			continue;
		}
		int n = yk_utf8((unsigned char *)s->at, (unsigned char *)s->end);
		if (!n) {
			refuse(s, "a string that is not UTF-8");
			return NULL;
		}
		while (n--)
			*to++ = *s->at++;
	}
	if (s->at == s->end) {
		refuse(s, "a string without an end");
		return NULL;
	}
	s->at++;
	*to = 0;
	return first;
}

// ---- skipped values ----

bool yk_scan_raw(struct yk_scan *s, const char **from, const char **end)
{
	if (!yk_scan_expect(s, '"'))
		return false;
	*from = s->at;
	while (s->at < s->end && *s->at != '"') {
		if ((unsigned char)*s->at < ' ')
			return refuse(s, "a control character in a string");
		s->at += 1 + (*s->at == '\\');
	}
	if (s->at >= s->end) {
		s->at = s->end;
		return refuse(s, "a string without an end");
	}
	*end = s->at++;
	return true;
}

// null, true, false, NaN, Infinity, -Infinity, or a number: -?digits[.digits][e[+-]digits]
static bool skip_word(struct yk_scan *s)
{
	static const char *const words[] = { "null", "true", "false", "NaN", "Infinity" };
	char *at = s->at;
	at += at < s->end && *at == '-';
	for (int i = *s->at == '-' ? 3 : 0; i < 5; i++) {
		const size_t n = strlen(words[i]);
		if ((size_t)(s->end - at) >= n && !memcmp(at, words[i], n)) {
			s->at = at + n;
			return true;
		}
	}
	static const char *const between[] = { ".", "eE" };
	for (int part = 0; part < 3; part++) {
		const char *first = at;
		while (at < s->end && *at >= '0' && *at <= '9')
			at++;
		if (at == first)
			return refuse(s, "no value");
		for (; part < 2 && (at == s->end || !strchr(between[part], *at) || !*at); part++)
			;
		if (part < 2)
			at++;
		if (part == 1)
			at += at < s->end && (*at == '+' || *at == '-');
	}
	s->at = at;
	return true;
}

bool yk_scan_skip(struct yk_scan *s)
{
	unsigned char object[YK_SCAN_DEPTH / 8] = { 0 }; // a bit per level: is it an object?
	int depth = 0;
	const char *from, *end;
	for (;;) {
		blanks(s);
		if (s->at == s->end)
			return refuse(s, "no value");
		const bool opens = *s->at == '{' || *s->at == '[', braces = *s->at == '{';
		if (opens && depth == YK_SCAN_DEPTH)
			return refuse(s, "arrays and objects nested too deep");
		if (opens) {
			s->at++;
			object[depth / 8] =
				(unsigned char)((object[depth / 8] & ~(1 << depth % 8)) |
						braces << depth % 8);
			depth++;
			if (!yk_scan_is(s, braces ? '}' : ']')) {
				if (braces &&
				    !(yk_scan_raw(s, &from, &end) && yk_scan_expect(s, ':')))
					return false;
				continue;
			}
			depth--;
		} else if (*s->at == '"' ? !yk_scan_raw(s, &from, &end) : !skip_word(s)) {
			return false;
		}
		// after a value: close finished arrays and objects, or continue with the next
		// member
		for (; depth > 0; depth--) {
			const bool in_object = object[(depth - 1) / 8] >> (depth - 1) % 8 & 1;
			if (yk_scan_is(s, ',')) {
				if (in_object &&
				    !(yk_scan_raw(s, &from, &end) && yk_scan_expect(s, ':')))
					return false;
				break;
			}
			if (!yk_scan_expect(s, in_object ? '}' : ']'))
				return false;
		}
		if (depth == 0)
			return true;
	}
}

// ---- numbers ----

bool yk_scan_digits(const char **at, const char *end, int64_t *to)
{
	int64_t n = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (__builtin_mul_overflow(n, (int64_t)10, &n) ||
		    __builtin_add_overflow(n, (int64_t)(**at - '0'), &n))
			return false;
	*to = n;
	return true;
}

bool yk_scan_size(struct yk_scan *s, int64_t *to)
{
	blanks(s);
	const char *at = s->at, *first = at;
	if (!yk_scan_digits(&at, s->end, to))
		return refuse(s, "a number of more than 63 bits");
	s->at += at - first;
	if (s->why || at == first || (*first == '0' && at > first + 1) ||
	    (at < s->end && memchr(".eE", *at, 3)))
		return refuse(s, "expected a whole number, 0 or more");
	return true;
}
