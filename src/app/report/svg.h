// SPDX-License-Identifier: Apache-2.0
// Plots as SVG: lines, points and bars over linear or logarithmic axes.
//
// The numbers themselves stand in the attribute data-points of each curve ("x,y x,y", 9 digits), so that a reader
// gets back what was drawn; data-x0, data-x1, data-left, data-right and the same of y say how they became pixels.
// Colours are attributes that a style sheet may replace (classes c0 .. c7), text has the colour of what is around.
#ifndef YK_SVG_H
#define YK_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum yk_mark { YK_MARK_LINE, YK_MARK_POINTS, YK_MARK_BARS };
enum yk_scale { YK_SCALE_LINEAR, YK_SCALE_LOG10, YK_SCALE_LOG2 };

struct yk_curve {
	const char *name;
	enum yk_mark mark;
	int color;         // 0 ..; the same one again after 8, dashed
	size_t n;
	const double *x, *y; // what is not finite, or not above 0 on a logarithmic axis, is a gap
	const char *const *label; // of each point, or NULL
};

struct yk_plot {
	const char *name, *title, *x_label, *y_label;
	enum yk_scale x, y;
	int curves;
	const struct yk_curve *curve;
	int categories; // of bars: their names, at x = 0, 1, ..; 0: x has numbers
	const char *const *category;
	double target;   // a line across at this y; NaN: none
	int width, height; // 0: 720, 300
};

void yk_svg_plot(FILE *, const struct yk_plot *);
// Text for XML and HTML, in attributes too: what is not UTF-8, and control characters, are '?'.
void yk_xml_text(FILE *, const char *);

#endif
