// SPDX-License-Identifier: Apache-2.0
// Plots as SVG: lines, points and bars over linear or logarithmic axes.
//
// The attribute data-points of each curve contains its numbers ("x,y x,y", 9 digits), so that a
// reader can recover the plotted data. data-x0, data-x1, data-left, data-right and the same for y
// describe the mapping to pixels. Colors are attributes that a style sheet may override (classes c0
// .. c11); text inherits its color from the surrounding page.
#ifndef YK_SVG_H
#define YK_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum yk_mark { YK_MARK_LINE, YK_MARK_POINTS, YK_MARK_BARS };
enum yk_scale { YK_SCALE_LINEAR, YK_SCALE_LOG10, YK_SCALE_LOG2 };
// How the ticks of an axis are written: 1.5M, 1.5 MiB, 90 s or 1.5 min, 25 %.
enum yk_unit { YK_UNIT_NONE, YK_UNIT_BYTES, YK_UNIT_SECONDS, YK_UNIT_SHARE };
enum { YK_SVG_COLORS = 12, YK_SVG_DASHES = 4 };

struct yk_curve {
	const char *name;
	enum yk_mark mark;
	int color;         // 0, 1, ..; repeats after YK_SVG_COLORS
	int dash;          // 0: solid, 1: dashed, 2: dotted, 3: dashes and dots
	const char *legend; // its text there; NULL: the name
	bool unlisted;     // absent from the legend
	size_t n;
	const double *x, *y; // gap where not finite, or not positive on a logarithmic axis
	const char *const *label; // one per point, or NULL
};

struct yk_plot {
	const char *name, *title, *x_label, *y_label;
	enum yk_scale x, y;
	enum yk_unit x_unit, y_unit;
	int curves;
	const struct yk_curve *curve;
	int categories; // number of bar groups, at x = 0, 1, ...; 0: numeric x axis
	const char *const *category;
	double target;   // y of a horizontal target line; NaN: none
	int width, height; // 0: 720, 300
	const char *dash_name[YK_SVG_DASHES]; // what the dashes mean, for the legend, or NULL
};

// "", "bytes", "seconds" or "share"; the unit of such a name.
const char *yk_unit_name(enum yk_unit);
enum yk_unit yk_unit_named(const char *);

void yk_svg_plot(FILE *, const struct yk_plot *);
// Escapes text for XML and HTML, including attributes; invalid UTF-8 and control characters become
// '?'.
void yk_xml_text(FILE *, const char *);

#endif
