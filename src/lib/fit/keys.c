// SPDX-License-Identifier: Apache-2.0
// Reads JSON objects according to tables of keys.

#include "config.h"

#include "fit/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"

int yk_parse_known(json_t *object, const char *where, const char *const *names, int n)
{
	const char *key;
	char hint[600];
	json_t *value;
	if (!json_is_object(object))
		return yk_fail(YOKE_EINVAL, "%s: must be an object", where);
	json_object_foreach(object, key, value) {
		int i = 0;
		while (i < n && strcmp(names[i], key))
			i++;
		if (i == n)
			return yk_fail(YOKE_EINVAL, "%s: there is no key '%s'; %s", where, key,
				       yk_hint(key, names, n, hint, sizeof hint));
	}
	return 0;
}

int yk_parse_word(const json_t *value, const char *words)
{
	const char *word = json_is_string(value) ? json_string_value(value) : "";
	const size_t n = strlen(word);
	for (int place = 0; *words; place++) {
		const size_t length = strcspn(words, " ");
		if (length == n && n && !memcmp(words, word, n))
			return place;
		words += length + (words[length] == ' ');
	}
	return -1;
}

json_t *yk_parse_word_at(const char *words, int place)
{
	for (; place; place--)
		words += strcspn(words, " ") + 1;
	return json_stringn(words, strcspn(words, " "));
}

// ---- a value ----

static int take_whole(const struct yk_fit_key *k, const char *where, const json_t *value,
		      int64_t *to)
{
	const json_int_t x = json_is_integer(value) ? json_integer_value(value) : -1;
	if (!json_is_integer(value) || (double)x < k->min || (double)x > k->max)
		return yk_fail(YOKE_EINVAL, "%s: %s must be a whole number from %.0f to %.0f",
			       where, k->name, k->min, k->max);
	*to = x;
	return 0;
}

static int take_real(const struct yk_fit_key *k, const char *where, const json_t *value, double *to)
{
	const double x = json_is_number(value) ? json_number_value(value) : NAN;
	if (json_is_null(value) && !strcmp(k->def, "null")) {
		*to = NAN;
		return 0;
	}
	if (!(x >= k->min && x <= k->max))
		return yk_fail(YOKE_EINVAL, "%s: %s must be a number from %g to %g", where, k->name,
			       k->min, k->max);
	*to = x;
	return 0;
}

static int take_text(const struct yk_fit_key *k, const char *where, const json_t *value, char *to)
{
	const char *text =
		json_is_null(value) && !strcmp(k->def, "null") ? "" : json_string_value(value);
	if (!text || strlen(text) >= YK_FIT_TEXT_SIZE)
		return yk_fail(YOKE_EINVAL, "%s: %s must be a text of less than %d bytes", where,
			       k->name, YK_FIT_TEXT_SIZE);
	strcpy(to, text);
	return 0;
}

static int take(const struct yk_fit_key *k, const char *where, const json_t *value, void *to)
{
	void *at = (char *)to + k->at;
	switch (k->kind) {
	case YK_FIT_WHOLE: return take_whole(k, where, value, at);
	case YK_FIT_REAL: return take_real(k, where, value, at);
	case YK_FIT_TEXT: return take_text(k, where, value, at);
	case YK_FIT_OTHER: return k->take(k, where, value, to);
	case YK_FIT_FLAG:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value) ?
			       0 :
			       yk_fail(YOKE_EINVAL, "%s: %s must be true or false", where, k->name);
	case YK_FIT_WORD:
		*(int *)at = yk_parse_word(value, k->words);
		return *(int *)at >= 0 ? 0 :
					 yk_fail(YOKE_EINVAL, "%s: %s must be one of: %s", where,
						 k->name, k->words);
	}
	return 0;
}

// Replaces a name and a word of `yoke train` by those of the table.
static int rename_key(json_t *object, const char *where, const struct yk_fit_key *k)
{
	json_t *value = k->train ? json_object_get(object, k->train) : NULL;
	if (value && json_object_get(object, k->name))
		return yk_fail(YOKE_EINVAL, "%s: %s and %s are the same key; give one", where,
			       k->train, k->name);
	if (value) {
		const bool number = k->kind == YK_FIT_FLAG && json_is_integer(value) &&
				    json_integer_value(value) >> 1 == 0;
		if (json_object_set_new(object, k->name,
					number ? json_boolean(json_integer_value(value)) :
						 json_incref(value)))
			return yk_fail(YOKE_ENOMEM, "%s: no memory", where);
		json_object_del(object, k->train);
	}
	value = json_object_get(object, k->name);
	const int word = value && k->train_words ? yk_parse_word(value, k->train_words) : -1;
	return word >= 0 && json_object_set_new(object, k->name, yk_parse_word_at(k->words, word)) ?
		       yk_fail(YOKE_ENOMEM, "%s: no memory", where) : 0;
}

int yk_fit_keys(json_t *object, const char *where, const struct yk_fit_key *key, int n, void *to)
{
	const char *names[64] = { NULL };
	for (int i = 0; i < n; i++)
		names[i] = key[i].name;
	int err = 0;
	for (int i = 0; i < n && !err; i++)
		err = rename_key(object, where, &key[i]);
	if (!err)
		err = yk_parse_known(object, where, names, n);
	for (int i = 0; i < n && !err; i++) {
		json_t *value = json_object_get(object, key[i].name);
		if (!value) {
			value = yk_json_of(key[i].def, JSON_DECODE_ANY);
			if (json_object_set_new(object, key[i].name, value))
				return yk_fail(YOKE_ENOMEM, "%s: no memory", where);
		}
		err = take(&key[i], where, value, to);
	}
	return err;
}
