// SPDX-License-Identifier: Apache-2.0
// Writes self-contained HTML pages: the head with its style sheet, and tables of JSON objects.
#ifndef YK_HTML_H
#define YK_HTML_H

#include <jansson.h>
#include <stdio.h>

void yk_html_begin(FILE *, const char *title);
void yk_html_end(FILE *);
// One row per object, one column per key. The titles are HTML.
void yk_html_table(FILE *, const json_t *list, int columns, const char *const *keys, const char *const *titles);

#endif
