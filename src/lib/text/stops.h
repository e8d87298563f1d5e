// SPDX-License-Identifier: Apache-2.0
// Texts that end a generated text (stop=).  They are found in its bytes, wherever tokens begin, and
// neither they nor a beginning of them is written.
#ifndef YK_STOPS_H
#define YK_STOPS_H

#include <stdbool.h>
#include <stddef.h>

enum { YK_STOPS = 64 };

struct yk_stops { // zero-initialized: none
	int n;
	char *text[YK_STOPS];
	size_t bytes[YK_STOPS];
};

// The end of one text: bytes that begin a stop text, and are written once they have turned out not
// to be one.
struct yk_stop_tail { // zero-initialized
	char *text;
	size_t bytes, cap;
};

typedef int yk_stop_write_fn(void *arg, const char *text, size_t bytes);

// Parses a comma-separated list with the escapes \n \t \\ and \,.  EINVAL: an empty text, an
// unknown escape, or too many texts.
int yk_stops_parse(struct yk_stops *, const char *list);
// EINVAL: it is empty, or the list is full.
int yk_stops_add(struct yk_stops *, const char *text, size_t bytes);
void yk_stops_fini(struct yk_stops *);
// Appends to a text, and writes the bytes that can no longer belong to a stop text.  Returns 1 if a
// stop text is complete: the first to end, the longest of several; otherwise 0, or an error of
// `write`.
int yk_stops_pass(const struct yk_stops *, struct yk_stop_tail *, const char *text, size_t bytes,
		  yk_stop_write_fn *write, void *arg);
// At the end of a text without a stop text: writes the rest.
int yk_stops_flush(struct yk_stop_tail *, yk_stop_write_fn *write, void *arg);
void yk_stop_tail_fini(struct yk_stop_tail *);

#endif
