// SPDX-License-Identifier: Apache-2.0
// Writes a report as Markdown, and as comma-separated values.
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "report/columns.h"
#include "report/summary.h"

// ---- Markdown ----

// A table that is collected before it is printed, so that its columns are aligned as plain text,
// too.
struct md {
	int columns;
	size_t cells, room;
	char **cell; // row by row; the first row has the titles
	bool failed;
};

// Escapes characters that would be markup or end the table cell.
static void md_text(FILE *to, const char *s)
{
	for (; *s; s++)
		if (strchr("|\\`*_<>[]#", *s))
			fprintf(to, "\\%c", *s);
		else
			fputc(iscntrl((unsigned char)*s) ? '?' : *s, to);
}

// Text in which commands are between backquotes. '<' would begin a tag if the second quote is
// missing.
static void md_commands(FILE *to, const char *s)
{
	char one[2] = "";
	for (bool command = false; (one[0] = *s); s++) {
		command ^= *s == '`';
		if (*s == '`' || (command && *s != '<'))
			fputc(iscntrl((unsigned char)*s) ? '?' : *s, to);
		else
			md_text(to, one);
	}
}

static void md_add(struct md *t, const json_t *v, enum yk_quantity q)
{
	char number[YK_QUANTITY_TEXT], *text = NULL;
	size_t bytes;
	if (t->cells == t->room) {
		const size_t room = 2 * t->room + 64;
		char **more = realloc(t->cell, room * sizeof *more);
		if (!more) {
			t->failed = true;
			return;
		}
		t->cell = more;
		t->room = room;
	}
	FILE *to = open_memstream(&text, &bytes);
	if (!to) {
		t->failed = true;
		return;
	}
	if (json_is_string(v))
		md_text(to, json_string_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "true" : "false", to);
	else
		fputs(yk_quantity_text(q, json_is_number(v) ? json_number_value(v) : NAN, number),
		      to);
	if (fclose(to) < 0 || !text) {
		t->failed = true;
		return;
	}
	t->cell[t->cells++] = text;
}

static void md_title(struct md *t, const char *title)
{
	json_t *j = json_string(title);
	md_add(t, j, YK_PLAIN);
	json_decref(j);
}

// Columns that a string takes on a terminal, if each character takes one.
static size_t width_of(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void md_pad(FILE *to, int n, char c)
{
	while (n-- > 0)
		fputc(c, to);
}

// Whether all values of a column below the title begin like a number.
static bool md_is_number(const struct md *t, int column)
{
	for (size_t i = (size_t)(t->columns + column); i < t->cells; i += (size_t)t->columns)
		if (!strchr("0123456789-", *t->cell[i]) && strcmp(t->cell[i], "n/a"))
			return false;
	return true;
}

static void md_print(FILE *to, struct md *t)
{
	int width[64];
	const size_t columns = (size_t)t->columns;
	for (size_t k = 0; k < columns && k < 64; k++) {
		width[k] = 4;
		for (size_t i = k; i < t->cells; i += columns)
			if ((int)width_of(t->cell[i]) > width[k])
				width[k] = (int)width_of(t->cell[i]);
	}
	for (size_t i = 0; i < t->cells && !t->failed; i++) {
		const size_t k = i % columns;
		const bool right = md_is_number(t, (int)k);
		const int blank = width[k] - (int)width_of(t->cell[i]);
		fputs("| ", to);
		md_pad(to, right ? blank : 0, ' ');
		fputs(t->cell[i], to);
		md_pad(to, right ? 0 : blank, ' ');
		fputs(k + 1 == columns ? " |\n" : " ", to);
		for (size_t c = 0; i + 1 == columns && c < columns; c++) {
			const bool colon = md_is_number(t, (int)c);
			fputs("| ", to);
			md_pad(to, width[c] - colon, '-');
			fputs(colon ? ": " : " ", to);
		}
		if (i + 1 == columns)
			fputs("|\n", to);
	}
	for (size_t i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
}

static bool is_plain(const json_t *v)
{
	return !json_is_object(v) && !json_is_array(v);
}

static void md_table(FILE *to, const struct yk_report_columns *c, const json_t *list)
{
	struct md t = { .columns = c->n };
	const json_t *o;
	size_t i;
	fprintf(to, "\n### %s\n\n", c->title);
	if (!json_array_size(list)) {
		fputs("none recorded\n", to);
		return;
	}
	for (int k = 0; k < c->n; k++)
		md_title(&t, c->column[k].title);
	json_array_foreach (list, i, o)
		for (int k = 0; k < c->n; k++)
			md_add(&t, json_object_get(o, c->column[k].key),
			       c->column[k].quantity == YK_BY_NAME ?
				       yk_quantity_of(yk_string_of(o, "name")) :
				       c->column[k].quantity);
	md_print(to, &t);
}

static void md_members(FILE *to, const char *title, const json_t *o)
{
	struct md t = { .columns = 2 };
	const char *key;
	json_t *v;
	fprintf(to, "\n<details><summary>%s</summary>\n\n", title);
	md_title(&t, "name");
	md_title(&t, "value");
	json_object_foreach ((json_t *)(uintptr_t)o, key, v)
		if (is_plain(v)) {
			md_title(&t, key);
			md_add(&t, v, yk_quantity_of(key));
		}
	md_print(to, &t);
	fputs("\n</details>\n", to);
}

static void md_beside(FILE *to, const json_t *o, const json_t *list, const char *key,
		      const char *second)
{
	const size_t runs = json_array_size(json_object_get(o, "runs"));
	struct md t = { .columns = (int)(1 + runs * (second ? 2 : 1)) };
	const json_t *r, *d, *v;
	size_t i, k;
	md_title(&t, key);
	json_array_foreach (json_object_get(o, "runs"), i, r) {
		md_title(&t, yk_string_of(r, "name"));
		if (second)
			md_title(&t, "vs the first");
	}
	json_array_foreach (list, i, d) {
		md_add(&t, json_object_get(d, key), YK_PLAIN);
		json_array_foreach (json_object_get(d, "values"), k, v) {
			md_add(&t, v, yk_quantity_of(yk_string_of(d, "column")));
			if (second)
				md_add(&t, json_array_get(json_object_get(d, second), k), YK_PLAIN);
		}
	}
	fputs("\n", to);
	md_print(to, &t);
}

// What ran, for how long, with which result, and what would help.
static void md_head(FILE *to, const json_t *run)
{
	const json_t *summary = json_object_get(run, "summary"), *o;
	size_t i;
	fprintf(to, "\n%s: ", yk_string_of(summary, "state"));
	md_text(to, yk_string_of(summary, "what"));
	fputs("\n\n", to);
	json_array_foreach (json_object_get(summary, "figures"), i, o) {
		fprintf(to, "- %s: %s", yk_string_of(o, "label"), yk_string_of(o, "text"));
		fprintf(to, *yk_string_of(o, "note") ? " (%s)\n" : "%s\n", yk_string_of(o, "note"));
	}
	fprintf(to, "\n**%s**\n", yk_string_of(summary, "verdict"));
	json_array_foreach (json_object_get(run, "findings"), i, o) {
		const json_t *gain = json_object_get(o, "gain");
		fprintf(to, "\n%zu. %s: ", i + 1, yk_string_of(o, "condition"));
		md_text(to, yk_string_of(o, "what"));
		if (*yk_string_of(o, "change")) {
			fputs("\n   What would help: ", to);
			md_commands(to, yk_string_of(o, "change"));
		}
		if (json_is_number(gain))
			yk_fprintf(to, " (up to %.3g times as fast)", json_number_value(gain));
		fputs("\n", to);
	}
}

static const struct {
	const char *key;
	const struct yk_report_columns *columns;
} lists[] = {
	{ "phases", &yk_columns_phases },   { "bounds", &yk_columns_bounds },
	{ "kernels", &yk_columns_kernels }, { "changed", &yk_columns_changed },
	{ "numbers", &yk_columns_numbers }, { "events", &yk_columns_events },
};
static const struct {
	const char *key, *title;
} objects[] = {
	{ "counts", "Counters" },
	{ "settings", "Settings (YOKE_ variables)" },
	{ "config", "All keys" },
};

void yk_summary_markdown(FILE *to, const json_t *o)
{
	const json_t *runs = json_object_get(o, "runs"), *r;
	size_t i;
	fprintf(to, "# Report\n\nyoke %s\n", yk_string_of(o, "yoke"));
	if (json_array_size(runs) > 1) {
		fputs("\n## Side by side\n", to);
		md_beside(to, o, json_object_get(o, "ratios"), "quantity", "ratios");
		md_beside(to, o, json_object_get(o, "differences"), "key", NULL);
	}
	json_array_foreach (runs, i, r) {
		fputs("\n## ", to);
		md_text(to, yk_string_of(r, "name"));
		fputs("\n", to);
		md_head(to, r);
		for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
			md_table(to, lists[k].columns, json_object_get(r, lists[k].key));
		md_members(to, "Environment", r);
		for (size_t k = 0; k < sizeof objects / sizeof *objects; k++)
			md_members(to, objects[k].title, json_object_get(r, objects[k].key));
	}
}

// ---- CSV (RFC 4180): run, section, row, name, value ----

// Prefixes a quote to text that a spreadsheet would interpret as a formula.
static void csv_text(FILE *to, const char *s)
{
	fputs(strchr("=+-@\t\r", *s) && *s ? "\"'" : "\"", to);
	for (; *s; s++)
		if (*s == '"')
			fputs("\"\"", to);
		else
			fputc(*s, to);
	fputc('"', to);
}

static void csv_line(FILE *to, const char *run, const char *section, size_t row, const char *name,
		     const json_t *v)
{
	char number[32];
	csv_text(to, run);
	fprintf(to, ",\"%s\",%zu,", section, row);
	csv_text(to, name);
	fputc(',', to);
	if (json_is_string(v))
		csv_text(to, json_string_value(v));
	else
		fputs(json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") :
					   yk_summary_number(v, number),
		      to);
	fputs("\r\n", to);
}

static void csv_members(FILE *to, const char *run, const char *section, size_t row, const json_t *o)
{
	const char *key;
	json_t *v;
	json_object_foreach ((json_t *)(uintptr_t)o, key, v)
		if (is_plain(v))
			csv_line(to, run, section, row, key, v);
}

static void csv_beside(FILE *to, const json_t *o, const char *section, const char *key)
{
	const json_t *d, *r;
	size_t i, k;
	json_array_foreach (json_object_get(o, section), i, d)
		json_array_foreach (json_object_get(o, "runs"), k, r) {
			csv_line(to, yk_string_of(r, "name"), section, i, yk_string_of(d, key),
				 json_array_get(json_object_get(d, "values"), k));
			const json_t *q = json_array_get(json_object_get(d, "ratios"), k);
			if (q)
				csv_line(to, yk_string_of(r, "name"), "ratios to the first", i,
					 yk_string_of(d, key), q);
		}
}

void yk_summary_csv(FILE *to, const json_t *o)
{
	const json_t *runs = json_object_get(o, "runs"), *r, *p, *c;
	size_t i, k, j;
	fputs("run,section,row,name,value\r\n", to);
	json_array_foreach (runs, i, r) {
		const char *name = yk_string_of(r, "name");
		csv_members(to, name, "run", 0, r);
		for (size_t s = 0; s < sizeof objects / sizeof *objects; s++)
			csv_members(to, name, objects[s].key, 0,
				    json_object_get(r, objects[s].key));
		for (size_t s = 0; s < sizeof lists / sizeof *lists; s++)
			json_array_foreach (json_object_get(r, lists[s].key), k, p)
				csv_members(to, name, lists[s].key, k, p);
		csv_members(to, name, "summary", 0, json_object_get(r, "summary"));
		json_array_foreach (json_object_get(r, "findings"), k, p)
			csv_members(to, name, "findings", k, p);
	}
	csv_beside(to, o, "ratios", "quantity");
	csv_beside(to, o, "differences", "key");
	json_array_foreach (json_object_get(o, "plots"), i, p)
		json_array_foreach (json_object_get(p, "curves"), k, c)
			for (j = 0; j < json_array_size(json_object_get(c, "x")); j++) {
				char where[64], number[32];
				snprintf(where, sizeof where, "%s",
					 yk_summary_number(
						 json_array_get(json_object_get(c, "x"), j),
						 number));
				csv_text(to, yk_string_of(c, "name"));
				fputs(",", to);
				csv_text(to, yk_string_of(p, "name"));
				fprintf(to, ",%zu,%s,%s\r\n", j, where,
					yk_summary_number(
						json_array_get(json_object_get(c, "y"), j),
						number));
			}
}
