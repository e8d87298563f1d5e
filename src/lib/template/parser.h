// SPDX-License-Identifier: Apache-2.0
// Declarations for the parsers of expressions and of statements: the position in the lexemes, and
// constructors of nodes.
#ifndef YK_TEMPLATE_PARSER_H
#define YK_TEMPLATE_PARSER_H

#include <string.h>

#include "base/error.h"
#include "template/syntax.h"

struct yk_parser {
	struct yk_render *r;
	const struct yk_lexeme *at;
	bool extra; // `varargs` or `kwargs` occurred: a macro that takes any arguments
};

// ---- lexemes ----

static inline struct yk_syntax_node *fail(struct yk_parser *p, const char *what)
{
	const struct yk_lexeme *l = p->at;
	p->r->line = l->line;
	if (l->kind == YK_L_NAME)
		yk_render_fail(p->r, YOKE_EFORMAT, "%s at '%.60s'", what, l->value.s->s);
	else
		yk_render_fail(p->r, YOKE_EFORMAT, l->kind == YK_L_END ? "%s at the end" : "%s",
			       what);
	return NULL;
}

static inline bool sign_is(const struct yk_lexeme *l, enum yk_sign s)
{
	return l->kind == YK_L_SIGN && l->sign == s;
}

static inline bool name_is(const struct yk_lexeme *l, const char *name)
{
	return l->kind == YK_L_NAME && yk_v_is_string(l->value, name);
}

static inline bool sign(struct yk_parser *p, enum yk_sign s)
{
	const bool is = sign_is(p->at, s);
	p->at += is;
	return is;
}

static inline bool word(struct yk_parser *p, const char *name)
{
	const bool is = name_is(p->at, name);
	p->at += is;
	return is;
}

static inline void expect_sign(struct yk_parser *p, enum yk_sign s, const char *what)
{
	if (!p->r->failed && !sign(p, s))
		fail(p, what);
}

static inline void expect(struct yk_parser *p, enum yk_lexeme_kind kind, const char *what)
{
	if (p->r->failed)
		return;
	if (p->at->kind == kind)
		p->at++;
	else
		fail(p, what);
}

static inline const struct yk_chars *take_name(struct yk_parser *p)
{
	if (p->at->kind != YK_L_NAME) {
		fail(p, "a name is missing");
		return NULL;
	}
	return p->at++->value.s;
}

// ---- nodes ----

static inline struct yk_syntax_node *node(struct yk_parser *p, enum yk_node_kind kind,
				   struct yk_syntax_node *a, struct yk_syntax_node *b)
{
	struct yk_syntax_node *n = yk_render_alloc(p->r, sizeof *n);
	if (n)
		*n = (struct yk_syntax_node){ .kind = kind, .line = p->at->line, .a = a, .b = b };
	return n;
}

static inline struct yk_syntax_node *named(struct yk_parser *p, enum yk_node_kind kind,
				    struct yk_syntax_node *a, const struct yk_chars *name)
{
	struct yk_syntax_node *n = node(p, kind, a, NULL);
	if (n)
		n->name = name;
	return n;
}

static inline struct yk_syntax_node *signed_node(struct yk_parser *p, enum yk_node_kind kind,
						 enum yk_sign s, struct yk_syntax_node *a,
						 struct yk_syntax_node *b)
{
	struct yk_syntax_node *n = node(p, kind, a, b);
	if (n)
		n->sign = s;
	return n;
}

// Appends to a list whose last link is *end; returns the new last link.
static inline struct yk_syntax_node **append(struct yk_syntax_node **end, struct yk_syntax_node *n)
{
	*end = n;
	return n ? &n->next : end;
}

// ---- expressions (expression.c) ----

// with_cond: `a if b else c` is allowed.
struct yk_syntax_node *yk_parse_expression(struct yk_parser *, bool with_cond);
// One expression, or several with commas between them as a tuple.  simple: names and constants
// only; member: also attributes of names, as targets; stop: a name that ends it, or NULL;
// parentheses: it is in them, so it may be empty.
struct yk_syntax_node *yk_parse_tuple(struct yk_parser *, bool simple, bool member, bool with_cond,
				      const char *stop, bool parentheses);
struct yk_syntax_node *yk_parse_filter(struct yk_parser *, struct yk_syntax_node *of);
struct yk_syntax_node *yk_parse_constant(struct yk_parser *, struct yk_v_value);

#endif
