// SPDX-License-Identifier: Apache-2.0
// Writes a report as one HTML file without external references.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "report/html.h"
#include "report/summary.h"

static void text_of(FILE *to, const json_t *o, const char *key)
{
	yk_xml_text(to, yk_string_of(o, key));
}

void yk_html_begin(FILE *to, const char *title)
{
	fprintf(to,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
	yk_xml_text(to, title);
	fprintf(to,
		"</title>\n<link rel=\"icon\" "
		"href=\"data:,\">\n<style>\n%s</style></head>\n<body><main>\n",
		yk_html_style);
}

void yk_html_end(FILE *to)
{
	fprintf(to, "</main></body></html>\n");
}

void yk_html_fold(FILE *to, const char *title)
{
	fprintf(to, "<details><summary>%s</summary>\n", title);
}

void yk_html_fold_end(FILE *to)
{
	fprintf(to, "</details>\n");
}

// ---- tables ----

static bool has_text(const json_t *v)
{
	return json_is_string(v) || json_is_boolean(v);
}

static void value(FILE *to, const json_t *v, enum yk_quantity q)
{
	char exact[32], text[YK_QUANTITY_TEXT];
	if (json_is_string(v))
		yk_xml_text(to, json_string_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "true" : "false", to);
	else if (json_is_number(v))
		fprintf(to, "<data value=\"%s\">%s</data>", yk_summary_number(v, exact),
			yk_quantity_text(q, json_number_value(v), text));
	else
		fputs(json_is_object(v) || json_is_array(v) ? ".." : "&ndash;", to);
}

static void cell(FILE *to, const json_t *v, enum yk_quantity q)
{
	fprintf(to, "<td class=\"%s\">", has_text(v) ? "t" : "n");
	value(to, v, q);
	fprintf(to, "</td>");
}

static void table_begin(FILE *to, const char *caption, const char *class)
{
	fprintf(to,
		"<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"%s\"><table%s><caption>%s</caption>",
		caption, class, caption);
}

static void table_end(FILE *to)
{
	fprintf(to, "</tbody></table></div>\n");
}

void yk_html_table(FILE *to, const char *caption, const json_t *list, int columns,
		   const struct yk_column *column)
{
	const json_t *o, *first = json_array_get(list, 0);
	size_t i;
	table_begin(to, caption, "");
	fprintf(to, "<thead><tr>");
	for (int k = 0; k < columns; k++)
		fprintf(to, "<th scope=\"col\" class=\"%s\">%s</th>",
			has_text(json_object_get(first, column[k].key)) ? "t" : "n",
			column[k].title);
	fprintf(to, "</tr></thead>\n<tbody>");
	json_array_foreach (list, i, o) {
		fprintf(to, "<tr>");
		for (int k = 0; k < columns; k++)
			cell(to, json_object_get(o, column[k].key),
			     column[k].quantity == YK_BY_NAME ?
				     yk_quantity_of(yk_string_of(o, "name")) :
				     column[k].quantity);
		fprintf(to, "</tr>\n");
	}
	table_end(to);
}

// Prints the members of an object, one per row.
static void members(FILE *to, const char *caption, const json_t *o)
{
	const char *key;
	json_t *v;
	table_begin(to, caption, " class=\"of\"");
	fprintf(to, "<thead><tr><th scope=\"col\">name</th><th "
		    "scope=\"col\">value</th></tr></thead>\n<tbody>");
	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		if (json_is_object(v) || json_is_array(v))
			continue;
		fprintf(to, "<tr><th scope=\"row\">");
		yk_xml_text(to, key);
		fprintf(to, "</th>");
		cell(to, v, yk_quantity_of(key));
		fprintf(to, "</tr>\n");
	}
	table_end(to);
}

static void listed(FILE *to, const json_t *list, const struct yk_report_columns *c)
{
	if (json_array_size(list))
		yk_html_table(to, c->title, list, c->n, c->column);
	else
		fprintf(to, "<p class=\"soft\">none recorded</p>\n");
}

// The elements from .. until of a list, which the caller releases.
static json_t *part_of(const json_t *list, size_t from, size_t until)
{
	json_t *part = json_array();
	for (size_t i = from; i < until && i < json_array_size(list); i++)
		json_array_append(part, json_array_get(list, i));
	return part;
}

// ---- sections ----

static void heading(FILE *to, int level, const char *title)
{
	fprintf(to, "<h%d>%s</h%d>\n", level, title, level);
}

static const char *health_class(const json_t *summary, const json_t *findings)
{
	if (!json_is_true(json_object_get(summary, "healthy")))
		return "bad";
	return json_array_size(findings) ? "stopped" : "good";
}

// Writes text in which commands are between backquotes.
static void with_commands(FILE *to, const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	for (bool command = false; copy && (word = strsep(&rest, "`")); command = !command) {
		fputs(command ? "<code>" : "", to);
		yk_xml_text(to, word);
		fputs(command ? "</code>" : "", to);
	}
	free(copy);
}

static void findings(FILE *to, const json_t *r, int level)
{
	const json_t *list = json_object_get(r, "findings"),
		     *summary = json_object_get(r, "summary"), *o, *e;
	size_t i, k;
	fprintf(to, "<section class=\"health %s\" data-findings=\"%zu\"><h%d>",
		health_class(summary, list), json_array_size(list), level);
	text_of(to, summary, "verdict");
	fprintf(to, "</h%d>\n", level);
	if (json_array_size(list))
		fprintf(to, "<ol>");
	json_array_foreach (list, i, o) {
		const json_t *gain = json_object_get(o, "gain");
		fprintf(to, "<li><p><strong>");
		text_of(to, o, "condition");
		fprintf(to, ":</strong> ");
		text_of(to, o, "what");
		fprintf(to, "</p>");
		if (*yk_string_of(o, "change")) {
			fprintf(to, "<p>What would help: ");
			with_commands(to, yk_string_of(o, "change"));
			if (json_is_number(gain))
				yk_fprintf(to,
					   ". <span class=\"gain\">Up to %.3g times as fast</span>",
					   json_number_value(gain));
			fprintf(to, ".</p>");
		}
		if (*yk_string_of(o, "needs")) {
			fprintf(to, "<p class=\"soft\">Needs ");
			with_commands(to, yk_string_of(o, "needs"));
			fprintf(to, "</p>");
		}
		fprintf(to, "<details><summary class=\"soft\">Evidence</summary><ul>");
		json_array_foreach (json_object_get(o, "evidence"), k, e) {
			const long long from = json_integer_value(json_object_get(e, "from")),
					until = json_integer_value(json_object_get(e, "to"));
			fprintf(to, "<li>");
			text_of(to, e, "file");
			if (from > 0 && until > from)
				fprintf(to, ", lines %lld to %lld", from, until);
			else if (from > 0)
				fprintf(to, ", line %lld", from);
			fprintf(to, ": ");
			text_of(to, e, "text");
			fprintf(to, "</li>");
		}
		fprintf(to, "</ul></details></li>\n");
	}
	fprintf(to, "%s</section>\n", json_array_size(list) ? "</ol>" : "");
}

// What ran, for how long, with which result, and what would help.
static void head(FILE *to, const json_t *r, int level)
{
	const json_t *summary = json_object_get(r, "summary"), *f;
	size_t i;
	fprintf(to, "<header><h%d id=\"", level);
	text_of(to, r, "name");
	fprintf(to, "\">");
	text_of(to, r, "name");
	fprintf(to, " <span class=\"pill %s\">%s</span></h%d>\n<p class=\"soft\">",
		yk_string_of(summary, "state"), yk_string_of(summary, "state"), level);
	text_of(to, summary, "what");
	fprintf(to, "</p>\n</header>\n<dl class=\"tiles\">");
	json_array_foreach (json_object_get(summary, "figures"), i, f) {
		fprintf(to, "<div><dt>");
		text_of(to, f, "label");
		fprintf(to, "</dt><dd class=\"big\">");
		text_of(to, f, "text");
		fprintf(to, "</dd><dd>");
		text_of(to, f, "note");
		fprintf(to, "</dd></div>\n");
	}
	fprintf(to, "</dl>\n");
	findings(to, r, level + 1);
}

// Whether a plot has at max one point in each curve, or only zeros.
static bool is_flat(const json_t *p)
{
	const json_t *c, *y;
	size_t i, k, max = 0;
	bool zeros = true;
	json_array_foreach (json_object_get(p, "curves"), i, c) {
		const json_t *ys = json_object_get(c, "y");
		max = json_array_size(ys) > max ? json_array_size(ys) : max;
		json_array_foreach (ys, k, y)
			zeros &= json_number_value(y) == 0;
	}
	return max < 2 || zeros;
}

// Stages of loading and of the allocator are details.
static bool is_detail(const json_t *p)
{
	const char *name = yk_string_of(p, "name");
	return is_flat(p) || !strncmp(name, "train.data_", 11) || !strncmp(name, "memory.", 7);
}

static void curves(FILE *to, const json_t *plots)
{
	const json_t *p, *loss = NULL;
	char title[80];
	size_t i, details = 0;
	json_array_foreach (plots, i, p)
		if (!strcmp(yk_string_of(p, "name"), "loss") && !is_flat(p))
			loss = p;
	if (loss) {
		fprintf(to, "<div class=\"wide-only\">");
		yk_html_plot(to, loss, YK_WIDE, YK_HIGH);
		fprintf(to, "</div><div class=\"narrow-only\">");
		yk_html_plot(to, loss, YK_NARROW, YK_LOW);
		fprintf(to, "</div>\n");
	}
	fprintf(to, "<div class=\"plots\">\n");
	json_array_foreach (plots, i, p) {
		details += is_detail(p);
		if (!is_detail(p) && p != loss)
			yk_html_plot(to, p, YK_NARROW, YK_LOW);
	}
	fprintf(to, "</div>\n");
	if (!details)
		return;
	snprintf(title, sizeof title, "Details of loading and memory, and constant curves (%zu)",
		 details);
	yk_html_fold(to, title);
	fprintf(to, "<div class=\"plots\">\n");
	json_array_foreach (plots, i, p)
		if (is_detail(p))
			yk_html_plot(to, p, YK_NARROW, YK_LOW);
	fprintf(to, "</div>\n");
	yk_html_fold_end(to);
}

// Where the time went: a bar of shares, and the same as a table.
static void phases(FILE *to, const json_t *r)
{
	static const char *const colors[] = {
		"#3b82c4", "#d9822b", "#3f9f5f", "#8a63b8", "#c060a0",
		"#8c6d46", "#c4453b", "#6b7785", "#2a9d9d", "#a3a53b"
	};
	enum { COLORS = sizeof colors / sizeof *colors };
	const struct yk_report_columns *c = &yk_columns_phases;
	const json_t *list = json_object_get(r, "phases"), *p;
	size_t i;
	if (!json_array_size(list)) {
		fprintf(to, "<p class=\"soft\">The run recorded no report: it did not end, or had "
			    "fewer than 10 steps.</p>\n");
		return;
	}
	fprintf(to, "<div class=\"bar\" aria-hidden=\"true\">");
	json_array_foreach (list, i, p) {
		const double share = json_number_value(json_object_get(p, "share"));
		if (share > 0 && strcmp(yk_string_of(p, "phase"), "wall"))
			yk_fprintf(to, "<i style=\"flex:0 0 %.3g%%;background:%s\"></i>",
				   100 * share, colors[i % COLORS]);
	}
	fprintf(to, "</div>\n");
	table_begin(to, "Where the time went", "");
	fprintf(to, "<thead><tr>");
	for (int k = 0; k < c->n; k++)
		fprintf(to, "<th scope=\"col\" class=\"%s\">%s</th>", k < 2 ? "t" : "n",
			c->column[k].title);
	fprintf(to, "</tr></thead>\n<tbody>");
	json_array_foreach (list, i, p) {
		fprintf(to,
			"<tr><td class=\"t k\"><span class=\"key\" style=\"background:%s\"></span>",
			strcmp(yk_string_of(p, "phase"), "wall") ? colors[i % COLORS] :
								   "transparent");
		text_of(to, p, "phase");
		fprintf(to, "</td>");
		for (int k = 1; k < c->n; k++)
			cell(to, json_object_get(p, c->column[k].key), c->column[k].quantity);
		fprintf(to, "</tr>\n");
	}
	table_end(to);
	yk_html_fold(to, "Maximum speedup if a phase took no time (Amdahl)");
	listed(to, json_object_get(r, "bounds"), &yk_columns_bounds);
	yk_html_fold_end(to);
}

enum { KERNELS_SHOWN = 10, EVENTS_SHOWN = 12 };

static void kernels(FILE *to, const json_t *r)
{
	const json_t *list = json_object_get(r, "kernels");
	const size_t n = json_array_size(list);
	char title[64];
	if (!n) {
		fprintf(to, "<p class=\"soft\">The run had no profile=1.</p>\n");
		return;
	}
	json_t *first = part_of(list, 0, KERNELS_SHOWN), *rest = part_of(list, KERNELS_SHOWN, n);
	listed(to, first, &yk_columns_kernels);
	if (json_array_size(rest)) {
		snprintf(title, sizeof title, "Further kernels (%zu)", json_array_size(rest));
		yk_html_fold(to, title);
		listed(to, rest, &yk_columns_kernels);
		yk_html_fold_end(to);
	}
	json_decref(first);
	json_decref(rest);
	yk_html_roofline(to, r);
}

// The last events; those before them are folded.
static void events(FILE *to, const json_t *r)
{
	const json_t *list = json_object_get(r, "events");
	const size_t n = json_array_size(list), from = n > EVENTS_SHOWN ? n - EVENTS_SHOWN : 0;
	json_t *before = part_of(list, 0, from), *last = part_of(list, from, n);
	char title[64];
	if (from) {
		snprintf(title, sizeof title, "Earlier events (%zu)", from);
		yk_html_fold(to, title);
		listed(to, before, &yk_columns_events);
		yk_html_fold_end(to);
	}
	listed(to, last, &yk_columns_events);
	json_decref(before);
	json_decref(last);
}

// Training and validation; the others are folded.
static void numbers(FILE *to, const json_t *r)
{
	const json_t *list = json_object_get(r, "numbers"), *o;
	json_t *shown = json_array(), *others = json_array();
	char title[64];
	size_t i;
	json_array_foreach (list, i, o) {
		const char *stage = yk_string_of(o, "stage"), *name = yk_string_of(o, "name");
		const bool main = (!strcmp(stage, "train") || !strcmp(stage, "valid")) &&
				  strncmp(name, "data_", 5);
		json_array_append(main ? shown : others, (json_t *)(uintptr_t)o);
	}
	listed(to, shown, &yk_columns_numbers);
	snprintf(title, sizeof title, "Data, memory, telemetry and other numbers (%zu)",
		 json_array_size(others));
	yk_html_fold(to, title);
	listed(to, others, &yk_columns_numbers);
	yk_html_fold_end(to);
	json_decref(shown);
	json_decref(others);
}

static void configuration(FILE *to, const json_t *r)
{
	const json_t *changed = json_object_get(r, "changed");
	char title[64];
	if (json_array_size(changed))
		listed(to, changed, &yk_columns_changed);
	else
		fprintf(to, "<p class=\"soft\">All keys have their default values.</p>\n");
	snprintf(title, sizeof title, "All keys (%zu)",
		 json_object_size(json_object_get(r, "config")));
	yk_html_fold(to, title);
	members(to, "All keys", json_object_get(r, "config"));
	yk_html_fold_end(to);
	yk_html_fold(to, "Settings (YOKE_ variables)");
	members(to, "Settings", json_object_get(r, "settings"));
	yk_html_fold_end(to);
	yk_html_fold(to, "Environment");
	members(to, "Environment", r);
	yk_html_fold_end(to);
	yk_html_fold(to, "Counters");
	members(to, "Counters", json_object_get(r, "counts"));
	yk_html_fold_end(to);
}

// Everything about a run but its head and its curves.
static void run(FILE *to, const json_t *r, int level)
{
	heading(to, level, "Where the time went");
	phases(to, r);
	heading(to, level, "Kernels");
	kernels(to, r);
	heading(to, level, "Configuration");
	configuration(to, r);
	heading(to, level, "Numbers");
	numbers(to, r);
	heading(to, level, "Events");
	events(to, r);
}

// ---- several runs ----

// Prints one row per key or quantity, one column per run.
static void beside(FILE *to, const char *caption, const json_t *o, const json_t *list,
		   const char *key, const char *second)
{
	const json_t *r, *d, *v;
	size_t i, k;
	table_begin(to, caption, "");
	fprintf(to, "<thead><tr><th scope=\"col\">%s</th>", key);
	json_array_foreach (json_object_get(o, "runs"), i, r) {
		fprintf(to, "<th scope=\"col\" class=\"n\">");
		text_of(to, r, "name");
		fprintf(to, "</th>");
		if (second)
			fprintf(to, "<th scope=\"col\" class=\"n\">vs the first</th>");
	}
	fprintf(to, "</tr></thead>\n<tbody>");
	json_array_foreach (list, i, d) {
		const enum yk_quantity q = yk_quantity_of(yk_string_of(d, "column"));
		fprintf(to, "<tr>");
		cell(to, json_object_get(d, key), YK_PLAIN);
		json_array_foreach (json_object_get(d, "values"), k, v) {
			fprintf(to, "<td class=\"n\">");
			value(to, v, q);
			fprintf(to, "</td>");
			if (second)
				cell(to, json_array_get(json_object_get(d, second), k), YK_PLAIN);
		}
		fprintf(to, "</tr>\n");
	}
	table_end(to);
}

// A line for each run: its state, its result and what was found.
static void overview(FILE *to, const json_t *runs)
{
	const json_t *r, *f;
	size_t i, k;
	table_begin(to, "Runs", "");
	fprintf(to, "<thead><tr><th scope=\"col\">run</th><th scope=\"col\">state</th><th "
		    "scope=\"col\">findings</th>"
		    "<th scope=\"col\">result</th></tr></thead>\n<tbody>");
	json_array_foreach (runs, i, r) {
		const json_t *summary = json_object_get(r, "summary");
		fprintf(to, "<tr><th scope=\"row\"><a href=\"#");
		text_of(to, r, "name");
		fprintf(to, "\">");
		text_of(to, r, "name");
		fprintf(to,
			"</a></th><td class=\"t\"><span class=\"pill %s\">%s</span></td><td "
			"class=\"t %s\">",
			yk_string_of(summary, "state"), yk_string_of(summary, "state"),
			health_class(summary, json_object_get(r, "findings")));
		text_of(to, summary, "verdict");
		fprintf(to, "</td><td class=\"t\">");
		json_array_foreach (json_object_get(summary, "figures"), k, f) {
			fputs(k ? ", " : "", to);
			text_of(to, f, "label");
			fputc(' ', to);
			text_of(to, f, "text");
		}
		fprintf(to, "</td></tr>\n");
	}
	table_end(to);
}

int yk_summary_html(FILE *to, const json_t *o)
{
	const json_t *runs = json_object_get(o, "runs"), *r;
	const bool one = json_array_size(runs) == 1;
	size_t i;
	char title[256] = "Report of ";
	if (one)
		snprintf(title + strlen(title), sizeof title - strlen(title), "%.200s",
			 yk_string_of(json_array_get(runs, 0), "name"));
	else
		snprintf(title + strlen(title), sizeof title - strlen(title), "%zu runs",
			 json_array_size(runs));
	yk_html_begin(to, title);
	if (one) {
		head(to, json_array_get(runs, 0), 1);
	} else {
		heading(to, 1, title);
		overview(to, runs);
		heading(to, 2, "Side by side");
		beside(to, "Side by side", o, json_object_get(o, "ratios"), "quantity", "ratios");
		heading(to, 3, "Keys that differ");
		beside(to, "Keys that differ", o, json_object_get(o, "differences"), "key", NULL);
	}
	heading(to, 2, "Curves");
	curves(to, json_object_get(o, "plots"));
	json_array_foreach (runs, i, r) {
		if (!one)
			head(to, r, 2);
		run(to, r, one ? 2 : 3);
	}
	fprintf(to, "<p class=\"soft\">yoke %s</p>\n", yk_string_of(o, "yoke"));
	yk_html_end(to);
	return ferror(to) ? yk_fail(YOKE_EIO, "cannot write the report") : 0;
}
