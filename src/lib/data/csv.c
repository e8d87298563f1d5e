// SPDX-License-Identifier: Apache-2.0
// Tables: CSV (RFC 4180) and TSV, whose first record names the columns unless header=0.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/scan.h"
#include "data/lines.h"
#include "data/set.h"

enum { MAX_LABELS = 65536 };
enum kind { NUMBER, DOUBLE, CATEGORY, TEXT, KINDS };
static const char *const kind_name[KINDS] = { "number", "f64", "category", "text" };

struct cell {
	char *text; // followed by a NUL
	size_t bytes;
};

struct column {
	char *name;
	int at; // index in the table
	enum kind kind;
	char **label; // labels of a category, sorted
	size_t labels, cap;
};

struct table {
	struct yk_lines lines;
	int width; // columns of the file
	int first; // the first record with data: 1, without a header 0
	char **names;
	int *field; // [width]: field of each column's numbers; -1: not selected; NULL: fields are
		    // not one numeric column each
	int n;
	struct column *column;
};

static void table_free(void *arg)
{
	struct table *t = arg;
	for (int i = 0; i < t->n; i++) {
		for (size_t k = 0; k < t->column[i].labels; k++)
			free(t->column[i].label[k]);
		free(t->column[i].label);
		free(t->column[i].name);
	}
	for (int i = 0; i < t->width; i++)
		free(t->names[i]);
	free(t->names);
	free(t->field);
	free(t->column);
	yk_lines_close(&t->lines);
	free(t);
}

// ---- numbers ----

// Parses at most eight digits at s; returns their count.  SWAR: the word's bytes, the first one
// lowest, are combined to numbers of two, four and eight digits.
static inline int eight_digits(const char *s, uint64_t *number)
{
	uint64_t x;
	memcpy(&x, s, sizeof x);
	x = yk_le64(x) ^ 0x3030303030303030; // the value of a digit; above 9 for other characters
	const uint64_t other = (x | (x + 0x7676767676767676)) & 0x8080808080808080;
	const int n = other ? __builtin_ctzll(other) / 8 : 8;
	x = n ? x << (64 - 8 * n) : 0; // leading zeros
	x = 10 * x + (x >> 8);
	*number = ((x & 0xff000000ff) * (100 + ((uint64_t)1000000 << 32)) +
		   (x >> 16 & 0xff000000ff) * (1 + ((uint64_t)10000 << 32))) >> 32;
	return n;
}

// Appends the digits at *s to a number; returns their count.
static inline int take_digits(const char **s, uint64_t *number)
{
	static const uint64_t ten[9] = { 1,      10,      100,      1000,     10000,
					 100000, 1000000, 10000000, 100000000 };
	const char *first = *s;
	uint64_t x;
	int n;
	do {
		n = eight_digits(*s, &x);
		*number = *number * ten[n] + x;
		*s += n;
	} while (n == 8);
	return (int)(*s - first); // fits: a record has at most 16 MiB
}

// Parses decimals with an exponent whose digits f64 represents exactly, so that there is only one
// rounding (Clinger 1990).  Returns their end; NULL: not a number, or not that simple.  May read
// YK_LINES_SPARE bytes after the record.
static const char *simple_number(const char *s, double *to)
{
	enum { MAX_TEN = 22, MAX_DIGITS = 19 };
	static const double ten[MAX_TEN + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
						 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
						 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const bool minus = *s == '-';
	uint64_t m = 0, power = 0;
	s += minus;
	int digits = take_digits(&s, &m), scale = 0;
	if (*s == '.') {
		s++;
		scale = -take_digits(&s, &m);
		digits -= scale;
	}
	if (digits > MAX_DIGITS)
		return NULL;
	if ((*s | 32) == 'e') {
		const bool less = *++s == '-';
		s += *s == '-' || *s == '+';
		const int n = take_digits(&s, &power);
		if (n < 1 || n > 2)
			return NULL;
		scale += less ? -(int)power : (int)power;
	}
	if (!digits || m > (uint64_t)1 << 53 || scale < -MAX_TEN || scale > MAX_TEN)
		return NULL;
	const double x = scale < 0 ? (double)m / ten[-scale] : (double)m * ten[scale];
	*to = minus ? -x : x;
	return s;
}

// ---- cells ----

static int refuse(const struct table *t, int64_t record, uint64_t at, const char *why)
{
	return yk_fail(YOKE_EFORMAT, "%s: record %lld, at byte %llu: %s", t->lines.path,
		       (long long)record + 1, (unsigned long long)at, why);
}

// Splits a record into cells in place; *n is their number, of which at most `max` are stored.
static int split(const struct table *t, int64_t record, uint64_t at, char *text, size_t bytes,
		 struct cell *to, int max, int *n)
{
	const char sep = t->lines.separator;
	char *from = text, *end = text + bytes;
	for (*n = 0;; (*n)++) {
		char *cell = from, *put = from;
		if (from < end && *from == '"') {
			cell = put = ++from;
			for (;; *put++ = *from++) {
				if (from == end)
					return refuse(t, record, at, "a quote is not closed");
				if (*from == '"' && (++from == end || *from != '"'))
					break;
			}
			if (from < end && *from != sep)
				return refuse(
					t, record, at,
					"unexpected characters between a closing quote and the next cell");
		} else {
			while (from < end && *from != sep)
				from++;
			put = from;
		}
		const bool last = from == end;
		if (*n < max)
			to[*n] = (struct cell){ cell, (size_t)(put - cell) };
		*put = 0; // `put` never overtakes `from`, whose character has been read
		if (last)
			break;
		from++;
	}
	(*n)++;
	return 0;
}

// The cells of a record; their number must be that of the columns.
static int cells_of(const struct table *t, int64_t record, uint64_t at, char *text, size_t bytes,
		    struct cell *cells)
{
	char why[120];
	int n, e = split(t, record, at, text, bytes, cells, t->width, &n);
	if (e == 0 && n != t->width) {
		snprintf(why, sizeof why, "has %d cells, the first record %d", n, t->width);
		e = refuse(t, record, at, why);
	}
	return e;
}

static int number(const struct table *t, int64_t record, const struct column *c,
		  const struct cell *cell, double *to)
{
	char why[280];
	if (simple_number(cell->text, to) == cell->text + cell->bytes)
		return 0;
	if (strlen(cell->text) != cell->bytes || !yk_number_or_nan(cell->text, to))
		snprintf(why, sizeof why,
			 "column %.60s: '%.60s' is not a decimal number in the range of f64",
			 c->name, cell->text);
	else if (c->kind == NUMBER && isfinite(*to) && !isfinite((float)*to))
		snprintf(
			why, sizeof why,
			"column %.60s: '%.60s' is outside the range of f32; columns=%.60s:f64 reads it",
			c->name, cell->text, c->name);
	else
		return 0;
	return yk_fail(YOKE_EFORMAT, "%s: record %lld: %s", t->lines.path, (long long)record + 1,
		       why);
}

static int utf8(const struct table *t, int64_t record, const struct column *c,
		const struct cell *cell)
{
	const unsigned char *s = (const unsigned char *)cell->text, *end = s + cell->bytes;
	while (s < end) {
		const int n = *s < 128 ? 1 : yk_utf8(s, end);
		if (!n)
			return yk_fail(YOKE_EFORMAT, "%s: record %lld: column %.60s is not UTF-8",
				       t->lines.path, (long long)record + 1, c->name);
		s += n;
	}
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void put_number(const struct column *c, double x, void *to)
{
	if (c->kind == DOUBLE)
		*(double *)to = x;
	else
		*(float *)to = (float)x;
}

// Fast path for a record of simple numbers, parsed in one scan.  false: use the general parser,
// which also reports errors.
static bool plain_record(const struct table *t, const char *from, const char *end,
			 const struct yoke_item *s)
{
	const char sep = t->lines.separator;
	for (int i = 0; i < t->width; i++, from++) {
		const int k = t->field[i];
		double x;
		if (k >= 0 && (from = simple_number(from, &x)))
			put_number(&t->column[k], x, s->to[k]);
		else if (k >= 0 || *from == '"')
			return false;
		else if (!(from = memchr(from, sep, (size_t)(end - from))))
			from = end;
		if (i < t->width - 1 ? *from != sep : from != end)
			return false;
	}
	return true;
}

static int fill_cell(const struct table *t, int64_t record, int k, const struct cell *cell,
		     struct yoke_item *s)
{
	const struct column *c = &t->column[k];
	double x = 0;
	int e = 0;
	if (c->kind == TEXT) {
		e = utf8(t, record, c, cell);
		memcpy(s->to[k], cell->text, cell->bytes);
		s->dims[k][0] = (int64_t)cell->bytes;
	} else if (c->kind == CATEGORY) {
		char *const *at = !c->labels ? NULL :
					       bsearch(&cell->text, c->label, c->labels,
						       sizeof *c->label, by_text);
		if (at)
			*(int32_t *)s->to[k] = (int32_t)(at - c->label);
		else
			e = yk_fail(YOKE_EIO, "%s: record %lld: changed while it was being read",
				    t->lines.path, (long long)record + 1);
	} else if ((e = number(t, record, c, cell, &x)) == 0) {
		put_number(c, x, s->to[k]);
	}
	return e;
}

static int read_row(const struct table *t, struct yk_lines_reader *r, struct cell *cells,
		    struct yoke_item *s)
{
	const int64_t record = s->number + t->first;
	char *text;
	size_t bytes;
	uint64_t at;
	int e = yk_lines_read(&t->lines, r, record, &text, &bytes, &at);
	if (e < 0 || (t->field && plain_record(t, text, text + bytes, s)))
		return e;
	e = cells_of(t, record, at, text, bytes, cells);
	for (int k = 0; k < t->n && e == 0; k++)
		e = fill_cell(t, record, k, &cells[t->column[k].at], s);
	return e;
}

static int read_rows(void *arg, int64_t n, struct yoke_item *const *s)
{
	const struct table *t = arg;
	struct yk_lines_reader r = { 0 };
	struct cell *cells = calloc((size_t)t->width, sizeof *cells);
	if (!cells)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for a record", t->lines.path);
	for (int64_t i = 0; i < n; i++) {
		const int e = read_row(t, &r, cells, s[i]);
		if (e < 0)
			yk_sample_failed(s[i], e);
	}
	yk_lines_reader_fini(&r);
	free(cells);
	return 0;
}

// ---- opening ----

static int no_memory(const char *path)
{
	return yk_fail(YOKE_ENOMEM, "%s: no memory for its columns", path);
}

static int read_names(struct table *t)
{
	struct yk_lines_reader r = { 0 };
	char *text;
	size_t bytes;
	uint64_t at;
	int n = 0, numbers = 0, e;
	double x;
	if (t->lines.count <= t->first)
		return yk_fail(YOKE_EFORMAT, "%s: %s", t->lines.path,
			       t->first ? "needs a header record and at least one data record" :
					  "has no records");
	if ((e = yk_lines_read(&t->lines, &r, 0, &text, &bytes, &at)) < 0) {
		yk_lines_reader_fini(&r);
		return e;
	}
	size_t max = 1; // max number of cells
	for (size_t i = 0; i < bytes; i++)
		max += text[i] == t->lines.separator;
	struct cell *cells = calloc(max, sizeof *cells);
	t->names = calloc(max, sizeof *t->names);
	e = cells && t->names ? split(t, 0, at, text, bytes, cells, (int)max, &n) :
				no_memory(t->lines.path);
	for (int i = 0; i < n && e == 0; i++) {
		if (t->first)
			t->names[i] = strdup(cells[i].text);
		else if (asprintf(&t->names[i], "column%d", i + 1) < 0)
			t->names[i] = NULL;
		numbers += yk_number_or_nan(cells[i].text, &x);
		e = t->names[i] ? 0 : no_memory(t->lines.path);
		t->width = i + 1;
	}
	if (e == 0 && t->first && numbers == n)
		yk_warn("data",
			"%s: the names of all columns are numbers; header=0 reads the first record as data",
			t->lines.path);
	free(cells);
	yk_lines_reader_fini(&r);
	return e;
}

static int add_column(struct table *t, const char *name, enum kind kind)
{
	int at = 0;
	while (at < t->width && strcmp(t->names[at], name))
		at++;
	if (at == t->width)
		return yk_fail(YOKE_ENOENT, "%s: has no column '%s'", t->lines.path, name);
	if (!*name)
		return yk_fail(YOKE_EFORMAT, "%s: column %d has no name", t->lines.path, at + 1);
	t->column[t->n] = (struct column){ .name = strdup(name), .at = at, .kind = kind };
	return t->column[t->n++].name ? 0 : no_memory(t->lines.path);
}

// kind: the text after the colon; NULL: none.
static int choose_column(struct table *t, const char *name, const char *kind)
{
	int k = NUMBER;
	if (kind && strcmp(kind, "f32")) {
		while (k < KINDS && strcmp(kind, kind_name[k]))
			k++;
		if (k == KINDS)
			return yk_fail(
				YOKE_EINVAL,
				"%s: columns=: %s:%s: must be number, f32, f64, category or text",
				t->lines.path, name, kind);
	}
	return add_column(t, name, (enum kind)k);
}

// Removes the quotes of a name in place; returns the text after the closing quote, NULL: it is
// missing.
static char *unquote(char *name)
{
	char *put = name, *at = name + 1;
	for (; *at && (*at != '"' || at[1] == '"'); at++) {
		at += *at == '"';
		*put++ = *at;
	}
	char *end = *at ? at + 1 : NULL;
	*put = 0;
	return end;
}

// Takes the next column of the list; *rest is the remaining list, NULL at its end.
static int choose_next(struct table *t, char **rest)
{
	char *name = *rest, *kind;
	if (*name != '"') {
		name = strsep(rest, ",");
		kind = strrchr(name, ':');
		if (kind)
			*kind++ = 0;
		return choose_column(t, name, kind);
	}
	char *end = unquote(name);
	if (!end)
		return yk_fail(YOKE_EINVAL, "%s: columns=: a quote is not closed: %s",
			       t->lines.path, name);
	if (*end && *end != ':' && *end != ',')
		return yk_fail(YOKE_EINVAL,
			       "%s: columns=: unexpected '%.20s' after the name \"%s\"",
			       t->lines.path, end, name);
	*rest = end;
	kind = strsep(rest, ",");
	return choose_column(t, name, *kind ? kind + 1 : NULL);
}

static int choose(struct table *t, const char *columns)
{
	size_t max = 1;
	for (const char *c = columns; c && *c; c++)
		max += *c == ',';
	t->column = calloc(columns ? max : (size_t)t->width, sizeof *t->column);
	char *copy = strdup(columns ? columns : ""), *rest = copy;
	int e = copy && t->column ? 0 : no_memory(t->lines.path);
	while (columns && e == 0 && rest)
		e = choose_next(t, &rest);
	for (int i = 0; !columns && i < t->width && e == 0; i++)
		e = add_column(t, t->names[i], NUMBER);
	free(copy);
	return e;
}

// Finds each column's destination, if only numbers are selected.
static int find_fields(struct table *t)
{
	bool plain = true;
	t->field = malloc((size_t)t->width * sizeof *t->field);
	if (!t->field)
		return no_memory(t->lines.path);
	memset(t->field, -1, (size_t)t->width * sizeof *t->field);
	for (int k = 0; k < t->n; k++) {
		int *at = &t->field[t->column[k].at];
		plain &= (t->column[k].kind == NUMBER || t->column[k].kind == DOUBLE) && *at < 0;
		*at = k;
	}
	if (!plain) {
		free(t->field);
		t->field = NULL;
	}
	return 0;
}

static int add_label(const struct table *t, struct column *c, const struct cell *cell)
{
	if (strlen(cell->text) != cell->bytes)
		return yk_fail(YOKE_EFORMAT, "%s: column %s: a category contains a NUL byte",
			       t->lines.path, c->name);
	if (c->labels && bsearch(&cell->text, c->label, c->labels, sizeof *c->label, by_text))
		return 0;
	if (c->labels == MAX_LABELS)
		return yk_fail(
			YOKE_ERANGE,
			"%s: column %s: has more than %d different categories; read it as text",
			t->lines.path, c->name, MAX_LABELS);
	if (yk_grow(&c->label, &c->cap, c->labels + 1, sizeof *c->label) < 0)
		return no_memory(t->lines.path);
	size_t at = c->labels; // insertion point that keeps labels sorted
	char *label = strdup(cell->text);
	if (!label)
		return no_memory(t->lines.path);
	for (; at > 0 && strcmp(c->label[at - 1], label) > 0; at--)
		c->label[at] = c->label[at - 1];
	c->label[at] = label;
	c->labels++;
	return 0;
}

static int find_labels(struct table *t)
{
	bool any = false;
	struct yk_lines_reader r = { 0 };
	struct cell *cells = calloc((size_t)t->width, sizeof *cells);
	int e = cells ? 0 : no_memory(t->lines.path);
	for (int k = 0; k < t->n; k++)
		any |= t->column[k].kind == CATEGORY;
	for (int64_t i = t->first; any && i < t->lines.count && e == 0; i++) {
		char *text;
		size_t bytes;
		uint64_t at;
		if ((e = yk_lines_read(&t->lines, &r, i, &text, &bytes, &at)) == 0)
			e = cells_of(t, i, at, text, bytes, cells);
		for (int k = 0; k < t->n && e == 0; k++)
			if (t->column[k].kind == CATEGORY &&
			    !(e = utf8(t, i, &t->column[k], &cells[t->column[k].at])))
				e = add_label(t, &t->column[k], &cells[t->column[k].at]);
	}
	yk_lines_reader_fini(&r);
	free(cells);
	return e;
}

static const char *label_of(const void *arg, int field, int64_t i)
{
	const struct column *c = &((const struct table *)arg)->column[field];
	return c->kind == CATEGORY && i >= 0 && (size_t)i < c->labels ? c->label[i] : NULL;
}

static yoke_dataset *make_set(struct table *t)
{
	static const int dtype[KINDS] = { yoke_f32, yoke_f64, yoke_i32, yoke_u8 };
	struct yoke_field *field = calloc((size_t)t->n + 1, sizeof *field);
	if (!field) {
		no_memory(t->lines.path);
		return NULL;
	}
	for (int k = 0; k < t->n; k++) {
		const struct column *c = &t->column[k];
		field[k] = (struct yoke_field){ .size = sizeof *field,
						.name = c->name,
						.dtype = dtype[c->kind] };
		if (c->kind != TEXT)
			continue;
		field[k].rank = 1;
		field[k].dims[0] = (int64_t)t->lines.longest + 1;
		field[k].multiple[0] = 16;
	}
	yoke_dataset *d = yoke_dataset_new(&(struct yoke_dataset_options){
		.size = sizeof(struct yoke_dataset_options),
		.name = t->lines.path,
		.count = t->lines.count - t->first,
		.fields = t->n,
		.field = field,
		.read = read_rows,
		.chunk = 64,
		.arg = t,
		.free_fn = table_free,
		.fingerprint = t->first ? t->lines.hash : yk_hash("header=0", 8, t->lines.hash) });
	free(field);
	if (d)
		d->label = label_of;
	return d;
}

yoke_dataset *yk_csv_open(const char *path, char separator, const char *columns, bool header)
{
	struct table *t = calloc(1, sizeof *t);
	yoke_dataset *d = NULL;
	if (!t) {
		no_memory(path);
		return NULL;
	}
	t->lines.fd = -1;
	t->first = header;
	int e = yk_lines_open(&t->lines, path, separator);
	if (e == 0)
		e = read_names(t);
	if (e == 0)
		e = choose(t, columns);
	if (e == 0)
		e = find_fields(t);
	if (e == 0)
		e = find_labels(t);
	if (e == 0)
		d = make_set(t);
	if (!d)
		table_free(t);
	return d;
}
