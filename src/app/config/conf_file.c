// SPDX-License-Identifier: Apache-2.0
// Reads keys from arguments, and from config.env files, which have lines KEY=value with quotes and
// ${VARIABLES}.
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/log.h"
#include "config/advice.h"
#include "config/conf.h"

#define MAX_FILE ((uint64_t)1 << 20) // max bytes of a config.env

// ---- config.env ----

// A growing string: one line's value.
struct text {
	char *s;
	size_t n, cap;
};

static int add(struct text *t, const char *s, size_t n)
{
	if (n >= t->cap - t->n) {
		size_t cap = 2 * (t->n + n) + 64;
		char *more = cap > 2 * MAX_FILE ? NULL : realloc(t->s, cap);
		if (!more)
			return yk_fail(YOKE_ENOMEM, "out of memory for a value");
		t->s = more;
		t->cap = cap;
	}
	memcpy(t->s + t->n, s, n);
	t->n += n;
	t->s[t->n] = 0;
	return 0;
}

// Names that a file has set so far, keys or not, for ${VAR}.
struct variables {
	json_t *set; // object of strings
	const char *where;
	int number, *at; // number: current line; at: per key the line that set it, 0: none
};

// Expands ${NAME} at *at: appends its value and advances past it.
static int expand(const struct variables *v, const char **at, struct text *to)
{
	const char *name = *at + 2, *end = strchr(name, '}'), *value;
	char key[128];

	if (!end || end == name || end - name >= (long)sizeof key)
		return yk_fail(YOKE_EINVAL, "%s: '${' must be followed by a name and '}'",
			       v->where);
	memcpy(key, name, (size_t)(end - name));
	key[end - name] = 0;
	value = json_string_value(json_object_get(v->set, key));
	if (!value)
		value = getenv(key);
	if (!value)
		return yk_fail(YOKE_EINVAL,
			       "%s: ${%s} is set neither above nor in the environment",
			       v->where, key);
	*at = end + 1;
	return add(to, value, strlen(value));
}

// Parses the inside of "..": from after the opening quote to after the closing one.
static int quoted(const struct variables *v, const char **at, struct text *to)
{
	static const char escapes[] = "n\nt\t\"\"\\\\$$";
	int e = 0;

	while (e == 0 && **at && **at != '"') {
		if (**at == '\\') {
			const char *x = (*at)[1] ? strchr(escapes, (*at)[1]) : NULL;
			// pairs: the character after the backslash, the character it stands for
			if (!x || (x - escapes) % 2)
				return yk_fail(YOKE_EINVAL, "%s: unknown escape '\\%.1s'",
					       v->where, *at + 1);
			e = add(to, x + 1, 1);
			*at += 2;
		} else if (!strncmp(*at, "${", 2)) {
			e = expand(v, at, to);
		} else {
			e = add(to, (*at)++, 1);
		}
	}
	if (e < 0)
		return e;
	if (!**at)
		return yk_fail(YOKE_EINVAL, "%s: a '\"' is not closed", v->where);
	++*at;
	return 0;
}

// Parses a value: plain, '..' and ".." segments up to a blank that is followed only by a comment or
// nothing.
static int value(const struct variables *v, const char *at, struct text *to)
{
	int e = add(to, "", 0);

	while (e == 0 && *at && !isspace((unsigned char)*at)) {
		if (*at == '\'') {
			const char *end = strchr(at + 1, '\'');
			if (!end)
				return yk_fail(YOKE_EINVAL, "%s: a \"'\" is not closed",
					       v->where);
			e = add(to, at + 1, (size_t)(end - at - 1));
			at = end + 1;
		} else if (*at == '"') {
			at++;
			e = quoted(v, &at, to);
		} else if (!strncmp(at, "${", 2)) {
			e = expand(v, &at, to);
		} else {
			e = add(to, at++, 1);
		}
	}
	while (isspace((unsigned char)*at))
		at++;
	if (e == 0 && *at && *at != '#')
		return yk_fail(YOKE_EINVAL,
			       "%s: '%.20s' after the value; quote values that contain blanks",
			       v->where, at);
	return e;
}

static const char *name_of(unsigned command)
{
	switch (command) {
	case YK_T: return "train";
	case YK_G: return "generate";
	case YK_E: return "eval";
	case YK_C: return "chat";
	default: return "serve";
	}
}

static int line(struct yk_config *c, const struct variables *v, char *at)
{
	struct text t = { 0 };
	char *name, *end;
	int key, e;

	while (isspace((unsigned char)*at))
		at++;
	if (!*at || *at == '#')
		return 0;
	name = at;
	while (isalnum((unsigned char)*at) || *at == '_')
		at++;
	end = at;
	if (end == name || *end != '=')
		return yk_fail(YOKE_EINVAL, "%s: '%.40s' is not KEY=value", v->where,
			       name);
	*end = 0;
	key = yk_config_key_of(name);
	if (key < 0)
		return yk_config_unknown(c, v->where, name);
	if (v->at[key])
		yk_warn(name_of(c->command),
			"%s: %s is also set in line %d; this line takes effect", v->where, name,
			v->at[key]);
	v->at[key] = v->number;
	e = value(v, end + 1, &t);
	// A file may serve several commands: keys of other commands are checked but ignored.
	if (e == 0 && yk_config_rows[key].commands & c->command) {
		e = yk_config_set(c, key, v->where, t.s, YK_BY_FILE);
	} else if (e == 0) {
		struct yk_config_value ignored;
		e = yk_config_parse(key, v->where, t.s, &ignored);
	}
	if (e == 0 && json_object_set_new(v->set, name, json_string(t.s)) < 0)
		e = yk_fail(YOKE_EINVAL, "%s: the value of %s is not UTF-8", v->where,
			    name);
	free(t.s);
	return e;
}

int yk_config_file(struct yk_config *c, const char *path)
{
	struct variables v = { 0 };
	char *text, *rest, *at, where[512];
	int lines[YK_KEYS] = { 0 };
	size_t bytes;
	int e = yk_file_read(path, MAX_FILE, &text, &bytes);

	if (e < 0)
		return e;
	e = yk_text_begin(path, text, &bytes);
	if (e == 0 && memchr(text, 0, bytes))
		e = yk_fail(YOKE_EINVAL, "%s: contains a NUL byte; must be text of lines KEY=value",
			    path);
	if (e < 0) {
		free(text);
		return e;
	}
	v.set = json_object();
	v.where = where;
	v.at = lines;
	rest = text;
	for (int n = 1; e == 0 && (at = strsep(&rest, "\n")); n++) {
		snprintf(where, sizeof where, "%s:%d", path, n);
		v.number = n;
		e = line(c, &v, at);
	}
	json_decref(v.set);
	free(text);
	return e;
}

// Whether the first line that is not blank or a comment begins with KEY=. Larger files, directories
// and files with a NUL byte are not configurations.
static bool is_configuration(const char *path)
{
	char *text, *rest, *at;
	size_t bytes;
	bool is = true;

	if (yk_file_read(path, MAX_FILE, &text, &bytes) < 0)
		return false;
	is = !memchr(text, 0, bytes);
	rest = text;
	while (is && (at = strsep(&rest, "\n"))) {
		at += strspn(at, " \t\r");
		if (!*at || *at == '#')
			continue;
		const char *name = at;
		while (isalnum((unsigned char)*at) || *at == '_')
			at++;
		is = at > name && *at == '=';
		break;
	}
	free(text);
	return is;
}

// ---- arguments ----

// Index of the key in "key=value", or an error.
static int argument_key(const struct yk_config *c, const char *argument)
{
	const char *eq = strchr(argument, '=');
	char name[64];
	int key;

	if (!eq || eq == argument)
		return yk_fail(YOKE_EINVAL, "argument '%s': must be key=value", argument);
	snprintf(name, sizeof name, "%.*s",
		 (int)(eq - argument < 63 ? eq - argument : 63), argument);
	key = yk_config_key_of(name);
	if (key < 0 || !(yk_config_rows[key].commands & c->command))
		return yk_config_unknown(c, "argument", name);
	return key;
}

int yk_config_argument(struct yk_config *c, const char *argument)
{
	int key = argument_key(c, argument);
	return key < 0 ? key :
			 yk_config_set(c, key, "argument", strchr(argument, '=') + 1, YK_BY_ARGUMENT);
}

// Reads an argument without "=" as a file; if it is not a configuration file, the error suggests
// what was meant.
static int argument_file(struct yk_config *c, const char *path)
{
	int e = yk_config_file(c, path);
	if (e == 0)
		return 0;
	const bool there = access(path, F_OK) == 0;
	if (there && (e == YOKE_ENOMEM || access(path, R_OK) || is_configuration(path)))
		return e;
	if (e != YOKE_ENOENT && !there)
		return e;
	char *word = yk_shell_word(path), why[512];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	if (there) {
		e = yk_fail(e, "%s; did you mean %s=%s", why,
			    c->command == YK_G ? "prompts" : "data", word ? word : path);
		free(word);
		return e;
	}
	e = yk_fail(YOKE_ENOENT,
		    "argument '%s': neither key=value nor the name of a file with such lines%s%s",
		    path, c->command == YK_G && word ? "; did you mean prompt=" : "",
		    c->command == YK_G && word ? word : "");
	free(word);
	return e;
}

int yk_config_arguments(struct yk_config *c, int argc, char *const *argv)
{
	const char *given[YK_KEYS] = { NULL };
	int e = 0;

	for (int i = 0; e == 0 && i < argc; i++) {
		int key = strchr(argv[i], '=') ? argument_key(c, argv[i]) : YK_KEYS;
		if (key < 0)
			return key;
		if (key == YK_KEYS) {
			e = argument_file(c, argv[i]);
			continue;
		}
		if (given[key])
			return yk_fail(YOKE_EINVAL, "argument '%s' repeats '%s'; give %s once",
				       argv[i], given[key], yk_config_rows[key].name);
		given[key] = argv[i];
		e = yk_config_argument(c, argv[i]);
	}
	return e;
}

int yk_config_with(const struct yk_config *c, int n, const char *const *arguments,
		   struct yk_config *to)
{
	int e = yk_config_init(to, c->command);

	for (int k = 0; k < YK_KEYS && e == 0; k++)
		e = yk_config_set(to, k, "configuration", c->value[k].text, c->value[k].origin);
	for (int i = 0; i < n && e == 0; i++)
		e = yk_config_argument(to, arguments[i]);
	if (e < 0)
		yk_config_fini(to);
	return e;
}
