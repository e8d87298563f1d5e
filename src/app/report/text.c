// SPDX-License-Identifier: Apache-2.0
// Writes a report as Markdown, and as comma-separated values.
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "report/summary.h"

static const char *string_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

// ---- Markdown ----

// Escapes characters that would be markup or end the table cell.
static void md_text(FILE *to, const char *s)
{
	for (; *s; s++)
		if (strchr("|\\`*_<>[]#", *s))
			fprintf(to, "\\%c", *s);
		else
			fputc(iscntrl((unsigned char)*s) ? '?' : *s, to);
}

static void md_cell(FILE *to, const json_t *v)
{
	char number[32];
	fputs(" ", to);
	if (json_is_string(v))
		md_text(to, json_string_value(v));
	else
		fputs(json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") : yk_summary_number(v, number), to);
	fputs(" |", to);
}

static bool is_plain(const json_t *v)
{
	return !json_is_object(v) && !json_is_array(v);
}

// The keys vs the first object are the columns.
static void md_table(FILE *to, const char *title, const json_t *list)
{
	const json_t *first = json_array_get(list, 0), *o;
	const char *key;
	json_t *v;
	size_t i;
	fprintf(to, "\n### %s\n\n", title);
	if (!first) {
		fputs("n/a\n", to);
		return;
	}
	fputs("|", to);
	json_object_foreach ((json_t *)(uintptr_t)first, key, v)
		fprintf(to, " %s |", key);
	fputs("\n|", to);
	json_object_foreach ((json_t *)(uintptr_t)first, key, v)
		fputs(json_is_string(v) ? " --- |" : " ---: |", to);
	json_array_foreach (list, i, o) {
		fputs("\n|", to);
		json_object_foreach ((json_t *)(uintptr_t)first, key, v)
			md_cell(to, json_object_get(o, key));
	}
	fputs("\n", to);
}

static void md_members(FILE *to, const char *title, const json_t *o)
{
	const char *key;
	json_t *v;
	fprintf(to, "\n### %s\n\n| | |\n| --- | --- |\n", title);
	json_object_foreach ((json_t *)(uintptr_t)o, key, v)
		if (is_plain(v)) {
			fputs("| ", to);
			md_text(to, key);
			fputs(" |", to);
			md_cell(to, v);
			fputs("\n", to);
		}
}

static void md_beside(FILE *to, const json_t *o, const json_t *list, const char *key, const char *second)
{
	const json_t *r, *d, *v;
	size_t i, k;
	fprintf(to, "\n| %s |", key);
	json_array_foreach (json_object_get(o, "runs"), i, r) {
		fputs(" ", to);
		md_text(to, string_of(r, "name"));
		fputs(second ? " | vs the first |" : " |", to);
	}
	fputs("\n| --- |", to);
	json_array_foreach (json_object_get(o, "runs"), i, r)
		fputs(second ? " ---: | ---: |" : " ---: |", to);
	json_array_foreach (list, i, d) {
		fputs("\n|", to);
		md_cell(to, json_object_get(d, key));
		json_array_foreach (json_object_get(d, "values"), k, v) {
			md_cell(to, v);
			if (second)
				md_cell(to, json_array_get(json_object_get(d, second), k));
		}
	}
	fputs("\n", to);
}

static const struct {
	const char *key, *title;
} lists[] = {
	{ "numbers", "Numbers" }, { "phases", "Where the time went" },
	{ "bounds", "Maximum speedup if a phase took no time (Amdahl)" },
	{ "kernels", "Kernels" }, { "events", "Events" },
}, objects[] = {
	{ "counts", "Counts" }, { "settings", "Settings" }, { "config", "Configuration" },
};

void yk_summary_markdown(FILE *to, const json_t *o)
{
	const json_t *runs = json_object_get(o, "runs"), *r;
	size_t i;
	fprintf(to, "# Report\n\nyoke %s\n", string_of(o, "yoke"));
	if (json_array_size(runs) > 1) {
		fputs("\n## Side by side\n", to);
		md_beside(to, o, json_object_get(o, "ratios"), "quantity", "ratios");
		md_beside(to, o, json_object_get(o, "differences"), "key", NULL);
	}
	json_array_foreach (runs, i, r) {
		fputs("\n## ", to);
		md_text(to, string_of(r, "name"));
		fputs("\n", to);
		md_members(to, "Environment", r);
		for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
			md_table(to, lists[k].title, json_object_get(r, lists[k].key));
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

static void csv_line(FILE *to, const char *run, const char *section, size_t row, const char *name, const json_t *v)
{
	char number[32];
	csv_text(to, run);
	fprintf(to, ",\"%s\",%zu,", section, row);
	csv_text(to, name);
	fputc(',', to);
	if (json_is_string(v))
		csv_text(to, json_string_value(v));
	else
		fputs(json_is_boolean(v) ? (json_is_true(v) ? "true" : "false") : yk_summary_number(v, number), to);
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
			csv_line(to, string_of(r, "name"), section, i, string_of(d, key),
				 json_array_get(json_object_get(d, "values"), k));
			const json_t *q = json_array_get(json_object_get(d, "ratios"), k);
			if (q)
				csv_line(to, string_of(r, "name"), "ratios to the first", i, string_of(d, key), q);
		}
}

void yk_summary_csv(FILE *to, const json_t *o)
{
	const json_t *runs = json_object_get(o, "runs"), *r, *p, *c;
	size_t i, k, j;
	fputs("run,section,row,name,value\r\n", to);
	json_array_foreach (runs, i, r) {
		const char *name = string_of(r, "name");
		csv_members(to, name, "run", 0, r);
		for (size_t s = 0; s < sizeof objects / sizeof *objects; s++)
			csv_members(to, name, objects[s].key, 0, json_object_get(r, objects[s].key));
		for (size_t s = 0; s < sizeof lists / sizeof *lists; s++)
			json_array_foreach (json_object_get(r, lists[s].key), k, p)
				csv_members(to, name, lists[s].key, k, p);
	}
	csv_beside(to, o, "ratios", "quantity");
	csv_beside(to, o, "differences", "key");
	json_array_foreach (json_object_get(o, "plots"), i, p)
		json_array_foreach (json_object_get(p, "curves"), k, c)
			for (j = 0; j < json_array_size(json_object_get(c, "x")); j++) {
				char where[64], number[32];
				snprintf(where, sizeof where, "%s",
					 yk_summary_number(json_array_get(json_object_get(c, "x"), j), number));
				csv_text(to, string_of(c, "name"));
				fputs(",", to);
				csv_text(to, string_of(p, "name"));
				fprintf(to, ",%zu,%s,%s\r\n", j, where,
					yk_summary_number(json_array_get(json_object_get(c, "y"), j), number));
			}
}
