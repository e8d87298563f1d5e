// SPDX-License-Identifier: Apache-2.0
// Locale-independent conversion between numbers and text, always with a decimal point, and
// ASCII-only comparison of letters.  All numbers in files, settings and messages are read and
// printed through these functions.
#ifndef YK_NUMBER_H
#define YK_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// strtod, sscanf, printf and vprintf in the "C" locale, with the same results.
double yk_strtod(const char *text, char **end);
int yk_snprintf(char *to, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int yk_vsnprintf(char *to, size_t room, const char *format, va_list)
	__attribute__((format(printf, 3, 0)));
int yk_asprintf(char **to, const char *format, ...) __attribute__((format(printf, 2, 3)));
int yk_vasprintf(char **to, const char *format, va_list) __attribute__((format(printf, 2, 0)));
int yk_fprintf(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));
int yk_vfprintf(FILE *, const char *format, va_list) __attribute__((format(printf, 2, 0)));
int yk_sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));

// Parses the whole text as one decimal number, optionally surrounded by blanks: no hexadecimal
// digits, NaN or infinity, nothing beyond f64.  False leaves *to unchanged.
bool yk_number(const char *text, double *to);
// The same, and also nan, inf and infinity in any case, as Python and C print them.
bool yk_number_or_nan(const char *text, double *to);

// Set and restore the calling thread's locale, "C" in between, around another library's reading or
// printing.
locale_t yk_locale_begin(void);
void yk_locale_end(locale_t before);

// A number with its noun, given in the singular: "1 file", "2 files", "3 classes".  Returns to.
const char *yk_counted(char to[64], long long n, const char *noun);

// ASCII only: a Turkish locale, for example, maps I to another lower-case letter.
char yk_small_letter(char);
char yk_capital_letter(char);
bool yk_same_word(const char *, const char *);
bool yk_same_words(const char *, const char *, size_t n); // their first n bytes
bool yk_ends_with(const char *text, const char *end);     // in upper or lower case

#endif
