// SPDX-License-Identifier: Apache-2.0
// Parses templates by recursive descent, with jinja2's precedence of operators.
#include "config.h"

#include "template/syntax.h"

#include <string.h>

#include "base/error.h"
#include "template/functions.h"

struct parser {
	struct yk_render *r;
	const struct yk_lexeme *at;
	bool extra; // `varargs` or `kwargs` occurred: a macro that takes any arguments
};

static struct yk_syntax_node *expression(struct parser *, bool with_cond);
static struct yk_syntax_node *unary(struct parser *, bool with_filter);
static struct yk_syntax_node *statements(struct parser *, const char *end1, const char *end2,
					 const char *end3);

// ---- lexemes ----

static struct yk_syntax_node *fail(struct parser *p, const char *what)
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

static bool sign_is(const struct yk_lexeme *l, enum yk_sign s)
{
	return l->kind == YK_L_SIGN && l->sign == s;
}

static bool name_is(const struct yk_lexeme *l, const char *name)
{
	return l->kind == YK_L_NAME && yk_v_is_string(l->value, name);
}

static bool sign(struct parser *p, enum yk_sign s)
{
	const bool is = sign_is(p->at, s);
	p->at += is;
	return is;
}

static bool word(struct parser *p, const char *name)
{
	const bool is = name_is(p->at, name);
	p->at += is;
	return is;
}

static void expect_sign(struct parser *p, enum yk_sign s, const char *what)
{
	if (!p->r->failed && !sign(p, s))
		fail(p, what);
}

static void expect(struct parser *p, enum yk_lexeme_kind kind, const char *what)
{
	if (p->r->failed)
		return;
	if (p->at->kind == kind)
		p->at++;
	else
		fail(p, what);
}

static const struct yk_chars *take_name(struct parser *p)
{
	if (p->at->kind != YK_L_NAME) {
		fail(p, "a name is missing");
		return NULL;
	}
	return p->at++->value.s;
}

// ---- nodes ----

static struct yk_syntax_node *node(struct parser *p, enum yk_node_kind kind,
				   struct yk_syntax_node *a, struct yk_syntax_node *b)
{
	struct yk_syntax_node *n = yk_render_alloc(p->r, sizeof *n);
	if (n)
		*n = (struct yk_syntax_node){ .kind = kind, .line = p->at->line, .a = a, .b = b };
	return n;
}

static struct yk_syntax_node *named(struct parser *p, enum yk_node_kind kind,
				    struct yk_syntax_node *a, const struct yk_chars *name)
{
	struct yk_syntax_node *n = node(p, kind, a, NULL);
	if (n)
		n->name = name;
	return n;
}

static struct yk_syntax_node *signed_node(struct parser *p, enum yk_node_kind kind, enum yk_sign s,
					  struct yk_syntax_node *a, struct yk_syntax_node *b)
{
	struct yk_syntax_node *n = node(p, kind, a, b);
	if (n)
		n->sign = s;
	return n;
}

// Appends to a list whose last link is *end; returns the new last link.
static struct yk_syntax_node **append(struct yk_syntax_node **end, struct yk_syntax_node *n)
{
	*end = n;
	return n ? &n->next : end;
}

// ---- expressions ----

// Comma-separated elements up to a closing bracket, which is consumed.
static struct yk_syntax_node *elements(struct parser *p, enum yk_node_kind kind, enum yk_sign close)
{
	struct yk_syntax_node *n = node(p, kind, NULL, NULL), **end = n ? &n->list : NULL;
	for (bool first = true; !p->r->failed && !sign_is(p->at, close); first = false) {
		if (!first)
			expect_sign(p, YK_COMMA, "a comma is missing in a list");
		if (p->r->failed || sign_is(p->at, close))
			break;
		struct yk_syntax_node *x = expression(p, true);
		if (kind == YK_N_DICT) {
			expect_sign(p, YK_COLON, "a colon is missing in a dict");
			x = node(p, YK_N_PAIR, x, p->r->failed ? NULL : expression(p, true));
		}
		end = append(end, x);
	}
	expect_sign(p, close, "a bracket has no end");
	return n;
}

static bool tuple_ends(const struct parser *p, const char *stop)
{
	return p->at->kind == YK_L_OUTPUT_END || p->at->kind == YK_L_BLOCK_END ||
	       sign_is(p->at, YK_CLOSE) || (stop && name_is(p->at, stop));
}

static struct yk_syntax_node *primary(struct parser *p, bool member);

// One expression, or several with commas between them as a tuple.  simple: names and constants only.
static struct yk_syntax_node *tuple(struct parser *p, bool simple, bool member, bool with_cond,
				    const char *stop, bool parentheses)
{
	struct yk_syntax_node *list = NULL, **end = &list;
	bool is_tuple = false;
	while (!p->r->failed) {
		if (list)
			expect_sign(p, YK_COMMA, "a comma is missing");
		if (tuple_ends(p, stop) || p->r->failed)
			break;
		end = append(end, simple ? primary(p, member) : expression(p, with_cond));
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

static struct yk_syntax_node *constant(struct parser *p, struct yk_v_value v)
{
	struct yk_syntax_node *n = node(p, YK_N_CONST, NULL, NULL);
	if (n)
		n->value = v;
	return n;
}

static struct yk_syntax_node *strings(struct parser *p)
{
	struct yk_v_value v = p->at++->value;
	struct yk_string to = { 0 };
	if (v.kind != YK_V_STRING || p->at->kind != YK_L_CONST || p->at->value.kind != YK_V_STRING)
		return constant(p, v);
	for (yk_string_add(&to, v.s->s, v.s->n);
	     p->at->kind == YK_L_CONST && p->at->value.kind == YK_V_STRING; p->at++)
		yk_string_add(&to, p->at->value.s->s, p->at->value.s->n);
	return constant(p, yk_v_taken(p->r, &to));
}

static struct yk_syntax_node *primary(struct parser *p, bool member)
{
	const struct yk_lexeme *l = p->at;
	struct yk_syntax_node *n;
	if (l->kind == YK_L_CONST)
		return strings(p);
	if (l->kind == YK_L_NAME) {
		p->at++;
		if (name_is(l, "true") || name_is(l, "True") || name_is(l, "false") ||
		    name_is(l, "False"))
			return constant(p, yk_v_bool((l->value.s->s[0] | 32) == 't'));
		if (name_is(l, "none") || name_is(l, "None"))
			return constant(p, yk_v_none());
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
		n = tuple(p, false, false, true, NULL, true);
		expect_sign(p, YK_CLOSE, "a parenthesis has no end");
		return n;
	}
	if (sign(p, YK_OPEN_LIST))
		return elements(p, YK_N_LIST, YK_CLOSE_LIST);
	if (sign(p, YK_OPEN_DICT))
		return elements(p, YK_N_DICT, YK_CLOSE_DICT);
	return fail(p, "an expression is missing");
}

static struct yk_syntax_node *arguments(struct parser *p)
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
			n = node(p, YK_N_STAR, expression(p, true), NULL);
		} else if (sign(p, YK_POW)) {
			n = node(p, YK_N_STARS, expression(p, true), NULL);
			keywords = true;
		} else if (p->at->kind == YK_L_NAME && sign_is(p->at + 1, YK_ASSIGN)) {
			const struct yk_chars *name = take_name(p);
			p->at++;
			n = named(p, YK_N_KEYWORD, expression(p, true), name);
			keywords = true;
		} else if (keywords) {
			return fail(p, "an argument without a name follows one with a name");
		} else {
			n = expression(p, true);
		}
		end = append(end, n);
	}
	expect_sign(p, YK_CLOSE, "the arguments have no end");
	return list;
}

static struct yk_syntax_node *call(struct parser *p, struct yk_syntax_node *what)
{
	struct yk_syntax_node *n = node(p, YK_N_CALL, what, NULL);
	if (n)
		n->list = arguments(p);
	return n;
}

static bool slice_ends(const struct parser *p)
{
	return sign_is(p->at, YK_CLOSE_LIST) || sign_is(p->at, YK_COMMA) ||
	       sign_is(p->at, YK_COLON);
}

static struct yk_syntax_node *index_of(struct parser *p)
{
	struct yk_syntax_node *a = sign_is(p->at, YK_COLON) ? NULL : expression(p, true);
	if (p->r->failed || !sign(p, YK_COLON))
		return a;
	struct yk_syntax_node *n =
		node(p, YK_N_SLICE, a, slice_ends(p) ? NULL : expression(p, true));
	if (n && sign(p, YK_COLON) && !slice_ends(p))
		n->c = expression(p, true);
	return n;
}

static struct yk_syntax_node *subscript(struct parser *p, struct yk_syntax_node *of)
{
	if (sign(p, YK_DOT)) {
		if (p->at->kind == YK_L_CONST && p->at->value.kind == YK_V_INT)
			return node(p, YK_N_ITEM, of, constant(p, p->at++->value));
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

static struct yk_syntax_node *postfix(struct parser *p, struct yk_syntax_node *n)
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
static struct yk_syntax_node *filter(struct parser *p, struct yk_syntax_node *of)
{
	struct yk_syntax_node *n = named(p, YK_N_FILTER, of, take_name(p));
	if (!n)
		return NULL;
	n->function = yk_filter_find(n->name); // an unknown one fails where it is used
	if (sign_is(p->at, YK_OPEN))
		n->list = arguments(p);
	return n;
}

static bool test_argument(const struct parser *p)
{
	if (name_is(p->at, "else") || name_is(p->at, "or") || name_is(p->at, "and"))
		return false;
	return p->at->kind == YK_L_NAME || p->at->kind == YK_L_CONST ||
	       sign_is(p->at, YK_OPEN_LIST) || sign_is(p->at, YK_OPEN_DICT);
}

static struct yk_syntax_node *test(struct parser *p, struct yk_syntax_node *of)
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

static struct yk_syntax_node *filters(struct parser *p, struct yk_syntax_node *n)
{
	while (!p->r->failed) {
		if (sign(p, YK_PIPE))
			n = filter(p, n);
		else if (word(p, "is"))
			n = test(p, n);
		else if (sign_is(p->at, YK_OPEN))
			n = call(p, n);
		else
			break;
	}
	return n;
}

static struct yk_syntax_node *unary(struct parser *p, bool with_filter)
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
static struct yk_syntax_node *binary(struct parser *p, int level)
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

static bool comparison(struct parser *p, enum yk_sign *s)
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

static struct yk_syntax_node *compare(struct parser *p)
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

static struct yk_syntax_node * not(struct parser * p)
{
	struct yk_syntax_node *n = NULL;
	if (!word(p, "not"))
		return compare(p);
	if (yk_render_enter(p->r))
		n = node(p, YK_N_NOT, not(p), NULL);
	p->r->depth--;
	return n;
}

static struct yk_syntax_node * and (struct parser * p)
{
	struct yk_syntax_node *n = not(p);
	while (!p->r->failed && word(p, "and"))
		n = node(p, YK_N_AND, n, not(p));
	return n;
}

static struct yk_syntax_node * or (struct parser * p)
{
	struct yk_syntax_node *n = and(p);
	while (!p->r->failed && word(p, "or"))
		n = node(p, YK_N_OR, n, and(p));
	return n;
}

static struct yk_syntax_node *expression(struct parser *p, bool with_cond)
{
	struct yk_syntax_node *n = NULL;
	if (yk_render_enter(p->r))
		n = or (p);
	while (with_cond && !p->r->failed && word(p, "if")) {
		n = node(p, YK_N_COND, or (p), n);
		if (n && word(p, "else"))
			n->c = expression(p, true);
	}
	p->r->depth--;
	return n;
}

// ---- statements ----

static struct yk_syntax_node *target(struct parser *p, bool member, const char *stop)
{
	struct yk_syntax_node *n = tuple(p, true, member, false, stop, false);
	const struct yk_syntax_node *x = n && n->kind == YK_N_TUPLE ? n->list : n;
	for (; x; x = x == n ? NULL : x->next)
		if (x->kind != YK_N_NAME && x->kind != YK_N_MEMBER)
			return fail(p, "only names can be assigned to");
	return n;
}

static struct yk_syntax_node *set(struct parser *p)
{
	struct yk_syntax_node *to = target(p, true, NULL), *n;
	if (p->r->failed)
		return NULL;
	if (sign(p, YK_ASSIGN))
		return node(p, YK_N_SET, to, tuple(p, false, false, true, NULL, false));
	n = node(p, YK_N_SET_BLOCK, to, NULL);
	while (n && !p->r->failed && sign(p, YK_PIPE))
		n->b = filter(p, n->b);
	if (n)
		n->list = statements(p, "endset", NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *for_loop(struct parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_FOR, target(p, false, "in"), NULL);
	if (!n || p->r->failed || !word(p, "in"))
		return p->r->failed ? NULL : fail(p, "'in' is missing");
	n->b = tuple(p, false, false, false, "recursive", false);
	if (!p->r->failed && word(p, "if"))
		n->c = expression(p, true);
	n->flag = word(p, "recursive");
	n->list = statements(p, "endfor", "else", NULL);
	if (!p->r->failed && word(p, "else"))
		n->other = statements(p, "endfor", NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *if_block(struct parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_IF, NULL, NULL);
	if (!n)
		return NULL;
	n->a = tuple(p, false, false, false, NULL, false);
	n->list = statements(p, "elif", "else", "endif");
	struct yk_syntax_node *inner = n;
	while (!p->r->failed && word(p, "elif")) {
		struct yk_syntax_node *next = node(p, YK_N_IF, NULL, NULL);
		if (!next)
			return NULL;
		next->flag = true;
		next->a = tuple(p, false, false, false, NULL, false);
		next->list = statements(p, "elif", "else", "endif");
		inner = inner->other = next;
	}
	if (!p->r->failed && word(p, "else"))
		inner->other = statements(p, "endif", NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *signature(struct parser *p)
{
	struct yk_syntax_node *list = NULL, **end = &list;
	bool defaults = false;
	expect_sign(p, YK_OPEN, "a parenthesis is missing");
	while (!p->r->failed && !sign_is(p->at, YK_CLOSE)) {
		if (list)
			expect_sign(p, YK_COMMA, "a comma is missing between parameters");
		if (p->r->failed)
			break;
		struct yk_syntax_node *n = named(p, YK_N_KEYWORD, NULL, take_name(p));
		if (n && sign(p, YK_ASSIGN)) {
			n->a = expression(p, true);
			defaults = true;
		} else if (defaults) {
			return fail(p, "a parameter without a default follows one with a default");
		}
		end = append(end, n);
	}
	expect_sign(p, YK_CLOSE, "the parameters have no end");
	return list;
}

// The body of a block up to its end tag.
static struct yk_syntax_node *body(struct parser *p, struct yk_syntax_node *n, const char *end)
{
	if (!n || p->r->failed)
		return NULL;
	n->list = statements(p, end, NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *macro(struct parser *p)
{
	struct yk_syntax_node *n = named(p, YK_N_MACRO, NULL, take_name(p));
	const bool outer = p->extra;
	if (n && !p->r->failed)
		n->args = signature(p);
	p->extra = false;
	n = body(p, n, "endmacro");
	if (n)
		n->flag = p->extra;
	p->extra = outer;
	return n;
}

static struct yk_syntax_node *call_block(struct parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_CALL_BLOCK, NULL, NULL);
	if (n && sign_is(p->at, YK_OPEN))
		n->args = signature(p);
	if (n && !p->r->failed)
		n->a = expression(p, true);
	if (n && !p->r->failed && n->a->kind != YK_N_CALL)
		return fail(p, "a call block needs a call");
	return body(p, n, "endcall");
}

static struct yk_syntax_node *filter_block(struct parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_FILTER_BLOCK, NULL, NULL);
	if (n)
		n->b = filter(p, NULL);
	while (n && !p->r->failed && sign(p, YK_PIPE))
		n->b = filter(p, n->b);
	return body(p, n, "endfilter");
}

static struct yk_syntax_node *with(struct parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_WITH, NULL, NULL), **end = n ? &n->args : NULL;
	while (n && !p->r->failed && p->at->kind != YK_L_BLOCK_END) {
		if (n->args)
			expect_sign(p, YK_COMMA, "a comma is missing");
		struct yk_syntax_node *to = p->r->failed ? NULL : target(p, false, NULL);
		expect_sign(p, YK_ASSIGN, "'=' is missing");
		end = append(end, node(p, YK_N_SET, to, p->r->failed ? NULL : expression(p, true)));
	}
	return body(p, n, "endwith");
}

static struct yk_syntax_node *print(struct parser *p)
{
	struct yk_syntax_node *list = NULL, **end = &list;
	while (!p->r->failed && p->at->kind != YK_L_BLOCK_END) {
		if (list)
			expect_sign(p, YK_COMMA, "a comma is missing");
		end = append(end,
			     node(p, YK_N_OUTPUT, p->r->failed ? NULL : expression(p, true), NULL));
	}
	struct yk_syntax_node *n = node(p, YK_N_SCOPE, NULL, NULL);
	if (n)
		n->list = list;
	return n;
}

static struct yk_syntax_node *block(struct parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_SCOPE, NULL, NULL);
	const struct yk_chars *name = take_name(p);
	while (word(p, "scoped") || word(p, "required"))
		;
	n = body(p, n, "endblock");
	if (n && p->at->kind == YK_L_NAME && p->at->value.s->n == name->n &&
	    !memcmp(p->at->value.s->s, name->s, name->n))
		p->at++;
	return n;
}

static struct yk_syntax_node *statement(struct parser *p)
{
	static const struct {
		const char *name;
		struct yk_syntax_node *(*parse)(struct parser *);
	} kinds[] = { { "set", set },     { "if", if_block },     { "for", for_loop },
		      { "macro", macro }, { "call", call_block }, { "filter", filter_block },
		      { "with", with },   { "print", print },     { "block", block } };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (word(p, kinds[i].name))
			return kinds[i].parse(p);
	if (word(p, "break"))
		return node(p, YK_N_BREAK, NULL, NULL);
	if (word(p, "continue"))
		return node(p, YK_N_CONTINUE, NULL, NULL);
	if (word(p, "generation"))
		return body(p, node(p, YK_N_GENERATION, NULL, NULL), "endgeneration");
	return fail(p, "unknown tag");
}

// Statements up to the tag of one of these names, which is left, or, without names, to the end.
static struct yk_syntax_node *statements(struct parser *p, const char *end1, const char *end2,
					 const char *end3)
{
	struct yk_syntax_node *list = NULL, **end = &list, *n;
	if (end1 && !p->r->failed) {
		sign(p, YK_COLON);
		expect(p, YK_L_BLOCK_END, "a tag is longer than expected");
	}
	yk_render_enter(p->r);
	while (!p->r->failed) {
		const struct yk_lexeme *l = p->at;
		if (l->kind == YK_L_END) {
			if (end1)
				fail(p, "a block has no end");
			break;
		}
		p->at++;
		p->r->line = l->line;
		if (l->kind == YK_L_DATA) {
			n = constant(p, l->value);
			if (n)
				n->kind = YK_N_DATA;
		} else if (l->kind == YK_L_OUTPUT) {
			n = node(p, YK_N_OUTPUT, tuple(p, false, false, true, NULL, false), NULL);
			expect(p, YK_L_OUTPUT_END, "an expression is longer than expected");
		} else if (l->kind == YK_L_BLOCK) {
			if ((end1 && name_is(p->at, end1)) || (end2 && name_is(p->at, end2)) ||
			    (end3 && name_is(p->at, end3)))
				break;
			n = statement(p);
			expect(p, YK_L_BLOCK_END, "a tag is longer than expected");
		} else {
			fail(p, "unexpected end of a tag");
			break;
		}
		if (n)
			n->line = l->line;
		end = append(end, n);
	}
	p->r->depth--;
	return list;
}

struct yk_syntax_node *yk_template_syntax(struct yk_render *r, const struct yk_lexemes *l)
{
	struct parser p = { r, l->at, false };
	struct yk_syntax_node *n = r->failed ? NULL : node(&p, YK_N_SCOPE, NULL, NULL);
	if (n)
		n->list = statements(&p, NULL, NULL, NULL);
	return r->failed ? NULL : n;
}
