// SPDX-License-Identifier: Apache-2.0
// Tables for people, of lists of JSON objects.
#ifndef YK_TOOL_TABLE_H
#define YK_TOOL_TABLE_H

#include "base/json.h"

// A text of an object, "-" where it is empty or there is none.
const char *yk_cell(const json_t *o, const char *key);
// Rows of objects in columns, at most 16, as wide as their widest cell; the last is not padded.
// titles NULL: none.
void yk_table(const json_t *list, const char *indent, int columns, const char *const *keys,
	      const char *const *titles);

#endif
