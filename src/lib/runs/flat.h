// SPDX-License-Identifier: Apache-2.0
// One line of a run's file: a JSON object, flattened.  It allocates nothing but what it was given, and nests no
// deeper than some levels: lines come from outside, and there may be millions.
#ifndef YK_FLAT_H
#define YK_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_FLAT_PAIRS = 96, YK_FLAT_NAMES = 4096, YK_FLAT_TEXT = 2048 };

struct yk_flat {
	int64_t step; // 0 where there is none
	double time;  // NaN where there is none
	int n;
	struct yk_flat_pair {
		const char *name; // "loss", "devices.0.util"; in `names`
		size_t bytes;
		double value; // true and false are 1 and 0; NaN: null
	} pair[YK_FLAT_PAIRS];
	char names[YK_FLAT_NAMES];
	size_t used;
	char stage[96], event[96], text[YK_FLAT_TEXT]; // those strings, cut; other strings are passed over
	const char *report; // the member of that name as it stands in the line, or NULL
	size_t report_bytes;
};

// false: it is no object of JSON.  What is more than there is room for is left out.  The line may be written to,
// and has a NUL behind it.
bool yk_flat_scan(char *line, size_t bytes, struct yk_flat *);
// A number of JSON at *at, which goes past it; NaN, and *at stays, where there is none.
double yk_flat_number(const char **at, const char *end);

#endif
