// SPDX-License-Identifier: Apache-2.0
// Code of null, booleans, numbers, strings, and of values that are listed.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "schema/compile.h"
#include "schema/format.h"
#include "schema/number.h"
#include "schema/pattern.h"
#include "yoke.h"

// ---- numbers ----

static bool less(const json_t *a, const json_t *b)
{
	if (json_is_integer(a) && json_is_integer(b))
		return json_integer_value(a) < json_integer_value(b);
	return json_number_value(a) < json_number_value(b);
}

// Keeps the stricter of two bounds.
static void restrict_bound(const json_t **to, bool *open, bool upper, const json_t *x, bool x_open)
{
	if (!*to || (upper ? less(x, *to) : less(*to, x))) {
		*to = x;
		*open = x_open;
	} else if (!less(x, *to) && !less(*to, x)) {
		*open |= x_open;
	}
}

static int read_bound(const struct yk_member *m, bool upper, struct yk_number_rule *r,
		      const struct yk_schema_path **path)
{
	const char *name = upper ? "maximum" : "minimum",
		   *exclusive = upper ? "exclusiveMaximum" : "exclusiveMinimum";
	const json_t *x = yk_keyword(m, name), *y = yk_keyword(m, exclusive);
	const json_t **to = upper ? &r->max : &r->min;
	bool *open = upper ? &r->max_open : &r->min_open;

	if (x && !json_is_number(x))
		return yk_schema_refuse(m->path, YOKE_EFORMAT, "'%s' is not a number", name);
	if (y && !json_is_number(y) && !json_is_boolean(y)) // true and false in draft 4
		return yk_schema_refuse(m->path, YOKE_EFORMAT, "'%s' is not a number", exclusive);
	if (x || json_is_number(y))
		*path = m->path;
	if (x)
		restrict_bound(to, open, upper, x, json_is_true(y));
	if (json_is_number(y))
		restrict_bound(to, open, upper, y, true);
	return 0;
}

// The automaton of numbers.
static int numbers(struct yk_compiler *c, const struct yk_members *m, bool integer, uint32_t *start)
{
	struct yk_number_rule r = { .integer = integer };
	const struct yk_schema_path *path = NULL;
	const char *why = "";
	int e = 0;

	for (size_t i = 0; i < m->n && e == 0; i++) {
		const json_t *multiple = yk_keyword(&m->at[i], "multipleOf");
		if ((e = read_bound(&m->at[i], false, &r, &path)) < 0 ||
		    (e = read_bound(&m->at[i], true, &r, &path)) < 0)
			return e;
		if (!multiple)
			continue;
		if (!json_is_number(multiple) || json_number_value(multiple) <= 0)
			return yk_schema_refuse(m->at[i].path, YOKE_EFORMAT,
						"'multipleOf' is not a number above 0");
		if (r.multiple && json_number_value(r.multiple) != json_number_value(multiple))
			return yk_schema_refuse(
				m->at[i].path, YOKE_EUNSUPPORTED,
				"two different values of 'multipleOf' are not supported");
		path = m->at[i].path;
		r.multiple = multiple;
	}
	e = yk_number_compile(&c->p->dfa, &r, start, &why);
	if (e == YOKE_EUNSUPPORTED)
		return yk_schema_refuse(
			path, e, "'multipleOf' or a bound of a number is not supported: it %s",
			why);
	return yk_schema_check(path, e);
}

// ---- strings ----

struct string_rule {
	uint32_t min, max; // characters
	bool patterned;
	uint32_t start; // of the automaton, with quotes, if it is patterned
};

static int meet_pattern(struct yk_compiler *c, const struct yk_schema_path *path,
			const char *keyword, const char *pattern, size_t n, struct string_rule *r)
{
	uint32_t start;
	const char *why;
	int e = yk_pattern_compile(&c->p->dfa, pattern, n, YK_PATTERN_STRING, &start, &why);

	if (e == YOKE_EFORMAT)
		return yk_schema_refuse(path, YOKE_EUNSUPPORTED, "'%s' is not supported: %s",
					keyword, why);
	if (e == 0 && r->patterned)
		e = yk_dfa_meet(&c->p->dfa, r->start, start, false, &start);
	if (e == YOKE_ERANGE)
		return yk_schema_refuse(
			path, e, "'%s' is too complex, or too long with minLength and maxLength",
			keyword);
	r->patterned = true;
	r->start = start;
	return yk_schema_check(path, e);
}

// Keeps strings of at least r->min characters.
static int meet_min(struct yk_compiler *c, struct string_rule *r)
{
	// Each character as YK_PATTERN_STRING spells it.
	static const char any[] =
		"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\bfnrt]|u00(0[1-7bBeEfF]|1[0-9a-fA-F])))";
	char text[2 * sizeof any + 32];
	const char *why;
	uint32_t start;

	const int n = yk_snprintf(text, sizeof text, "\"%s{%u}%s*\"", any, r->min, any);
	const int e =
		yk_pattern_compile(&c->p->dfa, text, (size_t)n, YK_PATTERN_TEXT, &start, &why);
	if (e < 0)
		return e == YOKE_EFORMAT ? YOKE_ERANGE :
					   e; // more repetitions than a pattern may have
	return yk_dfa_meet(&c->p->dfa, r->start, start, false, &r->start);
}

static int strings(struct yk_compiler *c, const struct yk_members *m, struct string_rule *r)
{
	const struct yk_schema_path *path = NULL;
	int e = 0;

	*r = (struct string_rule){ .max = YK_LOOP_UNBOUNDED };
	for (size_t i = 0; i < m->n && e == 0; i++) {
		const struct yk_member *x = &m->at[i];
		const json_t *pattern = yk_keyword(x, "pattern"), *format = yk_keyword(x, "format");
		if ((e = yk_read_count(x, "minLength", true, &r->min)) < 0 ||
		    (e = yk_read_count(x, "maxLength", false, &r->max)) < 0)
			return e;
		if ((pattern && !json_is_string(pattern)) || (format && !json_is_string(format)))
			return yk_schema_refuse(x->path, YOKE_EFORMAT, "'%s' is not a string",
						pattern && !json_is_string(pattern) ? "pattern" :
										      "format");
		if (pattern || format)
			path = x->path;
		if (pattern)
			e = meet_pattern(c, x->path, "pattern", json_string_value(pattern),
					 json_string_length(pattern), r);
		if (e < 0 || !format)
			continue;
		const char *of = yk_format_pattern(json_string_value(format));
		if (!of)
			return yk_schema_refuse(x->path, YOKE_EUNSUPPORTED,
						"the format '%.40s' is not supported, only %s",
						json_string_value(format), YK_FORMATS);
		e = meet_pattern(c, x->path, "format", of, strlen(of), r);
	}
	if (e < 0 || !r->patterned)
		return e;
	if (r->min && (e = meet_min(c, r)) < 0)
		return e == YOKE_ERANGE ?
			       yk_schema_refuse(
				       path, e,
				       "a pattern or format with minLength %u is too complex",
				       r->min) :
			       yk_schema_check(path, e);
	return yk_schema_check(path, yk_dfa_count_chars(&c->p->dfa, r->start));
}

static int compile_string(struct yk_compiler *c, const struct yk_members *m, uint32_t *entry)
{
	struct string_rule r;
	uint32_t close, loop;
	int e = strings(c, m, &r);

	if (e < 0)
		return e;
	if (r.max < r.min || (r.patterned && c->p->dfa.state[r.start].left > r.max))
		return yk_emit_choice(c, NULL, 0, entry);
	if (r.patterned && r.max == YK_LOOP_UNBOUNDED)
		return yk_emit_run(c, r.start, c->finish, entry);
	if (r.patterned)
		return yk_program_add(
			c->p,
			(struct yk_instr){ .op = YK_OP_RUN,
					   .start = r.start,
					   .next = c->finish,
					   .min = 1,
					   .max = r.max < YK_COUNT_MAX ? r.max : YK_COUNT_MAX },
			entry);
	if ((e = yk_emit_run(c, c->quote, c->finish, &close)) < 0 ||
	    (e = yk_program_add(c->p,
				(struct yk_instr){ .op = YK_OP_LOOP,
						   .target = c->p->char_op,
						   .next = close,
						   .min = r.min,
						   .max = r.max },
				&loop)) < 0)
		return e;
	return yk_emit_run(c, c->quote, loop, entry);
}

// ---- all scalars ----

static int compile_words(struct yk_compiler *c, struct yk_dfa_word *w, size_t n, uint32_t *entry)
{
	uint32_t start;
	const int e = yk_dfa_words(&c->p->dfa, w, n, &start);
	return e < 0 ? e : yk_emit_run(c, start, c->finish, entry);
}

int yk_compile_scalars(struct yk_compiler *c, const struct yk_members *m, unsigned types,
		       uint32_t *target, size_t *n)
{
	uint32_t start;
	int e = 0;

	if (types & YK_NULL)
		e = compile_words(c, (struct yk_dfa_word[]){ { "null", 4 } }, 1, &target[(*n)++]);
	if (e == 0 && types & YK_BOOLEAN)
		e = compile_words(c, (struct yk_dfa_word[]){ { "true", 4 }, { "false", 5 } }, 2,
				  &target[(*n)++]);
	if (e == 0 && types & YK_INTEGER &&
	    (e = numbers(c, m, !(types & YK_FRACTION), &start)) == 0)
		e = yk_emit_run(c, start, c->finish, &target[(*n)++]);
	if (e == 0 && types & YK_STRING)
		e = compile_string(c, m, &target[(*n)++]);
	return e;
}

// ---- listed values ----

// Automata that listed numbers and strings must pass.
struct filter {
	struct yk_compiler *c;
	const struct yk_members *m;
	unsigned types;
	bool has_numbers, has_strings;
	uint32_t numbers;
	struct string_rule strings;
};

static size_t characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static unsigned type_of(const json_t *x)
{
	switch (json_typeof(x)) {
	case JSON_NULL: return YK_NULL;
	case JSON_TRUE:
	case JSON_FALSE: return YK_BOOLEAN;
	case JSON_STRING: return YK_STRING;
	case JSON_INTEGER: return YK_INTEGER;
	case JSON_REAL:
		return json_real_value(x) == floor(json_real_value(x)) ? YK_INTEGER : YK_FRACTION;
	case JSON_ARRAY: return YK_ARRAY;
	default: return YK_OBJECT;
	}
}

// Is a number or string within the bounds of the members?  `text` is its JSON.
static int within(struct filter *f, const json_t *x, const char *text, bool *good)
{
	int e = 0;

	if (json_is_number(x)) {
		if (!f->has_numbers)
			e = numbers(f->c, f->m, false, &f->numbers);
		f->has_numbers = true;
		*good = e == 0 && yk_dfa_accepts(&f->c->p->dfa, f->numbers, text, strlen(text));
	} else if (json_is_string(x)) {
		const size_t n = characters(json_string_value(x));
		if (!f->has_strings)
			e = strings(f->c, f->m, &f->strings);
		f->has_strings = true;
		*good = e == 0 && n >= f->strings.min && n <= f->strings.max &&
			(!f->strings.patterned ||
			 yk_dfa_accepts(&f->c->p->dfa, f->strings.start, text, strlen(text)));
	}
	return e;
}

static bool equal(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	return json_equal(a, b);
}

static bool listed(const json_t *x, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (equal(x, json_array_get(list, i)))
			return true;
	return false;
}

// Do all members allow the value?
static int allowed(struct filter *f, const json_t *x, const char *text, bool *good)
{
	static const char *const inner[] = { "properties",    "required",     "items",
					     "prefixItems",   "minItems",     "maxItems",
					     "minProperties", "maxProperties" };
	const unsigned type = type_of(x);

	*good = f->types & type;
	for (size_t i = 0; *good && i < f->m->n; i++) {
		const struct yk_member *m = &f->m->at[i];
		const json_t *list = yk_keyword(m, "enum"), *one = yk_keyword(m, "const");
		if ((list && !listed(x, list)) || (one && !equal(x, one)))
			*good = false;
		for (size_t j = 0;
		     type & (YK_OBJECT | YK_ARRAY) && j < sizeof inner / sizeof *inner; j++)
			if (yk_keyword(m, inner[j]))
				return yk_schema_refuse(
					m->path, YOKE_EUNSUPPORTED,
					"'%s' beside an enum of objects or arrays is not supported",
					inner[j]);
	}
	return *good ? within(f, x, text, good) : 0;
}

// The shortest JSON of a value that keeps its numbers.
static char *text_of(const json_t *x)
{
	for (size_t precision = 15;; precision++) {
		const size_t flags =
			JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(precision);
		char *text = yk_json_text(x, flags);
		if (!text || precision == 17)
			return text;
		json_t *again = yk_json_of(text, JSON_DECODE_ANY);
		const bool same = again && json_equal(x, again);
		json_decref(again);
		if (same)
			return text;
		free(text);
	}
}

int yk_compile_enum(struct yk_compiler *c, const struct yk_members *m, unsigned types,
		    uint32_t *entry)
{
	struct filter f = { .c = c, .m = m, .types = types };
	const json_t *list = NULL, *one = NULL;
	size_t n = 0;
	int e = 0;

	for (size_t i = 0; i < m->n; i++) {
		const json_t *x = yk_keyword(&m->at[i], "enum");
		if (x && !json_is_array(x))
			return yk_schema_refuse(m->at[i].path, YOKE_EFORMAT,
						"'enum' is not a list");
		list = list ? list : x;
		one = one ? one : yk_keyword(&m->at[i], "const");
	}
	const size_t count = one ? 1 : json_array_size(list);
	struct yk_dfa_word *word = calloc(count + 1, sizeof *word);
	if (!word)
		return YOKE_ENOMEM;
	for (size_t i = 0; i < count && e == 0; i++) {
		const json_t *x = one ? one : json_array_get(list, i);
		bool good = false;
		char *text = text_of(x);
		e = text ? allowed(&f, x, text, &good) : YOKE_ENOMEM;
		if (good)
			word[n++] = (struct yk_dfa_word){ text, strlen(text) };
		else
			free(text);
	}
	if (e == 0)
		e = compile_words(c, word, n, entry);
	for (size_t i = 0; i < n; i++)
		free((char *)(uintptr_t)word[i].s);
	free(word);
	return e;
}
