// SPDX-License-Identifier: Apache-2.0
// Numbers for people: a unit, and as many digits as make sense ("7.2 MiB", "0.43 ms", "12 %").
#ifndef YK_QUANTITY_H
#define YK_QUANTITY_H

#include <jansson.h>

enum yk_quantity {
	YK_PLAIN,       // four significant digits; integers in full
	YK_COUNT,       // 12.3 k
	YK_BYTES_OF,    // 7.2 MiB
	YK_SECONDS_OF,  // 0.43 ms, 12.3 s, 4 min 5 s
	YK_SHARE_OF,    // 0.125 as 12.5 %
	YK_RATE,        // per second: 12.3 k/s
	YK_GB_PER_S,    // without the unit, which is in the column's title
	YK_GFLOP_PER_S, // likewise
	YK_GFLOP,       // likewise
	YK_WATTS,
	YK_CELSIUS,
	YK_HERTZ,
	YK_BY_NAME, // of a table's column: chosen by the row's member "name"
};

enum { YK_QUANTITY_TEXT = 40 };

// Formats a finite number; "n/a" for others. Returns to.
const char *yk_quantity_text(enum yk_quantity, double, char to[YK_QUANTITY_TEXT]);
// The quantity of a value in the records of a run, by its name: "peak_bytes", "host.temp_c".
enum yk_quantity yk_quantity_of(const char *name);
// Formats a number of the summary, equally for all formats; "n/a" for other values.
const char *yk_summary_number(const json_t *, char to[32]);
// Rounds to six digits, like all numbers of the summary; null if not finite.
json_t *yk_summary_real(double);

#endif
