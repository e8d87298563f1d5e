// SPDX-License-Identifier: Apache-2.0
// Expressions: operators, attributes and items, calls.
#include "config.h"

#include "template/eval.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static struct yk_v_value undefined_error(struct yk_render *r, struct yk_v_value v)
{
	return yk_render_fail(r, YOKE_EFORMAT, "'%.80s' is undefined", v.s ? v.s->s : "a value");
}

// ---- operators ----

static struct yk_v_value type_error(struct yk_render *r, const char *op, struct yk_v_value a,
				    struct yk_v_value b)
{
	if (a.kind == YK_V_UNDEFINED)
		return undefined_error(r, a);
	if (b.kind == YK_V_UNDEFINED)
		return undefined_error(r, b);
	return yk_render_fail(r, YOKE_EFORMAT, "'%s' %s '%s' is not possible", yk_v_type(a), op,
			      yk_v_type(b));
}

static struct yk_v_value join_strings(struct yk_render *r, struct yk_v_value a, struct yk_v_value b)
{
	struct yk_v_buffer to = { 0 };
	const bool markup = a.markup || b.markup;
	if (markup) { // Markup escapes what it is added to
		a = yk_v_escape(r, a);
		b = yk_v_escape(r, b);
	}
	if (r->failed || !yk_render_charge(r, (a.s->n + b.s->n) / 256))
		return yk_v_undefined(NULL);
	yk_text_add(&to, a.s, a.s->s, a.s->n);
	yk_text_add(&to, b.s, b.s->s, b.s->n);
	struct yk_v_value v = yk_v_built(r, &to);
	v.markup = markup;
	return v;
}

static struct yk_v_value repeat(struct yk_render *r, struct yk_v_value v, int64_t times)
{
	struct yk_v_buffer to = { 0 };
	const size_t n = v.kind == YK_V_STRING ? v.s->n : v.list->n * sizeof(struct yk_v_value);
	if (times > 0 && n > 0 && times > YK_RENDER_MEMORY / (int64_t)n)
		return yk_render_fail(r, YOKE_ERANGE, "a %s is repeated %lld times", yk_v_type(v),
				      (long long)times);
	if (v.kind == YK_V_STRING) {
		for (int64_t i = 0; i < times && n && yk_render_charge(r, 1); i++)
			yk_text_add(&to, v.s, v.s->s, v.s->n);
		struct yk_v_value s = yk_v_built(r, &to);
		s.markup = v.markup;
		return s;
	}
	struct yk_v_value list = yk_v_list(r, v.kind, 0);
	for (int64_t i = 0; i < times && n && !r->failed; i++)
		for (size_t k = 0; k < v.list->n && yk_render_charge(r, 1); k++)
			yk_v_append(r, list, v.list->v[k]);
	return list;
}

static struct yk_v_value join_lists(struct yk_render *r, struct yk_v_value a, struct yk_v_value b)
{
	struct yk_v_value list = yk_v_list(r, a.kind, a.list->n + b.list->n);
	for (size_t i = 0; i < a.list->n && !r->failed; i++)
		yk_v_append(r, list, a.list->v[i]);
	for (size_t i = 0; i < b.list->n && !r->failed; i++)
		yk_v_append(r, list, b.list->v[i]);
	return list;
}

static struct yk_v_value floats(struct yk_render *r, enum yk_sign s, double a, double b)
{
	if ((s == YK_DIV || s == YK_FLOORDIV || s == YK_MOD) && b == 0)
		return yk_render_fail(r, YOKE_EFORMAT, "division by zero");
	switch (s) {
	case YK_ADD: return yk_v_float(a + b);
	case YK_SUB: return yk_v_float(a - b);
	case YK_MUL: return yk_v_float(a * b);
	case YK_DIV: return yk_v_float(a / b);
	case YK_FLOORDIV: return yk_v_float(floor(a / b));
	case YK_MOD: {
		const double m = fmod(a, b);
		return yk_v_float(m != 0 && (m < 0) != (b < 0) ? m + b : m);
	}
	default: return yk_v_float(pow(a, b));
	}
}

// a^b; true: it exceeds 64 bits.
static bool power(int64_t a, int64_t b, int64_t *to)
{
	*to = 1;
	if (a == 0 || a == 1 || a == -1) {
		*to = b == 0 || (a == -1 && b % 2 == 0) ? 1 : a;
		return false;
	}
	for (; b > 0; b--)
		if (__builtin_mul_overflow(*to, a, to))
			return true;
	return false;
}

static struct yk_v_value integers(struct yk_render *r, enum yk_sign s, int64_t a, int64_t b)
{
	int64_t to = 0;
	bool over = false;
	if (s == YK_DIV || (s == YK_POW && b < 0))
		return floats(r, s, (double)a, (double)b);
	if ((s == YK_FLOORDIV || s == YK_MOD) && b == 0)
		return yk_render_fail(r, YOKE_EFORMAT, "division by zero");
	if (s == YK_ADD) {
		over = __builtin_add_overflow(a, b, &to);
	} else if (s == YK_SUB) {
		over = __builtin_sub_overflow(a, b, &to);
	} else if (s == YK_MUL) {
		over = __builtin_mul_overflow(a, b, &to);
	} else if (s == YK_POW) {
		over = power(a, b, &to);
	} else if (b == -1) {
		over = s == YK_FLOORDIV && __builtin_sub_overflow(0, a, &to);
	} else {
		const int64_t rest = a % b, wrong = rest != 0 && (rest < 0) != (b < 0);
		to = s == YK_MOD ? rest + wrong * b : a / b - wrong;
	}
	return over ? yk_render_fail(r, YOKE_ERANGE, "an integer exceeds 64 bits") : yk_v_int(to);
}

struct yk_v_value yk_v_binary(struct yk_render *r, enum yk_sign s, struct yk_v_value a,
			      struct yk_v_value b)
{
	static const char *const names[] = {
		[YK_ADD] = "+",       [YK_SUB] = "-", [YK_MUL] = "*", [YK_DIV] = "/",
		[YK_FLOORDIV] = "//", [YK_MOD] = "%", [YK_POW] = "**"
	};
	const bool lists = a.kind == YK_V_LIST || a.kind == YK_V_TUPLE;
	if (r->failed)
		return yk_v_undefined(NULL);
	if (yk_v_integral(a) && yk_v_integral(b))
		return integers(r, s, yk_v_int_of(a), yk_v_int_of(b));
	if (yk_v_number(a) && yk_v_number(b))
		return floats(r, s, yk_v_float_of(a), yk_v_float_of(b));
	if (s == YK_MOD && a.kind == YK_V_STRING)
		return yk_format_percent(r, a.s, b);
	if (s == YK_ADD && a.kind == YK_V_STRING && b.kind == YK_V_STRING)
		return join_strings(r, a, b);
	if (s == YK_ADD && lists && a.kind == b.kind)
		return join_lists(r, a, b);
	if (s == YK_MUL && (lists || a.kind == YK_V_STRING) && yk_v_integral(b))
		return repeat(r, a, yk_v_int_of(b));
	if (s == YK_MUL && yk_v_integral(a) &&
	    (b.kind == YK_V_STRING || b.kind == YK_V_LIST || b.kind == YK_V_TUPLE))
		return repeat(r, b, yk_v_int_of(a));
	return type_error(r, names[s], a, b);
}

static bool ordered(struct yk_render *r, enum yk_sign s, struct yk_v_value a, struct yk_v_value b)
{
	if (a.kind == YK_V_UNDEFINED || b.kind == YK_V_UNDEFINED) {
		type_error(r, "<", a, b);
		return false;
	}
	if (yk_v_number(a) && yk_v_number(b) &&
	    (isnan(yk_v_float_of(a)) || isnan(yk_v_float_of(b))))
		return false;
	const int order = yk_v_compare(r, a, b);
	switch (s) {
	case YK_LT: return order < 0;
	case YK_LE: return order <= 0;
	case YK_GT: return order > 0;
	default: return order >= 0;
	}
}

static struct yk_v_value compare(struct yk_render *r, struct yk_v_frame *f,
				 const struct yk_syntax_node *n)
{
	struct yk_v_value a = yk_eval(r, f, n->a);
	for (const struct yk_syntax_node *x = n->list; x && !r->failed; x = x->next) {
		const struct yk_v_value b = yk_eval(r, f, x->a);
		bool holds;
		if (r->failed)
			break;
		if (x->sign == YK_EQ || x->sign == YK_NE)
			holds = yk_v_equal(r, a, b) == (x->sign == YK_EQ);
		else if (x->sign == YK_IN || x->sign == YK_NOT_IN)
			holds = yk_v_contains(r, b, a) == (x->sign == YK_IN);
		else
			holds = ordered(r, x->sign, a, b);
		if (!holds)
			return yk_v_bool(false);
		a = b;
	}
	return yk_v_bool(true);
}

// ---- attributes and items ----

static struct yk_v_value chars_value(const struct yk_chars *c)
{
	return (struct yk_v_value){ .kind = YK_V_STRING, .s = c };
}

static struct yk_v_value missing(struct yk_render *r, const char *name, size_t n)
{
	const struct yk_v_value v = yk_v_string(r, name, n);
	return yk_v_undefined(r->failed ? NULL : v.s);
}

// A method, if the type has one of that name.
static bool method(struct yk_render *r, struct yk_v_value of, const char *name, size_t n,
		   struct yk_v_value *to)
{
	const struct yk_function *f = yk_method_find(of.kind, name, n);
	struct yk_method *m = f ? yk_render_alloc(r, sizeof *m) : NULL;
	if (!f)
		return false;
	if (m)
		*m = (struct yk_method){ of, f };
	*to = !m || !f->call ? missing(r, name, n) :
			       (struct yk_v_value){ .kind = YK_V_METHOD, .method = m };
	return true;
}

static struct yk_v_value element(struct yk_render *r, struct yk_v_value of, int64_t i)
{
	const int64_t n = yk_v_length(r, of);
	i += i < 0 ? n : 0;
	if (i < 0 || i >= n)
		return missing(r, "element", 7);
	if (of.kind != YK_V_STRING)
		return of.list->v[i];
	const size_t at = yk_chars_offset(of.s, i);
	if (of.s->n != of.s->chars)
		yk_render_charge(r, at / 64);
	return yk_v_substring(r, of.s, of.s->s + at, yk_char_size(of.s->s[at]));
}

struct yk_v_value yk_v_attr(struct yk_render *r, struct yk_v_value of, const char *name, size_t n)
{
	struct yk_v_value v;
	struct yk_v_value *member = NULL;
	if (r->failed)
		return yk_v_undefined(NULL);
	if (of.kind == YK_V_UNDEFINED)
		return undefined_error(r, of);
	if (of.kind == YK_V_LOOP)
		return yk_loop_attr(r, of, name, n);
	if (of.kind == YK_V_MACRO && n == 4 && !memcmp(name, "name", 4) && of.macro->node->name)
		return chars_value(of.macro->node->name);
	if (method(r, of, name, n, &v))
		return v;
	if (of.kind == YK_V_DICT || of.kind == YK_V_NAMESPACE)
		member =
			yk_render_charge(r, of.dict->n / 32) ? yk_dict_get(of.dict, name, n) : NULL;
	return member ? *member : missing(r, name, n);
}

struct yk_v_value yk_v_item(struct yk_render *r, struct yk_v_value of, struct yk_v_value key)
{
	struct yk_v_value v;
	struct yk_v_value *member = NULL;
	if (r->failed)
		return yk_v_undefined(NULL);
	if (of.kind == YK_V_UNDEFINED)
		return undefined_error(r, of);
	if (key.kind == YK_V_SLICE &&
	    (of.kind == YK_V_STRING || of.kind == YK_V_LIST || of.kind == YK_V_TUPLE ||
	     (of.kind == YK_V_VIEW && of.list->text)))
		return yk_v_slice(r, of, key);
	if (of.kind == YK_V_DICT) {
		if (key.kind != YK_V_LIST && key.kind != YK_V_DICT &&
		    key.kind != YK_V_SLICE) // these are no keys of dicts
			member = yk_dict_find(r, of.dict, key);
		if (member)
			return *member;
	} else if (yk_v_integral(key) &&
		   (of.kind == YK_V_STRING || of.kind == YK_V_LIST || of.kind == YK_V_TUPLE ||
		    (of.kind == YK_V_VIEW && of.list->text))) {
		return element(r, of, yk_v_int_of(key));
	}
	if (key.kind != YK_V_STRING)
		return missing(r, "element", 7);
	if (of.kind == YK_V_DICT)
		return method(r, of, key.s->s, key.s->n, &v) ? v : missing(r, key.s->s, key.s->n);
	return yk_v_attr(r, of, key.s->s, key.s->n);
}

// ---- calls ----

static void put_named(struct yk_render *r, struct yk_args *a, struct yk_v_value name,
		      struct yk_v_value v)
{
	if (!a->named) {
		const struct yk_v_value d = yk_v_dict(r);
		a->named = r->failed ? NULL : d.dict;
	}
	if (a->named)
		yk_dict_put(r, a->named, name, v);
}

static void put_all_named(struct yk_render *r, struct yk_args *a, struct yk_v_value v)
{
	if (v.kind != YK_V_DICT && !r->failed)
		yk_render_fail(r, YOKE_EFORMAT, "** needs a dict, not '%s'", yk_v_type(v));
	for (size_t i = 0; !r->failed && i < v.dict->n; i++)
		put_named(r, a, v.dict->pair[i].key, v.dict->pair[i].value);
}

struct yk_args yk_eval_args(struct yk_render *r, struct yk_v_frame *f,
			    const struct yk_syntax_node *list)
{
	struct yk_args a = { 0 };
	struct yk_v_value all = yk_v_list(r, YK_V_LIST, 0);
	for (const struct yk_syntax_node *x = list; x && !r->failed; x = x->next) {
		const bool special =
			x->kind == YK_N_KEYWORD || x->kind == YK_N_STAR || x->kind == YK_N_STARS;
		const struct yk_v_value v = yk_eval(r, f, special ? x->a : x);
		if (r->failed)
			break;
		if (x->kind == YK_N_KEYWORD) {
			put_named(r, &a, chars_value(x->name), v);
		} else if (x->kind == YK_N_STARS) {
			put_all_named(r, &a, v);
		} else if (x->kind == YK_N_STAR) {
			const struct yk_items *l = yk_v_iterate(r, v);
			for (size_t i = 0; l && i < l->n; i++)
				yk_v_append(r, all, l->v[i]);
		} else {
			yk_v_append(r, all, v);
		}
	}
	if (!r->failed) {
		a.v = all.list->v;
		a.n = all.list->n;
	}
	return a;
}

// Methods of a string that is marked as safe return strings that are marked as safe.
static struct yk_v_value method_call(struct yk_render *r, const struct yk_method *m,
				     const struct yk_args *a)
{
	struct yk_v_value v = yk_function_call(r, m->function, m->self, a);
	if (!m->self.markup || r->failed)
		return v;
	v.markup = v.kind == YK_V_STRING;
	for (size_t i = 0; (v.kind == YK_V_LIST || v.kind == YK_V_TUPLE) && i < v.list->n; i++)
		v.list->v[i].markup = v.list->v[i].kind == YK_V_STRING;
	return v;
}

struct yk_v_value yk_call_value(struct yk_render *r, struct yk_v_value callee,
				const struct yk_args *a)
{
	struct yk_v_value v = yk_v_undefined(NULL);
	if (yk_render_charge(r, 1) && yk_render_enter(r)) {
		if (callee.kind == YK_V_FUNCTION)
			v = yk_function_call(r, callee.function, callee, a);
		else if (callee.kind == YK_V_METHOD)
			v = method_call(r, callee.method, a);
		else if (callee.kind == YK_V_MACRO)
			v = yk_macro_call(r, callee.macro, a);
		else if (callee.kind == YK_V_LOOP && a->n == 1)
			v = yk_loop_call(r, callee.loop, a->v[0]);
		else if (callee.kind == YK_V_UNDEFINED)
			v = undefined_error(r, callee);
		else
			v = yk_render_fail(r, YOKE_EFORMAT, "'%s' cannot be called",
					   yk_v_type(callee));
	}
	r->depth--;
	return v;
}

// ---- expressions ----

static struct yk_v_value name_value(struct yk_render *r, struct yk_v_frame *f,
				    const struct yk_chars *name)
{
	for (; f; f = f->up) {
		const struct yk_v_value *v = yk_dict_get(&f->vars, name->s, name->n);
		if (!yk_render_charge(r, f->vars.n / 32) || v)
			return v ? *v : yk_v_undefined(NULL);
	}
	const struct yk_function *g = yk_global_find(name);
	return g ? (struct yk_v_value){ .kind = YK_V_FUNCTION, .function = g } :
		   yk_v_undefined(name);
}

static struct yk_v_value collection(struct yk_render *r, struct yk_v_frame *f,
				    const struct yk_syntax_node *n)
{
	struct yk_v_value v =
		n->kind == YK_N_DICT ?
			yk_v_dict(r) :
			yk_v_list(r, n->kind == YK_N_LIST ? YK_V_LIST : YK_V_TUPLE, 0);
	for (const struct yk_syntax_node *x = n->list; x && !r->failed; x = x->next) {
		const struct yk_v_value a = yk_eval(r, f, n->kind == YK_N_DICT ? x->a : x);
		if (n->kind == YK_N_DICT)
			yk_dict_put(r, v.dict, a, yk_eval(r, f, x->b));
		else
			yk_v_append(r, v, a);
	}
	return v;
}

static struct yk_v_value concat(struct yk_render *r, struct yk_v_frame *f,
				const struct yk_syntax_node *n)
{
	struct yk_v_buffer to = { 0 };
	for (const struct yk_syntax_node *x = n->list; x && !r->failed; x = x->next)
		yk_v_str(r, yk_eval(r, f, x), &to);
	return yk_v_built(r, &to);
}

static struct yk_v_value slice(struct yk_render *r, struct yk_v_frame *f,
			       const struct yk_syntax_node *n)
{
	struct yk_v_value v = yk_v_list(r, YK_V_SLICE, 3);
	const struct yk_syntax_node *parts[] = { n->a, n->b, n->c };
	for (int i = 0; i < 3 && !r->failed; i++)
		yk_v_append(r, v, parts[i] ? yk_eval(r, f, parts[i]) : yk_v_none());
	return v;
}

static struct yk_v_value negate(struct yk_render *r, struct yk_v_value v, bool positive)
{
	if (!yk_v_number(v))
		return type_error(r, positive ? "+" : "-", v, v);
	if (v.kind == YK_V_FLOAT)
		return yk_v_float(positive ? v.d : -v.d);
	return positive ? yk_v_int(yk_v_int_of(v)) : integers(r, YK_SUB, 0, yk_v_int_of(v));
}

static struct yk_v_value filter(struct yk_render *r, struct yk_v_frame *f,
				const struct yk_syntax_node *n)
{
	if (!n->function)
		return yk_render_fail(r, YOKE_EFORMAT, "no %s is called '%.60s'",
				      n->kind == YK_N_TEST ? "test" : "filter", n->name->s);
	const struct yk_v_value self = yk_eval(r, f, n->a);
	const struct yk_args a = yk_eval_args(r, f, n->list);
	return r->failed ? self : yk_function_call(r, n->function, self, &a);
}

static struct yk_v_value evaluate(struct yk_render *r, struct yk_v_frame *f,
				  const struct yk_syntax_node *n)
{
	struct yk_v_value a;
	switch (n->kind) {
	case YK_N_CONST: return n->value;
	case YK_N_NAME: return name_value(r, f, n->name);
	case YK_N_LIST:
	case YK_N_TUPLE:
	case YK_N_DICT: return collection(r, f, n);
	case YK_N_NEG:
	case YK_N_POS:
		a = yk_eval(r, f, n->a);
		return r->failed ? a : negate(r, a, n->kind == YK_N_POS);
	case YK_N_NOT: return yk_v_bool(!yk_v_truth(yk_eval(r, f, n->a)));
	case YK_N_BINARY:
		a = yk_eval(r, f, n->a);
		return yk_v_binary(r, n->sign, a, yk_eval(r, f, n->b));
	case YK_N_CONCAT: return concat(r, f, n);
	case YK_N_COMPARE: return compare(r, f, n);
	case YK_N_AND: a = yk_eval(r, f, n->a); return yk_v_truth(a) ? yk_eval(r, f, n->b) : a;
	case YK_N_OR: a = yk_eval(r, f, n->a); return yk_v_truth(a) ? a : yk_eval(r, f, n->b);
	case YK_N_COND:
		if (yk_v_truth(yk_eval(r, f, n->a)))
			return yk_eval(r, f, n->b);
		return n->c ? yk_eval(r, f, n->c) : yk_v_undefined(NULL);
	case YK_N_ATTR: return yk_v_attr(r, yk_eval(r, f, n->a), n->name->s, n->name->n);
	case YK_N_ITEM: a = yk_eval(r, f, n->a); return yk_v_item(r, a, yk_eval(r, f, n->b));
	case YK_N_SLICE: return slice(r, f, n);
	case YK_N_CALL: {
		a = yk_eval(r, f, n->a);
		const struct yk_args args = yk_eval_args(r, f, n->list);
		return r->failed ? a : yk_call_value(r, a, &args);
	}
	case YK_N_FILTER:
	case YK_N_TEST: return filter(r, f, n);
	default: return yk_v_undefined(NULL);
	}
}

struct yk_v_value yk_eval(struct yk_render *r, struct yk_v_frame *f, const struct yk_syntax_node *n)
{
	struct yk_v_value v = yk_v_undefined(NULL);
	if (!yk_render_charge(r, 1))
		return v;
	if (yk_render_enter(r))
		v = evaluate(r, f, n);
	r->depth--;
	return r->failed ? yk_v_undefined(NULL) : v;
}
