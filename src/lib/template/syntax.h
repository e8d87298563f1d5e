// SPDX-License-Identifier: Apache-2.0
// Tokens and the syntax tree of a template.
#ifndef YK_TEMPLATE_SYNTAX_H
#define YK_TEMPLATE_SYNTAX_H

#include "template/value.h"

enum yk_lexeme_kind {
	YK_L_END,
	YK_L_DATA,
	YK_L_OUTPUT, // {{
	YK_L_OUTPUT_END,
	YK_L_BLOCK, // {%
	YK_L_BLOCK_END,
	YK_L_NAME,
	YK_L_CONST, // string, integer or float
	YK_L_SIGN,
};

struct yk_lexeme {
	enum yk_lexeme_kind kind;
	int line;
	enum yk_sign sign;
	struct yk_v_value value; // CONST; DATA and NAME: a string
};

struct yk_lexemes {
	struct yk_lexeme *at;
	size_t n, cap;
};

// Divides a source into lexemes, the last of which is END.  The render supplies memory and receives
// errors.
void yk_template_lex(struct yk_render *, const char *source, size_t bytes, struct yk_lexemes *);

enum yk_node_kind {
	// expressions
	YK_N_CONST,
	YK_N_NAME,
	YK_N_LIST,  // list
	YK_N_TUPLE, // list
	YK_N_DICT,  // list of PAIR a: b
	YK_N_PAIR,
	YK_N_NEG, // a
	YK_N_POS,
	YK_N_NOT,
	YK_N_BINARY,  // a sign b
	YK_N_CONCAT,  // list
	YK_N_COMPARE, // a, then a list of OPERAND sign a
	YK_N_OPERAND,
	YK_N_AND, // a b
	YK_N_OR,
	YK_N_COND,    // b if a else c; c NULL: undefined
	YK_N_ATTR,    // a.name
	YK_N_ITEM,    // a[b]
	YK_N_SLICE,   // a:b:c, each may be NULL
	YK_N_CALL,    // a(list)
	YK_N_KEYWORD, // in arguments: name=a
	YK_N_STAR,    // in arguments: *a
	YK_N_STARS,   // in arguments: **a
	YK_N_FILTER,  // a|name(list)
	YK_N_TEST,    // a is name(list)
	YK_N_MEMBER,  // target name.b, with b a NAME
	// statements
	YK_N_DATA,
	YK_N_OUTPUT,       // a
	YK_N_IF,           // a: list, other; flag: an elif, in `other` of the one before
	YK_N_FOR,          // a in b if c: list, other; flag: recursive
	YK_N_SET,          // a = b
	YK_N_SET_BLOCK,    // a, filters b: list
	YK_N_MACRO,        // name(args): list; args: KEYWORD name=a, a may be NULL
	YK_N_CALL_BLOCK,   // call a with a caller(args): list
	YK_N_FILTER_BLOCK, // filters b: list
	YK_N_WITH,         // args: SET; list
	YK_N_SCOPE,        // list
	YK_N_GENERATION,   // list
	YK_N_BREAK,
	YK_N_CONTINUE,
};

struct yk_syntax_node {
	enum yk_node_kind kind;
	enum yk_sign sign;
	int line;
	bool flag;
	const struct yk_chars *name;
	struct yk_v_value value;            // CONST, DATA
	const struct yk_function *function; // FILTER, TEST; NULL: unknown
	struct yk_syntax_node *a, *b, *c;
	struct yk_syntax_node *args, *list, *other;
	struct yk_syntax_node *next; // in a list
};

// Parses the lexemes; NULL: failed.
struct yk_syntax_node *yk_template_syntax(struct yk_render *, const struct yk_lexemes *);

#endif
