// SPDX-License-Identifier: Apache-2.0
// Compiles rules until none is left: distributes the alternatives of anyOf over the other members,
// then joins the code of each type that a value may have.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "schema/compile.h"
#include "schema/pattern.h"

enum { MAX_DEPTH = 200 }; // of a schema's JSON

// ---- instructions ----

int yk_emit_run(struct yk_compiler *c, uint32_t start, uint32_t next, uint32_t *to)
{
	return yk_program_add(
		c->p, (struct yk_instr){ .op = YK_OP_RUN, .start = start, .next = next }, to);
}

int yk_emit_call(struct yk_compiler *c, uint32_t target, uint32_t next, uint32_t *to)
{
	return yk_program_add(
		c->p, (struct yk_instr){ .op = YK_OP_CALL, .target = target, .next = next }, to);
}

int yk_emit_choice(struct yk_compiler *c, const uint32_t *target, size_t n, uint32_t *to)
{
	const int e = yk_program_add(c->p, (struct yk_instr){ .op = YK_OP_CHOICE }, to);
	return e < 0 ? e : yk_program_choose(c->p, *to, target, n);
}

int yk_read_count(const struct yk_member *m, const char *name, bool greatest, uint32_t *to)
{
	const json_t *x = yk_keyword(m, name);
	const double v = json_number_value(x);

	if (!x)
		return 0;
	if (!json_is_number(x) || v < 0 || v > 1e9 || v != (double)(uint32_t)v)
		return yk_schema_refuse(m->path, YOKE_EFORMAT,
					"'%s' is not an integer in 0 .. 1000000000", name);
	if (greatest ? v > *to : v < *to)
		*to = (uint32_t)v;
	return 0;
}

// ---- rules ----

// An alternative of a rule: its members with one changed, and one more, which may be NULL.
static int alternative(struct yk_compiler *c, const struct yk_rule *r, size_t changed,
		       struct yk_member to, const struct yk_member *more, uint32_t *entry)
{
	struct yk_members m = { 0 };
	int e = 0;

	for (size_t i = 0; i < r->n && e == 0; i++)
		e = yk_members_add(&m, i == changed ? to : r->member[i]);
	if (e == 0 && more)
		e = yk_members_add(&m, *more);
	if (e == 0)
		e = yk_rule_of(c, &m, entry);
	free(m.at);
	return e;
}

// Divides a rule by a list of alternatives of one of its members.
static int distribute(struct yk_compiler *c, size_t rule, size_t member, const char *keyword,
		      unsigned done)
{
	const struct yk_rule r = c->rule[rule];
	struct yk_member m = r.member[member];
	const json_t *list = yk_keyword(&m, keyword);
	const struct yk_schema_path *path = yk_path_add(c, m.path, keyword, 0);
	const size_t n = json_array_size(list);
	uint32_t *target = calloc(n, sizeof *target);
	int e = target && path ? 0 : YOKE_ENOMEM;

	m.done |= done;
	for (size_t i = 0; i < n && e == 0; i++) {
		const struct yk_member more = { json_array_get(list, i),
						yk_path_add(c, path, NULL, i), 0 };
		e = more.path ? alternative(c, &r, member, m, &more, &target[i]) : YOKE_ENOMEM;
	}
	if (e == 0)
		e = yk_program_choose(c->p, r.entry, target, n);
	free(target);
	return yk_schema_check(path, e);
}

// Divides a rule with a nullable member into null and the rest.
static int divide_nullable(struct yk_compiler *c, size_t rule, size_t member)
{
	const struct yk_rule r = c->rule[rule];
	struct yk_member m = r.member[member];
	uint32_t target[2];

	m.done |= YK_DONE_NULLABLE;
	int e = alternative(c, &r, member, m, NULL, &target[0]);
	if (e == 0)
		e = alternative(c, &r, member, (struct yk_member){ c->null_schema, m.path, 0 },
				NULL, &target[1]);
	return yk_schema_check(m.path, e < 0 ? e : yk_program_choose(c->p, r.entry, target, 2));
}

static const struct {
	const char *name;
	unsigned bits;
} types[] = {
	{ "null", YK_NULL },
	{ "boolean", YK_BOOLEAN },
	{ "string", YK_STRING },
	{ "array", YK_ARRAY },
	{ "number", YK_INTEGER | YK_FRACTION },
	{ "integer", YK_INTEGER },
	{ "object", YK_OBJECT },
};

// Keywords that concern values of one type.
static const struct {
	const char *name;
	unsigned bits;
} hints[] = {
	{ "properties", YK_OBJECT },
	{ "required", YK_OBJECT },
	{ "additionalProperties", YK_OBJECT },
	{ "minProperties", YK_OBJECT },
	{ "maxProperties", YK_OBJECT },
	{ "items", YK_ARRAY },
	{ "prefixItems", YK_ARRAY },
	{ "minItems", YK_ARRAY },
	{ "maxItems", YK_ARRAY },
	{ "minLength", YK_STRING },
	{ "maxLength", YK_STRING },
	{ "pattern", YK_STRING },
	{ "format", YK_STRING },
	{ "minimum", YK_INTEGER | YK_FRACTION },
	{ "maximum", YK_INTEGER | YK_FRACTION },
	{ "exclusiveMinimum", YK_INTEGER | YK_FRACTION },
	{ "exclusiveMaximum", YK_INTEGER | YK_FRACTION },
	{ "multipleOf", YK_INTEGER | YK_FRACTION },
};

static int add_type(const struct yk_member *m, const json_t *name, unsigned *to)
{
	for (size_t i = 0; json_is_string(name) && i < sizeof types / sizeof *types; i++)
		if (!strcmp(types[i].name, json_string_value(name))) {
			*to |= types[i].bits;
			return 0;
		}
	return yk_schema_refuse(m->path, YOKE_EFORMAT,
				"'type' is neither a type's name nor a list of them");
}

// The types that all members allow; those that keywords concern if no member names any.
static int types_of(const struct yk_members *m, unsigned *to)
{
	unsigned hinted = 0, all = YK_ALL_TYPES;
	bool named = false;
	int e = 0;

	for (size_t i = 0; i < m->n && e == 0; i++) {
		const json_t *type = yk_keyword(&m->at[i], "type");
		unsigned own = 0;
		for (size_t j = 0; j < sizeof hints / sizeof *hints; j++)
			if (yk_keyword(&m->at[i], hints[j].name))
				hinted |= hints[j].bits;
		named |= type || yk_keyword(&m->at[i], "enum") || yk_keyword(&m->at[i], "const");
		if (!type)
			continue;
		if (!json_is_array(type))
			e = add_type(&m->at[i], type, &own);
		for (size_t j = 0; j < json_array_size(type) && e == 0; j++)
			e = add_type(&m->at[i], json_array_get(type, j), &own);
		all &= own;
	}
	*to = !named && hinted ? hinted : all;
	return e;
}

static int compile_values(struct yk_compiler *c, const struct yk_rule *r)
{
	const struct yk_members m = { .at = r->member, .n = r->n };
	uint32_t target[8];
	unsigned of;
	size_t n = 0;
	bool listed = false;
	int e = types_of(&m, &of);

	for (size_t i = 0; i < m.n; i++)
		listed |= yk_keyword(&m.at[i], "enum") || yk_keyword(&m.at[i], "const");
	if (e == 0 && listed) {
		e = yk_compile_enum(c, &m, of, &target[n++]);
	} else if (e == 0) {
		e = yk_compile_scalars(c, &m, of, target, &n);
		if (e == 0 && of & YK_OBJECT)
			e = yk_compile_object(c, &m, &target[n++]);
		if (e == 0 && of & YK_ARRAY)
			e = yk_compile_array(c, &m, &target[n++]);
	}
	if (e == 0)
		e = yk_program_choose(c->p, r->entry, target, n);
	return yk_schema_check(m.n ? m.at[0].path : NULL, e);
}

static int compile_rule(struct yk_compiler *c, size_t rule)
{
	const struct yk_rule r = c->rule[rule];

	for (size_t i = 0; i < r.n; i++) {
		const struct yk_member *m = &r.member[i];
		if (!(m->done & YK_DONE_ANY_OF) && yk_keyword(m, "anyOf"))
			return distribute(c, rule, i, "anyOf", YK_DONE_ANY_OF);
		if (!(m->done & YK_DONE_ONE_OF) && yk_keyword(m, "oneOf"))
			return distribute(c, rule, i, "oneOf", YK_DONE_ONE_OF);
		if (!(m->done & YK_DONE_NULLABLE) && json_is_true(yk_keyword(m, "nullable")))
			return divide_nullable(c, rule, i);
	}
	return compile_values(c, &r);
}

// ---- the whole ----

#define BLANK "( |\\n[ \\t]{0,32})?"
#define HEX "[0-9a-fA-F]"
// A character of a JSON string: no NUL, surrogates in pairs only.
#define CHAR \
	"([^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|u([1-9a-cA-CefEF]" HEX "{3}|[dD][0-7]" HEX \
	"{2}|0([1-9a-fA-F]" HEX "{2}|0([1-9a-fA-F]" HEX "|0[1-9a-fA-F]))|[dD][89abAB]" HEX \
	"{2}\\\\u[dD][c-fC-F]" HEX "{2})))"

static int common_automata(struct yk_compiler *c)
{
	const struct {
		const char *pattern;
		uint32_t *to;
	} list[] = {
		{ BLANK, &c->blank },
		{ "[{]" BLANK, &c->open_object },
		{ BLANK "[}]", &c->close_object },
		{ "[}]", &c->empty_object },
		{ "\\[" BLANK, &c->open_array },
		{ BLANK "\\]", &c->close_array },
		{ "\\]", &c->empty_array },
		{ "," BLANK, &c->comma },
		{ "\"", &c->quote },
		{ CHAR, &c->p->any_char },
		{ "\"" CHAR "*\"", &c->any_key },
	};
	const char *why;
	int e = 0;

	for (size_t i = 0; i < sizeof list / sizeof *list && e == 0; i++)
		e = yk_pattern_compile(&c->p->dfa, list[i].pattern, strlen(list[i].pattern),
				       YK_PATTERN_TEXT, list[i].to, &why);
	return e;
}

// Does the JSON nest at most MAX_DEPTH deep?  It does not recurse.
static bool shallow(const json_t *x)
{
	struct level {
		const json_t *of;
		void *member;
		size_t i;
	} stack[MAX_DEPTH];
	size_t n = 0;

	for (;;) {
		if (json_is_object(x) || json_is_array(x)) {
			if (n == MAX_DEPTH)
				return false;
			stack[n++] =
				(struct level){ x, json_object_iter((json_t *)(uintptr_t)x), 0 };
		}
		for (x = NULL; n && !x;) {
			struct level *l = &stack[n - 1];
			if (json_is_array(l->of)) {
				x = json_array_get(l->of, l->i++);
			} else if (l->member) {
				x = json_object_iter_value(l->member);
				l->member = json_object_iter_next((json_t *)(uintptr_t)l->of,
								  l->member);
			}
			n -= !x;
		}
		if (!x)
			return true;
	}
}

// No value: the schema's fault.  A cycle is named by the place of its rule.
static int analyze(struct yk_compiler *c, const struct yk_schema_path *root)
{
	int64_t cycle;
	int e = yk_program_cycle(c->p, &cycle);

	if (e < 0)
		return yk_schema_check(root, e);
	for (size_t i = 0; cycle >= 0 && i < c->rules; i++)
		if (c->rule[i].entry == cycle)
			return yk_schema_refuse(
				c->rule[i].n ? c->rule[i].member[0].path : root, YOKE_EFORMAT,
				"the schema refers to itself without an object or array between");
	if ((e = yk_program_measure(c->p)) < 0)
		return yk_schema_check(root, e);
	if (c->p->op[c->p->entry].need == YK_NO_VALUE)
		return yk_schema_refuse(
			root, YOKE_EINVAL,
			"no value satisfies the schema, or only ones nested very deeply");
	return 0;
}

int yk_schema_program(const json_t *schema, struct yk_program *p)
{
	struct yk_compiler c = { .root = schema, .p = p };
	const struct yk_schema_path *root = yk_path_add(&c, NULL, NULL, 0);
	struct yk_members m = { 0 };
	uint32_t end, value;
	int e = root ? yk_dfa_init(&p->dfa) : YOKE_ENOMEM;

	if (e == 0 && !shallow(schema))
		e = yk_schema_refuse(root, YOKE_ERANGE, "the schema is nested more than %d deep",
				     MAX_DEPTH);
	if (e == 0 && !(c.null_schema = yk_json_of("{\"type\": \"null\"}", 0)))
		e = YOKE_ENOMEM;
	if (e == 0 && (e = common_automata(&c)) == 0 &&
	    (e = yk_program_add(p, (struct yk_instr){ .op = YK_OP_END }, &end)) == 0 &&
	    (e = yk_program_add(p, (struct yk_instr){ .op = YK_OP_RETURN }, &c.finish)) == 0 &&
	    (e = yk_emit_run(&c, p->any_char, c.finish, &p->char_op)) == 0 &&
	    (e = yk_members_add(&m, (struct yk_member){ schema, root, 0 })) == 0)
		e = yk_rule_of(&c, &m, &value);
	while (e == 0 && c.compiled < c.rules)
		e = compile_rule(&c, c.compiled++);
	if (e == 0 && (e = yk_emit_call(&c, value, end, &value)) == 0)
		e = yk_emit_run(&c, c.blank, value, &p->entry);
	e = e == 0 ? analyze(&c, root) : yk_schema_check(root, e);
	free(m.at);
	free(c.rule);
	free(c.table);
	json_decref(c.null_schema);
	yk_arena_fini(&c.arena);
	return e;
}
