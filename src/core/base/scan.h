// SPDX-License-Identifier: Apache-2.0
// A scanner of JSON whose form is known: values are taken one behind the other where they
// lie, without a tree.  It allocates nothing and does not recurse, so that a text from
// outside costs no more than its own bytes.
#ifndef YK_SCAN_H
#define YK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_scan {
	char *at, *end;  // what is left; strings are decoded in place
	const char *why; // the first thing found wrong, NULL while nothing is
};

// Passes blanks and takes the character when it comes next.
bool yk_scan_is(struct yk_scan *, char);
// The same for one that has to come.
bool yk_scan_want(struct yk_scan *, char);
// A string (RFC 8259), decoded where it stands, with a NUL behind; NULL when there is
// none, or it is not UTF-8, or it holds a NUL or half of a surrogate pair.
char *yk_scan_string(struct yk_scan *);
// Skips a string without decoding it, from its first to its last byte without the quotes: any bytes, but for a backslash and
// what follows it, up to the next quote.
bool yk_scan_raw(struct yk_scan *, const char **from, const char **end);
// Skips a value of any kind without parsing it: strings as above, numbers of any size, NaN and Infinity as
// Python writes them, arrays and objects up to YK_SCAN_DEPTH inside each other, with keys that may be there twice.
enum { YK_SCAN_DEPTH = 1024 };
bool yk_scan_skip(struct yk_scan *);
// A whole number without sign, fraction and exponent, at most INT64_MAX.
bool yk_scan_size(struct yk_scan *, int64_t *to);
// The digits at *at, which may be none, as a number; false: it has more than 63 bits.
bool yk_scan_digits(const char **at, const char *end, int64_t *to);
// Nothing but blanks is left?
bool yk_scan_end(struct yk_scan *);
// Bytes of the well-formed UTF-8 character of several bytes at s, 0 when there is none.
int yk_utf8(const unsigned char *s, const unsigned char *end);

#endif
