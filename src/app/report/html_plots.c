// SPDX-License-Identifier: Apache-2.0
// Plots of a report's page: curves of a run, and the roofline of its kernels.
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "report/html.h"
#include "report/plots.h"
#include "report/svg.h"

void yk_html_plot(FILE *to, const json_t *p, int width, int height)
{
	const json_t *list = json_object_get(p, "curves"), *c;
	struct yk_curve curve[YK_PLOT_CURVES];
	int n = 0;
	size_t i;
	json_array_foreach (list, i, c) {
		const json_t *xs = json_object_get(c, "x"), *ys = json_object_get(c, "y");
		size_t points = json_array_size(xs);
		double *x = malloc((2 * points + 1) * sizeof *x);
		if (n == YK_PLOT_CURVES || !x) {
			free(x);
			break;
		}
		for (size_t k = 0; k < points; k++) {
			x[k] = json_number_value(json_array_get(xs, k));
			x[points + k] = json_number_value(json_array_get(ys, k));
		}
		curve[n++] = (struct yk_curve){
			.name = yk_string_of(c, "name"),
			.n = points,
			.x = x,
			.y = x + points,
			.color = (int)json_integer_value(json_object_get(c, "color")),
			.dash = (int)json_integer_value(json_object_get(c, "dash")),
			.legend = yk_string_of(c, "legend"),
			.unlisted = !*yk_string_of(c, "legend")
		};
	}
	struct yk_plot q = { .name = yk_string_of(p, "name"),
			     .title = yk_string_of(p, "title"),
			     .x_label = yk_string_of(p, "x"),
			     .x_unit = yk_unit_named(yk_string_of(p, "x")),
			     .y_label = yk_string_of(p, "y"),
			     .y_unit = yk_unit_named(yk_string_of(p, "unit")),
			     .curves = n,
			     .curve = curve,
			     .target = NAN,
			     .width = width,
			     .height = height };
	json_array_foreach (json_object_get(p, "dashes"), i, c)
		if (i < YK_SVG_DASHES)
			q.dash_name[i] = json_string_value(c);
	yk_svg_plot(to, &q);
	for (int k = 0; k < n; k++)
		free((void *)(uintptr_t)curve[k].x);
}

// Explains kernels that are faster than the measured limits of their device.
static void above_roof(FILE *to, const json_t *run)
{
	const json_t *r, *l;
	size_t i, k;
	int memory = 0, peak = 0;
	json_array_foreach (json_object_get(run, "kernels"), i, r)
		json_array_foreach (json_object_get(run, "limits"), k, l) {
			const double at = json_number_value(json_object_get(r, "intensity")),
				     rate = json_number_value(json_object_get(r, "flops_per_s")),
				     p = json_number_value(json_object_get(l, "flops_per_s")),
				     w = json_number_value(json_object_get(l, "copy_bytes_per_s"));
			if (strcmp(yk_string_of(r, "device"), yk_string_of(l, "device")) ||
			    !(at > 0) || !(w > 0))
				continue;
			peak += p > 0 && rate > p;
			memory += rate > at * w && !(p > 0 && rate > p);
		}
	char n[64];
	if (memory)
		fprintf(to,
			"<p class=\"soft\">%s above the sloped line: their data came from caches, "
			"which are faster than "
			"the copy in memory that the line shows.</p>\n",
			yk_counted(n, memory, "kernel"));
	if (peak)
		fprintf(to,
			"<p class=\"soft\">%s above the flat line: the peak was measured at a "
			"lower clock rate, or while "
			"other programs used the device.</p>\n",
			yk_counted(n, peak, "kernel"));
}

enum { ROOF_POINTS = 64 };

void yk_html_roofline(FILE *to, const json_t *run)
{
	const json_t *rows = json_object_get(run, "kernels"), *r, *l;
	size_t max = json_array_size(rows), i, n = 0;
	double *x = malloc((2 * max + 1) * sizeof *x), *y = x ? x + max : NULL, low = INFINITY,
	       high = 0;
	const char **label = malloc((max + 1) * sizeof *label);
	struct yk_curve curve[4];
	double roof[3][2][ROOF_POINTS];
	int curves = 1;
	json_array_foreach (rows, i, r) {
		const json_t *at = json_object_get(r, "intensity"),
			     *rate = json_object_get(r, "flops_per_s");
		if (!x || !label || !json_is_number(at) || !json_is_number(rate))
			continue;
		x[n] = json_number_value(at);
		y[n] = json_number_value(rate);
		low = fmin(low, x[n]);
		high = fmax(high, x[n]);
		label[n++] = yk_string_of(r, "scope");
	}
	curve[0] = (struct yk_curve){
		.name = "kernels", .mark = YK_MARK_POINTS, .n = n, .x = x, .y = y, .label = label
	};
	json_array_foreach (json_object_get(run, "limits"), i, l) {
		double p = json_number_value(json_object_get(l, "flops_per_s")),
		       w = json_number_value(json_object_get(l, "copy_bytes_per_s"));
		if (curves == 4 || !(p > 0) || !(w > 0) || !n)
			continue;
		double from = fmin(low, p / w) / 2, until = fmax(high, p / w) * 2;
		double(*line)[ROOF_POINTS] = roof[curves - 1];
		for (int k = 0; k < ROOF_POINTS; k++) {
			line[0][k] = from * pow(until / from, k / (ROOF_POINTS - 1.));
			line[1][k] = fmin(p, line[0][k] * w);
		}
		curve[curves] = (struct yk_curve){ .name = yk_string_of(l, "device"),
						   .n = ROOF_POINTS,
						   .x = line[0],
						   .y = line[1],
						   .color = curves };
		curves++;
	}
	struct yk_plot q = { .name = "roofline",
			     .title = "Roofline",
			     .x_label = "FLOP/byte",
			     .y_label = "FLOP/s",
			     .x = YK_SCALE_LOG10,
			     .y = YK_SCALE_LOG10,
			     .curves = curves,
			     .curve = curve,
			     .target = NAN,
			     .width = YK_WIDE,
			     .height = YK_HIGH };
	if (n) {
		fprintf(to, "<div class=\"wide-only\">");
		yk_svg_plot(to, &q);
		q.width = YK_NARROW;
		q.height = YK_LOW;
		fprintf(to, "</div><div class=\"narrow-only\">");
		yk_svg_plot(to, &q);
		fprintf(to, "</div>\n");
		above_roof(to, run);
	}
	free(x);
	free(label);
}
