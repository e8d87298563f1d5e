// SPDX-License-Identifier: Apache-2.0
// Values of templates, with the semantics of Python: none, booleans, integers, floats, strings,
// lists, tuples, dicts, and what templates call.  Values are never changed after they are made,
// except namespaces, and live as long as their arena.
#ifndef YK_TEMPLATE_VALUE_H
#define YK_TEMPLATE_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "tokenizer/pieces.h"
#include "yoke-tokenizer.h"

enum yk_value_kind {
	YK_V_ABSENT, // an argument that was not given
	YK_V_UNDEFINED,
	YK_V_NONE,
	YK_V_BOOL,
	YK_V_INT,
	YK_V_FLOAT,
	YK_V_STRING,
	YK_V_LIST,
	YK_V_TUPLE,
	YK_V_VIEW,     // range(..), dict.keys() and the like: has a length, is no list
	YK_V_ITERATOR, // what filters like map return: can be iterated once
	YK_V_DICT,
	YK_V_NAMESPACE,
	YK_V_SLICE,
	YK_V_LOOP,
	YK_V_MACRO,
	YK_V_FUNCTION, // a global function, or `dict`
	YK_V_METHOD,   // a method with its object
};

// Operators and other signs of the language.
enum yk_sign {
	YK_ADD,
	YK_SUB,
	YK_MUL,
	YK_DIV,
	YK_FLOORDIV,
	YK_MOD,
	YK_POW,
	YK_CONCAT, // ~
	YK_EQ,
	YK_NE,
	YK_LT,
	YK_LE,
	YK_GT,
	YK_GE,
	YK_IN,
	YK_NOT_IN,
	YK_ASSIGN,
	YK_DOT,
	YK_COLON,
	YK_PIPE,
	YK_COMMA,
	YK_SEMICOLON,
	YK_OPEN,
	YK_CLOSE,
	YK_OPEN_LIST,
	YK_CLOSE_LIST,
	YK_OPEN_DICT,
	YK_CLOSE_DICT,
};

struct yk_v_value;

// Intervals of a text, in order and apart from each other.
struct yk_spans {
	struct yoke_text_span *at;
	size_t n, cap;
};

struct yk_chars {
	const char *s; // valid UTF-8, terminated with a NUL that n does not count
	size_t n, chars;
	const struct yk_spans *spans; // intervals that come from messages; NULL: none
};

// A text being built.  Bytes that are copied from a string keep their origin.
struct yk_v_buffer {
	struct yk_string s;
	struct yk_spans spans;
};

// Appends n bytes at s, which lie in `of`; of NULL: they are the template's.
void yk_text_add(struct yk_v_buffer *, const struct yk_chars *of, const char *s, size_t n);
// The bytes from `begin` on were made from the character at `at` of `of`, or from all of it if `at`
// is NULL: then they come from a message if anything in `of` does.
void yk_text_derive(struct yk_v_buffer *, size_t begin, const struct yk_chars *of, const char *at);
void yk_text_fini(struct yk_v_buffer *);

struct yk_v_value {
	enum yk_value_kind kind;
	bool markup; // a string that was marked as safe HTML
	union {
		bool b;
		int64_t i;
		double d;
		const struct yk_chars *s; // UNDEFINED: its name; NULL: unknown
		struct yk_items *list;
		struct yk_dict *dict;
		struct yk_loop *loop;
		const struct yk_macro *macro;
		const struct yk_function *function;
		const struct yk_method *method;
	};
};

struct yk_items {
	size_t n, cap;
	struct yk_v_value *v;
	const char *type;            // VIEW: "dict_keys", .. "range"
	const struct yk_chars *text; // VIEW range: its representation
};

struct yk_v_pair {
	struct yk_v_value key, value;
};

struct yk_dict {
	size_t n, cap;
	struct yk_v_pair *pair; // in the order of insertion
};

struct yk_method {
	struct yk_v_value self;
	const struct yk_function *function;
};

// A rendering: memory, limits, and the first error, after which all functions do nothing and return
// undefined.
struct yk_render {
	struct yk_arena arena;
	const char *name; // of the template, for messages
	int line;         // of the statement being rendered
	bool failed;
	int64_t steps;  // left
	int64_t memory; // bytes left
	int depth;      // of nested calls
	int64_t now;    // seconds since 1970; 0: the clock's
	struct yk_v_frame *globals;
	struct yk_v_buffer *out;     // of the statement
	struct yk_v_buffer *whole;   // the text of the template
	struct yk_spans *generation; // intervals of `whole` in generation blocks
	int signal;                  // break or continue
};

enum { YK_RENDER_DEPTH = 400 };
#define YK_RENDER_STEPS INT64_C(1000000)
#define YK_RENDER_OUTPUT ((size_t)1 << 20)
#define YK_RENDER_MEMORY ((int64_t)1 << 26)

// Reports an error with the template's name and line.
struct yk_v_value yk_render_fail(struct yk_render *, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
// Counts steps; fails when too many were made.  false: failed.
bool yk_render_charge(struct yk_render *, size_t steps);
void *yk_render_alloc(struct yk_render *, size_t bytes); // zeroed; NULL: failed
// Enters and leaves a level of recursion.
bool yk_render_enter(struct yk_render *);

static inline struct yk_v_value yk_v_absent(void)
{
	return (struct yk_v_value){ .kind = YK_V_ABSENT };
}

static inline struct yk_v_value yk_v_none(void)
{
	return (struct yk_v_value){ .kind = YK_V_NONE };
}
static inline struct yk_v_value yk_v_bool(bool b)
{
	return (struct yk_v_value){ .kind = YK_V_BOOL, .b = b };
}
static inline struct yk_v_value yk_v_int(int64_t i)
{
	return (struct yk_v_value){ .kind = YK_V_INT, .i = i };
}
static inline struct yk_v_value yk_v_float(double d)
{
	return (struct yk_v_value){ .kind = YK_V_FLOAT, .d = d };
}
static inline struct yk_v_value yk_v_undefined(const struct yk_chars *name)
{
	return (struct yk_v_value){ .kind = YK_V_UNDEFINED, .s = name };
}
struct yk_v_value yk_v_string(struct yk_render *, const char *s, size_t n); // copies
struct yk_v_value yk_v_text(struct yk_render *, const char *s);             // of a C string
struct yk_v_value yk_v_taken(struct yk_render *,
			     struct yk_string *); // of a growing string, which it releases
struct yk_v_value yk_v_built(struct yk_render *,
			     struct yk_v_buffer *); // of a text, which it releases
struct yk_v_value yk_v_substring(struct yk_render *, const struct yk_chars *, const char *s,
				 size_t n); // an interval of a string
void yk_chars_mark(struct yk_render *, struct yk_v_value, const struct yoke_text_span *,
		   size_t n); // of a new string
struct yk_v_value yk_v_list(struct yk_render *, enum yk_value_kind, size_t room);
void yk_v_append(struct yk_render *, struct yk_v_value list, struct yk_v_value);
struct yk_v_value yk_v_dict(struct yk_render *);
// origin: the index of the message, -1: another text that is not the template's, YK_NO_ORIGIN: the
// template's.
enum { YK_NO_ORIGIN = -2 };
struct yk_v_value yk_v_json(struct yk_render *, const json_t *, int64_t origin);
struct yk_v_value yk_v_messages(struct yk_render *, const json_t *);

bool yk_v_is_string(struct yk_v_value, const char *s);
static inline bool yk_v_is_present(struct yk_v_value v)
{
	return v.kind != YK_V_ABSENT;
}
static inline bool yk_v_number(struct yk_v_value v)
{
	return v.kind == YK_V_BOOL || v.kind == YK_V_INT || v.kind == YK_V_FLOAT;
}
static inline bool yk_v_integral(struct yk_v_value v)
{
	return v.kind == YK_V_BOOL || v.kind == YK_V_INT;
}
static inline int64_t yk_v_int_of(struct yk_v_value v)
{
	return v.kind == YK_V_BOOL ? v.b : v.i;
}
static inline double yk_v_float_of(struct yk_v_value v)
{
	return v.kind == YK_V_FLOAT ? v.d : (double)yk_v_int_of(v);
}
static inline bool yk_v_listed(struct yk_v_value v)
{
	return v.kind == YK_V_LIST || v.kind == YK_V_TUPLE || v.kind == YK_V_VIEW;
}

bool yk_v_truth(struct yk_v_value);
bool yk_v_equal(struct yk_render *, struct yk_v_value, struct yk_v_value);
// < 0, 0, > 0; fails for values without an order.
int yk_v_compare(struct yk_render *, struct yk_v_value, struct yk_v_value);
bool yk_v_contains(struct yk_render *, struct yk_v_value in, struct yk_v_value what);
// Elements of anything that can be iterated, as a list; consumes an iterator.
struct yk_items *yk_v_iterate(struct yk_render *, struct yk_v_value);
int64_t yk_v_length(struct yk_render *, struct yk_v_value);
const char *yk_v_type(struct yk_v_value); // Python's name of the type
// str() and repr(), appended.
void yk_v_str(struct yk_render *, struct yk_v_value, struct yk_v_buffer *);
void yk_v_repr(struct yk_render *, struct yk_v_value, struct yk_v_buffer *);
struct yk_v_value yk_v_to_string(struct yk_render *,
				 struct yk_v_value); // str(); a string stays as it is
void yk_float_repr(double, struct yk_string *);
// json.dumps
struct yk_json_style {
	bool ascii, sorted;
	const char *indent; // of one level; NULL: all on one line
	const char *comma, *colon;
};
void yk_v_dump(struct yk_render *, struct yk_v_value, const struct yk_json_style *, int level,
	       struct yk_v_buffer *);

// A member of a dict or namespace, or NULL.
struct yk_v_value *yk_dict_find(struct yk_render *, const struct yk_dict *, struct yk_v_value key);
struct yk_v_value *yk_dict_get(const struct yk_dict *, const char *key, size_t n);
void yk_dict_put(struct yk_render *, struct yk_dict *, struct yk_v_value key, struct yk_v_value);

// Strings as sequences of characters.
size_t yk_chars_offset(const struct yk_chars *, int64_t i); // byte offset of character i
bool yk_py_space(uint32_t);
// Intervals without white space, or without the characters of `set`, at the ends.
void yk_chars_strip(const struct yk_chars *, const struct yk_chars *set, bool left, bool right,
		    size_t *from, size_t *to);
struct yk_v_value yk_v_escape(struct yk_render *, struct yk_v_value); // of HTML

// Positions of a slice, as Python's slice.indices.
void yk_slice_indices(struct yk_render *, struct yk_v_value slice, int64_t n, int64_t *start,
		      int64_t *stop, int64_t *step);
struct yk_v_value yk_v_slice(struct yk_render *, struct yk_v_value, struct yk_v_value slice);

#endif
