// SPDX-License-Identifier: Apache-2.0
// Texts of values, as Python's str, repr and json.dumps write them.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "template/value.h"
#include "tokenizer/unicode.h"

static void add_to(struct yk_string *to, const char *s)
{
	yk_string_add(to, s, strlen(s));
}

// The shortest decimal digits that read back as the same number; an exponent below 1e-4 and from
// 1e16 on.
void yk_float_repr(double d, struct yk_string *to)
{
	char s[40], digits[40];
	int precision = 1, exponent, n = 0;
	if (isnan(d))
		return add_to(to, "nan");
	if (isinf(d))
		return add_to(to, d < 0 ? "-inf" : "inf");
	do
		yk_snprintf(s, sizeof s, "%.*e", precision - 1, d);
	while (yk_strtod(s, NULL) != d && ++precision <= 17);
	const char *e = strchr(s, 'e');
	exponent = atoi(e + 1);
	for (const char *c = s; c < e; c++)
		if (*c >= '0' && *c <= '9')
			digits[n++] = *c;
	if (signbit(d))
		add_to(to, "-");
	if (exponent < -4 || exponent >= 16) {
		yk_string_add(to, digits, 1);
		if (n > 1) {
			add_to(to, ".");
			yk_string_add(to, digits + 1, (size_t)n - 1);
		}
		snprintf(s, sizeof s, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
		return add_to(to, s);
	}
	if (exponent < 0)
		add_to(to, "0.");
	for (int i = exponent < 0 ? exponent + 1 : 0; i < n || i <= exponent + 1; i++) {
		if (i == exponent + 1 && exponent >= 0)
			add_to(to, ".");
		yk_string_add(to, i >= 0 && i < n ? &digits[i] : "0", 1);
	}
}

static void add(struct yk_v_buffer *to, const char *s)
{
	yk_text_add(to, NULL, s, strlen(s));
}

static bool printable(uint32_t c)
{
	return c < 0x7f ? c >= 0x20 : !yk_is_other(c) && (c == ' ' || !yk_py_space(c));
}

static void quote(const struct yk_chars *c, struct yk_v_buffer *to)
{
	const char mark = memchr(c->s, '\'', c->n) && !memchr(c->s, '"', c->n) ? '"' : '\'';
	char s[16];
	yk_text_add(to, NULL, &mark, 1);
	for (const char *at = c->s; at < c->s + c->n;) {
		const char *from = at;
		const size_t begin = to->s.n;
		const uint32_t x = yk_char_next(&at);
		if (x == (unsigned char)mark || x == '\\') {
			add(to, "\\");
			yk_text_add(to, c, from, 1);
		} else if (x == '\n' || x == '\r' || x == '\t') {
			add(to, x == '\n' ? "\\n" : x == '\r' ? "\\r" : "\\t");
		} else if (printable(x)) {
			yk_text_add(to, c, from, (size_t)(at - from));
		} else {
			snprintf(s, sizeof s,
				 x < 0x100   ? "\\x%02x" :
				 x < 0x10000 ? "\\u%04x" :
					       "\\U%08x",
				 (unsigned)x);
			add(to, s);
		}
		yk_text_derive(to, begin, c, from);
	}
	yk_text_add(to, NULL, &mark, 1);
}

static void list_repr(struct yk_render *r, struct yk_v_value v, struct yk_v_buffer *to)
{
	const bool tuple = v.kind == YK_V_TUPLE;
	add(to, tuple ? "(" : "[");
	for (size_t i = 0; i < v.list->n && !r->failed; i++) {
		if (i)
			add(to, ", ");
		yk_v_repr(r, v.list->v[i], to);
	}
	add(to, tuple ? (v.list->n == 1 ? ",)" : ")") : "]");
}

static void dict_repr(struct yk_render *r, const struct yk_dict *d, struct yk_v_buffer *to)
{
	add(to, "{");
	for (size_t i = 0; i < d->n && !r->failed; i++) {
		if (i)
			add(to, ", ");
		yk_v_repr(r, d->pair[i].key, to);
		add(to, ": ");
		yk_v_repr(r, d->pair[i].value, to);
	}
	add(to, "}");
}

// Fails if a text becomes longer than a template may need.
static void check_room(struct yk_render *r, const struct yk_v_buffer *to)
{
	if ((int64_t)to->s.n > YK_RENDER_MEMORY)
		yk_render_fail(r, YOKE_ERANGE, "the text of a value has more than %lld MiB",
			       (long long)(YK_RENDER_MEMORY >> 20));
}

void yk_v_repr(struct yk_render *r, struct yk_v_value v, struct yk_v_buffer *to)
{
	if (!yk_render_charge(r, 1) || !yk_render_enter(r))
		return;
	if (v.kind == YK_V_STRING && v.markup)
		add(to, "Markup(");
	if (v.kind == YK_V_STRING) {
		if (yk_render_charge(r, v.s->n / 256))
			quote(v.s, to);
		add(to, v.markup ? ")" : "");
	} else if (v.kind == YK_V_UNDEFINED) {
		add(to, "Undefined");
	} else {
		yk_v_str(r, v, to);
	}
	check_room(r, to);
	r->depth--;
}

void yk_v_str(struct yk_render *r, struct yk_v_value v, struct yk_v_buffer *to)
{
	char s[64];
	struct yk_v_value list = v;
	switch (v.kind) {
	case YK_V_ABSENT:
	case YK_V_UNDEFINED: return;
	case YK_V_NONE: return add(to, "None");
	case YK_V_BOOL: return add(to, v.b ? "True" : "False");
	case YK_V_INT: snprintf(s, sizeof s, "%lld", (long long)v.i); return add(to, s);
	case YK_V_FLOAT: return yk_float_repr(v.d, &to->s);
	case YK_V_STRING:
		if (yk_render_charge(r, v.s->n / 256))
			yk_text_add(to, v.s, v.s->s, v.s->n);
		return;
	case YK_V_LIST:
	case YK_V_TUPLE: return list_repr(r, v, to);
	case YK_V_DICT: return dict_repr(r, v.dict, to);
	case YK_V_VIEW:
		if (v.list->text) {
			yk_text_add(to, NULL, v.list->text->s, v.list->text->n);
			return;
		}
		list.kind = YK_V_LIST;
		add(to, v.list->type);
		add(to, "(");
		list_repr(r, list, to);
		return add(to, ")");
	case YK_V_NAMESPACE:
		add(to, "<Namespace ");
		dict_repr(r, v.dict, to);
		return add(to, ">");
	default: yk_render_fail(r, YOKE_EFORMAT, "a %s has no text", yk_v_type(v));
	}
}

struct yk_v_value yk_v_to_string(struct yk_render *r, struct yk_v_value v)
{
	struct yk_v_buffer to = { 0 };
	if (v.kind == YK_V_STRING || r->failed)
		return v;
	yk_v_str(r, v, &to);
	return yk_v_built(r, &to);
}

// ---- JSON ----

static void dump_string(const struct yk_chars *c, bool ascii, struct yk_v_buffer *to)
{
	static const char *const names[] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
		['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"
	};
	char s[16];
	add(to, "\"");
	for (const char *at = c->s; at < c->s + c->n;) {
		const char *from = at;
		const size_t begin = to->s.n;
		const uint32_t x = yk_char_next(&at);
		if (x < sizeof names / sizeof *names && names[x]) {
			add(to, names[x]);
		} else if (x >= 0x10000 && ascii) {
			snprintf(s, sizeof s, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(x >> 10),
				 0xdc00 + (unsigned)(x & 0x3ff));
			add(to, s);
		} else if (x < 0x20 || (x >= 0x7f && ascii && x != 0x7f)) {
			snprintf(s, sizeof s, "\\u%04x", (unsigned)x);
			add(to, s);
		} else {
			yk_text_add(to, c, from, (size_t)(at - from));
		}
		yk_text_derive(to, begin, c, from);
	}
	add(to, "\"");
}

static void new_line(const struct yk_json_style *y, int level, struct yk_v_buffer *to)
{
	if (!y->indent)
		return;
	add(to, "\n");
	for (int i = 0; i < level; i++)
		add(to, y->indent);
}

static int by_key(const void *a, const void *b)
{
	const struct yk_v_pair *x = a, *y = b;
	const struct yk_chars *s = x->key.s, *t = y->key.s;
	const int order = memcmp(s->s, t->s, s->n < t->n ? s->n : t->n);
	return order ? order : (s->n > t->n) - (s->n < t->n);
}

// Numbers, none and booleans as json.dumps writes them.
static bool dump_atom(struct yk_v_value v, struct yk_v_buffer *to)
{
	char s[32];
	if (v.kind == YK_V_NONE) {
		add(to, "null");
	} else if (v.kind == YK_V_BOOL) {
		add(to, v.b ? "true" : "false");
	} else if (v.kind == YK_V_INT) {
		snprintf(s, sizeof s, "%lld", (long long)v.i);
		add(to, s);
	} else if (v.kind == YK_V_FLOAT && isfinite(v.d)) {
		yk_float_repr(v.d, &to->s);
	} else if (v.kind == YK_V_FLOAT) {
		add(to, isnan(v.d) ? "NaN" : v.d < 0 ? "-Infinity" : "Infinity");
	} else {
		return false;
	}
	return true;
}

static void dump_dict(struct yk_render *r, const struct yk_dict *d, const struct yk_json_style *y,
		      int level, struct yk_v_buffer *to)
{
	struct yk_v_pair *pair = d->pair;
	if (y->sorted && d->n > 1) {
		pair = yk_render_alloc(r, d->n * sizeof *pair);
		for (size_t i = 0; i < d->n && !r->failed; i++) {
			if (d->pair[i].key.kind != YK_V_STRING)
				yk_render_fail(
					r, YOKE_EFORMAT,
					"tojson: keys that are not strings cannot be sorted");
			pair[i] = d->pair[i];
		}
		if (!r->failed)
			qsort(pair, d->n, sizeof *pair, by_key);
	}
	for (size_t i = 0; i < d->n && !r->failed; i++) {
		const struct yk_v_value key = pair[i].key;
		add(to, i ? y->comma : "");
		new_line(y, level + 1, to);
		if (key.kind == YK_V_STRING) {
			dump_string(key.s, y->ascii, to);
		} else {
			add(to, "\"");
			if (!dump_atom(key, to))
				yk_render_fail(r, YOKE_EFORMAT, "tojson: a key is '%s'",
					       yk_v_type(key));
			add(to, "\"");
		}
		add(to, y->colon);
		yk_v_dump(r, pair[i].value, y, level + 1, to);
	}
}

void yk_v_dump(struct yk_render *r, struct yk_v_value v, const struct yk_json_style *y, int level,
	       struct yk_v_buffer *to)
{
	if (!yk_render_charge(r, 1) || dump_atom(v, to))
		return;
	if (v.kind == YK_V_STRING) {
		if (yk_render_charge(r, v.s->n / 256))
			dump_string(v.s, y->ascii, to);
		return;
	}
	const bool dict = v.kind == YK_V_DICT;
	if (!dict && v.kind != YK_V_LIST && v.kind != YK_V_TUPLE) {
		yk_render_fail(r, YOKE_EFORMAT, "tojson: '%s' has no JSON form", yk_v_type(v));
		return;
	}
	const size_t n = dict ? v.dict->n : v.list->n;
	yk_render_enter(r);
	add(to, dict ? "{" : "[");
	if (dict)
		dump_dict(r, v.dict, y, level, to);
	for (size_t i = 0; !dict && i < n && !r->failed; i++) {
		add(to, i ? y->comma : "");
		new_line(y, level + 1, to);
		yk_v_dump(r, v.list->v[i], y, level + 1, to);
	}
	if (n)
		new_line(y, level, to);
	add(to, dict ? "}" : "]");
	check_room(r, to);
	r->depth--;
}
