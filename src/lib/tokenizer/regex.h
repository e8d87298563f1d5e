// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizers, matched by Oniguruma, the engine of the reference, with a
// limit on backtracking.  Builds without Oniguruma refuse every expression.
#ifndef YK_REGEX_H
#define YK_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_regex;

enum { YK_REGEX_TEXT = INT32_MAX }; // bytes of a text, since Oniguruma returns positions as int

// `what` is for messages.  NULL: EFORMAT (syntax, or longer than 64 KiB), EUNSUPPORTED, ENOMEM.
struct yk_regex *yk_regex_new(const char *pattern, size_t n, const char *what);
void yk_regex_free(struct yk_regex *);

// Successive matches in a text.  Empty matches directly after a match are skipped.
struct yk_regex_scan {
	const struct yk_regex *regex;
	const char *text;
	size_t n, at; // where the next search begins
	bool matched; // `at` is the end of a match
	void *region;
};
// ERANGE: the text is longer than YK_REGEX_TEXT; ENOMEM.
int yk_regex_begin(struct yk_regex_scan *, const struct yk_regex *, const char *text, size_t n);
// 1 and the bounds of the next match, 0 if there is none, or ERANGE: too much backtracking.
int yk_regex_next(struct yk_regex_scan *, size_t *from, size_t *to);
void yk_regex_end(struct yk_regex_scan *);

#endif
