// SPDX-License-Identifier: Apache-2.0
// Statements: output, branches, loops, assignments, macros.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "template/eval.h"

struct yk_v_frame *yk_frame_new(struct yk_render *r, struct yk_v_frame *up)
{
	struct yk_v_frame *f = yk_render_alloc(r, sizeof *f);
	if (f)
		f->up = up;
	return f;
}

void yk_frame_set(struct yk_render *r, struct yk_v_frame *f, const struct yk_chars *name,
		  struct yk_v_value v)
{
	if (!r->failed)
		yk_dict_put(r, &f->vars, (struct yk_v_value){ .kind = YK_V_STRING, .s = name }, v);
}

// ---- assignment ----

static void assign_member(struct yk_render *r, struct yk_v_frame *f,
			  const struct yk_syntax_node *to, struct yk_v_value v)
{
	const struct yk_v_value object = yk_eval(r, f, to->b);
	if (r->failed)
		return;
	if (object.kind != YK_V_NAMESPACE)
		yk_render_fail(r, YOKE_EFORMAT,
			       "an attribute of '%s' is assigned to, which is not a namespace",
			       to->b->name->s);
	else if (to->name->s[0] == '_')
		yk_render_fail(r, YOKE_EFORMAT,
			       "'%.60s': attributes of namespaces do not begin with an underscore",
			       to->name->s);
	else
		yk_dict_put(r, object.dict,
			    (struct yk_v_value){ .kind = YK_V_STRING, .s = to->name }, v);
}

static void assign(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *to,
		   struct yk_v_value v)
{
	if (r->failed)
		return;
	if (to->kind == YK_N_NAME)
		return yk_frame_set(r, f, to->name, v);
	if (to->kind == YK_N_MEMBER)
		return assign_member(r, f, to, v);
	const struct yk_items *l = yk_v_iterate(r, v);
	const struct yk_syntax_node *x = to->list;
	size_t n = 0;
	for (; x; x = x->next)
		n++;
	if (l && l->n != n)
		yk_render_fail(r, YOKE_EFORMAT, "%zu values are assigned to %zu names", l->n, n);
	x = to->list;
	for (size_t i = 0; l && i < n && !r->failed; i++, x = x->next)
		assign(r, f, x, l->v[i]);
}

// Statements whose output becomes a string.
static struct yk_v_value captured(struct yk_render *r, struct yk_v_frame *f,
				  const struct yk_syntax_node *list)
{
	struct yk_v_buffer text = { 0 }, *outer = r->out;
	const int line = r->line;
	r->out = &text;
	yk_statements(r, f, list);
	r->out = outer;
	if (!r->failed)
		r->line = line;
	return yk_v_built(r, &text);
}

// Applies a chain of filters, the innermost of which has no operand, to a value.
static struct yk_v_value filtered(struct yk_render *r, struct yk_v_frame *f,
				  const struct yk_syntax_node *n, struct yk_v_value v)
{
	if (!n || !yk_render_charge(r, 1) || !yk_render_enter(r))
		return v;
	if (!n->function)
		return yk_render_fail(r, YOKE_EFORMAT, "no filter is called '%.60s'", n->name->s);
	v = filtered(r, f, n->a, v);
	const struct yk_args a = yk_eval_args(r, f, n->list);
	v = r->failed ? v : yk_function_call(r, n->function, v, &a);
	r->depth--;
	return v;
}

// ---- macros ----

struct yk_v_value yk_macro_call(struct yk_render *r, const struct yk_macro *m,
				const struct yk_args *a)
{
	struct yk_v_frame *f = yk_frame_new(r, m->frame);
	struct yk_v_value extra = yk_v_list(r, YK_V_TUPLE, 0), named = yk_v_dict(r);
	const struct yk_syntax_node *p = m->node->args;
	size_t i = 0;
	for (size_t k = 0; a->named && k < a->named->n && !r->failed; k++)
		yk_dict_put(r, named.dict, a->named->pair[k].key, a->named->pair[k].value);
	for (; p && !r->failed; p = p->next, i++) {
		const struct yk_v_value *given =
			i < a->n ? &a->v[i] :
			a->named ? yk_dict_get(a->named, p->name->s, p->name->n) :
				   NULL;
		if (given && i >= a->n) // it is not one of kwargs
			for (size_t k = 0; k < named.dict->n; k++)
				if (yk_v_is_string(named.dict->pair[k].key, p->name->s)) {
					memmove(&named.dict->pair[k], &named.dict->pair[k + 1],
						(--named.dict->n - k) * sizeof *named.dict->pair);
					break;
				}
		yk_frame_set(r, f, p->name,
			     given ? *given :
			     p->a  ? yk_eval(r, f, p->a) :
				     yk_v_undefined(p->name));
	}
	for (; i < a->n && !r->failed; i++)
		yk_v_append(r, extra, a->v[i]);
	if (r->failed)
		return yk_v_undefined(NULL);
	const struct yk_v_value *caller = yk_dict_get(named.dict, "caller", 6);
	if (caller) {
		const struct yk_v_value name = yk_v_text(r, "caller");
		yk_dict_put(r, &f->vars, name, *caller);
	}
	if (!m->node->flag && (extra.list->n || named.dict->n > (caller != NULL)))
		return yk_render_fail(
			r, YOKE_EFORMAT,
			"macro '%.60s' is called with arguments that it does not take",
			m->node->name ? m->node->name->s : "caller");
	if (m->node->flag) {
		yk_dict_put(r, &f->vars, yk_v_text(r, "varargs"), extra);
		yk_dict_put(r, &f->vars, yk_v_text(r, "kwargs"), named);
	}
	const int signal = r->signal;
	r->signal = YK_SIGNAL_NONE;
	const struct yk_v_value text = captured(r, f, m->node->list);
	r->signal = signal;
	return text;
}

static struct yk_v_value macro_of(struct yk_render *r, struct yk_v_frame *f,
				  const struct yk_syntax_node *n)
{
	struct yk_macro *m = yk_render_alloc(r, sizeof *m);
	if (!m)
		return yk_v_undefined(NULL);
	*m = (struct yk_macro){ n, f };
	return (struct yk_v_value){ .kind = YK_V_MACRO, .macro = m };
}

static void call_block(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	const struct yk_v_value callee = yk_eval(r, f, n->a->a);
	struct yk_args a = yk_eval_args(r, f, n->a->list);
	const struct yk_v_value d = yk_v_dict(r), name = yk_v_text(r, "caller");
	for (size_t i = 0; a.named && i < a.named->n && !r->failed; i++)
		yk_dict_put(r, d.dict, a.named->pair[i].key, a.named->pair[i].value);
	if (r->failed)
		return;
	yk_dict_put(r, d.dict, name, macro_of(r, f, n));
	a.named = d.dict;
	const struct yk_v_value v = yk_call_value(r, callee, &a);
	if (!r->failed)
		yk_v_str(r, v, r->out);
}

// ---- loops ----

static void for_items(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n,
		      const struct yk_items *all, int64_t depth)
{
	struct yk_v_value kept = yk_v_list(r, YK_V_LIST, 0), name = yk_v_text(r, "loop");
	struct yk_loop *loop = yk_render_alloc(r, sizeof *loop);
	for (size_t i = 0; n->c && i < all->n && !r->failed; i++) {
		struct yk_v_frame *inner = yk_frame_new(r, f);
		assign(r, inner, n->a, all->v[i]);
		if (!r->failed && yk_v_truth(yk_eval(r, inner, n->c)))
			yk_v_append(r, kept, all->v[i]);
	}
	if (r->failed)
		return;
	const struct yk_items *l = n->c ? kept.list : all;
	*loop = (struct yk_loop){ .items = l, .depth = depth, .node = n, .frame = f };
	for (; loop->index < (int64_t)l->n && !r->failed; loop->index++) {
		struct yk_v_frame *inner = yk_frame_new(r, f);
		if (r->failed)
			return;
		yk_dict_put(r, &inner->vars, name,
			    (struct yk_v_value){ .kind = YK_V_LOOP, .loop = loop });
		assign(r, inner, n->a, l->v[loop->index]);
		yk_statements(r, inner, n->list);
		const int signal = r->signal;
		r->signal = YK_SIGNAL_NONE;
		if (signal == YK_SIGNAL_BREAK)
			break;
	}
	if (!l->n)
		yk_statements(r, yk_frame_new(r, f), n->other);
}

struct yk_v_value yk_loop_call(struct yk_render *r, const struct yk_loop *loop,
			       struct yk_v_value items)
{
	struct yk_v_buffer text = { 0 }, *outer = r->out;
	const struct yk_items *l = yk_v_iterate(r, items);
	if (!loop->node->flag)
		return yk_render_fail(r, YOKE_EFORMAT,
				      "loop(..) is called in a loop that is not recursive");
	r->out = &text;
	if (l)
		for_items(r, loop->frame, loop->node, l, loop->depth + 1);
	r->out = outer;
	return yk_v_built(r, &text);
}

static struct yk_v_value loop_cycle(struct yk_render *r, struct yk_v_value self,
				    const struct yk_args *a)
{
	if (a->n == 0)
		return yk_render_fail(r, YOKE_EFORMAT, "loop.cycle needs values");
	return a->v[self.loop->index % (int64_t)a->n];
}

static struct yk_v_value loop_changed(struct yk_render *r, struct yk_v_value self,
				      const struct yk_args *a)
{
	struct yk_v_value now = yk_v_list(r, YK_V_TUPLE, a->n);
	for (size_t i = 0; i < a->n && !r->failed; i++)
		yk_v_append(r, now, a->v[i]);
	const bool first = !yk_v_is_present(self.loop->changed),
		   changed = first || !yk_v_equal(r, self.loop->changed, now);
	self.loop->changed = now;
	return yk_v_bool(changed);
}

struct yk_v_value yk_loop_attr(struct yk_render *r, struct yk_v_value self, const char *name,
			       size_t n)
{
	static const char *const names[] = { "index",  "index0",   "revindex", "revindex0",
					     "first",  "last",     "length",   "depth",
					     "depth0", "previtem", "nextitem" };
	static const struct yk_function methods[] = { { "cycle", NULL, loop_cycle },
						      { "changed", NULL, loop_changed } };
	const struct yk_loop *l = self.loop;
	const int64_t i = l->index, count = (int64_t)l->items->n;
	const struct yk_v_value values[] = {
		yk_v_int(i + 1),
		yk_v_int(i),
		yk_v_int(count - i),
		yk_v_int(count - i - 1),
		yk_v_bool(i == 0),
		yk_v_bool(i == count - 1),
		yk_v_int(count),
		yk_v_int(l->depth + 1),
		yk_v_int(l->depth),
		i > 0 ? l->items->v[i - 1] : yk_v_undefined(NULL),
		i + 1 < count ? l->items->v[i + 1] : yk_v_undefined(NULL),
	};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (n == strlen(names[k]) && !memcmp(name, names[k], n))
			return values[k];
	const struct yk_function *f = YK_FUNCTION_IN(methods, name, n);
	struct yk_method *m = f ? yk_render_alloc(r, sizeof *m) : NULL;
	if (m)
		*m = (struct yk_method){ self, f };
	const struct yk_v_value s = m ? yk_v_none() : yk_v_string(r, name, n);
	return m ? (struct yk_v_value){ .kind = YK_V_METHOD, .method = m } :
		   yk_v_undefined(r->failed ? NULL : s.s);
}

static void for_loop(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	const struct yk_v_value v = yk_eval(r, f, n->b);
	const struct yk_items *l = r->failed ? NULL : yk_v_iterate(r, v);
	if (l)
		for_items(r, f, n, l, 0);
}

// ---- statements ----

static void generation(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	struct yk_spans *s = r->whole == r->out ? r->generation : NULL;
	const size_t from = r->out->s.n;
	const int signal = r->signal;
	yk_statements(r, yk_frame_new(r, f), n->list);
	r->signal = signal;
	if (!s || r->failed)
		return;
	if (yk_grow(&s->at, &s->cap, s->n + 1, sizeof *s->at) < 0) {
		r->failed = true;
		return;
	}
	s->at[s->n++] = (struct yoke_text_span){ .from = from, .to = r->out->s.n, .message = -1 };
}

static void with(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	struct yk_v_frame *inner = yk_frame_new(r, f);
	for (const struct yk_syntax_node *x = n->args; x && !r->failed; x = x->next)
		assign(r, inner, x->a, yk_eval(r, f, x->b));
	yk_statements(r, inner, n->list);
}

static void branch(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	while (n && n->kind == YK_N_IF && !r->failed) {
		if (yk_v_truth(yk_eval(r, f, n->a)))
			return yk_statements(r, f, n->list);
		const struct yk_syntax_node *next = n->other;
		if (!next || next->kind != YK_N_IF || !next->flag)
			return yk_statements(r, f, next);
		n = next;
	}
}

static void statement(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	switch (n->kind) {
	case YK_N_DATA: return yk_v_str(r, n->value, r->out);
	case YK_N_OUTPUT: return yk_v_str(r, yk_eval(r, f, n->a), r->out);
	case YK_N_IF: return branch(r, f, n);
	case YK_N_FOR: return for_loop(r, f, n);
	case YK_N_SET: return assign(r, f, n->a, yk_eval(r, f, n->b));
	case YK_N_SET_BLOCK: {
		const struct yk_v_value v = captured(r, yk_frame_new(r, f), n->list);
		return assign(r, f, n->a, filtered(r, f, n->b, v));
	}
	case YK_N_MACRO: return yk_frame_set(r, f, n->name, macro_of(r, f, n));
	case YK_N_CALL_BLOCK: return call_block(r, f, n);
	case YK_N_FILTER_BLOCK: {
		const struct yk_v_value v = captured(r, yk_frame_new(r, f), n->list);
		return yk_v_str(r, filtered(r, f, n->b, v), r->out);
	}
	case YK_N_WITH: return with(r, f, n);
	case YK_N_SCOPE: return yk_statements(r, yk_frame_new(r, f), n->list);
	case YK_N_GENERATION: return generation(r, f, n);
	case YK_N_BREAK: r->signal = YK_SIGNAL_BREAK; return;
	case YK_N_CONTINUE: r->signal = YK_SIGNAL_CONTINUE; return;
	default: return;
	}
}

void yk_statements(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *list)
{
	if (yk_render_enter(r))
		for (const struct yk_syntax_node *n = list;
		     n && r->signal == YK_SIGNAL_NONE && yk_render_charge(r, 1); n = n->next) {
			r->line = n->line;
			statement(r, f, n);
			if (r->out->s.failed)
				yk_render_fail(r, YOKE_ENOMEM, "no memory for the text");
			else if (r->out->s.n > YK_RENDER_OUTPUT)
				yk_render_fail(r, YOKE_ERANGE, "the text has more than %zu bytes",
					       YK_RENDER_OUTPUT);
		}
	r->depth--;
}
