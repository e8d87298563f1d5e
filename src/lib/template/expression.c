// SPDX-License-Identifier: Apache-2.0
// Parses expressions of templates by recursive descent, with jinja2's precedence of operators.
#include "config.h"

#include "template/functions.h"
#include "template/parser.h"

static struct yk_syntax_node *unary(struct yk_parser *, bool with_filter);

// Comma-separated elements up to a closing bracket, which is consumed.
static struct yk_syntax_node *elements(struct yk_parser *p, enum yk_node_kind kind,
				       enum yk_sign close)
{
	struct yk_syntax_node *n = node(p, kind, NULL, NULL), **end = n ? &n->list : NULL;
	for (bool first = true; !p->r->failed && !sign_is(p->at, close); first = false) {
		if (!first)
			expect_sign(p, YK_COMMA, "a comma is missing in a list");
		if (p->r->failed || sign_is(p->at, close))
			break;
		struct yk_syntax_node *x = yk_parse_expression(p, true);
		if (kind == YK_N_DICT) {
			expect_sign(p, YK_COLON, "a colon is missing in a dict");
			x = node(p, YK_N_PAIR, x,
				 p->r->failed ? NULL : yk_parse_expression(p, true));
		}
		end = append(end, x);
	}
	expect_sign(p, close, "a bracket has no end");
	return n;
}

static bool tuple_ends(const struct yk_parser *p, const char *stop)
{
	return p->at->kind == YK_L_OUTPUT_END || p->at->kind == YK_L_BLOCK_END ||
	       sign_is(p->at, YK_CLOSE) || (stop && name_is(p->at, stop));
}

static struct yk_syntax_node *primary(struct yk_parser *p, bool member);

struct yk_syntax_node *yk_parse_tuple(struct yk_parser *p, bool simple, bool member, bool with_cond,
				      const char *stop, bool parentheses)
{
	struct yk_syntax_node *list = NULL, **end = &list;
	bool is_tuple = false;
	while (!p->r->failed) {
		if (list)
			expect_sign(p, YK_COMMA, "a comma is missing");
		if (tuple_ends(p, stop) || p->r->failed)
			break;
		end = append(end, simple ? primary(p, member) : yk_parse_expression(p, with_cond));
		if (p->r->failed || !sign_is(p->at, YK_COMMA))
			break;
		is_tuple = true;
	}
	if (!is_tuple && list)
		return list;
	if (!is_tuple && !parentheses)
		return p->r->failed ? NULL : fail(p, "an expression is missing");
	struct yk_syntax_node *n = node(p, YK_N_TUPLE, NULL, NULL);
	if (n)
		n->list = list;
	return n;
}

struct yk_syntax_node *yk_parse_constant(struct yk_parser *p, struct yk_v_value v)
{
	struct yk_syntax_node *n = node(p, YK_N_CONST, NULL, NULL);
	if (n)
		n->value = v;
	return n;
}

static struct yk_syntax_node *strings(struct yk_parser *p)
{
	struct yk_v_value v = p->at++->value;
	struct yk_string to = { 0 };
	if (v.kind != YK_V_STRING || p->at->kind != YK_L_CONST || p->at->value.kind != YK_V_STRING)
		return yk_parse_constant(p, v);
	for (yk_string_add(&to, v.s->s, v.s->n);
	     p->at->kind == YK_L_CONST && p->at->value.kind == YK_V_STRING; p->at++)
		yk_string_add(&to, p->at->value.s->s, p->at->value.s->n);
	return yk_parse_constant(p, yk_v_taken(p->r, &to));
}

static struct yk_syntax_node *primary(struct yk_parser *p, bool member)
{
	const struct yk_lexeme *l = p->at;
	struct yk_syntax_node *n;
	if (l->kind == YK_L_CONST)
		return strings(p);
	if (l->kind == YK_L_NAME) {
		p->at++;
		if (name_is(l, "true") || name_is(l, "True") || name_is(l, "false") ||
		    name_is(l, "False"))
			return yk_parse_constant(p, yk_v_bool((l->value.s->s[0] | 32) == 't'));
		if (name_is(l, "none") || name_is(l, "None"))
			return yk_parse_constant(p, yk_v_none());
		p->extra = p->extra || name_is(l, "varargs") || name_is(l, "kwargs");
		n = named(p, YK_N_NAME, NULL, l->value.s);
		if (!member || !sign(p, YK_DOT))
			return n;
		struct yk_syntax_node *object = n;
		n = named(p, YK_N_MEMBER, NULL, take_name(p));
		if (n)
			n->b = object;
		return n;
	}
	if (sign(p, YK_OPEN)) {
		n = yk_parse_tuple(p, false, false, true, NULL, true);
		expect_sign(p, YK_CLOSE, "a parenthesis has no end");
		return n;
	}
	if (sign(p, YK_OPEN_LIST))
		return elements(p, YK_N_LIST, YK_CLOSE_LIST);
	if (sign(p, YK_OPEN_DICT))
		return elements(p, YK_N_DICT, YK_CLOSE_DICT);
	return fail(p, "an expression is missing");
}

static struct yk_syntax_node *arguments(struct yk_parser *p)
{
	struct yk_syntax_node *list = NULL, **end = &list, *n;
	bool keywords = false;
	expect_sign(p, YK_OPEN, "a parenthesis is missing");
	while (!p->r->failed && !sign_is(p->at, YK_CLOSE)) {
		if (list)
			expect_sign(p, YK_COMMA, "a comma is missing between arguments");
		if (p->r->failed || sign_is(p->at, YK_CLOSE))
			break;
		if (sign(p, YK_MUL)) {
			n = node(p, YK_N_STAR, yk_parse_expression(p, true), NULL);
		} else if (sign(p, YK_POW)) {
			n = node(p, YK_N_STARS, yk_parse_expression(p, true), NULL);
			keywords = true;
		} else if (p->at->kind == YK_L_NAME && sign_is(p->at + 1, YK_ASSIGN)) {
			const struct yk_chars *name = take_name(p);
			p->at++;
			n = named(p, YK_N_KEYWORD, yk_parse_expression(p, true), name);
			keywords = true;
		} else if (keywords) {
			return fail(p, "an argument without a name follows one with a name");
		} else {
			n = yk_parse_expression(p, true);
		}
		end = append(end, n);
	}
	expect_sign(p, YK_CLOSE, "the arguments have no end");
	return list;
}

static struct yk_syntax_node *call(struct yk_parser *p, struct yk_syntax_node *what)
{
	struct yk_syntax_node *n = node(p, YK_N_CALL, what, NULL);
	if (n)
		n->list = arguments(p);
	return n;
}

static bool slice_ends(const struct yk_parser *p)
{
	return sign_is(p->at, YK_CLOSE_LIST) || sign_is(p->at, YK_COMMA) ||
	       sign_is(p->at, YK_COLON);
}

static struct yk_syntax_node *index_of(struct yk_parser *p)
{
	struct yk_syntax_node *a = sign_is(p->at, YK_COLON) ? NULL : yk_parse_expression(p, true);
	if (p->r->failed || !sign(p, YK_COLON))
		return a;
	struct yk_syntax_node *n =
		node(p, YK_N_SLICE, a, slice_ends(p) ? NULL : yk_parse_expression(p, true));
	if (n && sign(p, YK_COLON) && !slice_ends(p))
		n->c = yk_parse_expression(p, true);
	return n;
}

static struct yk_syntax_node *subscript(struct yk_parser *p, struct yk_syntax_node *of)
{
	if (sign(p, YK_DOT)) {
		if (p->at->kind == YK_L_CONST && p->at->value.kind == YK_V_INT)
			return node(p, YK_N_ITEM, of, yk_parse_constant(p, p->at++->value));
		return named(p, YK_N_ATTR, of, take_name(p));
	}
	p->at++;
	struct yk_syntax_node *n = node(p, YK_N_ITEM, of, index_of(p)), *list = n ? n->b : NULL;
	if (n && sign_is(p->at, YK_COMMA)) {
		struct yk_syntax_node **end = &list->next;
		while (!p->r->failed && sign(p, YK_COMMA))
			end = append(end, index_of(p));
		n->b = node(p, YK_N_TUPLE, NULL, NULL);
		if (n->b)
			n->b->list = list;
	}
	expect_sign(p, YK_CLOSE_LIST, "a bracket has no end");
	return n;
}

static struct yk_syntax_node *postfix(struct yk_parser *p, struct yk_syntax_node *n)
{
	while (!p->r->failed) {
		if (sign_is(p->at, YK_DOT) || sign_is(p->at, YK_OPEN_LIST))
			n = subscript(p, n);
		else if (sign_is(p->at, YK_OPEN))
			n = call(p, n);
		else
			break;
	}
	return n;
}

// NAME or NAME.NAME with arguments, of filters.
struct yk_syntax_node *yk_parse_filter(struct yk_parser *p, struct yk_syntax_node *of)
{
	struct yk_syntax_node *n = named(p, YK_N_FILTER, of, take_name(p));
	if (!n)
		return NULL;
	n->function = yk_filter_find(n->name); // an unknown one fails where it is used
	if (sign_is(p->at, YK_OPEN))
		n->list = arguments(p);
	return n;
}

static bool test_argument(const struct yk_parser *p)
{
	if (name_is(p->at, "else") || name_is(p->at, "or") || name_is(p->at, "and"))
		return false;
	return p->at->kind == YK_L_NAME || p->at->kind == YK_L_CONST ||
	       sign_is(p->at, YK_OPEN_LIST) || sign_is(p->at, YK_OPEN_DICT);
}

static struct yk_syntax_node *test(struct yk_parser *p, struct yk_syntax_node *of)
{
	const bool negated = word(p, "not");
	struct yk_syntax_node *n = named(p, YK_N_TEST, of, take_name(p));
	if (!n)
		return NULL;
	n->function = yk_test_find(n->name);
	if (sign_is(p->at, YK_OPEN))
		n->list = arguments(p);
	else if (name_is(p->at, "is"))
		return fail(p, "tests cannot be chained");
	else if (test_argument(p))
		n->list = postfix(p, primary(p, false));
	return negated ? node(p, YK_N_NOT, n, NULL) : n;
}

static struct yk_syntax_node *filters(struct yk_parser *p, struct yk_syntax_node *n)
{
	while (!p->r->failed) {
		if (sign(p, YK_PIPE))
			n = yk_parse_filter(p, n);
		else if (word(p, "is"))
			n = test(p, n);
		else if (sign_is(p->at, YK_OPEN))
			n = call(p, n);
		else
			break;
	}
	return n;
}

static struct yk_syntax_node *unary(struct yk_parser *p, bool with_filter)
{
	struct yk_syntax_node *n = NULL;
	if (yk_render_enter(p->r)) {
		if (sign(p, YK_SUB))
			n = node(p, YK_N_NEG, unary(p, false), NULL);
		else if (sign(p, YK_ADD))
			n = node(p, YK_N_POS, unary(p, false), NULL);
		else
			n = primary(p, false);
		n = postfix(p, n);
		n = with_filter ? filters(p, n) : n;
	}
	p->r->depth--;
	return n;
}

// Operators from the tightest level on, each left-associative.
static struct yk_syntax_node *binary(struct yk_parser *p, int level)
{
	static const struct {
		enum yk_sign s[5]; // ends with ASSIGN
	} levels[] = { { { YK_POW, YK_ASSIGN } },
		       { { YK_MUL, YK_DIV, YK_FLOORDIV, YK_MOD, YK_ASSIGN } },
		       { { YK_ASSIGN } },
		       { { YK_ADD, YK_SUB, YK_ASSIGN } } };
	struct yk_syntax_node *n = level == 0 ? unary(p, true) : binary(p, level - 1);
	for (int i = 0; !p->r->failed && levels[level].s[i] != YK_ASSIGN; i++) {
		if (!sign(p, levels[level].s[i]))
			continue;
		n = signed_node(p, YK_N_BINARY, levels[level].s[i], n,
				level == 0 ? unary(p, true) : binary(p, level - 1));
		i = -1;
	}
	if (level != 2 || p->r->failed || !sign_is(p->at, YK_CONCAT))
		return n;
	struct yk_syntax_node *list = node(p, YK_N_CONCAT, NULL, NULL),
			      **end = list ? append(&list->list, n) : NULL;
	while (!p->r->failed && sign(p, YK_CONCAT))
		end = append(end, binary(p, 1));
	return list;
}

static bool comparison(struct yk_parser *p, enum yk_sign *s)
{
	*s = p->at->sign;
	if (p->at->kind == YK_L_SIGN && *s >= YK_EQ && *s <= YK_GE) {
		p->at++;
		return true;
	}
	if (word(p, "in")) {
		*s = YK_IN;
		return true;
	}
	if (!name_is(p->at, "not") || !name_is(p->at + 1, "in"))
		return false;
	*s = YK_NOT_IN;
	p->at += 2;
	return true;
}

static struct yk_syntax_node *compare(struct yk_parser *p)
{
	struct yk_syntax_node *n = binary(p, 3), *list = NULL, **end = &list;
	enum yk_sign s;
	while (!p->r->failed && comparison(p, &s))
		end = append(end, signed_node(p, YK_N_OPERAND, s, binary(p, 3), NULL));
	if (!list)
		return n;
	n = node(p, YK_N_COMPARE, n, NULL);
	if (n)
		n->list = list;
	return n;
}

static struct yk_syntax_node * not(struct yk_parser * p)
{
	struct yk_syntax_node *n = NULL;
	if (!word(p, "not"))
		return compare(p);
	if (yk_render_enter(p->r))
		n = node(p, YK_N_NOT, not(p), NULL);
	p->r->depth--;
	return n;
}

static struct yk_syntax_node * and (struct yk_parser * p)
{
	struct yk_syntax_node *n = not(p);
	while (!p->r->failed && word(p, "and"))
		n = node(p, YK_N_AND, n, not(p));
	return n;
}

static struct yk_syntax_node * or (struct yk_parser * p)
{
	struct yk_syntax_node *n = and(p);
	while (!p->r->failed && word(p, "or"))
		n = node(p, YK_N_OR, n, and(p));
	return n;
}

struct yk_syntax_node *yk_parse_expression(struct yk_parser *p, bool with_cond)
{
	struct yk_syntax_node *n = NULL;
	if (yk_render_enter(p->r))
		n = or (p);
	while (with_cond && !p->r->failed && word(p, "if")) {
		n = node(p, YK_N_COND, or (p), n);
		if (n && word(p, "else"))
			n->c = yk_parse_expression(p, true);
	}
	p->r->depth--;
	return n;
}
