// SPDX-License-Identifier: Apache-2.0
// Binding of arguments, the global functions and the tests.
#include "config.h"

#include <locale.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/number.h"
#include "template/functions.h"

const struct yk_function *yk_function_in(const struct yk_function *table, size_t count,
					 const char *name, size_t n)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(table[i].name) == n && !memcmp(table[i].name, name, n))
			return &table[i];
	return NULL;
}

// ---- arguments ----

// Length of the parameter at `p`, without its '!'.
static size_t length_of(const char *p)
{
	return strcspn(p, " !");
}

static const char *next_parameter(const char *p)
{
	p += strcspn(p, " ");
	return *p ? p + 1 : p;
}

static size_t bind(struct yk_render *r, const struct yk_function *f, const struct yk_args *a,
		   struct yk_v_value *to)
{
	size_t n = 0, used = 0;
	for (const char *p = f->parameters; *p; p = next_parameter(p), n++) {
		const size_t length = length_of(p);
		const struct yk_v_value *named = a->named ? yk_dict_get(a->named, p, length) : NULL;
		used += named != NULL;
		if (named && n < a->n)
			yk_render_fail(r, YOKE_EFORMAT, "%s: argument '%.*s' is given twice",
				       f->name, (int)length, p);
		to[n] = n < a->n ? a->v[n] :
			named    ? *named :
				   (struct yk_v_value){ .kind = YK_V_ABSENT };
		if (!yk_v_is_present(to[n]) && p[length] == '!')
			yk_render_fail(r, YOKE_EFORMAT, "%s: argument '%.*s' is missing", f->name,
				       (int)length, p);
	}
	if (a->n > n || (a->named && a->named->n > used))
		yk_render_fail(r, YOKE_EFORMAT, "%s: takes only these arguments: %s", f->name,
			       n ? f->parameters : "none");
	return n;
}

struct yk_v_value yk_function_call(struct yk_render *r, const struct yk_function *f,
				   struct yk_v_value self, const struct yk_args *a)
{
	struct yk_v_value v[YK_PARAMETERS];
	struct yk_args bound = { .v = v };
	if (!yk_render_charge(r, 1))
		return yk_v_undefined(NULL);
	if (f->parameters)
		bound.n = bind(r, f, a, v);
	return r->failed ? yk_v_undefined(NULL) : f->call(r, self, f->parameters ? &bound : a);
}

struct yk_v_value yk_arg(const struct yk_args *a, size_t i, struct yk_v_value otherwise)
{
	return i < a->n && yk_v_is_present(a->v[i]) ? a->v[i] : otherwise;
}

int64_t yk_arg_int(struct yk_render *r, const struct yk_args *a, size_t i, int64_t otherwise)
{
	const struct yk_v_value v = yk_arg(a, i, yk_v_int(otherwise));
	if (yk_v_integral(v))
		return yk_v_int_of(v);
	yk_render_fail(r, YOKE_EFORMAT, "an argument must be an integer, not '%s'", yk_v_type(v));
	return otherwise;
}

bool yk_arg_truth(const struct yk_args *a, size_t i, bool otherwise)
{
	return yk_v_truth(yk_arg(a, i, yk_v_bool(otherwise)));
}

const struct yk_chars *yk_arg_chars(struct yk_render *r, const struct yk_args *a, size_t i)
{
	const struct yk_v_value v = yk_arg(a, i, yk_v_none());
	if (v.kind == YK_V_STRING)
		return v.s;
	if (v.kind != YK_V_NONE)
		yk_render_fail(r, YOKE_EFORMAT, "an argument must be a string, not '%s'",
			       yk_v_type(v));
	return NULL;
}

// ---- global functions ----

static struct yk_v_value range(struct yk_render *r, struct yk_v_value self, const struct yk_args *a)
{
	const int64_t first = yk_arg_int(r, a, 0, 0), second = yk_arg_int(r, a, 1, 0),
		      step = yk_arg_int(r, a, 2, 1);
	const bool one = !yk_v_is_present(a->v[1]);
	const int64_t start = one ? 0 : first, stop = one ? first : second;
	struct yk_v_value v = yk_v_list(r, YK_V_VIEW, 0);
	struct yk_string text = { 0 };
	char s[120];
	(void)self;
	if (step == 0)
		yk_render_fail(r, YOKE_EFORMAT, "range: the step is 0");
	for (int64_t i = start; !r->failed && (step > 0 ? i < stop : i > stop);) {
		yk_v_append(r, v, yk_v_int(i));
		if (v.list->n > 100000) // the limit of jinja2's sandbox
			yk_render_fail(r, YOKE_ERANGE, "range: has more than 100000 elements");
		if (__builtin_add_overflow(i, step, &i))
			break;
	}
	if (r->failed)
		return v;
	snprintf(s, sizeof s, step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
		 (long long)start, (long long)stop, (long long)step);
	yk_string_add(&text, s, strlen(s));
	const struct yk_v_value repr = yk_v_taken(r, &text);
	v.list->type = "range";
	v.list->text = repr.s;
	return v;
}

static struct yk_v_value make_dict(struct yk_render *r, struct yk_v_value self,
				   const struct yk_args *a)
{
	struct yk_v_value d = yk_v_dict(r);
	(void)self;
	if (a->n > 1)
		return yk_render_fail(r, YOKE_EFORMAT, "dict takes one argument without a name");
	const bool copies = a->n && a->v[0].kind == YK_V_DICT;
	for (size_t i = 0; copies && i < a->v[0].dict->n && !r->failed; i++)
		yk_dict_put(r, d.dict, a->v[0].dict->pair[i].key, a->v[0].dict->pair[i].value);
	const struct yk_items *l = a->n && !copies ? yk_v_iterate(r, a->v[0]) : NULL;
	for (size_t i = 0; l && i < l->n && !r->failed; i++) {
		const struct yk_items *pair = yk_v_iterate(r, l->v[i]);
		if (pair && pair->n == 2)
			yk_dict_put(r, d.dict, pair->v[0], pair->v[1]);
		else
			yk_render_fail(r, YOKE_EFORMAT, "dict needs pairs");
	}
	for (size_t i = 0; a->named && i < a->named->n && !r->failed; i++)
		yk_dict_put(r, d.dict, a->named->pair[i].key, a->named->pair[i].value);
	return d;
}

static struct yk_v_value namespace(struct yk_render *r, struct yk_v_value self,
				   const struct yk_args *a)
{
	struct yk_v_value d = make_dict(r, self, a);
	for (size_t i = 0; !r->failed && i < d.dict->n; i++)
		if (d.dict->pair[i].key.kind == YK_V_STRING && d.dict->pair[i].key.s->s[0] == '_')
			yk_render_fail(
				r, YOKE_EFORMAT,
				"'%.60s': attributes of namespaces do not begin with an underscore",
				d.dict->pair[i].key.s->s);
	d.kind = r->failed ? YK_V_UNDEFINED : YK_V_NAMESPACE;
	return d;
}

static struct yk_v_value raise_exception(struct yk_render *r, struct yk_v_value self,
					 const struct yk_args *a)
{
	const struct yk_v_value why = yk_v_to_string(r, a->v[0]);
	char line[300];
	size_t n = 0;
	(void)self;
	if (r->failed)
		return why;
	for (; why.s->s[n] && n + 1 < sizeof line; n++)
		line[n] = (unsigned char)why.s->s[n] < 0x20 || why.s->s[n] == 0x7f ? ' ' :
										     why.s->s[n];
	line[n] = 0;
	return yk_render_fail(r, YOKE_EFORMAT, "the template refuses the messages: %s", line);
}

static struct yk_v_value strftime_now(struct yk_render *r, struct yk_v_value self,
				      const struct yk_args *a)
{
	const struct yk_chars *format = yk_arg_chars(r, a, 0);
	const time_t now = r->now ? (time_t)r->now : time(NULL);
	struct tm tm;
	char to[1000];
	(void)self;
	if (!format || r->failed || !localtime_r(&now, &tm))
		return yk_v_undefined(NULL);
	const locale_t before = yk_locale_begin();
	const size_t n = strftime(to, sizeof to, format->s, &tm);
	yk_locale_end(before);
	if (n == 0 && format->n)
		return yk_render_fail(r, YOKE_ERANGE,
				      "strftime_now: the format '%.60s' gives no text", format->s);
	return yk_v_string(r, to, n);
}

const struct yk_function *yk_global_find(const struct yk_chars *name)
{
	static const struct yk_function globals[] = {
		{ "range", "start! stop step", range },
		{ "dict", NULL, make_dict },
		{ "namespace", NULL, namespace },
		{ "raise_exception", "message!", raise_exception },
		{ "strftime_now", "format!", strftime_now },
	};
	return YK_FUNCTION_IN(globals, name->s, name->n);
}

// ---- tests ----

#define TEST(name, condition) \
	static struct yk_v_value name(struct yk_render *r, struct yk_v_value v, \
				      const struct yk_args *a) \
	{ \
		(void)r; \
		(void)a; \
		return yk_v_bool(condition); \
	}
TEST(is_defined, v.kind != YK_V_UNDEFINED)
TEST(is_undefined, v.kind == YK_V_UNDEFINED)
TEST(is_none, v.kind == YK_V_NONE)
TEST(is_boolean, v.kind == YK_V_BOOL)
TEST(is_true, v.kind == YK_V_BOOL && v.b)
TEST(is_false, v.kind == YK_V_BOOL && !v.b)
TEST(is_integer, v.kind == YK_V_INT)
TEST(is_float, v.kind == YK_V_FLOAT)
TEST(is_number, yk_v_number(v))
TEST(is_string, v.kind == YK_V_STRING)
TEST(is_mapping, v.kind == YK_V_DICT)
TEST(is_iterable, v.kind == YK_V_UNDEFINED || v.kind == YK_V_STRING || v.kind == YK_V_DICT ||
			  v.kind == YK_V_ITERATOR || yk_v_listed(v))
TEST(is_sequence, v.kind == YK_V_UNDEFINED || v.kind == YK_V_STRING || v.kind == YK_V_DICT ||
			  v.kind == YK_V_LIST || v.kind == YK_V_TUPLE ||
			  (v.kind == YK_V_VIEW && v.list->text))
TEST(is_callable, v.kind == YK_V_UNDEFINED || v.kind == YK_V_MACRO || v.kind == YK_V_FUNCTION ||
			  v.kind == YK_V_METHOD || v.kind == YK_V_LOOP)
TEST(is_escaped, v.kind == YK_V_STRING && v.markup)
TEST(is_equal, yk_v_equal(r, v, a->v[0]))
TEST(is_unequal, !yk_v_equal(r, v, a->v[0]))
TEST(is_less, yk_v_compare(r, v, a->v[0]) < 0)
TEST(is_at_most, yk_v_compare(r, v, a->v[0]) <= 0)
TEST(is_greater, yk_v_compare(r, v, a->v[0]) > 0)
TEST(is_at_least, yk_v_compare(r, v, a->v[0]) >= 0)
TEST(is_in, yk_v_contains(r, a->v[0], v))
TEST(is_filter, v.kind == YK_V_STRING && yk_filter_find(v.s))
TEST(is_test, v.kind == YK_V_STRING && yk_test_find(v.s))

static struct yk_v_value is_same(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value w = a->v[0];
	const bool object = v.kind > YK_V_STRING;
	return yk_v_bool(v.kind == w.kind && (object ? v.list == w.list : yk_v_equal(r, v, w)));
}

static struct yk_v_value divides(struct yk_render *r, struct yk_v_value v, int64_t by, int64_t rest)
{
	const struct yk_v_value left = yk_v_binary(r, YK_MOD, v, yk_v_int(by));
	return yk_v_bool(!r->failed && yk_v_equal(r, left, yk_v_int(rest)));
}

static struct yk_v_value is_divisible(struct yk_render *r, struct yk_v_value v,
				      const struct yk_args *a)
{
	const int64_t by = yk_arg_int(r, a, 0, 1);
	return r->failed ? yk_v_undefined(NULL) : divides(r, v, by, 0);
}

static struct yk_v_value is_even(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return divides(r, v, 2, 0);
}

static struct yk_v_value is_odd(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return divides(r, v, 2, 1);
}

static struct yk_v_value is_lower(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value s = yk_v_to_string(r, v);
	(void)a;
	return yk_v_bool(!r->failed && yk_v_is_case(s.s, false));
}

static struct yk_v_value is_upper(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value s = yk_v_to_string(r, v);
	(void)a;
	return yk_v_bool(!r->failed && yk_v_is_case(s.s, true));
}

const struct yk_function *yk_test_find(const struct yk_chars *name)
{
	static const struct yk_function tests[] = {
		{ "defined", "", is_defined },
		{ "undefined", "", is_undefined },
		{ "none", "", is_none },
		{ "boolean", "", is_boolean },
		{ "true", "", is_true },
		{ "false", "", is_false },
		{ "integer", "", is_integer },
		{ "float", "", is_float },
		{ "number", "", is_number },
		{ "string", "", is_string },
		{ "mapping", "", is_mapping },
		{ "iterable", "", is_iterable },
		{ "sequence", "", is_sequence },
		{ "callable", "", is_callable },
		{ "escaped", "", is_escaped },
		{ "equalto", "other!", is_equal },
		{ "eq", "other!", is_equal },
		{ "==", "other!", is_equal },
		{ "ne", "other!", is_unequal },
		{ "!=", "other!", is_unequal },
		{ "lt", "other!", is_less },
		{ "lessthan", "other!", is_less },
		{ "<", "other!", is_less },
		{ "le", "other!", is_at_most },
		{ "<=", "other!", is_at_most },
		{ "gt", "other!", is_greater },
		{ "greaterthan", "other!", is_greater },
		{ ">", "other!", is_greater },
		{ "ge", "other!", is_at_least },
		{ ">=", "other!", is_at_least },
		{ "in", "seq!", is_in },
		{ "filter", "", is_filter },
		{ "test", "", is_test },
		{ "sameas", "other!", is_same },
		{ "divisibleby", "num!", is_divisible },
		{ "even", "", is_even },
		{ "odd", "", is_odd },
		{ "lower", "", is_lower },
		{ "upper", "", is_upper },
	};
	return YK_FUNCTION_IN(tests, name->s, name->n);
}
