// SPDX-License-Identifier: Apache-2.0
// Parses the statements of templates by recursive descent; expressions are parsed by expression.c.
#include "config.h"

#include "template/parser.h"

static struct yk_syntax_node *statements(struct yk_parser *, const char *end1, const char *end2,
					 const char *end3);

static struct yk_syntax_node *target(struct yk_parser *p, bool member, const char *stop)
{
	struct yk_syntax_node *n = yk_parse_tuple(p, true, member, false, stop, false);
	const struct yk_syntax_node *x = n && n->kind == YK_N_TUPLE ? n->list : n;
	for (; x; x = x == n ? NULL : x->next)
		if (x->kind != YK_N_NAME && x->kind != YK_N_MEMBER)
			return fail(p, "only names can be assigned to");
	return n;
}

static struct yk_syntax_node *set(struct yk_parser *p)
{
	struct yk_syntax_node *to = target(p, true, NULL), *n;
	if (p->r->failed)
		return NULL;
	if (sign(p, YK_ASSIGN))
		return node(p, YK_N_SET, to, yk_parse_tuple(p, false, false, true, NULL, false));
	n = node(p, YK_N_SET_BLOCK, to, NULL);
	while (n && !p->r->failed && sign(p, YK_PIPE))
		n->b = yk_parse_filter(p, n->b);
	if (n)
		n->list = statements(p, "endset", NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *for_loop(struct yk_parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_FOR, target(p, false, "in"), NULL);
	if (!n || p->r->failed || !word(p, "in"))
		return p->r->failed ? NULL : fail(p, "'in' is missing");
	n->b = yk_parse_tuple(p, false, false, false, "recursive", false);
	if (!p->r->failed && word(p, "if"))
		n->c = yk_parse_expression(p, true);
	n->flag = word(p, "recursive");
	n->list = statements(p, "endfor", "else", NULL);
	if (!p->r->failed && word(p, "else"))
		n->other = statements(p, "endfor", NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *if_block(struct yk_parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_IF, NULL, NULL);
	if (!n)
		return NULL;
	n->a = yk_parse_tuple(p, false, false, false, NULL, false);
	n->list = statements(p, "elif", "else", "endif");
	struct yk_syntax_node *inner = n;
	while (!p->r->failed && word(p, "elif")) {
		struct yk_syntax_node *next = node(p, YK_N_IF, NULL, NULL);
		if (!next)
			return NULL;
		next->flag = true;
		next->a = yk_parse_tuple(p, false, false, false, NULL, false);
		next->list = statements(p, "elif", "else", "endif");
		inner = inner->other = next;
	}
	if (!p->r->failed && word(p, "else"))
		inner->other = statements(p, "endif", NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *signature(struct yk_parser *p)
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
			n->a = yk_parse_expression(p, true);
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
static struct yk_syntax_node *body(struct yk_parser *p, struct yk_syntax_node *n, const char *end)
{
	if (!n || p->r->failed)
		return NULL;
	n->list = statements(p, end, NULL, NULL);
	p->at += !p->r->failed;
	return n;
}

static struct yk_syntax_node *macro(struct yk_parser *p)
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

static struct yk_syntax_node *call_block(struct yk_parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_CALL_BLOCK, NULL, NULL);
	if (n && sign_is(p->at, YK_OPEN))
		n->args = signature(p);
	if (n && !p->r->failed)
		n->a = yk_parse_expression(p, true);
	if (n && !p->r->failed && n->a->kind != YK_N_CALL)
		return fail(p, "a call block needs a call");
	return body(p, n, "endcall");
}

static struct yk_syntax_node *filter_block(struct yk_parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_FILTER_BLOCK, NULL, NULL);
	if (n)
		n->b = yk_parse_filter(p, NULL);
	while (n && !p->r->failed && sign(p, YK_PIPE))
		n->b = yk_parse_filter(p, n->b);
	return body(p, n, "endfilter");
}

static struct yk_syntax_node *with(struct yk_parser *p)
{
	struct yk_syntax_node *n = node(p, YK_N_WITH, NULL, NULL), **end = n ? &n->args : NULL;
	while (n && !p->r->failed && p->at->kind != YK_L_BLOCK_END) {
		if (n->args)
			expect_sign(p, YK_COMMA, "a comma is missing");
		struct yk_syntax_node *to = p->r->failed ? NULL : target(p, false, NULL);
		expect_sign(p, YK_ASSIGN, "'=' is missing");
		end = append(end, node(p, YK_N_SET, to,
				       p->r->failed ? NULL : yk_parse_expression(p, true)));
	}
	return body(p, n, "endwith");
}

static struct yk_syntax_node *print(struct yk_parser *p)
{
	struct yk_syntax_node *list = NULL, **end = &list;
	while (!p->r->failed && p->at->kind != YK_L_BLOCK_END) {
		if (list)
			expect_sign(p, YK_COMMA, "a comma is missing");
		end = append(end, node(p, YK_N_OUTPUT,
				       p->r->failed ? NULL : yk_parse_expression(p, true), NULL));
	}
	struct yk_syntax_node *n = node(p, YK_N_SCOPE, NULL, NULL);
	if (n)
		n->list = list;
	return n;
}

static struct yk_syntax_node *block(struct yk_parser *p)
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

static struct yk_syntax_node *statement(struct yk_parser *p)
{
	static const struct {
		const char *name;
		struct yk_syntax_node *(*parse)(struct yk_parser *);
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
static struct yk_syntax_node *statements(struct yk_parser *p, const char *end1, const char *end2,
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
			n = yk_parse_constant(p, l->value);
			if (n)
				n->kind = YK_N_DATA;
		} else if (l->kind == YK_L_OUTPUT) {
			n = node(p, YK_N_OUTPUT, yk_parse_tuple(p, false, false, true, NULL, false),
				 NULL);
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
	struct yk_parser p = { r, l->at, false };
	struct yk_syntax_node *n = r->failed ? NULL : node(&p, YK_N_SCOPE, NULL, NULL);
	if (n)
		n->list = statements(&p, NULL, NULL, NULL);
	return r->failed ? NULL : n;
}
