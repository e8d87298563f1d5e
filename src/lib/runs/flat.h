// SPDX-License-Identifier: Apache-2.0
// Flattens one line of a run's file, a JSON object, to names and numbers.  Lines are untrusted and
// there may be millions, so the parser allocates no memory and limits the nesting depth.
#ifndef YK_FLAT_H
#define YK_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_FLAT_PAIRS = 96, YK_FLAT_NAMES = 4096, YK_FLAT_TEXT = 2048 };

struct yk_flat {
	int64_t step; // 0: none
	double time;  // NaN: none
	int n;
	struct yk_flat_pair {
		const char *name; // "loss", "devices.0.util"; in `names`
		size_t bytes;
		double value; // true and false are 1 and 0; NaN: null
	} pair[YK_FLAT_PAIRS];
	char names[YK_FLAT_NAMES];
	size_t used;
	// strings with these names, truncated; other strings are ignored
	char stage[96], event[96], text[YK_FLAT_TEXT];
	const char *report; // the raw JSON text of the member "report", or NULL
	size_t report_bytes;
};

// false: not a JSON object.  Members that do not fit are omitted.  The line may be modified
// and must be followed by a NUL.
bool yk_flat_scan(char *line, size_t bytes, struct yk_flat *);
// Parses a JSON number at *at and advances *at; NaN without advancing if there is none.
double yk_flat_number(const char **at, const char *end);

#endif
