// SPDX-License-Identifier: Apache-2.0
// The columns of a report's tables, in the order of HTML and Markdown.
#ifndef YK_COLUMNS_H
#define YK_COLUMNS_H

#include <jansson.h>

#include "report/quantity.h"

struct yk_column {
	const char *key, *title; // title: HTML
	enum yk_quantity quantity;
};

struct yk_report_columns {
	const char *title; // of the table
	int n;
	const struct yk_column *column;
};

extern const struct yk_report_columns yk_columns_numbers, yk_columns_phases, yk_columns_bounds,
	yk_columns_kernels, yk_columns_events, yk_columns_changed;

// A member of an object; "": not a string, or absent.
const char *yk_string_of(const json_t *, const char *key);

#endif
