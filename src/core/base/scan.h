// SPDX-License-Identifier: Apache-2.0
// A scanner for JSON of known structure: values are read one after the other in place, without
// building a tree.  It neither allocates nor recurses, so that input from outside costs no more
// memory than its own bytes.
#ifndef YK_SCAN_H
#define YK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_scan {
	char *at, *end;  // the remaining text; strings are decoded in place
	const char *why; // the first error, or NULL
};

// Skips blanks and consumes the character if it comes next.
bool yk_scan_is(struct yk_scan *, char);
// The same for a required character.
bool yk_scan_expect(struct yk_scan *, char);
// Decodes a string (RFC 8259) in place and terminates it with NUL; NULL if there is none, it is not
// UTF-8, or it contains a NUL or an unpaired surrogate.
char *yk_scan_string(struct yk_scan *);
// Skips a string without decoding it and returns its bounds without the quotes: any bytes up to the
// next quote that is not escaped by a backslash.
bool yk_scan_raw(struct yk_scan *, const char **from, const char **end);
// Skips any value without parsing it: strings as above, numbers of any size, NaN and Infinity as
// Python writes them, arrays and objects nested up to YK_SCAN_DEPTH, duplicate keys allowed.
enum { YK_SCAN_DEPTH = 1024 };
bool yk_scan_skip(struct yk_scan *);
// An integer without sign, fraction or exponent, at most INT64_MAX.
bool yk_scan_size(struct yk_scan *, int64_t *to);
// Converts the digits at *at, possibly none, to a number; false: more than 63 bits.
bool yk_scan_digits(const char **at, const char *end, int64_t *to);
// Is only white space left?
bool yk_scan_end(struct yk_scan *);
// Length of the well-formed multi-byte UTF-8 character at s, 0 if there is none.
int yk_utf8(const unsigned char *s, const unsigned char *end);

#endif
