// SPDX-License-Identifier: Apache-2.0
// JSON lines: an object a line, one string of which is the sample.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
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

// The string of one line, in *object, which the caller gives to json_decref; `what` is for messages.
static int take_line(const char *text, size_t bytes, const char *field, const char *what, json_t **object)
{
	json_t *line = yk_json_parse(text, bytes, what);
	if (!line)
		return yk_error_last();
	if (!json_is_string(json_object_get(line, field))) {
		json_decref(line);
		return yk_fail(YOKE_EFORMAT, "%s: has no string '%s'", what, field);
	}
	*object = line;
	return 0;
}

static int read_object(const struct objects *o, struct yk_lines_reader *r, struct yoke_item *s)
{
	char *text, *what;
	json_t *line;
	size_t bytes;
	uint64_t at;
	int e = yk_lines_read(&o->lines, r, s->number, &text, &bytes, &at);
	if (e < 0)
		return e;
	if (asprintf(&what, "%s: record %lld", o->lines.path, (long long)s->number + 1) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", o->lines.path);
	e = take_line(text, bytes, o->field, what, &line);
	if (e == 0) { // a string is no longer than the line it was written in
		const json_t *x = json_object_get(line, o->field);
		memcpy(s->to[0], json_string_value(x), json_string_length(x));
		s->dims[0][0] = (int64_t)json_string_length(x);
		json_decref(line);
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
		const struct yoke_field f = { .size = sizeof f, .name = "text", .dtype = yoke_u8, .rank = 1,
					      .dims = { (int64_t)o->lines.longest }, .multiple = { 16 } };
		d = yoke_dataset_new(&(struct yoke_dataset_options){
			.size = sizeof(struct yoke_dataset_options), .name = path, .count = o->lines.count, .fields = 1,
			.field = &f, .read = read_objects, .chunk = 8, .arg = o, .free_fn = objects_free,
			.fingerprint = yk_hash(field, strlen(field), o->lines.hash) });
	}
	if (!d)
		objects_free(o);
	return d;
}

// ---- as text ----

bool yk_jsonl_taken(const char *path, const char *field)
{
	const size_t n = strlen(path);
	return field && *field && n > 6 && !strcmp(path + n - 6, ".jsonl");
}

// A document is its string and a line end.
static int give_line(const char *path, uint64_t at, const char *text, size_t bytes, const char *field,
		     int (*fn)(void *arg, const char *text, size_t bytes), void *arg)
{
	char *what, *copy;
	json_t *line;
	if (bytes > YK_RECORD_MOST)
		return yk_fail(YOKE_EFORMAT, "%s: the line at byte %llu has more than %llu MiB", path, (unsigned long long)at,
			       (unsigned long long)(YK_RECORD_MOST >> 20));
	if (asprintf(&what, "%s: the line at byte %llu", path, (unsigned long long)at) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	int e = take_line(text, bytes, field, what, &line);
	if (e == 0) {
		const json_t *x = json_object_get(line, field);
		const size_t n = json_string_length(x);
		copy = malloc(n + 1);
		if (copy) {
			memcpy(copy, json_string_value(x), n);
			copy[n] = '\n';
			e = fn(arg, copy, n + 1);
		} else {
			e = yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		}
		free(copy);
		json_decref(line);
	}
	free(what);
	return e;
}

int yk_jsonl_each(const char *path, uint64_t at, const char *text, size_t bytes, const char *field,
		  int (*fn)(void *arg, const char *text, size_t bytes), void *arg)
{
	const char *line = text, *end = text + bytes;
	int e = 0;
	while (line < end && e == 0) {
		const char *stop = memchr(line, '\n', (size_t)(end - line)), *next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		if (stop > line && stop[-1] == '\r')
			stop--;
		if (stop > line)
			e = give_line(path, at + (uint64_t)(line - text), line, (size_t)(stop - line), field, fn, arg);
		line = next;
	}
	return e;
}
