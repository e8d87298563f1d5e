// SPDX-License-Identifier: Apache-2.0
// Parses one JSON line into flat names and numbers without allocating.
#include "config.h"

#include "runs/flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/scan.h"

enum { DEEP = 6, MAX_NUMBER = 400 };

struct scan {
	const char *at, *end;
	struct yk_flat *to;
	char path[96]; // name of the current value, without a trailing dot
	size_t path_bytes;
	int depth;
};

static void blanks(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

double yk_flat_number(const char **at, const char *end)
{
	static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
				       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const char *p = *at, *begin;
	bool minus = p < end && *p == '-';
	uint64_t digits = 0;
	int shift = 0, power = 0, count = 0;
	p += minus;
	begin = p;
	if (p == end || !is_digit(*p) || (*p == '0' && p + 1 < end && is_digit(p[1])))
		return NAN;
	for (; p < end && is_digit(*p); p++, count++)
		digits = 10 * digits + (uint64_t)(*p - '0');
	if (p < end && *p == '.') {
		if (++p == end || !is_digit(*p))
			return NAN;
		for (; p < end && is_digit(*p); p++, count++, shift--)
			digits = 10 * digits + (uint64_t)(*p - '0');
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		bool less = ++p < end && *p == '-';
		if (p < end && (*p == '-' || *p == '+'))
			p++;
		if (p == end || !is_digit(*p))
			return NAN;
		for (; p < end && is_digit(*p); p++)
			power = power < 10000 ? 10 * power + (*p - '0') : power;
		shift += less ? -power : power;
	}
	if (p - begin > MAX_NUMBER)
		return NAN;
	*at = p;
		// Clinger 1990: both operands are exact, so there is only one rounding
	if (count <= 15 && shift >= -22 && shift <= 22) {
		double x = shift < 0 ? (double)digits / tens[-shift] : (double)digits * tens[shift];
		return minus ? -x : x;
	}
	char copy[MAX_NUMBER + 2];
	memcpy(copy, begin, (size_t)(p - begin));
	copy[p - begin] = '\0';
	double x = yk_strtod(copy, NULL);
	return minus ? -x : x;
}

// Finds a string's raw bytes and their number; false: not a string.
static bool raw_string(struct scan *s, const char **text, size_t *bytes, bool *plain)
{
	if (s->at == s->end || *s->at != '"')
		return false;
	const char *p = ++s->at;
	*text = p;
	*plain = true;
	for (; p < s->end && *p != '"'; p++) {
		if ((unsigned char)*p < 32)
			return false;
		if (*p == '\\') {
			*plain = false;
			if (++p == s->end)
				return false;
		} else if ((unsigned char)*p > 127) {
			*plain = false; // validated when it is decoded
		}
	}
	if (p == s->end)
		return false;
	*bytes = (size_t)(p - *text);
	s->at = p + 1;
	return true;
}

// Decodes the string that begins at `quote`, truncated to `room` bytes.
static bool decode(const char *quote, const char *end, char *to, size_t room)
{
	char copy[YK_FLAT_TEXT * 3];
	size_t n =
		(size_t)(end - quote) < sizeof copy - 1 ? (size_t)(end - quote) : sizeof copy - 1;
	memcpy(copy, quote, n);
	if ((size_t)(end - quote) >= sizeof copy) // truncated so that no escape is split
		return false;
	copy[n] = '\0';
	struct yk_scan scan = { .at = copy, .end = copy + n };
	const char *text = yk_scan_string(&scan);
	if (!text)
		return false;
	size_t length = strlen(text);
	if (length >= room) {
		length = room - 1;
		// do not split a UTF-8 character
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(to, text, length);
	to[length] = '\0';
	return true;
}

static void keep(struct scan *s, double value)
{
	struct yk_flat *f = s->to;
	if (s->depth == 1 && s->path_bytes == 4 && !memcmp(s->path, "step", 4)) {
		f->step = value >= 0 && value < 9e18 ? (int64_t)value : 0;
		return;
	}
	if (s->depth == 1 && s->path_bytes == 4 && !memcmp(s->path, "time", 4)) {
		f->time = value;
		return;
	}
	if (f->n == YK_FLAT_PAIRS || f->used + s->path_bytes > sizeof f->names)
		return;
	memcpy(f->names + f->used, s->path, s->path_bytes);
	f->pair[f->n++] = (struct yk_flat_pair){ f->names + f->used, s->path_bytes, value };
	f->used += s->path_bytes;
}

static bool literal(struct scan *s, const char *word, double value)
{
	size_t n = strlen(word);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n))
		return false;
	s->at += n;
	keep(s, value);
	return true;
}

static bool value_of(struct scan *s);

// Appends a member's name to the path; returns the path's former length.
static size_t path_add(struct scan *s, const char *name, size_t bytes)
{
	size_t before = s->path_bytes;
	size_t room = sizeof s->path - before - (before > 0);
	if (before && room)
		s->path[s->path_bytes++] = '.';
	if (bytes > room)
		bytes = room;
	memcpy(s->path + s->path_bytes, name, bytes);
	s->path_bytes += bytes;
	return before;
}

static bool members(struct scan *s)
{
	const char *name;
	char decoded[96];
	size_t bytes;
	bool plain;
	blanks(s);
	if (s->at < s->end && *s->at == '}')
		return s->at++, true;
	for (;;) {
		blanks(s);
		const char *quote = s->at;
		if (!raw_string(s, &name, &bytes, &plain))
			return false;
		if (!plain) {
			if (!decode(quote, s->at, decoded, sizeof decoded))
				return false;
			name = decoded;
			bytes = strlen(decoded);
		}
		blanks(s);
		if (s->at == s->end || *s->at++ != ':')
			return false;
		size_t before = path_add(s, name, bytes);
		blanks(s);
		const char *begin = s->at;
		if (!value_of(s))
			return false;
		if (s->depth == 1 && bytes == 6 && !memcmp(name, "report", 6)) {
			s->to->report = begin;
			s->to->report_bytes = (size_t)(s->at - begin);
		}
		s->path_bytes = before;
		blanks(s);
		if (s->at == s->end)
			return false;
		if (*s->at == '}')
			return s->at++, true;
		if (*s->at++ != ',')
			return false;
	}
}

static bool elements(struct scan *s)
{
	blanks(s);
	if (s->at < s->end && *s->at == ']')
		return s->at++, true;
	for (int i = 0;; i++) {
		char number[12];
		size_t n = 0;
		for (int k = i; n == 0 || k; k /= 10)
			number[sizeof number - ++n] = (char)('0' + k % 10);
		size_t before = path_add(s, number + sizeof number - n, n);
		blanks(s);
		if (i >= 100000 || !value_of(s))
			return false;
		s->path_bytes = before;
		blanks(s);
		if (s->at == s->end)
			return false;
		if (*s->at == ']')
			return s->at++, true;
		if (*s->at++ != ',')
			return false;
	}
}

// Stores a string if it is one of the three strings that are kept.
static bool string_value(struct scan *s)
{
	const char *quote = s->at, *text;
	size_t bytes;
	bool plain;
	char *to = NULL;
	size_t room = 0;
	if (!raw_string(s, &text, &bytes, &plain))
		return false;
	if (s->depth == 1 && s->path_bytes == 5 && !memcmp(s->path, "stage", 5))
		to = s->to->stage, room = sizeof s->to->stage;
	if (s->depth == 1 && s->path_bytes == 5 && !memcmp(s->path, "event", 5))
		to = s->to->event, room = sizeof s->to->event;
	if (s->depth == 1 && s->path_bytes == 4 && !memcmp(s->path, "text", 4))
		to = s->to->text, room = sizeof s->to->text;
	if (!to)
		return true;
	if (plain && bytes < room) {
		memcpy(to, text, bytes);
		to[bytes] = '\0';
		return true;
	}
	return decode(quote, s->at, to, room);
}

static bool value_of(struct scan *s)
{
	if (s->at == s->end)
		return false;
	switch (*s->at) {
	case '{':
	case '[': {
		bool object = *s->at++ == '{';
		if (s->depth == DEEP)
			return false;
		s->depth++;
		bool good = object ? members(s) : elements(s);
		s->depth--;
		return good;
	}
	case '"': return string_value(s);
	case 't': return literal(s, "true", 1);
	case 'f': return literal(s, "false", 0);
	case 'n': return literal(s, "null", NAN);
	}
	const char *before = s->at;
	double x = yk_flat_number(&s->at, s->end);
	if (s->at == before)
		return false;
	keep(s, x);
	return true;
}

bool yk_flat_scan(char *line, size_t bytes, struct yk_flat *to)
{
	struct scan s = { .at = line, .end = line + bytes, .to = to };
	to->step = 0;
	to->time = NAN;
	to->n = 0;
	to->used = 0;
	to->stage[0] = to->event[0] = to->text[0] = '\0';
	to->report = NULL;
	blanks(&s);
	if (s.at == s.end || *s.at++ != '{')
		return false;
	s.depth = 1;
	if (!members(&s))
		return false;
	blanks(&s);
	return s.at == s.end;
}
