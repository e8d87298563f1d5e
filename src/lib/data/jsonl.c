// SPDX-License-Identifier: Apache-2.0
// JSON Lines datasets: one object per line, of which one string is the sample.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/kind.h"
#include "base/number.h"
#include "base/scan.h"
#include "data/lines.h"
#include "data/set.h"

struct objects {
	struct yk_lines lines;
	char *field;
};

static void objects_free(void *arg)
{
	struct objects *o = arg;
	yk_lines_close(&o->lines);
	free(o->field);
	free(o);
}

// Is the quoted key this field's name?
static bool is_field(const char *key, const char *end, const char *field)
{
	const size_t n = (size_t)(end - key);
	if (!memchr(key, '\\', n))
		return n == strlen(field) && !memcmp(key, field, n);
	char *copy = malloc(n + 2); // it contains escapes
	if (!copy)
		return false;
	memcpy(copy, key - 1, n + 2);
	struct yk_scan s = { copy, copy + n + 2, NULL };
	const char *name = yk_scan_string(&s);
	const bool is = name && !strcmp(name, field);
	free(copy);
	return is;
}

// Decodes the string of one line in place: *to of *n bytes; the last one if the field is repeated.
// Other fields are not checked; `what` is for messages.
static int take_line(char *text, size_t bytes, const char *field, const char *what, const char **to,
		     size_t *n)
{
	struct yk_scan s = { text, text + bytes, NULL };
	char *string = NULL;
	if (yk_scan_expect(&s, '{') && !yk_scan_is(&s, '}')) {
		const char *key, *end;
		do {
			if (!yk_scan_raw(&s, &key, &end) || !yk_scan_expect(&s, ':'))
				break;
			if (is_field(key, end, field))
				string = yk_scan_is(&s, '"') ? --s.at : NULL;
		} while (yk_scan_skip(&s) && yk_scan_is(&s, ','));
		yk_scan_expect(&s, '}');
	}
	const bool good = yk_scan_end(&s);
	if (good && !string)
		return yk_fail(YOKE_EFORMAT, "%s: has no string '%s'", what, field);
	struct yk_scan value = { string, text + bytes, NULL };
	if (good && (*to = yk_scan_string(&value))) {
		*n = strlen(*to); // it contains no NUL
		return 0;
	}
	const char *kind = yk_file_kind(text, bytes);
	return yk_fail(YOKE_EFORMAT, "%s: not JSON: %s%s", what, kind ? "it is " : "",
		       kind ? kind :
		       good ? value.why :
			      s.why);
}

static int read_object(const struct objects *o, struct yk_lines_reader *r, struct yoke_item *s)
{
	char *text, *what;
	const char *string;
	size_t bytes, n;
	uint64_t at;
	int e = yk_lines_read(&o->lines, r, s->number, &text, &bytes, &at);
	if (e < 0)
		return e;
	if (asprintf(&what, "%s: record %lld", o->lines.path, (long long)s->number + 1) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", o->lines.path);
	e = take_line(text, bytes, o->field, what, &string, &n);
	if (e == 0) { // a decoded string is never longer than its line
		memcpy(s->to[0], string, n);
		s->dims[0][0] = (int64_t)n;
	}
	free(what);
	return e;
}

static int read_objects(void *arg, int64_t n, struct yoke_item *const *s)
{
	struct yk_lines_reader r = { 0 };
	for (int64_t i = 0; i < n; i++) {
		const int e = read_object(arg, &r, s[i]);
		if (e < 0)
			yk_sample_failed(s[i], e);
	}
	yk_lines_reader_fini(&r);
	return 0;
}

yoke_dataset *yk_jsonl_open(const char *path, const char *field)
{
	struct objects *o = calloc(1, sizeof *o);
	yoke_dataset *d = NULL;
	if (!o || !(o->field = strdup(field))) {
		free(o);
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		return NULL;
	}
	o->lines.fd = -1;
	int e = yk_lines_open(&o->lines, path, 0);
	if (e == 0 && o->lines.count == 0)
		e = yk_fail(YOKE_EFORMAT, "%s: holds no records", path);
	if (e == 0) {
		const struct yoke_field f = { .size = sizeof f,
					      .name = "text",
					      .dtype = yoke_u8,
					      .rank = 1,
					      .dims = { (int64_t)o->lines.longest },
					      .multiple = { 16 } };
		d = yoke_dataset_new(&(struct yoke_dataset_options){
			.size = sizeof(struct yoke_dataset_options),
			.name = path,
			.count = o->lines.count,
			.fields = 1,
			.field = &f,
			.read = read_objects,
			.chunk = 8,
			.arg = o,
			.free_fn = objects_free,
			.fingerprint = yk_hash(field, strlen(field), o->lines.hash) });
	}
	if (!d)
		objects_free(o);
	return d;
}

// ---- training text ----

bool yk_jsonl_is(const char *path)
{
	const size_t n = strlen(path);
	return n > 6 && yk_same_word(path + n - 6, ".jsonl");
}

bool yk_jsonl_taken(const char *path, const char *field)
{
	return field && *field && yk_jsonl_is(path);
}

// A document is the string followed by a line end.
static int give_line(const char *path, uint64_t at, const char *text, size_t bytes,
		     const char *field, int (*fn)(void *arg, const char *text, size_t bytes),
		     void *arg)
{
	char *what, *copy;
	const char *string;
	size_t n;
	if (bytes > YK_RECORD_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: the line at byte %llu has more than %llu MiB",
			       path, (unsigned long long)at,
			       (unsigned long long)(YK_RECORD_MAX >> 20));
	if (asprintf(&what, "%s: the line at byte %llu", path, (unsigned long long)at) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	int e = (copy = malloc(bytes + 1)) ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	if (e == 0) {
		memcpy(copy, text, bytes);
		e = take_line(copy, bytes, field, what, &string, &n);
	}
	if (e == 0) {
		copy[string - copy + (ptrdiff_t)n] = '\n'; // overwrites the closing quote
		e = fn(arg, string, n + 1);
	}
	free(copy);
	free(what);
	return e;
}

int yk_jsonl_each(const char *path, uint64_t at, const char *text, size_t bytes, const char *field,
		  int (*fn)(void *arg, const char *text, size_t bytes), void *arg)
{
	const char *line = text, *end = text + bytes;
	int e = 0;
	while (line < end && e == 0) {
		const char *stop = memchr(line, '\n', (size_t)(end - line)),
			   *next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		if (!yk_line_is_blank(line, (size_t)(stop - line), 0))
			e = give_line(path, at + (uint64_t)(line - text), line,
				      (size_t)(stop - line), field, fn, arg);
		line = next;
	}
	return e;
}
