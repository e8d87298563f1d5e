// SPDX-License-Identifier: Apache-2.0
// Filters, tests, methods and global functions: tables by name.  Their arguments are bound to
// parameters before the call.
#ifndef YK_TEMPLATE_FUNCTIONS_H
#define YK_TEMPLATE_FUNCTIONS_H

#include "template/value.h"

struct yk_args {
	struct yk_v_value *v;
	size_t n;
	struct yk_dict *named; // NULL: none
};

typedef struct yk_v_value yk_function_call_fn(struct yk_render *, struct yk_v_value self,
					    const struct yk_args *);
struct yk_function {
	const char *name;
	// Names separated by blanks; "!" after one that must be given.  The function gets as many
	// values, ABSENT where none is given.  NULL: it gets the arguments as they are.
	const char *parameters;
	yk_function_call_fn *call;
};
enum { YK_PARAMETERS = 12 };

const struct yk_function *yk_filter_find(const struct yk_chars *name);
const struct yk_function *yk_sequence_filter_find(const struct yk_chars *name); // sequences.c
const struct yk_function *yk_test_find(const struct yk_chars *name);
const struct yk_function *yk_method_find(enum yk_value_kind, const char *name, size_t n);
// containers.c
const struct yk_function *yk_container_method_find(enum yk_value_kind, const char *name, size_t n);
const struct yk_function *yk_global_find(const struct yk_chars *name);
const struct yk_function *yk_function_in(const struct yk_function *table, size_t count,
					 const char *name, size_t n);
#define YK_FUNCTION_IN(table, name, n) \
	yk_function_in(table, sizeof(table) / sizeof *(table), name, n)
// Binds the arguments and calls.
struct yk_v_value yk_function_call(struct yk_render *, const struct yk_function *,
				 struct yk_v_value self, const struct yk_args *);

// Arguments with a default.
struct yk_v_value yk_arg(const struct yk_args *, size_t i, struct yk_v_value otherwise);
int64_t yk_arg_int(struct yk_render *, const struct yk_args *, size_t i, int64_t otherwise);
bool yk_arg_truth(const struct yk_args *, size_t i, bool otherwise);
// A string; NULL: failed, or not given and no default.
const struct yk_chars *yk_arg_chars(struct yk_render *, const struct yk_args *, size_t i);

// str.format and the operator %.
struct yk_v_value yk_format_braces(struct yk_render *, const struct yk_chars *,
				 const struct yk_args *);
struct yk_v_value yk_format_percent(struct yk_render *, const struct yk_chars *, struct yk_v_value);
// Occurrences of `old` are replaced, up to `max` of them (negative: all).
struct yk_v_value yk_v_replace(struct yk_render *, const struct yk_chars *,
			     const struct yk_chars *old, const struct yk_chars *by, int64_t max);
enum yk_letter_case { YK_LOWER, YK_UPPER, YK_CAPITAL, YK_TITLE, YK_SWAP };
struct yk_v_value yk_v_case(struct yk_render *, const struct yk_chars *, enum yk_letter_case);
bool yk_v_is_case(const struct yk_chars *, bool upper); // str.isupper, str.islower

// Attributes, items and operators of expressions (eval.c).
struct yk_v_value yk_v_attr(struct yk_render *, struct yk_v_value of, const char *name, size_t n);
struct yk_v_value yk_v_item(struct yk_render *, struct yk_v_value of, struct yk_v_value key);
struct yk_v_value yk_v_binary(struct yk_render *, enum yk_sign, struct yk_v_value,
			      struct yk_v_value);

#endif
