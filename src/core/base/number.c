// SPDX-License-Identifier: Apache-2.0
// Locale-independent conversion of numbers: calls the C library's functions while the thread's
// locale is "C".
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

locale_t yk_locale_begin(void)
{
	// glibc and musl have this locale as a constant, so nothing is allocated; otherwise the
	// locale is unchanged
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	return uselocale(c);
}

void yk_locale_end(locale_t before)
{
	const locale_t c = uselocale(before);
	if (c != before)
		freelocale(c);
}

double yk_strtod(const char *text, char **end)
{
	const locale_t before = yk_locale_begin();
	const double x = strtod(text, end);
	yk_locale_end(before);
	return x;
}

#define PRINT(call) \
	va_list ap; \
	va_start(ap, format); \
	const int n = call; \
	va_end(ap); \
	return n;

int yk_vsnprintf(char *to, size_t room, const char *format, va_list ap)
{
	const locale_t before = yk_locale_begin();
	const int n = vsnprintf(to, room, format, ap);
	yk_locale_end(before);
	return n;
}

int yk_vasprintf(char **to, const char *format, va_list ap)
{
	const locale_t before = yk_locale_begin();
	const int n = vasprintf(to, format, ap);
	yk_locale_end(before);
	return n;
}

int yk_snprintf(char *to, size_t room, const char *format, ...)
{
	PRINT(yk_vsnprintf(to, room, format, ap))
}

int yk_asprintf(char **to, const char *format, ...)
{
	PRINT(yk_vasprintf(to, format, ap))
}

int yk_vfprintf(FILE *f, const char *format, va_list ap)
{
	const locale_t before = yk_locale_begin();
	const int n = vfprintf(f, format, ap);
	yk_locale_end(before);
	return n;
}

int yk_fprintf(FILE *f, const char *format, ...)
{
	PRINT(yk_vfprintf(f, format, ap))
}

int yk_sscanf(const char *text, const char *format, ...)
{
	const locale_t before = yk_locale_begin();
	va_list ap;
	va_start(ap, format);
	const int n = vsscanf(text, format, ap);
	va_end(ap);
	yk_locale_end(before);
	return n;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

bool yk_number(const char *text, double *to)
{
	const char *at = text;
	char *end;
	while (is_blank(*at))
		at++;
	for (const char *p = at; *p && !is_blank(*p); p++) // rejects "0x10", "nan(7)", "infinity"
		if ((*p < '0' || *p > '9') && *p != '.' && *p != '+' && *p != '-' && *p != 'e' &&
		    *p != 'E')
			return false;
	const double x = yk_strtod(at, &end);
	if (end == at || !isfinite(x))
		return false;
	while (is_blank(*end))
		end++;
	if (*end)
		return false;
	*to = x;
	return true;
}

bool yk_number_or_nan(const char *text, double *to)
{
	if (yk_number(text, to))
		return true;
	while (is_blank(*text))
		text++;
	const bool minus = *text == '-';
	text += minus || *text == '+';
	static const char *const word[] = { "nan", "inf", "infinity" };
	for (int i = 0; i < 3; i++) {
		const size_t n = strlen(word[i]);
		if (!yk_same_words(text, word[i], n) || text[n + strspn(text + n, " \t\r\n\v\f")])
			continue;
		*to = i == 0 ? NAN : minus ? -INFINITY : INFINITY;
		return true;
	}
	return false;
}

char yk_small_letter(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

char yk_capital_letter(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool yk_same_words(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (yk_small_letter(a[i]) != yk_small_letter(b[i]))
			return false;
		if (!a[i])
			break;
	}
	return true;
}

bool yk_same_word(const char *a, const char *b)
{
	return yk_same_words(a, b, SIZE_MAX);
}

bool yk_ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);
	return n >= m && yk_same_word(text + n - m, end);
}

const char *yk_counted(char to[64], long long n, const char *noun)
{
	const size_t length = strlen(noun);
	const char last = length ? noun[length - 1] : '\0',
		   before = length > 1 ? noun[length - 2] : '\0';

	if (n == 1)
		snprintf(to, 64, "%lld %s", n, noun);
	else if (last == 'y' && !strchr("aeiou", before))
		snprintf(to, 64, "%lld %.*sies", n, (int)(length - 1), noun);
	else if (last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's')))
		snprintf(to, 64, "%lld %.40ses", n, noun);
	else
		snprintf(to, 64, "%lld %ss", n, noun);
	return to;
}
