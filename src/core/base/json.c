// SPDX-License-Identifier: Apache-2.0
// JSON through jansson, with limits, because files come from outside and the parser recurses.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/number.h"

#define MAX_BYTES ((uint64_t)64 << 20) // a tree takes up to 20 times as many
#define MAX_DEPTH 64

// Maximum nesting of arrays and objects; meaningless if the text is not JSON.
static int depth(const char *text, size_t bytes)
{
	int now = 0, max = 0;
	bool string = false;

	for (size_t i = 0; i < bytes; i++) {
		char c = text[i];
		if (string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				string = false;
		} else if (c == '"') {
			string = true;
		} else if (c == '[' || c == '{') {
			if (++now > max)
				max = now;
		} else if (c == ']' || c == '}') {
			now--;
		}
	}
	return max;
}

json_t *yk_json_parse(const char *text, size_t bytes, const char *what)
{
	if (bytes > MAX_BYTES) {
		yk_fail(YOKE_EFORMAT, "%s: the JSON has %zu bytes, which is too "
			"large", what, bytes);
		return NULL;
	}
	if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { // byte order mark, from Windows
		text += 3;
		bytes -= 3;
	}
	int levels = depth(text, bytes);
	if (levels > MAX_DEPTH) {
		yk_fail(YOKE_EFORMAT, "%s: JSON nested more than %d deep", what,
			MAX_DEPTH);
		return NULL;
	}
	if (memchr(text, 0, bytes)) { // jansson would skip it
		yk_file_refused(what, text, bytes, "JSON", "it contains a NUL byte");
		return NULL;
	}
	json_error_t e;
	const locale_t before = yk_locale_begin(); // jansson uses strtod and printf
	json_t *j = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
	yk_locale_end(before);
	if (!j && json_error_code(&e) == json_error_out_of_memory)
		yk_fail(YOKE_ENOMEM, "%s: no memory for its JSON", what);
	else if (!j && yk_file_kind(text, bytes))
		yk_file_refused(what, text, bytes, "JSON", e.text);
	else if (!j)
		yk_fail(YOKE_EFORMAT, "%s:%d: not JSON: %s", what, e.line, e.text);
	return j;
}

json_t *yk_json_load(const char *path)
{
	struct stat st;
	char *text;
	size_t bytes;

	// opening a pipe would block, and a device would be read up to the limit
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		yk_fail(YOKE_EFORMAT, "%s: not a regular file", path);
		return NULL;
	}
	if (yk_file_read(path, MAX_BYTES, &text, &bytes) < 0)
		return NULL;
	json_t *j = yk_json_parse(text, bytes, path);
	free(text);
	return j;
}

json_t *yk_json_of(const char *text, size_t flags)
{
	const locale_t before = yk_locale_begin();
	json_t *j = json_loads(text, flags, NULL);
	yk_locale_end(before);
	return j;
}

json_t *yk_json_of_real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *yk_json_of_int(double x)
{
	return isfinite(x) ? json_integer((json_int_t)x) : json_null();
}

json_t *yk_json_of_text(const char *s)
{
	json_t *j = json_string(s);
	return j ? j : json_string("?");
}

char *yk_json_text(const json_t *j, size_t flags)
{
	const locale_t before = yk_locale_begin();
	char *text = json_dumps(j, flags);
	yk_locale_end(before);
	return text;
}

int yk_json_write(struct yk_file_writer *w, const json_t *j)
{
	char *text = yk_json_text(j, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	int e = text ? yk_file_add(w, text, strlen(text)) :
		       yk_fail(YOKE_ENOMEM, "%s: no memory for its JSON", w->path);
	if (!e)
		e = yk_file_add(w, "\n", 1);
	if (!e)
		e = yk_file_commit(w);
	else
		yk_file_abort(w);
	free(text);
	return e;
}

int yk_json_save(const char *path, const json_t *j)
{
	struct yk_file_writer w;
	int e = yk_file_begin(&w, path);
	return e < 0 ? e : yk_json_write(&w, j);
}

json_t *yk_json_with(json_t *o, const char *name, size_t n, json_t *value)
{
	char *key = memchr(name, 0, n) ? NULL : strndup(name, n);
	const int e = key ? json_object_set_new(o, key, value) : -1;
	if (!key)
		json_decref(value);
	if (e < 0)
		json_decref(o);
	free(key);
	return e < 0 ? NULL : o;
}

static const json_t *member(const json_t *j, const char *what, const char *key)
{
	if (!json_is_object(j)) {
		yk_fail(YOKE_EFORMAT, "%s: not an object, so it has no '%s'", what, key);
		return NULL;
	}
	const json_t *m = json_object_get(j, key);
	if (!m)
		yk_fail(YOKE_EFORMAT, "%s: '%s' is missing", what, key);
	return m;
}

int yk_json_int(const json_t *j, const char *what, const char *key, int64_t min,
		int64_t max, int64_t *to)
{
	const json_t *m = member(j, what, key);
	if (!m)
		return YOKE_EFORMAT;
	if (!json_is_integer(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is not an integer", what, key);
	json_int_t n = json_integer_value(m);
	if (n < min || n > max)
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is %lld, not in %lld .. %lld",
			       what, key, (long long)n, (long long)min,
			       (long long)max);
	*to = n;
	return 0;
}

int yk_json_real(const json_t *j, const char *what, const char *key, double *to)
{
	const json_t *m = member(j, what, key);
	if (!m)
		return YOKE_EFORMAT;
	if (!json_is_number(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is not a number", what, key);
	*to = json_number_value(m);
	return 0;
}

int yk_json_str(const json_t *j, const char *what, const char *key, const char **to)
{
	const json_t *m = member(j, what, key);
	if (!m)
		return YOKE_EFORMAT;
	if (!json_is_string(m))
		return yk_fail(YOKE_EFORMAT, "%s: '%s' is not a string", what, key);
	*to = json_string_value(m);
	return 0;
}
