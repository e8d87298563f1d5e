// SPDX-License-Identifier: Apache-2.0
// Types and functions of the schema compiler's files.  A value is described by a conjunction of
// schemas, its members: a schema, what it refers to, the members of allOf, one alternative of
// anyOf.  Each distinct conjunction is compiled once, as a rule.
#ifndef YK_SCHEMA_COMPILE_H
#define YK_SCHEMA_COMPILE_H

#include <jansson.h>

#include "base/arena.h"
#include "schema/program.h"

// The place of a schema, for messages.
struct yk_schema_path {
	const struct yk_schema_path *parent;
	const char *key; // lives as long as the schema; NULL: the index
	size_t index;
};

struct yk_member {
	const json_t *schema;
	const struct yk_schema_path *path;
	unsigned done; // enum of the keywords that are no longer to be applied
};

enum { YK_DONE_ANY_OF = 1, YK_DONE_ONE_OF = 2, YK_DONE_NULLABLE = 4 };

struct yk_members {
	struct yk_member *at;
	size_t n, cap;
};

// Types of values, as bits.  A number is an integer or has a fraction.
enum {
	YK_NULL = 1,
	YK_BOOLEAN = 2,
	YK_STRING = 4,
	YK_INTEGER = 8,
	YK_FRACTION = 16,
	YK_ARRAY = 32,
	YK_OBJECT = 64,
	YK_ALL_TYPES = 127,
};

struct yk_compiler {
	const json_t *root;
	struct yk_program *p;
	struct yk_arena arena;
	json_t *null_schema;
	struct yk_rule {
		struct yk_member *member; // sorted
		size_t n;
		uint32_t entry;
	} * rule;
	size_t rules, rule_cap, compiled;
	uint32_t *table; // rule + 1, by the members
	size_t table_size;
	size_t work;
	uint32_t finish; // a RETURN
	// Automata that many values use.
	uint32_t blank, open_object, close_object, empty_object, open_array, close_array,
		empty_array, comma, quote, any_key;
};

// Reports an error at a place of the schema; returns its code.
int yk_schema_refuse(const struct yk_schema_path *, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// Reports an error of an automaton or a program, unless it is 0.
int yk_schema_check(const struct yk_schema_path *, int code);
const struct yk_schema_path *yk_path_add(struct yk_compiler *, const struct yk_schema_path *,
					 const char *key, size_t index);

int yk_members_add(struct yk_members *, struct yk_member);
// Replaces references and allOf by what they stand for and checks the keywords.  *none: the schema
// false is among them, and no value satisfies them.
int yk_members_expand(struct yk_compiler *, struct yk_members *, bool *none);
// The instruction that begins a value of the members, which are expanded later.
int yk_rule_of(struct yk_compiler *, struct yk_members *, uint32_t *entry);

// Value of a keyword of a schema; NULL: absent.
static inline const json_t *yk_keyword(const struct yk_member *m, const char *name)
{
	return json_object_get(m->schema, name);
}

// The code of a value of expanded members; *entry goes to `next` after it.
int yk_compile_scalars(struct yk_compiler *, const struct yk_members *, unsigned types,
		       uint32_t *target, size_t *n);
int yk_compile_enum(struct yk_compiler *, const struct yk_members *, unsigned types,
		    uint32_t *entry);
int yk_compile_object(struct yk_compiler *, const struct yk_members *, uint32_t *entry);
int yk_compile_array(struct yk_compiler *, const struct yk_members *, uint32_t *entry);

// Adds a RUN.
int yk_emit_run(struct yk_compiler *, uint32_t start, uint32_t next, uint32_t *to);
// Adds a CALL.
int yk_emit_call(struct yk_compiler *, uint32_t target, uint32_t next, uint32_t *to);
// Adds a CHOICE.
int yk_emit_choice(struct yk_compiler *, const uint32_t *target, size_t n, uint32_t *to);
// Reads a count, a keyword such as minItems; *to is unchanged if it is absent.
int yk_read_count(const struct yk_member *, const char *name, bool greatest, uint32_t *to);

// Compiles a schema into an empty program, which the caller frees also after an error.  Errors are
// those of yk_schema_compile.
int yk_schema_program(const json_t *schema, struct yk_program *);

#endif
