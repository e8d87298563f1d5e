// SPDX-License-Identifier: Apache-2.0
// Writes self-contained HTML pages: the head with its style sheet, tables of JSON objects, and
// plots.
#ifndef YK_HTML_H
#define YK_HTML_H

#include <jansson.h>
#include <stdio.h>

#include "report/columns.h"

extern const char yk_html_style[]; // page.css, embedded at build time

void yk_html_begin(FILE *, const char *title); // up to and without the first heading
void yk_html_end(FILE *);
// One row per object. Numbers are <data value="exact">for people</data>. caption: for screen
// readers.
void yk_html_table(FILE *, const char *caption, const json_t *list, int columns,
		   const struct yk_column *);
// A part of the page that is folded; the title is HTML.
void yk_html_fold(FILE *, const char *title);
void yk_html_fold_end(FILE *);

// Sizes of plots in pixels, at which their labels are meant to be read.
enum { YK_WIDE = 1090, YK_HIGH = 340, YK_NARROW = 380, YK_LOW = 250 };
// A plot of a summary (plots.h).
void yk_html_plot(FILE *, const json_t *, int width, int height);
// Kernels of a run by arithmetic intensity and rate, below the limits of the device if these were
// measured.
void yk_html_roofline(FILE *, const json_t *run);

#endif
