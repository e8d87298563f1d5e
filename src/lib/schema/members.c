// SPDX-License-Identifier: Apache-2.0
// Conjunctions of schemas: references and allOf are replaced by what they stand for, and each
// distinct conjunction becomes one rule.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/number.h"
#include "schema/compile.h"

enum { MAX_RULES = 1 << 14, MAX_SHOWN = 40, MAX_PATH = 256 };
#define MAX_WORK ((size_t)1 << 24)

// ---- places and errors ----

// Appends a key, shortened at a character; control characters would break the line.
static void show_key(char *to, size_t room, const char *key)
{
	size_t n = strlen(key), at = strlen(to);

	if (n > MAX_SHOWN)
		for (n = MAX_SHOWN; n && ((unsigned char)key[n] & 0xc0) == 0x80; n--)
			;
	if (at + n + 8 > room)
		return;
	to[at++] = '/';
	for (size_t i = 0; i < n; i++)
		to[at++] = (unsigned char)key[i] < 32 ? '?' : key[i];
	to[at] = 0;
	if (key[n])
		strcat(to, "...");
}

int yk_schema_refuse(const struct yk_schema_path *path, int code, const char *format, ...)
{
	const struct yk_schema_path *step[MAX_PATH];
	char where[512] = "#", what[400], index[24];
	size_t n = 0;
	va_list ap;

	for (; path && path->parent && n < MAX_PATH; path = path->parent)
		step[n++] = path;
	while (n--) {
		yk_snprintf(index, sizeof index, "%zu", step[n]->index);
		show_key(where, sizeof where, step[n]->key ? step[n]->key : index);
	}
	va_start(ap, format);
	yk_vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	return yk_fail(code, "schema: %s: %s", where, what);
}

int yk_schema_check(const struct yk_schema_path *path, int code)
{
	if (code == YOKE_ERANGE)
		return yk_schema_refuse(path, code, "the schema is too large or too complex");
	return code < 0 ? yk_fail(code, "schema: %s", yk_error_text(code)) : 0;
}

const struct yk_schema_path *yk_path_add(struct yk_compiler *c, const struct yk_schema_path *parent,
					 const char *key, size_t index)
{
	struct yk_schema_path *p = yk_arena_alloc(&c->arena, sizeof *p);

	if (p)
		*p = (struct yk_schema_path){ parent, key, index };
	return p;
}

int yk_members_add(struct yk_members *m, struct yk_member x)
{
	const int e = yk_grow(&m->at, &m->cap, m->n + 1, sizeof *m->at);
	if (e == 0)
		m->at[m->n++] = x;
	return e;
}

// ---- keywords ----

// Keywords that restrict values and are not supported, unless they have the value that restricts
// nothing.
static const struct {
	const char *name;
	enum { NEVER, FALSE, TRUE, EMPTY } harmless;
} unsupported[] = {
	{ "not", NEVER },
	{ "if", NEVER },
	{ "contains", NEVER },
	{ "propertyNames", TRUE },
	{ "patternProperties", EMPTY },
	{ "dependencies", EMPTY },
	{ "dependentRequired", EMPTY },
	{ "dependentSchemas", EMPTY },
	{ "unevaluatedItems", TRUE },
	{ "unevaluatedProperties", TRUE },
	{ "uniqueItems", FALSE },
	{ "$dynamicRef", NEVER },
	{ "$recursiveRef", NEVER },
};

static const char *const assertions[] = {
	"type",
	"enum",
	"const",
	"properties",
	"required",
	"additionalProperties",
	"minProperties",
	"items",
	"prefixItems",
	"minItems",
	"maxItems",
	"minLength",
	"additionalItems",
	"maxProperties",
	"maxLength",
	"pattern",
	"format",
	"minimum",
	"maximum",
	"exclusiveMinimum",
	"exclusiveMaximum",
	"multipleOf",
};

static bool restricts_nothing(const json_t *x, int harmless)
{
	switch (harmless) {
	case FALSE: return json_is_false(x);
	case TRUE: return json_is_true(x) || (json_is_object(x) && !json_object_size(x));
	case EMPTY: return json_is_object(x) && !json_object_size(x);
	default: return false;
	}
}

static int check_keywords(const struct yk_member *m)
{
	for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
		const json_t *x = yk_keyword(m, unsupported[i].name);
		if (x && !restricts_nothing(x, unsupported[i].harmless))
			return yk_schema_refuse(m->path, YOKE_EUNSUPPORTED,
						"the keyword '%s' is not supported",
						unsupported[i].name);
	}
	for (int i = 0; i < 3; i++) {
		const char *name = i == 0 ? "allOf" : i == 1 ? "anyOf" : "oneOf";
		const json_t *x = yk_keyword(m, name);
		if (x && (!json_is_array(x) || !json_array_size(x)))
			return yk_schema_refuse(m->path, YOKE_EFORMAT,
						"'%s' is not a list of schemas", name);
	}
	return 0;
}

static bool asserts(const struct yk_member *m)
{
	for (size_t i = 0; i < sizeof assertions / sizeof *assertions; i++)
		if (yk_keyword(m, assertions[i]))
			return true;
	return (!(m->done & YK_DONE_ANY_OF) && yk_keyword(m, "anyOf")) ||
	       (!(m->done & YK_DONE_ONE_OF) && yk_keyword(m, "oneOf")) ||
	       (!(m->done & YK_DONE_NULLABLE) && json_is_true(yk_keyword(m, "nullable")));
}

// ---- references ----

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

// One step of a JSON pointer, with its escapes ~0, ~1 and %XX decoded; *at is after it.
static char *pointer_step(struct yk_compiler *c, const char **at)
{
	const size_t n = strcspn(*at, "/");
	char *text = yk_arena_alloc(&c->arena, n + 1), *to = text;

	for (size_t i = 0; text && i < n; i++) {
		char x = (*at)[i];
		if (x == '%' && i + 2 < n && hex_digit((*at)[i + 1]) >= 0 &&
		    hex_digit((*at)[i + 2]) >= 0) {
			x = (char)(hex_digit((*at)[i + 1]) << 4 | hex_digit((*at)[i + 2]));
			i += 2;
		}
		if (x == '~' && i + 1 < n && ((*at)[i + 1] == '0' || (*at)[i + 1] == '1'))
			x = (*at)[++i] == '0' ? '~' : '/';
		*to++ = x;
	}
	*at += n;
	return text;
}

// Finds the schema that a member's $ref refers to.
static int resolve(struct yk_compiler *c, const struct yk_member *m, struct yk_member *to)
{
	const json_t *ref = yk_keyword(m, "$ref"), *x = c->root;
	const char *s = json_string_value(ref);
	const struct yk_schema_path *path = yk_path_add(c, NULL, NULL, 0);

	if (!s)
		return yk_schema_refuse(m->path, YOKE_EFORMAT, "'$ref' is not a string");
	if (s[0] != '#' || (s[1] && s[1] != '/'))
		return yk_schema_refuse(
			m->path, YOKE_EUNSUPPORTED,
			"'$ref' refers to '%.60s'; only '#' and '#/..' are supported", s);
	for (const char *at = s + 1; path && x && *at;) {
		at++;
		char *key = pointer_step(c, &at);
		if (!key)
			return YOKE_ENOMEM;
		if (json_is_array(x)) {
			char *end;
			const unsigned long long i = strtoull(key, &end, 10);
			x = *key && !*end ? json_array_get(x, (size_t)i) : NULL;
		} else {
			x = json_object_get(x, key);
		}
		path = yk_path_add(c, path, key, 0);
		if ((c->work += strlen(key) + 1) > MAX_WORK)
			return yk_schema_check(m->path, YOKE_ERANGE);
	}
	if (!path)
		return YOKE_ENOMEM;
	if (!x)
		return yk_schema_refuse(m->path, YOKE_EFORMAT,
					"'$ref' refers to '%.60s', which the schema does not have",
					s);
	*to = (struct yk_member){ x, path, 0 };
	return 0;
}

// ---- expansion ----

// A walk over members and what they refer to.
struct walk {
	struct visit {
		struct yk_member m;
		bool leave; // what it refers to has been visited
	} * stack;
	size_t n, cap;
	struct yk_members seen, out;
	bool *open; // of `seen`: what it refers to is being visited
	size_t open_cap;
};

static int push(struct walk *w, struct yk_member m, bool leave)
{
	const int e = yk_grow(&w->stack, &w->cap, w->n + 1, sizeof *w->stack);
	if (e == 0)
		w->stack[w->n++] = (struct visit){ m, leave };
	return e;
}

static int leave(struct yk_compiler *c, struct walk *w, struct yk_member m)
{
	for (size_t i = w->seen.n; i--;) // the last one that is open
		if (w->open[i] && w->seen.at[i].schema == m.schema) {
			w->open[i] = false;
			break;
		}
	if (!asserts(&m))
		return 0;
	for (size_t i = 0; i < w->out.n; i++)
		if (w->out.at[i].schema == m.schema) { // both apply what either applies
			w->out.at[i].done &= m.done;
			return 0;
		}
	c->work += w->out.n + w->seen.n;
	return c->work > MAX_WORK ? yk_schema_check(m.path, YOKE_ERANGE) :
				    yk_members_add(&w->out, m);
}

static int enter(struct yk_compiler *c, struct walk *w, struct yk_member m, bool *none)
{
	int e;

	if (json_is_boolean(m.schema)) {
		*none |= json_is_false(m.schema);
		return 0;
	}
	if (!json_is_object(m.schema))
		return yk_schema_refuse(m.path, YOKE_EFORMAT,
					"a schema is neither an object nor true or false");
	for (size_t i = 0; i < w->seen.n; i++) {
		if (w->seen.at[i].schema != m.schema)
			continue;
		if (w->open[i])
			return yk_schema_refuse(
				m.path, YOKE_EFORMAT,
				"the schema refers to itself without an object or array between");
		if (w->seen.at[i].done == m.done)
			return 0;
	}
	if ((c->work += w->seen.n + 1) > MAX_WORK)
		return yk_schema_check(m.path, YOKE_ERANGE);
	if ((e = check_keywords(&m)) < 0 || (e = yk_members_add(&w->seen, m)) < 0 ||
	    (e = yk_grow(&w->open, &w->open_cap, w->seen.n, sizeof *w->open)) < 0)
		return e;
	w->open[w->seen.n - 1] = true;
	if ((e = push(w, m, true)) < 0)
		return e;
	const json_t *all = yk_keyword(&m, "allOf");
	const struct yk_schema_path *list = all ? yk_path_add(c, m.path, "allOf", 0) : NULL;
	for (size_t i = json_array_size(all); i--;) {
		const struct yk_schema_path *path = list ? yk_path_add(c, list, NULL, i) : NULL;
		if (!path)
			return YOKE_ENOMEM;
		if ((e = push(w, (struct yk_member){ json_array_get(all, i), path, 0 }, false)) < 0)
			return e;
	}
	if (yk_keyword(&m, "$ref")) {
		struct yk_member to;
		if ((e = resolve(c, &m, &to)) < 0)
			return e;
		return push(w, to, false);
	}
	return 0;
}

int yk_members_expand(struct yk_compiler *c, struct yk_members *m, bool *none)
{
	struct walk w = { 0 };
	int e = 0;

	*none = false;
	for (size_t i = m->n; i-- && e == 0;)
		e = push(&w, m->at[i], false);
	while (e == 0 && w.n) {
		const struct visit v = w.stack[--w.n];
		e = v.leave ? leave(c, &w, v.m) : enter(c, &w, v.m, none);
	}
	free(w.stack);
	free(w.open);
	free(w.seen.at);
	if (e < 0) {
		free(w.out.at);
		return yk_schema_check(NULL, e);
	}
	free(m->at);
	*m = w.out;
	return 0;
}

// ---- rules ----

static int by_schema(const void *a, const void *b)
{
	const struct yk_member *x = a, *y = b;
	const uintptr_t p = (uintptr_t)x->schema, q = (uintptr_t)y->schema;
	return p == q ? (x->done > y->done) - (x->done < y->done) : (p > q) - (p < q);
}

// Of members in the order of by_schema.
static uint64_t hash_of(const struct yk_member *m, size_t n)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++) {
		const uint64_t word[] = { (uintptr_t)m[i].schema, m[i].done };
		hash = yk_hash(word, sizeof word, hash);
	}
	return hash;
}

static bool same(const struct yk_member *a, const struct yk_member *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (by_schema(&a[i], &b[i]))
			return false;
	return true;
}

static int enlarge_table(struct yk_compiler *c)
{
	const size_t size = c->table_size ? 2 * c->table_size : 64;
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return YOKE_ENOMEM;
	for (uint32_t i = 0; i < c->rules; i++) {
		size_t h = hash_of(c->rule[i].member + c->rule[i].n, c->rule[i].n) & (size - 1);
		while (table[h])
			h = (h + 1) & (size - 1);
		table[h] = i + 1;
	}
	free(c->table);
	c->table = table;
	c->table_size = size;
	return 0;
}

// The members of a rule are stored twice: in their order, which is that of properties, and sorted.
static int find_rule(struct yk_compiler *c, const struct yk_members *m, uint32_t *entry)
{
	struct yk_member *own = yk_arena_alloc(&c->arena, 2 * m->n * sizeof *own),
			 *sorted = own + m->n;
	int e = own ? 0 : YOKE_ENOMEM;

	if (e == 0 && 2 * (c->rules + 1) > c->table_size)
		e = enlarge_table(c);
	if (e < 0)
		return e;
	if (m->n) {
		memcpy(own, m->at, m->n * sizeof *own);
		memcpy(sorted, m->at, m->n * sizeof *own);
		qsort(sorted, m->n, sizeof *own, by_schema);
	}
	if ((c->work += m->n) > MAX_WORK)
		return YOKE_ERANGE;
	size_t h = hash_of(sorted, m->n) & (c->table_size - 1);
	for (; c->table[h]; h = (h + 1) & (c->table_size - 1)) {
		const struct yk_rule *r = &c->rule[c->table[h] - 1];
		if (r->n == m->n && same(r->member + r->n, sorted, m->n)) {
			*entry = r->entry;
			return 0;
		}
	}
	if (c->rules >= MAX_RULES)
		return YOKE_ERANGE;
	if ((e = yk_grow(&c->rule, &c->rule_cap, c->rules + 1, sizeof *c->rule)) < 0 ||
	    (e = yk_program_add(c->p, (struct yk_instr){ .op = YK_OP_CHOICE }, entry)) < 0)
		return e;
	c->rule[c->rules++] = (struct yk_rule){ own, m->n, *entry };
	c->table[h] = (uint32_t)c->rules;
	return 0;
}

int yk_rule_of(struct yk_compiler *c, struct yk_members *m, uint32_t *entry)
{
	const struct yk_schema_path *path = m->n ? m->at[0].path : NULL;
	bool none;
	int e = yk_members_expand(c, m, &none);

	if (e < 0)
		return e;
	return yk_schema_check(path,
			       none ? yk_emit_choice(c, NULL, 0, entry) : find_rule(c, m, entry));
}
