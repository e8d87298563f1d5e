// SPDX-License-Identifier: Apache-2.0
// Writes plots as SVG: axes with ticks, curves, bars and a legend.
#include "config.h"

#include "report/svg.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/scan.h"

enum {
	WIDTH = 720,
	HEIGHT = 300,
	LEFT = 80,
	RIGHT = 14,
	TOP = 30,
	BOTTOM = 44,
	TICKS = 24,
	LEGEND_ROW = 16,
	ENTRIES = 64
};

// Any two differ by 20 (CIEDE2000), and each has a contrast of 3 to white and to dark pages.
static const char *const color[YK_SVG_COLORS] = { "#3b82c4", "#d17a20", "#3f9f5f", "#c4453b",
						  "#8a63b8", "#05a5a9", "#ff42d2", "#5a6e1a",
						  "#ac888c", "#c7006d", "#a59610", "#798078" };
static const char *const dash[YK_SVG_DASHES] = { "", "6 4", "1.5 3.5", "7 3 1.5 3" };

struct axis {
	enum yk_scale scale;
	enum yk_unit unit;
	double min, max; // range of the axis in data values
	double from, to;    // pixels of `min` and `max`
	int ticks;
	double tick[TICKS];
};

struct plot {
	const struct yk_plot *p;
	FILE *to;
	struct axis x, y;
	int width, height, bottom;
};

void yk_xml_text(FILE *to, const char *s)
{
	const unsigned char *at = (const unsigned char *)s, *end = at + strlen(s);
	while (at < end) {
		int n = *at < 128 ? 1 : yk_utf8(at, end);
		// U+0080 to U+009F are control characters, too; XML does not allow U+FFFE and
		// U+FFFF
		bool bad = !n || *at < 32 || *at == 127 ||
			   (n == 2 && at[0] == 0xc2 && at[1] < 0xa0) ||
			   (n == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe);
		if (bad)
			fputc('?', to);
		else if (*at == '<')
			fputs("&lt;", to);
		else if (*at == '>')
			fputs("&gt;", to);
		else if (*at == '&')
			fputs("&amp;", to);
		else if (*at == '"')
			fputs("&quot;", to);
		else if (*at == '\'')
			fputs("&#39;", to);
		else
			fwrite(at, (size_t)n, 1, to);
		at += n ? n : 1;
	}
}

// ---- axes ----

static const char *const unit_name[] = { "", "bytes", "seconds", "share" };

const char *yk_unit_name(enum yk_unit u)
{
	return unit_name[u];
}

enum yk_unit yk_unit_named(const char *name)
{
	int u = YK_UNIT_SHARE;
	while (u > YK_UNIT_NONE && strcmp(name, unit_name[u]))
		u--;
	return (enum yk_unit)u;
}

static bool shows(enum yk_scale s, double v)
{
	return isfinite(v) && (s == YK_SCALE_LINEAR || v > 0);
}

static double along(enum yk_scale s, double v)
{
	return s == YK_SCALE_LINEAR ? v : s == YK_SCALE_LOG10 ? log10(v) : log2(v);
}

static double pixel(const struct axis *a, double v)
{
	double low = along(a->scale, a->min), high = along(a->scale, a->max);
	return a->from + (a->to - a->from) * (along(a->scale, v) - low) / (high - low);
}

static void meet(struct axis *a, double v)
{
	if (!shows(a->scale, v))
		return;
	if (!(a->min <= v))
		a->min = v;
	if (!(a->max >= v))
		a->max = v;
}

// The smallest 1, 2 or 5 times a power of ten that divides the range into at most about n steps.
static double step_of(double range, int n)
{
	double raw = range / n, ten = pow(10, floor(log10(raw))), x = raw / ten;
	return ten * (x <= 1 ? 1 : x <= 2 ? 2 : x <= 5 ? 5 : 10);
}

// A step of whole seconds, minutes, hours or days, or a power of two of bytes.
static double step_in(enum yk_unit unit, double range, int n)
{
	static const double clock[] = { 1,   2,    5,    10,   15,   30,    60,    120,   300,
					600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 };
	if (unit == YK_UNIT_BYTES)
		return exp2(ceil(log2(range / n)));
	for (size_t i = 0;
	     unit == YK_UNIT_SECONDS && range / n > 0.5 && i < sizeof clock / sizeof *clock; i++)
		if (clock[i] >= range / n)
			return clock[i];
	return unit == YK_UNIT_SECONDS && range / n > 0.5 ? 86400 * step_of(range / 86400, n) :
							    step_of(range, n);
}

static void add_tick(struct axis *a, double v)
{
	if (a->ticks < TICKS && v >= a->min - 1e-9 * fabs(a->min) &&
	    v <= a->max + 1e-9 * fabs(a->max))
		a->tick[a->ticks++] = v;
}

static void log_ticks(struct axis *a)
{
	const double base = a->scale == YK_SCALE_LOG10 ? 10 : 2;
	double low = along(a->scale, a->min), high = along(a->scale, a->max);
	int every = (int)ceil((high - low) / 8);
	bool few = base > 2 && high - low < 2.5; // few decades: ticks at 2 and 5 of each as well
	for (double k = floor(low); k <= ceil(high); k += every < 1 ? 1 : every)
		for (int i = 0; i < (few ? 3 : 1); i++)
			add_tick(a, pow(base, k) * (i == 0 ? 1 : i == 1 ? 2 : 5));
}

static void settle(struct axis *a, int ticks)
{
	a->ticks = 0;
	if (!(a->min <= a->max)) // no data
		a->min = a->scale == YK_SCALE_LINEAR ? 0 : 1, a->max = a->min + 1;
	if (a->scale != YK_SCALE_LINEAR) {
		if (a->max < a->min * 1.2) {
			a->min /= 1.5;
			a->max *= 1.5;
		}
		log_ticks(a);
		return;
	}
	if (a->max - a->min <= 1e-12 * fmax(fabs(a->min), fabs(a->max))) {
		double room = a->min != 0 ? 0.1 * fabs(a->min) : 1;
		a->min -= room;
		a->max += room;
	}
	double step = step_in(a->unit, a->max - a->min, ticks);
	for (double k = ceil(a->min / step - 1e-9);
	     k * step <= a->max * (1 + 1e-12) + 1e-9 * step && a->ticks < TICKS; k++)
		add_tick(a, k * step);
}

struct unit {
	double from, size; // from this value on, values are written as multiples of `size`
	const char *name;
};

// The last unit of a list that is not above a value; lists end with an empty name.
static const struct unit *unit_of(const struct unit *list, double value)
{
	while (list[1].name && value >= list[1].from)
		list++;
	return list;
}

// Formats the value of a tick, e.g. "1.5M" or "1.5 MiB"; small numbers keep all their digits.
static void number(char to[32], const struct axis *a, double v)
{
	static const struct unit plain[] = { { 0, 1, "" },        { 1e4, 1e3, "k" },
					     { 1e6, 1e6, "M" },   { 1e9, 1e9, "G" },
					     { 1e12, 1e12, "T" }, { 1e15, 1e15, "P" },
					     { 0, 0, NULL } };
	static const struct unit bytes[] = { { 0, 1, " B" },
					     { 0x1p10, 0x1p10, " KiB" },
					     { 0x1p20, 0x1p20, " MiB" },
					     { 0x1p30, 0x1p30, " GiB" },
					     { 0x1p40, 0x1p40, " TiB" },
					     { 0, 0, NULL } };
	static const struct unit seconds[] = { { 0, 1e-6, " µs" },   { 1e-3, 1e-3, " ms" },
					       { 1, 1, " s" },       { 120, 60, " min" },
					       { 7200, 3600, " h" }, { 172800, 86400, " d" },
					       { 0, 0, NULL } };
	static const struct unit share[] = { { 0, 0.01, " %" }, { 0, 0, NULL } };
	static const struct unit *const units[] = { plain, bytes, seconds, share };
	// times on an axis have one unit, other numbers each have theirs
	const double size = a->unit == YK_UNIT_SECONDS && a->scale == YK_SCALE_LINEAR ?
				    fmax(fabs(a->min), fabs(a->max)) :
				    fabs(v);
	const struct unit *u = unit_of(units[a->unit], size);
	const bool zero = fabs(v) < 1e-300 || fabs(v) < 1e-12 * size;
	yk_snprintf(to, 32, "%.4g%s", zero ? 0 : v / u->size,
		    zero && a->unit != YK_UNIT_SECONDS && a->unit != YK_UNIT_SHARE ? "" : u->name);
}

// ---- elements ----

static double text_width(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80; // characters, not bytes
	return 6.6 * (double)n;
}

// Do the labels below a linear axis leave a gap between neighbours?
static bool labels_fit(const struct plot *x)
{
	enum { GAP = 5 };
	const struct axis *a = &x->x;
	double widest = 0;
	char text[32];
	if (a->scale != YK_SCALE_LINEAR || a->ticks < 2)
		return true;
	for (int i = 0; i < a->ticks; i++) {
		number(text, a, a->tick[i]);
		widest = fmax(widest, text_width(text));
	}
	return (a->tick[1] - a->tick[0]) / (a->max - a->min) * (x->width - LEFT - RIGHT) >=
	       widest + GAP;
}

static void axes(struct plot *x)
{
	const struct yk_plot *p = x->p;
	FILE *to = x->to;
	char text[32];
	fprintf(to, "<g class=\"grid\" stroke=\"currentColor\" stroke-opacity=\"0.15\">");
	for (int i = 0; i < x->y.ticks; i++)
		yk_fprintf(to, "<path d=\"M%d %.1fH%d\"/>", LEFT, pixel(&x->y, x->y.tick[i]),
			   x->width - RIGHT);
	for (int i = 0; i < x->x.ticks && !p->categories; i++)
		yk_fprintf(to, "<path d=\"M%.1f %dV%d\"/>", pixel(&x->x, x->x.tick[i]), TOP,
			   x->bottom);
	fprintf(to,
		"</g>\n<g class=\"ticks\" fill=\"currentColor\" fill-opacity=\"0.75\" font-size=\"11\">");
	for (int i = 0; i < x->y.ticks; i++) {
		number(text, &x->y, x->y.tick[i]);
		yk_fprintf(to, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", LEFT - 6,
			pixel(&x->y, x->y.tick[i]) + 4, text);
	}
	for (int i = 0; i < x->x.ticks && !p->categories; i++) {
		number(text, &x->x, x->x.tick[i]);
		const double end = x->width - text_width(text) / 2; // the last one stays inside
		yk_fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
			fmin(pixel(&x->x, x->x.tick[i]), end), x->bottom + 16, text);
	}
	for (int i = 0; i < p->categories; i++) {
		yk_fprintf(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", pixel(&x->x, i),
			   x->bottom + 16);
		yk_xml_text(to, p->category[i]);
		fprintf(to, "</text>");
	}
	fprintf(to,
		"</g>\n<text class=\"title\" x=\"%d\" y=\"18\" fill=\"currentColor\" font-size=\"13\" "
		"font-weight=\"600\">",
		LEFT);
	yk_xml_text(to, p->title);
	fprintf(to,
		"</text>\n<g class=\"labels\" fill=\"currentColor\" fill-opacity=\"0.75\" font-size=\"11\">"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
		(LEFT + x->width - RIGHT) / 2, x->bottom + BOTTOM - 10);
	yk_xml_text(to, p->x_unit == YK_UNIT_SECONDS ? "time since the start" : p->x_label);
	fprintf(to,
		"</text><text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">",
		(TOP + x->bottom) / 2);
	yk_xml_text(to, p->y_label);
	fprintf(to, "</text></g>\n");
}

// Writes the plotted data as attributes, for programs.
static void data(struct plot *x, const struct yk_curve *c)
{
	fprintf(x->to, " data-name=\"");
	yk_xml_text(x->to, c->name);
	fprintf(x->to, "\" data-points=\"");
	for (size_t i = 0; i < c->n; i++)
		yk_fprintf(x->to, "%s%.9g,%.9g", i ? " " : "", c->x[i], c->y[i]);
	fprintf(x->to, "\"");
}

// Path of a circle around a point without neighbours.
static const char lone[] = "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0";

static void line(struct plot *x, const struct yk_curve *c)
{
	bool down = false, alone = false;
	fprintf(x->to,
		"<path class=\"curve c%d\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" "
		"stroke-linejoin=\"round\" stroke-linecap=\"%s\"",
		c->color % YK_SVG_COLORS, color[c->color % YK_SVG_COLORS],
		c->dash ? "butt" : "round");
	if (c->dash)
		fprintf(x->to, " stroke-dasharray=\"%s\"", dash[c->dash % YK_SVG_DASHES]);
	data(x, c);
	fprintf(x->to, " d=\"");
	for (size_t i = 0; i < c->n; i++) {
		if (!shows(x->x.scale, c->x[i]) || !shows(x->y.scale, c->y[i])) {
			if (alone)
				fputs(lone, x->to);
			down = alone = false;
			continue;
		}
		yk_fprintf(x->to, "%s%.2f %.2f", down ? "L" : "M", pixel(&x->x, c->x[i]),
			   pixel(&x->y, c->y[i]));
		alone = !down;
		down = true;
	}
	fprintf(x->to, "%s\"/>\n", alone ? lone : "");
}

static void points(struct plot *x, const struct yk_curve *c)
{
	fprintf(x->to, "<g class=\"points c%d\" fill=\"%s\" stroke=\"none\"",
		c->color % YK_SVG_COLORS, color[c->color % YK_SVG_COLORS]);
	data(x, c);
	fprintf(x->to, ">");
	for (size_t i = 0; i < c->n; i++) {
		if (!shows(x->x.scale, c->x[i]) || !shows(x->y.scale, c->y[i]))
			continue;
		yk_fprintf(x->to, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"4\">", pixel(&x->x, c->x[i]),
			pixel(&x->y, c->y[i]));
		if (c->label) {
			fprintf(x->to, "<title>");
			yk_xml_text(x->to, c->label[i]);
			fprintf(x->to, "</title>");
		}
		fprintf(x->to, "</circle>");
	}
	fprintf(x->to, "</g>\n");
}

// Bars of a curve beside those of other curves; they start at 0, or at the end of the axis if 0 is
// outside.
static void bars(struct plot *x, const struct yk_curve *c, int number_of, int of)
{
	double each = (x->x.to - x->x.from) / (x->p->categories + 0.5) * 0.8 / of;
	double zero = pixel(&x->y, fmax(x->y.min, fmin(0, x->y.max)));
	if (x->y.scale != YK_SCALE_LINEAR)
		zero = x->y.from;
	fprintf(x->to, "<g class=\"bars c%d\" fill=\"%s\" stroke=\"none\"",
		c->color % YK_SVG_COLORS, color[c->color % YK_SVG_COLORS]);
	data(x, c);
	fprintf(x->to, ">");
	for (size_t i = 0; i < c->n; i++) {
		if (!isfinite(c->x[i]) || !shows(x->y.scale, c->y[i]))
			continue;
		double top = pixel(&x->y, c->y[i]);
		yk_fprintf(x->to, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>",
			   pixel(&x->x, c->x[i]) + each * (number_of - of / 2.), fmin(top, zero),
			   each * 0.92, fabs(zero - top));
	}
	fprintf(x->to, "</g>\n");
}

// ---- legend ----

struct entry {
	const char *text;
	const struct yk_curve *curve; // NULL: explains dashes
	int dash;
	double width;
};

static int entries(const struct yk_plot *p, double room, struct entry to[ENTRIES])
{
	int n = 0;
	for (int i = 0; i < p->curves && n < ENTRIES && p->curves > 1; i++) {
		const struct yk_curve *c = &p->curve[i];
		if (!c->unlisted)
			to[n++] = (struct entry){ c->legend ? c->legend : c->name, c, c->dash, 0 };
	}
	for (int i = 0; i < YK_SVG_DASHES && n < ENTRIES && p->curves > 1; i++)
		if (p->dash_name[i])
			to[n++] = (struct entry){ p->dash_name[i], NULL, i, 0 };
	for (int i = 0; i < n; i++)
		to[i].width = fmin(text_width(to[i].text) + 32, room);
	return n;
}

// Number of legend rows below the plot; 0: the legend fits beside the title.
static int legend_rows(const struct plot *x, int n, const struct entry *e)
{
	const double room = x->width - RIGHT - LEFT;
	double wide = 0, at = 0;
	int rows = 1;
	for (int i = 0; i < n; i++) {
		wide += e[i].width;
		rows += at > 0 && at + e[i].width > room;
		at = at > 0 && at + e[i].width > room ? e[i].width : at + e[i].width;
	}
	return n == 0 || wide <= room - 1.2 * text_width(x->p->title) - 10 ? 0 : rows;
}

// Draws a sample of the line and its name, which is shortened to the entry's width.
static void legend_entry(const struct plot *x, const struct entry *e, double at, double top)
{
	const int c = e->curve ? e->curve->color % YK_SVG_COLORS : 0;
	char text[160];
	size_t n = strlen(e->text);
	snprintf(text, sizeof text, "%s", e->text);
	for (n = n < sizeof text - 4 ? n : sizeof text - 4;
	     n && text_width(text) > e->width - 30;) {
		while (n && ((unsigned char)e->text[--n] & 0xc0) == 0x80)
			;
		snprintf(text, sizeof text, "%.*s…", (int)n, e->text);
	}
	if (e->curve && e->curve->mark != YK_MARK_LINE) {
		yk_fprintf(
			x->to,
			"<rect class=\"c%d\" x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" rx=\"2\" fill=\"%s\"/>",
			c, at + 8, top, color[c]);
	} else {
		yk_fprintf(x->to, "<path d=\"M%.1f %.1fh18\" stroke-width=\"2.5\" stroke=\"%s\"",
			   at, top + 5, e->curve ? color[c] : "currentColor");
		if (e->curve)
			fprintf(x->to, " class=\"c%d\"", c);
		if (e->dash)
			fprintf(x->to, " stroke-dasharray=\"%s\"", dash[e->dash % YK_SVG_DASHES]);
		fprintf(x->to, "/>");
	}
	yk_fprintf(x->to, "<text x=\"%.1f\" y=\"%.1f\">", at + 22, top + 9);
	yk_xml_text(x->to, text);
	fprintf(x->to, "</text>");
}

// Draws the legend right to left above the plot, or left to right in rows below it.
static void legend(const struct plot *x, int n, const struct entry *e, int rows)
{
	double at = rows ? LEFT : x->width - RIGHT, top = rows ? x->height - rows * LEGEND_ROW : 10;
	if (!n)
		return;
	fprintf(x->to, "<g class=\"legend\" font-size=\"11\" fill=\"currentColor\">");
	for (int i = n - 1; i >= 0 && !rows; i--) {
		at -= e[i].width;
		legend_entry(x, &e[i], at, top);
	}
	for (int i = 0; i < n && rows; i++) {
		if (at > LEFT && at + e[i].width > x->width - RIGHT) {
			at = LEFT;
			top += LEGEND_ROW;
		}
		legend_entry(x, &e[i], at, top);
		at += e[i].width;
	}
	fprintf(x->to, "</g>\n");
}

static bool has_bars(const struct yk_plot *p)
{
	for (int i = 0; i < p->curves; i++)
		if (p->curve[i].mark == YK_MARK_BARS)
			return true;
	return false;
}

static void find_range(struct plot *x)
{
	const struct yk_plot *p = x->p;
	for (int i = 0; i < p->curves; i++)
		for (size_t k = 0; k < p->curve[i].n; k++)
			if (shows(p->x, p->curve[i].x[k]) && shows(p->y, p->curve[i].y[k])) {
				meet(&x->x, p->curve[i].x[k]);
				meet(&x->y, p->curve[i].y[k]);
			}
	if (!isnan(p->target))
		meet(&x->y, p->target);
	if (has_bars(p) && p->y == YK_SCALE_LINEAR)
		meet(&x->y, 0);
	if (p->categories) {
		x->x.min = -0.75;
		x->x.max = p->categories - 0.25;
	}
	int ticks = 8;
	do
		settle(&x->x, ticks);
	while (!labels_fit(x) && --ticks > 1);
	settle(&x->y, 5);
	if (p->categories)
		x->x.ticks = 0;
	if (p->y == YK_SCALE_LINEAR) { // leaves a margin between curves and frame
		double room = 0.04 * (x->y.max - x->y.min);
		x->y.min -= x->y.min == 0 ? 0 : room;
		x->y.max += room;
	}
}

void yk_svg_plot(FILE *to, const struct yk_plot *p)
{
	struct plot x = { .p = p, .to = to, .width = p->width ? p->width : WIDTH,
			  .height = p->height ? p->height : HEIGHT };
	int drawn = 0, of = 0;
	struct entry list[ENTRIES];
	const int listed = entries(p, x.width - RIGHT - LEFT, list),
		  rows = legend_rows(&x, listed, list);
	x.bottom = x.height - BOTTOM;
	x.height += rows * LEGEND_ROW;
	x.x = (struct axis){ .scale = p->x,
			     .unit = p->x_unit,
			     .min = NAN,
			     .max = NAN,
			     .from = LEFT,
			     .to = x.width - RIGHT };
	x.y = (struct axis){ .scale = p->y,
			     .unit = p->y_unit,
			     .min = NAN,
			     .max = NAN,
			     .from = x.bottom,
			     .to = TOP };
	find_range(&x);
	static const char *const scale[] = { "linear", "log10", "log2" };
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 %d %d\" "
		"font-family=\"system-ui, sans-serif\" aria-label=\"",
		x.width, x.height);
	yk_xml_text(to, p->title);
	fprintf(to, "\" data-name=\"");
	yk_xml_text(to, p->name);
	yk_fprintf(
		to,
		"\" data-x=\"%s\" data-y=\"%s\" data-x0=\"%.17g\" data-x1=\"%.17g\" data-y0=\"%.17g\" "
		"data-y1=\"%.17g\" data-left=\"%g\" data-right=\"%g\" data-bottom=\"%g\" data-top=\"%g\">\n",
		scale[p->x], scale[p->y], x.x.min, x.x.max, x.y.min, x.y.max, x.x.from, x.x.to,
		x.y.from, x.y.to);
	axes(&x);
	for (int i = 0; i < p->curves; i++)
		of += p->curve[i].mark == YK_MARK_BARS;
	for (int i = 0; i < p->curves; i++)
		switch (p->curve[i].mark) {
		case YK_MARK_LINE: line(&x, &p->curve[i]); break;
		case YK_MARK_POINTS: points(&x, &p->curve[i]); break;
		case YK_MARK_BARS: bars(&x, &p->curve[i], drawn++, of); break;
		}
	if (!isnan(p->target) && shows(p->y, p->target))
		yk_fprintf(
			to,
			"<path class=\"target\" stroke=\"currentColor\" stroke-dasharray=\"4 4\" "
			"d=\"M%d %.2fH%d\"/>\n",
			LEFT, pixel(&x.y, p->target), x.width - RIGHT);
	legend(&x, listed, list, rows);
	fprintf(to, "</svg>\n");
}
