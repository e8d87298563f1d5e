// SPDX-License-Identifier: Apache-2.0
// Making, comparing and iterating values.
#include "config.h"

#include "template/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"

// ---- limits ----

struct yk_v_value yk_render_fail(struct yk_render *r, int code, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	if (!r->failed) {
		va_start(ap, fmt);
		yk_vsnprintf(why, sizeof why, fmt, ap);
		va_end(ap);
		yk_fail(code, "%s:%d: %s", r->name, r->line, why);
	}
	r->failed = true;
	return yk_v_undefined(NULL);
}

bool yk_render_charge(struct yk_render *r, size_t steps)
{
	if (r->failed)
		return false;
	r->steps -= steps < YK_RENDER_STEPS ? (int64_t)steps : YK_RENDER_STEPS;
	if (r->steps < 0)
		yk_render_fail(r, YOKE_ERANGE,
			       "the template takes more than %lld steps; it may not end",
			       (long long)YK_RENDER_STEPS);
	return !r->failed;
}

void *yk_render_alloc(struct yk_render *r, size_t bytes)
{
	if (!yk_render_charge(r, bytes / 256))
		return NULL;
	if (bytes > (size_t)YK_RENDER_MEMORY || (r->memory -= (int64_t)bytes + 16) < 0) {
		yk_render_fail(r, YOKE_ERANGE, "the template needs more than %lld MiB",
			       (long long)(YK_RENDER_MEMORY >> 20));
		return NULL;
	}
	void *p = yk_arena_alloc(&r->arena, bytes);
	if (!p)
		r->failed = true;
	return p;
}

bool yk_render_enter(struct yk_render *r)
{
	if (r->depth >= YK_RENDER_DEPTH)
		yk_render_fail(r, YOKE_ERANGE,
			       "the template nests more than %d levels of values or calls",
			       YK_RENDER_DEPTH);
	r->depth++; // also after a failure, so that callers leave without asking
	return !r->failed;
}

// ---- construction ----

static struct yk_v_value of_chars(struct yk_render *r, char *s, size_t n)
{
	struct yk_chars *c = yk_render_alloc(r, sizeof *c);
	if (!c)
		return yk_v_undefined(NULL);
	size_t chars = 0;
	for (size_t i = 0; i < n; i++)
		chars += ((unsigned char)s[i] & 0xc0) != 0x80;
	*c = (struct yk_chars){ s, n, chars, NULL };
	return (struct yk_v_value){ .kind = YK_V_STRING, .s = c };
}

struct yk_v_value yk_v_string(struct yk_render *r, const char *s, size_t n)
{
	char *copy = yk_render_alloc(r, n + 1);
	if (!copy)
		return yk_v_undefined(NULL);
	memcpy(copy, s, n);
	return of_chars(r, copy, n);
}

struct yk_v_value yk_v_text(struct yk_render *r, const char *s)
{
	return yk_v_string(r, s, strlen(s));
}

struct yk_v_value yk_v_taken(struct yk_render *r, struct yk_string *s)
{
	struct yk_v_value v = yk_v_undefined(NULL);
	if (s->failed)
		yk_render_fail(r, YOKE_ENOMEM, "no memory for a string");
	else
		v = yk_v_string(r, s->s ? s->s : "", s->n);
	yk_string_fini(s);
	return v;
}

static bool grow(struct yk_render *r, void *array, size_t *cap, size_t n, size_t size)
{
	if (n < *cap)
		return true;
	const size_t more = *cap ? 2 * *cap : 4;
	void *p = yk_render_alloc(r, more * size);
	if (!p)
		return false;
	if (n)
		memcpy(p, *(void **)array, n * size);
	*(void **)array = p;
	*cap = more;
	return true;
}

struct yk_v_value yk_v_list(struct yk_render *r, enum yk_value_kind kind, size_t room)
{
	struct yk_items *l = yk_render_alloc(r, sizeof *l);
	if (l && room)
		l->v = yk_render_alloc(r, room * sizeof *l->v);
	if (!l || (room && !l->v))
		return yk_v_undefined(NULL);
	l->cap = room;
	return (struct yk_v_value){ .kind = kind, .list = l };
}

void yk_v_append(struct yk_render *r, struct yk_v_value list, struct yk_v_value v)
{
	if (r->failed || !grow(r, &list.list->v, &list.list->cap, list.list->n, sizeof v))
		return;
	list.list->v[list.list->n++] = v;
}

struct yk_v_value yk_v_dict(struct yk_render *r)
{
	struct yk_dict *d = yk_render_alloc(r, sizeof *d);
	return d ? (struct yk_v_value){ .kind = YK_V_DICT, .dict = d } : yk_v_undefined(NULL);
}

static bool plain_word(const char *s, size_t n)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

// A string of a message; all of it comes from there.
static struct yk_v_value json_string_of(struct yk_render *r, const char *s, size_t n,
					int64_t origin)
{
	const struct yoke_text_span all = { .from = 0, .to = n, .message = origin };
	const struct yk_v_value v = yk_v_string(r, s, n);
	if (origin != YK_NO_ORIGIN && n)
		yk_chars_mark(r, v, &all, 1);
	return v;
}

struct yk_v_value yk_v_json(struct yk_render *r, const json_t *j, int64_t origin)
{
	struct yk_v_value v = yk_v_none();
	if (!yk_render_enter(r)) {
		v = yk_v_undefined(NULL);
	} else if (json_is_object(j)) {
		const char *key;
		json_t *member;
		v = yk_v_dict(r);
		json_object_foreach ((json_t *)(uintptr_t)j, key, member) {
			struct yk_v_value k = json_string_of(r, key, strlen(key),
							     plain_word(key, strlen(key)) ?
								     YK_NO_ORIGIN :
								     origin),
					  x = yk_v_json(r, member, origin);
			if (!r->failed &&
			    grow(r, &v.dict->pair, &v.dict->cap, v.dict->n, sizeof *v.dict->pair))
				v.dict->pair[v.dict->n++] =
					(struct yk_v_pair){ k, x }; // keys of JSON are distinct
		}
	} else if (json_is_array(j)) {
		v = yk_v_list(r, YK_V_LIST, json_array_size(j));
		for (size_t i = 0; i < json_array_size(j) && !r->failed; i++)
			yk_v_append(r, v, yk_v_json(r, json_array_get(j, i), origin));
	} else if (json_is_string(j)) {
		v = json_string_of(r, json_string_value(j), json_string_length(j), origin);
	} else if (json_is_integer(j)) {
		v = yk_v_int(json_integer_value(j));
	} else if (json_is_real(j)) {
		v = yk_v_float(json_real_value(j));
	} else if (json_is_boolean(j)) {
		v = yk_v_bool(json_is_true(j));
	}
	r->depth--;
	return v;
}

// Roles become parts of tags in many templates, as in "<|" + role + "|>", so that a role that is a
// plain word counts as the template's.
struct yk_v_value yk_v_messages(struct yk_render *r, const json_t *j)
{
	struct yk_v_value list = yk_v_list(r, YK_V_LIST, json_array_size(j));
	for (size_t i = 0; i < json_array_size(j) && !r->failed; i++) {
		const struct yk_v_value v = yk_v_json(r, json_array_get(j, i), (int64_t)i);
		const struct yk_v_value *role =
			v.kind == YK_V_DICT ? yk_dict_get(v.dict, "role", 4) : NULL;
		if (role && role->kind == YK_V_STRING && plain_word(role->s->s, role->s->n))
			((struct yk_chars *)(uintptr_t)role->s)->spans = NULL;
		yk_v_append(r, list, v);
	}
	return list;
}

// ---- questions ----

bool yk_v_is_string(struct yk_v_value v, const char *s)
{
	return v.kind == YK_V_STRING && v.s->n == strlen(s) && !memcmp(v.s->s, s, v.s->n);
}

const char *yk_v_type(struct yk_v_value v)
{
	static const char *const names[] = {
		[YK_V_ABSENT] = "missing",
		[YK_V_UNDEFINED] = "Undefined",
		[YK_V_NONE] = "NoneType",
		[YK_V_BOOL] = "bool",
		[YK_V_INT] = "int",
		[YK_V_FLOAT] = "float",
		[YK_V_STRING] = "str",
		[YK_V_LIST] = "list",
		[YK_V_TUPLE] = "tuple",
		[YK_V_VIEW] = "view",
		[YK_V_ITERATOR] = "generator",
		[YK_V_DICT] = "dict",
		[YK_V_NAMESPACE] = "Namespace",
		[YK_V_SLICE] = "slice",
		[YK_V_LOOP] = "LoopContext",
		[YK_V_MACRO] = "Macro",
		[YK_V_FUNCTION] = "function",
		[YK_V_METHOD] = "method",
	};
	return v.kind == YK_V_VIEW ? v.list->type : names[v.kind];
}

bool yk_v_truth(struct yk_v_value v)
{
	switch (v.kind) {
	case YK_V_ABSENT:
	case YK_V_UNDEFINED:
	case YK_V_NONE: return false;
	case YK_V_BOOL: return v.b;
	case YK_V_INT: return v.i != 0;
	case YK_V_FLOAT: return v.d != 0;
	case YK_V_STRING: return v.s->n > 0;
	case YK_V_LIST:
	case YK_V_TUPLE:
	case YK_V_VIEW: return v.list->n > 0;
	case YK_V_DICT: return v.dict->n > 0;
	default: return true;
	}
}

static bool equal_lists(struct yk_render *r, const struct yk_items *a, const struct yk_items *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; i < a->n && same; i++)
		same = yk_v_equal(r, a->v[i], b->v[i]);
	return same;
}

static bool equal_dicts(struct yk_render *r, const struct yk_dict *a, const struct yk_dict *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; i < a->n && same; i++) {
		const struct yk_v_value *v = yk_dict_find(r, b, a->pair[i].key);
		same = v && yk_v_equal(r, a->pair[i].value, *v);
	}
	return same;
}

bool yk_v_equal(struct yk_render *r, struct yk_v_value a, struct yk_v_value b)
{
	if (!yk_render_charge(r, 1))
		return false;
	if (yk_v_integral(a) && yk_v_integral(b))
		return yk_v_int_of(a) == yk_v_int_of(b);
	if (yk_v_number(a) && yk_v_number(b))
		return yk_v_float_of(a) == yk_v_float_of(b);
	if (a.kind != b.kind)
		return false;
	bool same = false;
	switch (a.kind) {
	case YK_V_UNDEFINED:
	case YK_V_NONE: return true;
	case YK_V_STRING:
		return a.s->n == b.s->n && yk_render_charge(r, a.s->n / 256) &&
		       !memcmp(a.s->s, b.s->s, a.s->n);
	case YK_V_LIST:
	case YK_V_TUPLE:
	case YK_V_VIEW:
		same = yk_render_enter(r) && equal_lists(r, a.list, b.list);
		r->depth--;
		return same;
	case YK_V_DICT:
		same = yk_render_enter(r) && equal_dicts(r, a.dict, b.dict);
		r->depth--;
		return same;
	default: return a.list == b.list; // the same object
	}
}

int yk_v_compare(struct yk_render *r, struct yk_v_value a, struct yk_v_value b)
{
	int order = 0;
	if (!yk_render_charge(r, 1))
		return 0;
	if (yk_v_integral(a) && yk_v_integral(b))
		return (yk_v_int_of(a) > yk_v_int_of(b)) - (yk_v_int_of(a) < yk_v_int_of(b));
	if (yk_v_number(a) && yk_v_number(b))
		return (yk_v_float_of(a) > yk_v_float_of(b)) -
		       (yk_v_float_of(a) < yk_v_float_of(b));
	if (a.kind == YK_V_STRING && b.kind == YK_V_STRING) {
		const size_t n = a.s->n < b.s->n ? a.s->n : b.s->n;
		order = yk_render_charge(r, n / 256) ? memcmp(a.s->s, b.s->s, n) :
						       0; // bytes of UTF-8 sort as characters
		return order ? order : (a.s->n > b.s->n) - (a.s->n < b.s->n);
	}
	if (a.kind != b.kind || (a.kind != YK_V_LIST && a.kind != YK_V_TUPLE)) {
		yk_render_fail(r, YOKE_EFORMAT, "'%s' and '%s' cannot be ordered", yk_v_type(a),
			       yk_v_type(b));
		return 0;
	}
	yk_render_enter(r);
	size_t i = 0;
	while (!r->failed && i < a.list->n && i < b.list->n &&
	       yk_v_equal(r, a.list->v[i], b.list->v[i]))
		i++;
	if (i < a.list->n && i < b.list->n && !r->failed)
		order = yk_v_compare(r, a.list->v[i], b.list->v[i]);
	else
		order = (a.list->n > b.list->n) - (a.list->n < b.list->n);
	r->depth--;
	return order;
}

bool yk_v_contains(struct yk_render *r, struct yk_v_value in, struct yk_v_value what)
{
	if (r->failed)
		return false;
	if (in.kind == YK_V_STRING) {
		if (what.kind != YK_V_STRING) {
			yk_render_fail(r, YOKE_EFORMAT, "'in' of a string needs a string, not '%s'",
				       yk_v_type(what));
			return false;
		}
		return yk_render_charge(r, in.s->n / 256) &&
		       memmem(in.s->s, in.s->n, what.s->s, what.s->n);
	}
	if (in.kind == YK_V_DICT)
		return yk_dict_find(r, in.dict, what) != NULL;
	const struct yk_items *l = yk_v_iterate(r, in);
	for (size_t i = 0; l && i < l->n; i++)
		if (yk_v_equal(r, l->v[i], what))
			return true;
	return false;
}

static struct yk_items *characters(struct yk_render *r, const struct yk_chars *c)
{
	struct yk_v_value list = yk_v_list(r, YK_V_LIST, c->chars);
	for (size_t i = 0; i < c->n && !r->failed; i += yk_char_size(c->s[i]))
		yk_v_append(r, list, yk_v_substring(r, c, c->s + i, yk_char_size(c->s[i])));
	return r->failed ? NULL : list.list;
}

struct yk_items *yk_v_iterate(struct yk_render *r, struct yk_v_value v)
{
	static struct yk_items none;
	struct yk_v_value list;
	switch (v.kind) {
	case YK_V_UNDEFINED: return &none;
	case YK_V_LIST:
	case YK_V_TUPLE:
	case YK_V_VIEW: return v.list;
	case YK_V_ITERATOR:
		list = yk_v_list(r, YK_V_LIST, 0);
		if (r->failed)
			return NULL;
		*list.list = *v.list;
		v.list->n = 0;
		return list.list;
	case YK_V_STRING: return characters(r, v.s);
	case YK_V_DICT:
		list = yk_v_list(r, YK_V_LIST, v.dict->n);
		for (size_t i = 0; i < v.dict->n && !r->failed; i++)
			yk_v_append(r, list, v.dict->pair[i].key);
		return r->failed ? NULL : list.list;
	default: break;
	}
	yk_render_fail(r, YOKE_EFORMAT, "'%s' cannot be iterated", yk_v_type(v));
	return NULL;
}

int64_t yk_v_length(struct yk_render *r, struct yk_v_value v)
{
	switch (v.kind) {
	case YK_V_UNDEFINED: return 0;
	case YK_V_STRING: return (int64_t)v.s->chars;
	case YK_V_LIST:
	case YK_V_TUPLE:
	case YK_V_VIEW: return (int64_t)v.list->n;
	case YK_V_DICT: return (int64_t)v.dict->n;
	default: yk_render_fail(r, YOKE_EFORMAT, "'%s' has no length", yk_v_type(v)); return 0;
	}
}

// ---- dicts ----

static bool hashable(struct yk_render *r, struct yk_v_value v)
{
	if (v.kind == YK_V_LIST || v.kind == YK_V_DICT || v.kind == YK_V_SLICE) {
		yk_render_fail(r, YOKE_EFORMAT, "'%s' cannot be a key", yk_v_type(v));
		return false;
	}
	return true;
}

struct yk_v_value *yk_dict_find(struct yk_render *r, const struct yk_dict *d, struct yk_v_value key)
{
	if (!hashable(r, key) || !yk_render_charge(r, d->n / 32))
		return NULL;
	for (size_t i = 0; i < d->n; i++) {
		const struct yk_v_value k = d->pair[i].key;
		const bool texts = k.kind == YK_V_STRING && key.kind == YK_V_STRING;
		if (texts ? k.s->n == key.s->n && !memcmp(k.s->s, key.s->s, k.s->n) :
			    k.kind != YK_V_STRING && yk_v_equal(r, k, key))
			return &d->pair[i].value;
	}
	return NULL;
}

struct yk_v_value *yk_dict_get(const struct yk_dict *d, const char *key, size_t n)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct yk_v_value k = d->pair[i].key;
		if (k.kind == YK_V_STRING && k.s->n == n && !memcmp(k.s->s, key, n))
			return &d->pair[i].value;
	}
	return NULL;
}

void yk_dict_put(struct yk_render *r, struct yk_dict *d, struct yk_v_value key, struct yk_v_value v)
{
	struct yk_v_value *old = r->failed ? NULL : yk_dict_find(r, d, key);
	if (old)
		*old = v;
	else if (!r->failed && grow(r, &d->pair, &d->cap, d->n, sizeof *d->pair))
		d->pair[d->n++] = (struct yk_v_pair){ key, v };
}

// ---- characters and slices ----

bool yk_py_space(uint32_t c)
{
	if (c < 0x80)
		return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
	return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
	       c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t yk_chars_offset(const struct yk_chars *c, int64_t i)
{
	size_t at = 0;
	if (i <= 0)
		return 0;
	if ((size_t)i >= c->chars)
		return c->n;
	if (c->n == c->chars)
		return (size_t)i;
	while (i-- > 0)
		at += yk_char_size(c->s[at]);
	return at;
}

static bool strips(const struct yk_chars *set, const char *at)
{
	const char *s = at;
	return set ? memmem(set->s, set->n, at, yk_char_size(*at)) != NULL :
		     yk_py_space(yk_char_next(&s));
}

void yk_chars_strip(const struct yk_chars *c, const struct yk_chars *set, bool left, bool right,
		    size_t *from, size_t *to)
{
	*from = 0;
	*to = c->n;
	while (left && *from < *to && strips(set, c->s + *from))
		*from += yk_char_size(c->s[*from]);
	while (right && *to > *from) {
		size_t before = *to - 1;
		while (((unsigned char)c->s[before] & 0xc0) == 0x80)
			before--;
		if (!strips(set, c->s + before))
			break;
		*to = before;
	}
}

struct yk_v_value yk_v_escape(struct yk_render *r, struct yk_v_value v)
{
	static const char *const names[] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&#34;", ['\''] = "&#39;"
	};
	struct yk_v_buffer to = { 0 };
	struct yk_v_value s = yk_v_to_string(r, v);
	if (r->failed || s.markup)
		return s;
	for (size_t i = 0; i < s.s->n; i++) {
		const unsigned char c = (unsigned char)s.s->s[i];
		const char *name = c < sizeof names / sizeof *names ? names[c] : NULL;
		const size_t begin = to.s.n;
		yk_text_add(&to, NULL, name ? name : s.s->s + i, name ? strlen(name) : 1);
		yk_text_derive(&to, begin, s.s, s.s->s + i);
	}
	s = yk_v_built(r, &to);
	s.markup = true;
	return s;
}

static int64_t bound(struct yk_render *r, struct yk_v_value v, int64_t n, int64_t lo, int64_t hi,
		     int64_t otherwise)
{
	if (v.kind == YK_V_NONE || r->failed)
		return otherwise;
	if (!yk_v_integral(v)) {
		yk_render_fail(r, YOKE_EFORMAT, "a slice needs integers, not '%s'", yk_v_type(v));
		return otherwise;
	}
	int64_t i = yk_v_int_of(v);
	i += i < 0 ? n : 0;
	if (i < lo)
		return lo;
	return i > hi ? hi : i;
}

void yk_slice_indices(struct yk_render *r, struct yk_v_value slice, int64_t n, int64_t *start,
		      int64_t *stop, int64_t *step)
{
	const struct yk_v_value *v = slice.list->v;
	*step = 1;
	if (v[2].kind != YK_V_NONE) {
		*step = yk_v_integral(v[2]) ? yk_v_int_of(v[2]) : 0;
		if (*step == 0 || *step == INT64_MIN)
			yk_render_fail(r, YOKE_EFORMAT,
				       "the step of a slice must be an integer other than 0");
	}
	const bool up = *step > 0;
	*start = bound(r, v[0], n, up ? 0 : -1, up ? n : n - 1, up ? 0 : n - 1);
	*stop = bound(r, v[1], n, up ? 0 : -1, up ? n : n - 1, up ? n : -1);
}

struct yk_v_value yk_v_slice(struct yk_render *r, struct yk_v_value v, struct yk_v_value slice)
{
	const bool text = v.kind == YK_V_STRING;
	int64_t start, stop, step, n = text ? (int64_t)v.s->chars : (int64_t)v.list->n;
	struct yk_v_buffer to = { 0 };
	yk_slice_indices(r, slice, n, &start, &stop, &step);
	if (r->failed)
		return yk_v_undefined(NULL);
	if (text && step == 1) {
		const size_t from = yk_chars_offset(v.s, start),
			     end = yk_chars_offset(v.s, stop > start ? stop : start);
		struct yk_v_value s = yk_v_substring(r, v.s, v.s->s + from, end - from);
		s.markup = v.markup;
		return s;
	}
	const struct yk_items *l = yk_v_iterate(r, v);
	struct yk_v_value list = yk_v_list(r, v.kind == YK_V_TUPLE ? YK_V_TUPLE : YK_V_LIST, 0);
	for (int64_t i = start; !r->failed && (step > 0 ? i < stop : i > stop);) {
		if (text)
			yk_text_add(&to, l->v[i].s, l->v[i].s->s, l->v[i].s->n);
		else
			yk_v_append(r, list, l->v[i]);
		if (!yk_render_charge(r, 1) || __builtin_add_overflow(i, step, &i))
			break;
	}
	return text ? yk_v_built(r, &to) : list;
}
