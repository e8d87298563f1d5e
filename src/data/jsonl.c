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

static int read_object(const struct objects *o, struct yoke_item *s)
{
	char *text, *what;
	size_t bytes;
	uint64_t at;
	int e = yk_lines_read(&o->lines, s->number, &text, &bytes, &at);
	if (e < 0)
		return e;
	if (asprintf(&what, "%s: record %lld", o->lines.path, (long long)s->number + 1) < 0) {
		free(text);
		return yk_fail(YOKE_ENOMEM, "%s: no memory", o->lines.path);
	}
	json_t *line = yk_json_parse(text, bytes, what);
	const json_t *x = json_object_get(line, o->field);
	if (!line)
		e = yoke_error_code();
	else if (!json_is_string(x))
		e = yk_fail(YOKE_EFORMAT, "%s: has no string '%s'", what, o->field);
	const size_t n = e == 0 ? json_string_length(x) : 0;
	if (e == 0) { // a string is no longer than the line it was written in
		memcpy(s->to[0], json_string_value(x), n);
		s->dims[0][0] = (int64_t)n;
	}
	json_decref(line);
	free(what);
	free(text);
	return e;
}

static int read_objects(void *arg, int64_t n, struct yoke_item *const *s)
{
	for (int64_t i = 0; i < n; i++) {
		const int e = read_object(arg, s[i]);
		if (e < 0)
			yk_sample_failed(s[i], e);
	}
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
