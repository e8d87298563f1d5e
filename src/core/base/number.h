// SPDX-License-Identifier: Apache-2.0
// Numbers as text, with a decimal point whatever locale the program that links the library has set, and letters
// compared as ASCII.  Whatever a file, a setting or a message holds is read and printed through these functions.
#ifndef YK_NUMBER_H
#define YK_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// strtod, sscanf, printf and vprintf of the "C" locale; they return what those return.
double yk_strtod(const char *text, char **end);
int yk_snprintf(char *to, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
int yk_vsnprintf(char *to, size_t room, const char *format, va_list) __attribute__((format(printf, 3, 0)));
int yk_asprintf(char **to, const char *format, ...) __attribute__((format(printf, 2, 3)));
int yk_vasprintf(char **to, const char *format, va_list) __attribute__((format(printf, 2, 0)));
int yk_fprintf(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));
int yk_vfprintf(FILE *, const char *format, va_list) __attribute__((format(printf, 2, 0)));
int yk_sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));

// The whole text as one decimal number, blanks around it allowed: no hexadecimal digits, no NaN or infinity, nothing
// beyond f64.  False leaves *to alone.
bool yk_number(const char *text, double *to);
// The same, or nan, inf and infinity in letters of either size, as Python and C print them.
bool yk_number_or_nan(const char *text, double *to);

// Between these two the calling thread's locale is "C", for another library that reads or prints numbers.
locale_t yk_locale_begin(void);
void yk_locale_end(locale_t before);

// "1 file", "2 files", "3 classes": the number with its noun, which is given in the singular. Returns to.
const char *yk_counted(char to[64], long long n, const char *noun);

// ASCII alone: a Turkish locale has other small letters for some of its capitals.
char yk_small_letter(char);
char yk_capital_letter(char);
bool yk_same_word(const char *, const char *);
bool yk_same_words(const char *, const char *, size_t n); // their first n bytes

#endif
