// SPDX-License-Identifier: Apache-2.0
// Code of objects and arrays.  It is written from the end to the beginning, because each
// instruction names the one after it.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "schema/compile.h"
#include "schema/pattern.h"
#include "yoke.h"

// Adds a schema that applies to an item or property.
static int add_applied(struct yk_compiler *c, const struct yk_member *m, const char *keyword,
		       const char *key, size_t index, const json_t *schema, struct yk_members *to)
{
	const struct yk_schema_path *path = yk_path_add(c, m->path, keyword, 0);

	if (path && (key || index != SIZE_MAX))
		path = yk_path_add(c, path, key, index);
	return path ? yk_members_add(to, (struct yk_member){ schema, path, 0 }) : YOKE_ENOMEM;
}

// The rule of collected members, which are freed.
static int rule_of(struct yk_compiler *c, struct yk_members *m, uint32_t *entry)
{
	const int e = yk_rule_of(c, m, entry);
	free(m->at);
	*m = (struct yk_members){ 0 };
	return e;
}

// ---- objects ----

struct object {
	json_t *names; // all names of properties, each with true if it is required
	bool open;     // further properties are allowed
	uint32_t more; // the rule of their values
};

static int collect_names(const struct yk_members *m, struct object *o)
{
	int e = 0;

	for (size_t i = 0; i < m->n && e == 0; i++) {
		const json_t *p = yk_keyword(&m->at[i], "properties");
		const char *name;
		json_t *x;
		if (p && !json_is_object(p))
			return yk_schema_refuse(m->at[i].path, YOKE_EFORMAT,
						"'properties' is not an object");
		json_object_foreach ((json_t *)(uintptr_t)p, name, x)
			if (!json_object_get(o->names, name) &&
			    json_object_set_new(o->names, name, json_false()) < 0)
				e = YOKE_ENOMEM;
	}
	for (size_t i = 0; i < m->n && e == 0; i++) {
		const json_t *r = yk_keyword(&m->at[i], "required");
		if (r && !json_is_array(r) && !json_is_boolean(r)) // true and false in draft 3
			return yk_schema_refuse(m->at[i].path, YOKE_EFORMAT,
						"'required' is not a list of names");
		for (size_t j = 0; j < json_array_size(r) && e == 0; j++) {
			const char *name = json_string_value(json_array_get(r, j));
			if (!name)
				return yk_schema_refuse(m->at[i].path, YOKE_EFORMAT,
							"'required' is not a list of names");
			if (json_object_set_new(o->names, name, json_true()) < 0)
				e = YOKE_ENOMEM;
		}
	}
	return e;
}

// The schemas of a property that a member does not name.
static int add_additional(struct yk_compiler *c, const struct yk_member *m, struct yk_members *to)
{
	const json_t *x = yk_keyword(m, "additionalProperties");
	return x ? add_applied(c, m, "additionalProperties", NULL, SIZE_MAX, x, to) : 0;
}

static int property_rule(struct yk_compiler *c, const struct yk_members *m, const char *name,
			 uint32_t *entry)
{
	struct yk_members of = { 0 };
	int e = 0;

	for (size_t i = 0; i < m->n && e == 0; i++) {
		json_t *p = (json_t *)(uintptr_t)yk_keyword(&m->at[i], "properties");
		void *x = json_object_iter_at(p, name); // its key lives as long as the schema
		e = x ? add_applied(c, &m->at[i], "properties", json_object_iter_key(x), 0,
				    json_object_iter_value(x), &of) :
			add_additional(c, &m->at[i], &of);
	}
	if (e == 0)
		return rule_of(c, &of, entry);
	free(of.at);
	return e;
}

// Whether further properties are allowed, and the rule of their values.
static int more_properties(struct yk_compiler *c, const struct yk_members *m, struct object *o)
{
	struct yk_members of = { 0 };
	bool closed = false, given = false;
	int e = 0;

	for (size_t i = 0; i < m->n && e == 0; i++) {
		const json_t *x = yk_keyword(&m->at[i], "additionalProperties");
		given |= x != NULL;
		closed |= json_is_false(x);
		e = add_additional(c, &m->at[i], &of);
	}
	o->open = !closed && (given || !json_object_size(o->names));
	if (e == 0 && o->open)
		return rule_of(c, &of, &o->more);
	free(of.at);
	return e;
}

static int check_counts(const struct yk_members *m, const struct object *o)
{
	uint32_t min = 0, max = YK_LOOP_UNBOUNDED, required = 0;
	const char *name;
	json_t *x;
	int e = 0;

	json_object_foreach (o->names, name, x)
		required += json_is_true(x);
	for (size_t i = 0; i < m->n && e == 0; i++) {
		if ((e = yk_read_count(&m->at[i], "minProperties", true, &min)) < 0 ||
		    (e = yk_read_count(&m->at[i], "maxProperties", false, &max)) < 0)
			return e;
		if (min > required)
			return yk_schema_refuse(m->at[i].path, YOKE_EUNSUPPORTED,
						"'minProperties' above the number of required ones "
						"is not supported");
		if (max != YK_LOOP_UNBOUNDED && (o->open || max < json_object_size(o->names)))
			return yk_schema_refuse(m->at[i].path, YOKE_EUNSUPPORTED,
						"'maxProperties' is supported only above the "
						"number of properties and without additional ones");
	}
	return e;
}

// A name in quotes, as JSON.
static char *quoted(const char *name)
{
	json_t *x = json_string(name);
	char *text = x ? yk_json_text(x, JSON_ENCODE_ANY) : NULL;

	json_decref(x);
	return text;
}

// A colon and a value, after which the code goes to `next`.
static int emit_value(struct yk_compiler *c, uint32_t value, uint32_t next, uint32_t *to)
{
	uint32_t colon;
	int e = yk_emit_call(c, value, next, to);

	if (e == 0 &&
	    (e = yk_dfa_words(&c->p->dfa, (struct yk_dfa_word[]){ { ":", 1 } }, 1, &colon)) == 0 &&
	    (e = yk_emit_run(c, c->blank, *to, to)) == 0)
		e = yk_emit_run(c, colon, *to, to);
	return e;
}

static int emit_property(struct yk_compiler *c, const char *name, uint32_t value, uint32_t next,
			 uint32_t *to)
{
	uint32_t key;
	char *text = quoted(name);
	int e = text ? emit_value(c, value, next, to) : YOKE_ENOMEM;

	if (e == 0 &&
	    (e = yk_dfa_words(&c->p->dfa, (struct yk_dfa_word[]){ { text, strlen(text) } }, 1,
			      &key)) == 0)
		e = yk_emit_run(c, key, *to, to);
	free(text);
	return e;
}

// The automaton of the names of further properties.
static int further_names(struct yk_compiler *c, const struct object *o, uint32_t *start)
{
	const size_t n = json_object_size(o->names);
	struct yk_dfa_word *word = calloc(n + 1, sizeof *word);
	uint32_t names, any;
	const char *name, *why;
	json_t *x;
	size_t i = 0;
	int e = word ? 0 : YOKE_ENOMEM;

	*start = c->any_key;
	if (e == 0 && n) {
		json_object_foreach (o->names, name, x) {
			char *text = quoted(name);
			if (!text) {
				e = YOKE_ENOMEM;
				break;
			}
			word[i++] = (struct yk_dfa_word){ text, strlen(text) };
		}
		if (e == 0 && (e = yk_dfa_words(&c->p->dfa, word, n, &names)) == 0 &&
		    (e = yk_pattern_compile(&c->p->dfa, "", 0, YK_PATTERN_STRING, &any, &why)) == 0)
			e = yk_dfa_meet(&c->p->dfa, any, names, true, start);
	}
	while (i--)
		free((char *)(uintptr_t)word[i].s);
	free(word);
	return e;
}

// Emits the end of an object, or further properties: after at least one property (some), and at the
// beginning (none).
static int emit_end(struct yk_compiler *c, const struct object *o, uint32_t *some, uint32_t *none)
{
	uint32_t close, empty, item, key, comma;
	int e;

	if ((e = yk_emit_run(c, c->close_object, c->finish, &close)) < 0 ||
	    (e = yk_emit_run(c, c->empty_object, c->finish, &empty)) < 0)
		return e;
	if (!o->open) {
		*some = close;
		*none = empty;
		return 0;
	}
	if ((e = yk_program_add(c->p, (struct yk_instr){ .op = YK_OP_CHOICE }, some)) < 0 ||
	    (e = emit_value(c, o->more, *some, &item)) < 0 || (e = further_names(c, o, &key)) < 0 ||
	    (e = yk_emit_run(c, key, item, &item)) < 0 ||
	    (e = yk_emit_run(c, c->comma, item, &comma)) < 0 ||
	    (e = yk_program_choose(c->p, *some, (uint32_t[]){ comma, close }, 2)) < 0)
		return e;
	return yk_emit_choice(c, (uint32_t[]){ item, empty }, 2, none);
}

// For each property there is code after some properties, which begins with a comma, and code after
// none. A property that is not required may be left out of either.
static int emit_properties(struct yk_compiler *c, const struct yk_members *m,
			   const struct object *o, uint32_t *entry)
{
	const size_t n = json_object_size(o->names);
	const char **name = calloc(n + 1, sizeof *name), *key;
	uint32_t some, none, value, item, comma;
	json_t *x;
	size_t i = 0;
	int e = name ? emit_end(c, o, &some, &none) : YOKE_ENOMEM;

	json_object_foreach (o->names, key, x)
		if (name)
			name[i++] = key;
	while (e == 0 && i--) {
		if ((e = property_rule(c, m, name[i], &value)) < 0 ||
		    (e = emit_property(c, name[i], value, some, &item)) < 0 ||
		    (e = yk_emit_run(c, c->comma, item, &comma)) < 0)
			break;
		if (json_is_true(json_object_get(o->names, name[i]))) {
			some = comma;
			none = item;
		} else if ((e = yk_emit_choice(c, (uint32_t[]){ comma, some }, 2, &some)) == 0) {
			e = yk_emit_choice(c, (uint32_t[]){ item, none }, 2, &none);
		}
	}
	free(name);
	return e < 0 ? e : yk_emit_run(c, c->open_object, none, entry);
}

int yk_compile_object(struct yk_compiler *c, const struct yk_members *m, uint32_t *entry)
{
	struct object o = { .names = json_object() };
	int e = o.names ? collect_names(m, &o) : YOKE_ENOMEM;

	if (e == 0 && (e = more_properties(c, m, &o)) == 0 && (e = check_counts(m, &o)) == 0)
		e = emit_properties(c, m, &o, entry);
	json_decref(o.names);
	return e;
}

// ---- arrays ----

// The schemas of the first items: prefixItems, or a list `items` before draft 2020-12.
static const json_t *prefix_of(const struct yk_member *m, const char **keyword)
{
	const json_t *x = yk_keyword(m, "prefixItems"), *items = yk_keyword(m, "items");

	*keyword = x ? "prefixItems" : "items";
	return x ? x : json_is_array(items) ? items : NULL;
}

// The schema of the items after prefixItems; NULL: any value.
static const json_t *rest_of(const struct yk_member *m, const char **keyword)
{
	const json_t *items = yk_keyword(m, "items");

	*keyword = json_is_array(items) ? "additionalItems" : "items";
	return json_is_array(items) ? yk_keyword(m, "additionalItems") : items;
}

// The rule of item `i`; SIZE_MAX: of those after all that have schemas of their own.
static int item_rule(struct yk_compiler *c, const struct yk_members *m, size_t i, uint32_t *entry)
{
	struct yk_members of = { 0 };
	int e = 0;

	for (size_t j = 0; j < m->n && e == 0; j++) {
		const char *keyword;
		const json_t *prefix = prefix_of(&m->at[j], &keyword),
			     *x = json_array_get(prefix, i);
		if (x) {
			e = add_applied(c, &m->at[j], keyword, NULL, i, x, &of);
		} else if ((x = rest_of(&m->at[j], &keyword))) {
			e = add_applied(c, &m->at[j], keyword, NULL, SIZE_MAX, x, &of);
		}
	}
	if (e == 0)
		return rule_of(c, &of, entry);
	free(of.at);
	return e;
}

// How many items an array has, and how many of them have schemas of their own.
struct array {
	uint32_t min, max;
	size_t prefix;
};

static int read_array(const struct yk_members *m, struct array *a)
{
	bool prefixed = false, rest = false;
	int e = 0;

	*a = (struct array){ .max = YK_LOOP_UNBOUNDED };
	for (size_t i = 0; i < m->n && e == 0; i++) {
		const struct yk_member *x = &m->at[i];
		const char *keyword;
		const json_t *prefix = prefix_of(x, &keyword);
		if (prefix && !json_is_array(prefix))
			return yk_schema_refuse(x->path, YOKE_EFORMAT,
						"'prefixItems' is not a list of schemas");
		if ((e = yk_read_count(x, "minItems", true, &a->min)) < 0 ||
		    (e = yk_read_count(x, "maxItems", false, &a->max)) < 0)
			return e;
		prefixed |= prefix != NULL;
		rest |= rest_of(x, &keyword) != NULL;
		if (json_array_size(prefix) > a->prefix)
			a->prefix = json_array_size(prefix);
	}
	if (prefixed && !rest && a->min <= a->prefix &&
	    a->prefix < a->max) // closed, as objects are
		a->max = (uint32_t)a->prefix;
	if (a->prefix > a->max)
		a->prefix = a->max;
	return e;
}

// Items after the prefix: `first` of them begins without a comma if the prefix is empty.
static int emit_rest(struct yk_compiler *c, const struct yk_members *m, const struct array *a,
		     uint32_t close, uint32_t *to)
{
	const uint32_t skip = a->prefix ? (uint32_t)a->prefix : 1; // items before the loop
	struct yk_instr loop = { .op = YK_OP_LOOP, .next = close };
	uint32_t value, item;
	int e;

	if (a->max <= a->prefix) {
		*to = close;
		return 0;
	}
	loop.min = a->min > skip ? a->min - skip : 0;
	loop.max = a->max == YK_LOOP_UNBOUNDED ? a->max : a->max - skip;
	if ((e = item_rule(c, m, SIZE_MAX, &value)) < 0 ||
	    (e = yk_emit_call(c, value, c->finish, &item)) < 0 ||
	    (e = yk_emit_run(c, c->comma, item, &loop.target)) < 0 ||
	    (e = yk_program_add(c->p, loop, to)) < 0)
		return e;
	return a->prefix ? 0 : yk_emit_call(c, value, *to, to);
}

int yk_compile_array(struct yk_compiler *c, const struct yk_members *m, uint32_t *entry)
{
	struct array a;
	uint32_t close, empty, next, value;
	int e = read_array(m, &a);

	if (e < 0)
		return e;
	if (a.max < a.min)
		return yk_emit_choice(c, NULL, 0, entry);
	if ((e = yk_emit_run(c, c->close_array, c->finish, &close)) < 0 ||
	    (e = yk_emit_run(c, c->empty_array, c->finish, &empty)) < 0 ||
	    (e = emit_rest(c, m, &a, close, &next)) < 0)
		return e;
	for (size_t i = a.prefix; i--;) {
		if ((e = item_rule(c, m, i, &value)) < 0 ||
		    (e = yk_emit_call(c, value, next, &next)) < 0)
			return e;
		if (i && (e = yk_emit_run(c, c->comma, next, &next)) < 0)
			return e;
		if (i && i >= a.min &&
		    (e = yk_emit_choice(c, (uint32_t[]){ next, close }, 2, &next)) < 0)
			return e;
	}
	if (!a.max)
		next = empty;
	else if (!a.min && (e = yk_emit_choice(c, (uint32_t[]){ next, empty }, 2, &next)) < 0)
		return e;
	return yk_emit_run(c, c->open_array, next, entry);
}
