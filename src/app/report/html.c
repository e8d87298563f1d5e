// SPDX-License-Identifier: Apache-2.0
// Writes a report as one HTML file without external references.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "report/html.h"
#include "report/summary.h"

static const char style[] =
	":root{color-scheme:light dark;--line:#d5dae0;--soft:#5b6673;--head:#f3f5f8;--page:#fff;--ink:#1b222b}\n"
	"@media(prefers-color-scheme:dark){:root{--line:#343c46;--soft:#98a4b3;--head:#1d232b;--page:#12161b;--ink:#e4e9ef}}\n"
	"body{font:14px/1.45 system-ui,sans-serif;background:var(--page);color:var(--ink);margin:0 auto;max-width:1100px;"
	"padding:24px}\n"
	"h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px;border-bottom:1px solid var(--line);"
	"padding-bottom:4px}h3{font-size:14px;margin:18px 0 6px}\n"
	".soft{color:var(--soft)}.wide{overflow-x:auto}.plots{display:grid;grid-template-columns:repeat(auto-fit,"
	"minmax(min(460px,100%),1fr));gap:14px}\n"
	"svg{width:100%;height:auto;border:1px solid var(--line);border-radius:6px}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:4px 0 12px}\n"
	"th,td{padding:3px 10px 3px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}\n"
	"th{background:var(--head);font-weight:600;padding-left:6px}td:first-child{padding-left:6px}\n"
	"td.n,th.n{text-align:right;padding-left:14px;white-space:nowrap}.of td.n{text-align:left;padding-left:0}td.t{overflow-wrap:break-word}\n";

void yk_html_begin(FILE *to, const char *title)
{
	fprintf(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
	yk_xml_text(to, title);
	fprintf(to, "</title>\n<style>\n%s</style></head>\n<body>\n<h1>", style);
	yk_xml_text(to, title);
	fprintf(to, "</h1>\n");
}

void yk_html_end(FILE *to)
{
	fprintf(to, "</body></html>\n");
}

static void cell(FILE *to, const char *tag, const json_t *v)
{
	char number[32];
	bool is_text = json_is_string(v);
	fprintf(to, "<%s class=\"%s\">", tag, is_text ? "t" : "n");
	if (is_text)
		yk_xml_text(to, json_string_value(v));
	else if (json_is_object(v) || json_is_array(v))
		fputs("..", to);
	else
		fputs(json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") : yk_summary_number(v, number), to);
	fprintf(to, "</%s>", tag);
}

void yk_html_table(FILE *to, const json_t *list, int columns, const char *const *keys, const char *const *titles)
{
	const json_t *o, *first = json_array_get(list, 0);
	size_t i;
	fprintf(to, "<div class=\"wide\"><table><tr>");
	for (int k = 0; k < columns; k++)
		fprintf(to, "<th class=\"%s\">%s</th>", json_is_string(json_object_get(first, keys[k])) ? "t" : "n",
			titles[k]);
	fprintf(to, "</tr>\n");
	json_array_foreach (list, i, o) {
		fprintf(to, "<tr>");
		for (int k = 0; k < columns; k++)
			cell(to, "td", json_object_get(o, keys[k]));
		fprintf(to, "</tr>\n");
	}
	fprintf(to, "</table></div>\n");
}

// ---- plots ----

static const char *string_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static void plot(FILE *to, const json_t *p)
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
		curve[n++] = (struct yk_curve){ .name = string_of(c, "name"), .n = points, .x = x, .y = x + points,
						.color = (int)json_integer_value(json_object_get(c, "color")),
						.dash = (int)json_integer_value(json_object_get(c, "dash")),
						.legend = string_of(c, "legend"), .unlisted = !*string_of(c, "legend") };
	}
	struct yk_plot q = { .name = string_of(p, "name"), .title = string_of(p, "title"), .x_label = string_of(p, "x"),
			     .x_unit = yk_unit_named(string_of(p, "x")), .y_label = string_of(p, "y"),
			     .y_unit = yk_unit_named(string_of(p, "unit")), .curves = n, .curve = curve, .target = NAN };
	json_array_foreach (json_object_get(p, "dashes"), i, c)
		if (i < YK_SVG_DASHES)
			q.dash_name[i] = json_string_value(c);
	yk_svg_plot(to, &q);
	for (int k = 0; k < n; k++)
		free((void *)(uintptr_t)curve[k].x);
}

enum { ROOF_POINTS = 64 };

// Roofline plot: kernels by arithmetic intensity and rate, below the limits of the device if these
// were measured.
static void roofline(FILE *to, const json_t *run)
{
	const json_t *rows = json_object_get(run, "kernels"), *r, *l;
	size_t max = json_array_size(rows), i, n = 0;
	double *x = malloc((2 * max + 1) * sizeof *x), *y = x ? x + max : NULL, low = INFINITY, high = 0;
	const char **label = malloc((max + 1) * sizeof *label);
	struct yk_curve curve[4];
	double roof[3][2][ROOF_POINTS];
	int curves = 1;
	json_array_foreach (rows, i, r) {
		const json_t *at = json_object_get(r, "intensity"), *rate = json_object_get(r, "flops_per_s");
		if (!x || !label || !json_is_number(at) || !json_is_number(rate))
			continue;
		x[n] = json_number_value(at);
		y[n] = json_number_value(rate);
		low = fmin(low, x[n]);
		high = fmax(high, x[n]);
		label[n++] = string_of(r, "scope");
	}
	curve[0] = (struct yk_curve){ .name = "kernels", .mark = YK_MARK_POINTS, .n = n, .x = x, .y = y, .label = label };
	json_array_foreach (json_object_get(run, "limits"), i, l) {
		double p = json_number_value(json_object_get(l, "flops_per_s")),
		       w = json_number_value(json_object_get(l, "copy_bytes_per_s"));
		if (curves == 4 || !(p > 0) || !(w > 0) || !n)
			continue;
		double from = fmin(low, p / w) / 2, until = fmax(high, p / w) * 2;
		double (*line)[ROOF_POINTS] = roof[curves - 1];
		for (int k = 0; k < ROOF_POINTS; k++) {
			line[0][k] = from * pow(until / from, k / (ROOF_POINTS - 1.));
			line[1][k] = fmin(p, line[0][k] * w);
		}
		curve[curves] = (struct yk_curve){ .name = string_of(l, "device"), .n = ROOF_POINTS, .x = line[0],
						   .y = line[1], .color = curves };
		curves++;
	}
	const struct yk_plot q = { .name = "roofline",
				   .title = "Roofline",
				   .x_label = "FLOP/byte",
				   .y_label = "FLOP/s",
				   .x = YK_SCALE_LOG10,
				   .y = YK_SCALE_LOG10,
				   .curves = curves,
				   .curve = curve,
				   .target = NAN };
	if (n)
		yk_svg_plot(to, &q);
	free(x);
	free(label);
}

// ---- sections ----

// Prints the members of an object, one per row.
static void members(FILE *to, const json_t *o)
{
	const char *key;
	json_t *v;
	fprintf(to, "<div class=\"wide\"><table class=\"of\">");
	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		if (json_is_object(v) || json_is_array(v))
			continue;
		fprintf(to, "<tr><td>");
		yk_xml_text(to, key);
		fprintf(to, "</td>");
		cell(to, "td", v);
		fprintf(to, "</tr>");
	}
	fprintf(to, "</table></div>\n");
}

#define TABLE(to, list, ...) \
	do { \
		static const char *const cells[][2] = { __VA_ARGS__ }; \
		const char *keys_[16], *titles_[16]; \
		int n_ = (int)(sizeof cells / sizeof *cells); \
		for (int k_ = 0; k_ < n_; k_++) \
			keys_[k_] = cells[k_][0], titles_[k_] = cells[k_][1]; \
		if (json_array_size(list)) \
			yk_html_table(to, list, n_, keys_, titles_); \
		else \
			fprintf(to, "<p class=\"soft\">n/a</p>\n"); \
	} while (0)

static void run(FILE *to, const json_t *r)
{
	fprintf(to, "<h2>");
	yk_xml_text(to, string_of(r, "name"));
	fprintf(to, "</h2>\n<h3>Environment</h3>\n");
	members(to, r);
	fprintf(to, "<h3>Numbers</h3>\n");
	TABLE(to, json_object_get(r, "numbers"), { "stage", "stage" }, { "name", "number" }, { "count", "lines" },
	      { "first", "first" }, { "last", "last" }, { "min", "min" }, { "max", "max" },
	      { "min_step", "min at step" });
	fprintf(to, "<h3>Where the time went</h3>\n");
	TABLE(to, json_object_get(r, "phases"), { "device", "device" }, { "phase", "phase" },
	      { "seconds", "seconds" }, { "share", "share" }, { "intervals", "intervals" },
	      { "bytes", "bytes" }, { "bytes_per_s", "bytes/s" }, { "flops", "FLOP" },
	      { "flops_per_s", "FLOP/s" });
	fprintf(to, "<h3>Maximum speedup if a phase took no time (Amdahl)</h3>\n");
	TABLE(to, json_object_get(r, "bounds"), { "phase", "phase" }, { "at_best", "speedup" });
	fprintf(to, "<h3>Counts</h3>\n");
	members(to, json_object_get(r, "counts"));
	fprintf(to, "<h3>Kernels</h3>\n");
	if (!json_array_size(json_object_get(r, "kernels")))
		fprintf(to, "<p class=\"soft\">n/a: the run had no profile=1</p>\n");
	else
		TABLE(to, json_object_get(r, "kernels"), { "op", "op" }, { "implementation", "implementation" },
		      { "device", "device" }, { "scope", "scope" }, { "calls", "calls" }, { "seconds", "seconds" },
		      { "share", "share" }, { "bytes", "bytes" }, { "bytes_per_s", "bytes/s" }, { "flops", "FLOP" },
		      { "flops_per_s", "FLOP/s" }, { "intensity", "FLOP/byte" });
	roofline(to, r);
	fprintf(to, "<h3>Events</h3>\n");
	TABLE(to, json_object_get(r, "events"), { "time", "time" }, { "step", "step" }, { "event", "event" },
	      { "text", "text" });
	fprintf(to, "<h3>Settings</h3>\n");
	members(to, json_object_get(r, "settings"));
	fprintf(to, "<h3>Configuration</h3>\n");
	members(to, json_object_get(r, "config"));
}

// Prints one row per key or quantity, one column per run.
static void beside(FILE *to, const json_t *o, const json_t *list, const char *key, const char *second)
{
	const json_t *r, *d, *v;
	size_t i, k;
	fprintf(to, "<div class=\"wide\"><table><tr><th>%s</th>", key);
	json_array_foreach (json_object_get(o, "runs"), i, r) {
		fprintf(to, "<th class=\"n\">");
		yk_xml_text(to, string_of(r, "name"));
		fprintf(to, "</th>");
		if (second)
			fprintf(to, "<th class=\"n\">%s</th>", "vs the first");
	}
	fprintf(to, "</tr>\n");
	json_array_foreach (list, i, d) {
		fprintf(to, "<tr>");
		cell(to, "td", json_object_get(d, key));
		json_array_foreach (json_object_get(d, "values"), k, v) {
			cell(to, "td", v);
			if (second)
				cell(to, "td", json_array_get(json_object_get(d, second), k));
		}
		fprintf(to, "</tr>\n");
	}
	fprintf(to, "</table></div>\n");
}

int yk_summary_html(FILE *to, const json_t *o)
{
	const json_t *runs = json_object_get(o, "runs"), *r;
	size_t i;
	char title[256] = "Report of ";
	if (json_array_size(runs) == 1)
		snprintf(title + strlen(title), sizeof title - strlen(title), "%.200s",
			 string_of(json_array_get(runs, 0), "name"));
	else
		snprintf(title + strlen(title), sizeof title - strlen(title), "%zu runs", json_array_size(runs));
	yk_html_begin(to, title);
	fprintf(to, "<p class=\"soft\">yoke %s</p>\n", string_of(o, "yoke"));
	if (json_array_size(runs) > 1) {
		fprintf(to, "<h2>Side by side</h2>\n");
		beside(to, o, json_object_get(o, "ratios"), "quantity", "ratios");
		fprintf(to, "<h3>Keys that differ</h3>\n");
		beside(to, o, json_object_get(o, "differences"), "key", NULL);
	}
	fprintf(to, "<h2>Curves</h2>\n<div class=\"plots\">\n");
	json_array_foreach (json_object_get(o, "plots"), i, r)
		plot(to, r);
	fprintf(to, "</div>\n");
	json_array_foreach (runs, i, r)
		run(to, r);
	yk_html_end(to);
	return ferror(to) ? yk_fail(YOKE_EIO, "cannot write the report") : 0;
}
