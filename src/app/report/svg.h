// SPDX-License-Identifier: Apache-2.0
// Plots as SVG: lines, points and bars over linear or logarithmic axes.
//
// The attribute data-points of each curve contains its numbers ("x,y x,y", 9 digits), so that a
// reader can recover the plotted data. data-x0, data-x1, data-left, data-right and the same for y
// describe the mapping to pixels. Colors are attributes that a style sheet may override (classes c0
// .. c7); text inherits its color from the surrounding page.
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
	int color;         // 0, 1, ...; repeats after 8, with dashed lines
	size_t n;
	const double *x, *y; // gap where not finite, or not positive on a logarithmic axis
	const char *const *label; // one per point, or NULL
};

struct yk_plot {
	const char *name, *title, *x_label, *y_label;
	enum yk_scale x, y;
	int curves;
	const struct yk_curve *curve;
	int categories; // number of bar groups, at x = 0, 1, ...; 0: numeric x axis
	const char *const *category;
	double target;   // y of a horizontal target line; NaN: none
	int width, height; // 0: 720, 300
};

void yk_svg_plot(FILE *, const struct yk_plot *);
// Escapes text for XML and HTML, including attributes; invalid UTF-8 and control characters become
// '?'.
void yk_xml_text(FILE *, const char *);

#endif
