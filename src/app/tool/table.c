// SPDX-License-Identifier: Apache-2.0
// Aligned text tables of lists of JSON objects.
#include "config.h"

#include "tool/table.h"

#include <stdio.h>
#include <string.h>

const char *yk_cell(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && *s ? s : "-";
}

void yk_table(const json_t *list, const char *indent, int columns, const char *const *keys,
	      const char *const *titles)
{
	size_t width[16] = { 0 };
	const json_t *o;
	size_t i;

	for (int k = 0; k < columns; k++) {
		width[k] = titles ? strlen(titles[k]) : 0;
		json_array_foreach (list, i, o)
			if (strlen(yk_cell(o, keys[k])) > width[k])
				width[k] = strlen(yk_cell(o, keys[k]));
	}
	for (int k = 0; titles && k < columns; k++)
		printf("%s%-*s%s", k ? "" : indent, k < columns - 1 ? (int)width[k] : 0, titles[k],
		       k < columns - 1 ? "  " : "\n");
	json_array_foreach (list, i, o)
		for (int k = 0; k < columns; k++)
			printf("%s%-*s%s", k ? "" : indent,
			       k < columns - 1 ? (int)width[k] : 0, yk_cell(o, keys[k]),
			       k < columns - 1 ? "  " : "\n");
}
