// SPDX-License-Identifier: Apache-2.0
// Parses configuration values from files, arguments and checkpoints. Every value is checked against
// its row of the table, whatever its source.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/kind.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "config/advice.h"
#include "config/conf.h"

#define MAX_FILE ((uint64_t)1 << 20) // max bytes of a config.env
#define MAX_PASSES 1e9

const struct yk_config_row yk_config_rows[YK_KEYS] = {
#define X(key, group, level, type, commands, def, min, max, choices, help) \
	{ #key, YK_GROUP_##group, YK_##level, YK_KEY_##type, commands, def, min, max, choices, \
	  help },
#define S(key, level, def, max, help) X(key, MODEL, level, INT, YK_T, def, 1, max, NULL, help)
#define O(key, group, level, type, min, max, words, help) \
	X(key, group, level, type, YK_T, "auto", min, max, "auto" words, help)
	YK_CONFIG_KEYS(X, S, O)
#undef O
#undef S
#undef X
};

const char *const yk_config_groups[YK_GROUPS] = {
#define G(group, title) title,
	YK_CONFIG_GROUPS(G)
#undef G
};

// ---- values ----

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; n && !strchr(word, ' ') && (at = strstr(at, word));
	     at += n)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

// Accepts whole numbers in forms such as 1e6.
static int parse_int(const char *text, int64_t *to)
{
	char *end;
	double r;

	errno = 0;
	*to = strtoll(text, &end, 10);
	if (!errno && end != text && !*end)
		return 0;
	r = yk_strtod(text, &end);
	if (end == text || *end || !(fabs(r) <= 9007199254740992.0) || r != floor(r))
		return YOKE_EINVAL;
	*to = (int64_t)r;
	return 0;
}

// Common names from other frameworks, with hints to the name used here.
static const struct {
	const char *key, *word, *hint;
} common_words[] = {
	{ "optimizer", "nesterov", "it is called sgd nesterov=1" },
	{ "optimizer", "nag", "it is called sgd nesterov=1" },
	{ "tokenizer", "char", "byte uses one token per byte" },
	{ "precision", "f32", "it is called fp32" },
	{ "precision", "float32", "it is called fp32" },
	{ "schedule", "none", "constant keeps the learning rate" },
};

static int no_choice(const struct yk_config_row *row, const char *where, const char *text)
{
	char words[128], *rest = words, *word;
	const char *names[16], *near, *hint = NULL;
	int n = 0;

	snprintf(words, sizeof words, "%s", row->choices);
	while (n < 16 && (word = strsep(&rest, " ")))
		names[n++] = word;
	for (size_t i = 0; i < sizeof common_words / sizeof *common_words; i++)
		if (!strcmp(common_words[i].key, row->name) &&
		    yk_same_word(common_words[i].word, text))
			hint = common_words[i].hint;
	near = hint || n < 2 ? NULL : yk_nearest(text, names, n);
	return yk_fail(YOKE_EINVAL, "%s: %s=%s: must be one of: %s%s%s%s%s", where, row->name, text,
		       row->choices, row->type == YK_KEY_CHOICE_OR_PATH ? ", or a path" : "",
		       hint ? "; " :
		       near ? "; did you mean '" :
			      "",
		       hint ? hint :
		       near ? near :
			      "",
		       near ? "'?" : "");
}

// Parses text according to the row; `where` begins error messages ("argument", "config.env:3").
static int parse(const struct yk_config_row *row, const char *where, const char *text,
		 struct yk_config_value *to)
{
	char *end;

	to->i = 0;
	to->r = 0;
	switch (row->type) {
	case YK_KEY_STRING:
	case YK_KEY_PATHS: return 0;
	case YK_KEY_CHOICE:
		return has_word(row->choices, text) ? 0 : no_choice(row, where, text);
	case YK_KEY_CHOICE_OR_PATH:
		// a word that is neither known nor a file is more likely misspelled
		return has_word(row->choices, text) || strchr(text, '/') || strchr(text, '.') ||
				       access(text, F_OK) == 0 ?
			       0 :
			       no_choice(row, where, text);
	case YK_KEY_INT:
		if (!isspace((unsigned char)*text) && parse_int(text, &to->i) == 0 &&
		    (double)to->i >= row->min && (double)to->i <= row->max)
			return 0;
		if (row->choices && has_word(row->choices, text)) {
			to->i = YK_AUTO;
			return 0;
		}
		return yk_fail(YOKE_EINVAL,
			       "%s: %s=%s: must be a whole number from %.16g to %.16g%s%s", where,
			       row->name, text, row->min, row->max,
			       !row->choices             ? "" :
			       strchr(row->choices, ' ') ? ", or one of: " :
							   ", or ",
			       row->choices ? row->choices : "");
	case YK_KEY_EVERY:
		if (!isspace((unsigned char)*text) && parse_int(text, &to->i) == 0 &&
		    (double)to->i >= row->min && (double)to->i <= row->max)
			return 0;
		to->i = 0;
		to->r = yk_strtod(text, &end);
		if (!isspace((unsigned char)*text) && end != text && !strcmp(end, "ep") &&
		    to->r > 0 && to->r <= MAX_PASSES)
			return 0;
		return yk_fail(YOKE_EINVAL,
			       "%s: %s=%s: must be a whole number of steps from %.16g to %.16g, or "
			       "passes over the data such as 0.25ep",
			       where, row->name, text, row->min, row->max);
	case YK_KEY_REAL_OR_PATHS:
		to->r = yk_strtod(text, &end);
		if (!isspace((unsigned char)*text) && end != text && !*end && to->r >= row->min &&
		    to->r <= row->max)
			return 0;
		to->r = 0;
		to->i = (end == text || *end) &&
			(strpbrk(text, "/.,") || !strcmp(text, "-") || access(text, F_OK) == 0);
		return to->i ? 0 :
			       yk_fail(YOKE_EINVAL,
				       "%s: %s=%s: must be a number from %g to %g, or the name of a file",
				       where, row->name, text, row->min, row->max);
	case YK_KEY_REAL:
		to->r = yk_strtod(text, &end);
		if (!isspace((unsigned char)*text) && end != text && !*end &&
		    to->r >= row->min && to->r <= row->max)
			return 0;
		if (row->choices && !strcmp(text, row->choices)) {
			to->r = YK_AUTO;
			return 0;
		}
		return yk_fail(YOKE_EINVAL, "%s: %s=%s: must be a number from %g to %s%g%s%s",
			       where, row->name, text, row->min,
			       row->max == YK_BELOW_1 ? "below " : "", row->max,
			       row->choices ? ", or " : "", row->choices ? row->choices : "");
	}
	return YOKE_EINVAL;
}

// The stronger origin wins; among equals the later one. epochs determines steps unless steps has a
// stronger origin.
static int set(struct yk_config *c, enum yk_config_key key, const char *where,
	       const char *text, enum yk_config_origin origin)
{
	struct yk_config_value *old = &c->value[key], *epochs = &c->value[YK_KEY_epochs],
			       v = { .origin = origin };
	int e = parse(&yk_config_rows[key], where, text, &v);

	if (e < 0 || old->origin > origin ||
	    (key == YK_KEY_epochs && c->value[YK_KEY_steps].origin > origin))
		return e;
	if (key == YK_KEY_steps && epochs->origin < origin) {
		epochs->origin = YK_BY_DEFAULT;
		e = set(c, YK_KEY_epochs, where, yk_config_rows[YK_KEY_epochs].def, YK_BY_DEFAULT);
	}
	if (e < 0)
		return e;
	v.text = strdup(text);
	if (!v.text)
		return yk_fail(YOKE_ENOMEM, "out of memory for %s",
			       yk_config_rows[key].name);
	free(old->text);
	*old = v;
	return 0;
}

// Index of the key with that name, in lower or upper case; -1: none.
static int find(const char *name)
{
	for (int k = 0; k < YK_KEYS; k++)
		if (yk_same_word(name, yk_config_rows[k].name))
			return k;
	return -1;
}

static int unknown(const struct yk_config *c, const char *where, const char *name)
{
	const char *names[YK_KEYS], *nearest;
	char small[64];
	size_t i;
	int n = 0;

	for (int k = 0; k < YK_KEYS; k++)
		if (yk_config_rows[k].commands & c->command)
			names[n++] = yk_config_rows[k].name;
	for (i = 0; name[i] && i < sizeof small - 1; i++)
		small[i] = yk_small_letter(name[i]);
	small[i] = 0;
	nearest = yk_nearest(small, names, n);
	if (nearest)
		return yk_fail(YOKE_ENOENT, "%s: unknown key '%s'; did you mean '%s'?",
			       where, name, nearest);
	return yk_fail(YOKE_ENOENT,
		       "%s: unknown key '%s'; `yoke help` lists the keys of a command",
		       where, name);
}

int yk_config_init(struct yk_config *c, unsigned command)
{
	memset(c, 0, sizeof *c);
	c->command = command;
	for (int k = 0; k < YK_KEYS; k++) {
		int e = set(c, k, "default", yk_config_rows[k].def, YK_BY_DEFAULT);
		if (e < 0) {
			yk_config_fini(c);
			return e;
		}
	}
	return 0;
}

void yk_config_fini(struct yk_config *c)
{
	for (int k = 0; k < YK_KEYS; k++)
		free(c->value[k].text);
	memset(c, 0, sizeof *c);
}

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
	key = find(name);
	if (key < 0 || !(yk_config_rows[key].commands & c->command))
		return unknown(c, "argument", name);
	return key;
}

int yk_config_argument(struct yk_config *c, const char *argument)
{
	int key = argument_key(c, argument);
	return key < 0 ? key :
			 set(c, key, "argument", strchr(argument, '=') + 1, YK_BY_ARGUMENT);
}

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
	key = find(name);
	if (key < 0)
		return unknown(c, v->where, name);
	if (v->at[key])
		yk_warn(name_of(c->command),
			"%s: %s is also set in line %d; this line takes effect", v->where, name,
			v->at[key]);
	v->at[key] = v->number;
	e = value(v, end + 1, &t);
	// A file may serve several commands: keys of other commands are checked but ignored.
	if (e == 0 && yk_config_rows[key].commands & c->command) {
		e = set(c, key, v->where, t.s, YK_BY_FILE);
	} else if (e == 0) {
		struct yk_config_value ignored;
		e = parse(&yk_config_rows[key], v->where, t.s, &ignored);
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
		e = set(to, k, "configuration", c->value[k].text, c->value[k].origin);
	for (int i = 0; i < n && e == 0; i++)
		e = yk_config_argument(to, arguments[i]);
	if (e < 0)
		yk_config_fini(to);
	return e;
}

int yk_config_settle_text(struct yk_config *c, enum yk_config_key key, const char *text)
{
	return set(c, key, "data", text, c->value[key].origin);
}

int yk_config_settle(struct yk_config *c, enum yk_config_key key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)n);
	return set(c, key, "auto", text, c->value[key].origin);
}

// ---- reading values ----

int64_t yk_config_int(const struct yk_config *c, enum yk_config_key key)
{
	return c->value[key].i;
}

double yk_config_real(const struct yk_config *c, enum yk_config_key key)
{
	return c->value[key].r;
}

int64_t yk_config_every(const struct yk_config *c, enum yk_config_key key, double steps_a_pass)
{
	const struct yk_config_value *v = &c->value[key];
	double steps = v->r * steps_a_pass;
	if (v->r == 0)
		return v->i;
	return steps < 1 ? 1 : steps < 1e12 ? (int64_t)(steps + 0.5) : (int64_t)1e12;
}

const char *yk_config_str(const struct yk_config *c, enum yk_config_key key)
{
	return c->value[key].text;
}

bool yk_config_is_path(const struct yk_config *c, enum yk_config_key key)
{
	const struct yk_config_row *row = &yk_config_rows[key];
	return row->type == YK_KEY_REAL_OR_PATHS ? c->value[key].i :
						   !has_word(row->choices, yk_config_str(c, key));
}

static bool same_value(enum yk_config_key key, const struct yk_config_value *a,
		       const struct yk_config_value *b)
{
	switch (yk_config_rows[key].type) {
	case YK_KEY_REAL_OR_PATHS:
		return a->i == b->i && (a->i ? !strcmp(a->text, b->text) : a->r == b->r);
	case YK_KEY_INT:
	case YK_KEY_EVERY:
	case YK_KEY_REAL: return a->i == b->i && a->r == b->r;
	default: return !strcmp(a->text, b->text);
	}
}

bool yk_config_same(const struct yk_config *a, const struct yk_config *b, enum yk_config_key key)
{
	return same_value(key, &a->value[key], &b->value[key]);
}

bool yk_config_is(const struct yk_config *c, enum yk_config_key key, const char *text)
{
	struct yk_config_value v = { .text = (char *)(uintptr_t)text };
	if (parse(&yk_config_rows[key], "value", text, &v) == 0)
		return same_value(key, &c->value[key], &v);
	yoke_error_clear();
	return false;
}

bool yk_config_is_set(const struct yk_config *c, enum yk_config_key key)
{
	return c->value[key].origin != YK_BY_DEFAULT;
}

bool yk_config_is_explicit(const struct yk_config *c, enum yk_config_key key)
{
	return c->value[key].origin > YK_BY_CHECKPOINT;
}

// Keys that describe a run rather than what is trained; a checkpoint does not pass them on.
static bool of_run(int key)
{
	return key == YK_KEY_out || key == YK_KEY_resume || key == YK_KEY_profile ||
	       key == YK_KEY_plot || key == YK_KEY_progress || key == YK_KEY_report ||
	       key == YK_KEY_checkpoints || key == YK_KEY_dashboard || key == YK_KEY_spawn ||
	       key == YK_KEY_restarts || key == YK_KEY_split || key == YK_KEY_min_ranks ||
	       key == YK_KEY_tensorboard || key == YK_KEY_training_log;
}

json_t *yk_config_json(const struct yk_config *c)
{
	json_t *o = json_object();
	int bad = !o;

	for (int k = 0; k < YK_KEYS; k++)
		if (yk_config_rows[k].commands & c->command && !of_run(k))
			bad |= json_object_set_new(o, yk_config_rows[k].name,
						   json_string(c->value[k].text));
	if (!bad)
		return o;
	json_decref(o);
	yk_fail(YOKE_EINVAL, "configuration: out of memory, or a value is not UTF-8");
	return NULL;
}

int yk_config_take(struct yk_config *c, const json_t *o, const char *what)
{
	for (int k = 0; k < YK_KEYS; k++) {
		const json_t *v = json_object_get(o, yk_config_rows[k].name);
		int e;
		if (!v || !(yk_config_rows[k].commands & c->command))
			continue;
		if (!json_is_string(v))
			return yk_fail(YOKE_EFORMAT,
				       "%s: configuration key '%s' is not a string", what,
				       yk_config_rows[k].name);
		e = set(c, k, what, json_string_value(v), YK_BY_CHECKPOINT);
		if (e < 0)
			return e;
	}
	return 0;
}
