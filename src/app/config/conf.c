// SPDX-License-Identifier: Apache-2.0
// The values of the configuration's keys. Every value is checked against its row of the table,
// whether it is from a file, an argument (conf_file.c) or a checkpoint.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/param.h"
#include "config/conf.h"

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

int yk_config_parse(enum yk_config_key key, const char *where, const char *text,
		    struct yk_config_value *to)
{
	const struct yk_config_row *row = &yk_config_rows[key];
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

int yk_config_set(struct yk_config *c, enum yk_config_key key, const char *where, const char *text,
		  enum yk_config_origin origin)
{
	struct yk_config_value *old = &c->value[key], *epochs = &c->value[YK_KEY_epochs],
			       v = { .origin = origin };
	int e = yk_config_parse(key, where, text, &v);

	if (e < 0 || old->origin > origin ||
	    (key == YK_KEY_epochs && c->value[YK_KEY_steps].origin > origin))
		return e;
	if (key == YK_KEY_steps && epochs->origin < origin) {
		epochs->origin = YK_BY_DEFAULT;
		e = yk_config_set(c, YK_KEY_epochs, where, yk_config_rows[YK_KEY_epochs].def,
				  YK_BY_DEFAULT);
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

int yk_config_key_of(const char *name)
{
	for (int k = 0; k < YK_KEYS; k++)
		if (yk_same_word(name, yk_config_rows[k].name))
			return k;
	return -1;
}

int yk_config_unknown(const struct yk_config *c, const char *where, const char *name)
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
		int e = yk_config_set(c, k, "default", yk_config_rows[k].def, YK_BY_DEFAULT);
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

int yk_config_settle_text(struct yk_config *c, enum yk_config_key key, const char *text)
{
	return yk_config_set(c, key, "data", text, c->value[key].origin);
}

int yk_config_settle(struct yk_config *c, enum yk_config_key key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)n);
	return yk_config_set(c, key, "auto", text, c->value[key].origin);
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
	if (yk_config_parse(key, "value", text, &v) == 0)
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
		e = yk_config_set(c, k, what, json_string_value(v), YK_BY_CHECKPOINT);
		if (e < 0)
			return e;
	}
	return 0;
}
