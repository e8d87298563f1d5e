// SPDX-License-Identifier: Apache-2.0
// Text tables: one row per JSON object of a list, one column per key.
#ifndef YK_TOOL_TABLE_H
#define YK_TOOL_TABLE_H

#include "base/json.h"

// The string of a key, "-" if it is empty or missing.
const char *yk_cell(const json_t *o, const char *key);
// Prints one row per object, with at most 16 columns, each as wide as its widest cell; the last
// column is not padded.  titles NULL: no heading.
void yk_table(const json_t *list, const char *indent, int columns, const char *const *keys,
	      const char *const *titles);

#endif
