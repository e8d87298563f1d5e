// SPDX-License-Identifier: Apache-2.0
// Formatting of strings: str.format and the operator %.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "template/functions.h"

enum { WIDTH_MAX = 1 << 20 };

struct spec {
	char fill[5], align, sign, type; // 0: not given
	bool alternate, zero, comma;
	int width, precision; // -1: not given
};

// A number up to WIDTH_MAX; -1: there is none.
static int digits(const char **at, const char *end)
{
	int n = -1;
	while (*at < end && **at >= '0' && **at <= '9') {
		n = (n < 0 ? 0 : n) * 10 + (*(*at)++ - '0');
		n = n > WIDTH_MAX ? WIDTH_MAX : n;
	}
	return n;
}

// Bytes of a text that a message shows.
static int shown(const char *at, const char *end)
{
	return end - at < 40 ? (int)(end - at) : 40;
}

// "[[fill]align][sign][#][0][width][,][.precision][type]"; false: something else.
static bool parse_spec(const char *at, const char *end, struct spec *s)
{
	*s = (struct spec){ .width = -1, .precision = -1 };
	const size_t first = at < end ? yk_char_size(*at) : 0;
	if (first && at + first < end && strchr("<>=^", at[first])) {
		memcpy(s->fill, at, first);
		s->align = at[first];
		at += first + 1;
	} else if (at < end && strchr("<>=^", *at)) {
		s->align = *at++;
	}
	if (at < end && strchr("+- ", *at))
		s->sign = *at++;
	if (at < end && *at == '#') {
		s->alternate = true;
		at++;
	}
	if (at < end && *at == '0') {
		s->zero = true;
		at++;
	}
	s->width = digits(&at, end);
	if (at < end && *at == ',') {
		s->comma = true;
		at++;
	}
	if (at < end && *at == '.') {
		at++;
		s->precision = digits(&at, end);
		if (s->precision < 0)
			return false;
	}
	if (at < end && strchr("sdfFeEgGxXob", *at))
		s->type = *at++;
	return at == end;
}

static size_t count_chars(const char *s, size_t n)
{
	size_t chars = 0;
	for (size_t i = 0; i < n; i++)
		chars += ((unsigned char)s[i] & 0xc0) != 0x80;
	return chars;
}

// Adds sign, zeros and text of `of`, padded to the width.
static void put(const struct spec *s, const char *sign, const struct yk_chars *of, const char *text,
		size_t n, char align, struct yk_v_buffer *to)
{
	const size_t chars = strlen(sign) + count_chars(text, n);
	const size_t more = s->width > 0 && (size_t)s->width > chars ? (size_t)s->width - chars : 0;
	const char *fill = s->fill[0] ? s->fill : s->zero ? "0" : " ";
	size_t left = 0;
	if (s->align)
		align = s->align;
	if (align == '>' || align == '=')
		left = more;
	else if (align == '^')
		left = more / 2;
	if (align == '=')
		yk_text_add(to, NULL, sign, strlen(sign));
	for (size_t i = 0; i < left; i++)
		yk_text_add(to, NULL, fill, strlen(fill));
	if (align != '=')
		yk_text_add(to, NULL, sign, strlen(sign));
	yk_text_add(to, of, text, n);
	for (size_t i = left; i < more; i++)
		yk_text_add(to, NULL, fill, strlen(fill));
}

static void group(const char *text, struct yk_string *to)
{
	const size_t n = strspn(text, "0123456789");
	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			yk_string_add(to, ",", 1);
		yk_string_add(to, text + i, 1);
	}
	yk_string_add(to, text + n, strlen(text + n));
}

static void put_number(struct yk_render *r, const struct spec *s, bool negative, char *text,
		       struct yk_v_buffer *to)
{
	struct yk_string grouped = { 0 };
	const char sign[2] = { negative ? '-' : s->sign == '+' || s->sign == ' ' ? s->sign : 0, 0 };
	if (s->comma)
		group(text, &grouped);
	else
		yk_string_add(&grouped, text, strlen(text));
	if (grouped.failed)
		yk_render_fail(r, YOKE_ENOMEM, "no memory for a number");
	else
		put(s, sign, NULL, grouped.s ? grouped.s : "", grouped.n,
		    s->zero && !s->align ? '=' : '>', to);
	yk_string_fini(&grouped);
}

static void put_int(struct yk_render *r, const struct spec *s, int64_t i, struct yk_v_buffer *to)
{
	const uint64_t u = i < 0 ? -(uint64_t)i : (uint64_t)i;
	char text[80], bits[70];
	size_t n = 0;
	if (s->type == 'b') {
		for (uint64_t rest = u; rest || !n; rest /= 2)
			bits[n++] = (char)('0' + rest % 2);
		snprintf(text, sizeof text, "%s", s->alternate ? "0b" : "");
		for (size_t at = strlen(text); n; text[at] = 0)
			text[at++] = bits[--n];
	} else if (s->type == 'x' || s->type == 'X' || s->type == 'o') {
		const char *prefix = s->type == 'x' ? "0x" : s->type == 'X' ? "0X" : "0o";
		snprintf(text, sizeof text,
			 s->type == 'x' ? "%s%llx" :
			 s->type == 'X' ? "%s%llX" :
					  "%s%llo",
			 s->alternate ? prefix : "", (unsigned long long)u);
	} else {
		snprintf(text, sizeof text, "%llu", (unsigned long long)u);
	}
	put_number(r, s, i < 0, text, to);
}

static void put_float(struct yk_render *r, const struct spec *s, double d, struct yk_v_buffer *to)
{
	const char type = s->type;
	const char form[] = { '%', '.', '*', type ? type : 'g', 0 };
	struct yk_string shortest = { 0 };
	char *text = NULL;
	if (s->precision > 400) {
		yk_render_fail(r, YOKE_ERANGE, "a number has %d digits", s->precision);
	} else if (!type && s->precision < 0) {
		yk_float_repr(fabs(d), &shortest);
		yk_string_add(&shortest, "", 1);
		if (!shortest.failed)
			put_number(r, s, signbit(d), shortest.s, to);
	} else {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		const int length =
			yk_asprintf(&text, form, s->precision < 0 ? 6 : s->precision, fabs(d));
#pragma GCC diagnostic pop
		if (length < 0)
			yk_render_fail(r, YOKE_ENOMEM, "no memory for a number");
		else
			put_number(r, s, signbit(d) && !isnan(d), text, to);
	}
	free(text);
	yk_string_fini(&shortest);
}

static void put_text(struct yk_render *r, const struct spec *s, struct yk_v_value v,
		     struct yk_v_buffer *to)
{
	const struct yk_v_value t = yk_v_to_string(r, v);
	if (r->failed)
		return;
	put(s, "", t.s, t.s->s, s->precision >= 0 ? yk_chars_offset(t.s, s->precision) : t.s->n,
	    '<', to);
}

static void put_value(struct yk_render *r, const struct spec *s, struct yk_v_value v,
		      struct yk_v_buffer *to)
{
	const bool real = s->type && strchr("fFeEgG", s->type),
		   whole = s->type && strchr("dxXob", s->type);
	if (s->width > 0)
		yk_render_charge(r, (size_t)s->width / 64);
	if (v.kind == YK_V_FLOAT && !whole && s->type != 's')
		put_float(r, s, v.d, to);
	else if (yk_v_integral(v) && real)
		put_float(r, s, (double)yk_v_int_of(v), to);
	else if (yk_v_integral(v) && (v.kind == YK_V_INT || whole) && s->type != 's')
		put_int(r, s, yk_v_int_of(v), to);
	else if (real || whole || (s->type == 's' && v.kind != YK_V_STRING))
		yk_render_fail(r, YOKE_EFORMAT,
			       "format: type '%c' does not fit a value of type '%s'", s->type,
			       yk_v_type(v));
	else
		put_text(r, s, v, to);
}

// ---- str.format ----

// The value of a field: a name or number, then .name and [key].
static struct yk_v_value field(struct yk_render *r, const char *at, const char *end,
			       const struct yk_args *a, size_t *next)
{
	const char *stop = at, *number = at;
	struct yk_v_value v = yk_v_undefined(NULL);
	while (stop < end && *stop != '.' && *stop != '[')
		stop++;
	const int index = digits(&number, stop);
	if (stop == at || (index >= 0 && number == stop)) {
		const size_t i = stop == at ? (*next)++ : (size_t)index;
		if (i >= a->n)
			return yk_render_fail(r, YOKE_EFORMAT, "format: there is no argument %zu",
					      i);
		v = a->v[i];
	} else {
		const struct yk_v_value *named =
			a->named ? yk_dict_get(a->named, at, (size_t)(stop - at)) : NULL;
		if (!named)
			return yk_render_fail(r, YOKE_EFORMAT,
					      "format: there is no argument '%.*s'",
					      shown(at, stop), at);
		v = *named;
	}
	for (at = stop; at < end && !r->failed; at = stop) {
		const bool item = *at++ == '[';
		stop = at;
		while (stop < end && (item ? *stop != ']' : *stop != '.' && *stop != '['))
			stop++;
		number = at;
		const int i = digits(&number, stop);
		if (item)
			v = yk_v_item(r, v,
				      i >= 0 && number == stop ?
					      yk_v_int(i) :
					      yk_v_string(r, at, (size_t)(stop - at)));
		else
			v = yk_v_attr(r, v, at, (size_t)(stop - at));
		stop += item && stop < end;
	}
	return v;
}

// One replacement field between braces.
static void replacement(struct yk_render *r, const char *at, const char *end,
			const struct yk_args *a, size_t *next, struct yk_v_buffer *to)
{
	const char *stop = at;
	struct spec s;
	while (stop < end && *stop != ':' && *stop != '!')
		stop++;
	struct yk_v_value v = field(r, at, stop, a, next);
	if (r->failed)
		return;
	if (stop < end && *stop == '!') {
		struct yk_v_buffer text = { 0 };
		const char how = stop + 1 < end ? stop[1] : 0;
		if (how == 'r')
			yk_v_repr(r, v, &text);
		else if (how == 's')
			yk_v_str(r, v, &text);
		else
			yk_render_fail(r, YOKE_EFORMAT, "format: unknown conversion");
		v = yk_v_built(r, &text);
		stop += 2;
	}
	if (stop < end && *stop != ':')
		yk_render_fail(r, YOKE_EFORMAT, "format: '%.*s' is no field", shown(at, end), at);
	else if (!parse_spec(stop + (stop < end), end, &s))
		yk_render_fail(r, YOKE_EFORMAT, "format: '%.*s' is no known format", shown(at, end),
			       at);
	else if (!r->failed)
		put_value(r, &s, v, to);
}

// A format may contain fields itself, as in "{:{}}".
static void nested(struct yk_render *r, const char *at, const char *end, const struct yk_args *a,
		   size_t *next, struct yk_v_buffer *to)
{
	struct yk_v_buffer inner = { 0 };
	const char *colon = memchr(at, ':', (size_t)(end - at)), *open;
	if (!colon || !memchr(colon, '{', (size_t)(end - colon)))
		return replacement(r, at, end, a, next, to);
	yk_text_add(&inner, NULL, at, (size_t)(colon - at));
	const size_t before = *next;
	if (colon == at)
		(*next)++; // the outer field takes its argument first
	while ((open = memchr(colon, '{', (size_t)(end - colon))) != NULL && !r->failed) {
		const char *close = memchr(open, '}', (size_t)(end - open));
		if (!close)
			break;
		yk_text_add(&inner, NULL, colon, (size_t)(open - colon));
		replacement(r, open + 1, close, a, next, &inner);
		colon = close + 1;
	}
	yk_text_add(&inner, NULL, colon, (size_t)(end - colon));
	size_t outer = before;
	if (!inner.s.failed && !r->failed)
		replacement(r, inner.s.s, inner.s.s + inner.s.n, a, &outer, to);
	yk_text_fini(&inner);
}

struct yk_v_value yk_format_braces(struct yk_render *r, const struct yk_chars *c,
				   const struct yk_args *a)
{
	struct yk_v_buffer to = { 0 };
	const char *end = c->s + c->n;
	size_t next = 0;
	for (const char *at = c->s; at < end && yk_render_charge(r, 1);) {
		const size_t text = strcspn(at, "{}");
		yk_text_add(&to, c, at, text);
		at += text;
		if (at == end)
			break;
		if (at + 1 < end && at[1] == at[0]) {
			yk_text_add(&to, c, at, 1);
			at += 2;
			continue;
		}
		const char *close = at + 1;
		for (int depth = 1; *at == '{' && close < end; close++) {
			depth += *close == '{' ? 1 : *close == '}' ? -1 : 0;
			if (depth == 0)
				break;
		}
		if (*at == '}' || close >= end) {
			yk_render_fail(r, YOKE_EFORMAT, "format: a brace has no other one");
			break;
		}
		nested(r, at + 1, close, a, &next, &to);
		at = close + 1;
	}
	yk_text_derive(&to, 0, c, NULL); // a format that a message supplies
	return yk_v_built(r, &to);
}

// ---- % ----

static struct yk_v_value next_value(struct yk_render *r, struct yk_v_value v, size_t *next)
{
	const size_t i = (*next)++;
	if (v.kind == YK_V_TUPLE ? i < v.list->n : i == 0)
		return v.kind == YK_V_TUPLE ? v.list->v[i] : v;
	return yk_render_fail(r, YOKE_EFORMAT, "%%: there are too few values for the format");
}

static void conversion(struct yk_render *r, const struct spec *s, struct yk_v_value v,
		       struct yk_v_buffer *to)
{
	struct spec t = *s;
	struct yk_v_buffer text = { 0 };
	if (t.align == 0 && t.type == 's')
		t.align = '>';
	if (s->type == 'd' && v.kind == YK_V_FLOAT)
		v = yk_v_int((int64_t)v.d);
	if (s->type == 'r')
		yk_v_repr(r, v, &text);
	if (s->type == 's')
		yk_v_str(r, v, &text);
	if (s->type == 'r' || s->type == 's') {
		t.align = t.align ? t.align : '>';
		t.zero = false;
		t.type = 0;
		put_text(r, &t, yk_v_built(r, &text), to);
	} else if (!yk_v_number(v)) {
		yk_render_fail(r, YOKE_EFORMAT, "%%%c needs a number, not '%s'", s->type,
			       yk_v_type(v));
	} else {
		put_value(r, &t, v, to);
	}
}

struct yk_v_value yk_format_percent(struct yk_render *r, const struct yk_chars *c,
				    struct yk_v_value v)
{
	struct yk_v_buffer to = { 0 };
	const char *end = c->s + c->n;
	size_t next = 0;
	bool named = v.kind == YK_V_DICT;
	for (const char *at = c->s; at < end && yk_render_charge(r, 1);) {
		struct spec s = { .width = -1, .precision = -1 };
		struct yk_v_value x = yk_v_undefined(NULL);
		if (*at != '%') {
			yk_text_add(&to, c, at++, 1);
			continue;
		}
		if (++at < end && *at == '%') {
			yk_text_add(&to, c, at++, 1);
			continue;
		}
		const bool key = at < end && *at == '(';
		if (key) {
			const char *close = memchr(at, ')', (size_t)(end - at));
			const struct yk_v_value *found =
				close && v.kind == YK_V_DICT ?
					yk_dict_get(v.dict, at + 1, (size_t)(close - at - 1)) :
					NULL;
			if (!found) {
				yk_render_fail(r, YOKE_EFORMAT,
					       "%%: the format names a value that is not given");
				break;
			}
			x = *found;
			at = close + 1;
		}
		for (; at < end && strchr("#0- +", *at); at++) {
			s.alternate = s.alternate || *at == '#';
			s.zero = s.zero || *at == '0';
			s.align = *at == '-' ? '<' : s.align;
			s.sign = *at == ' ' || *at == '+' ? *at : s.sign;
		}
		s.width = digits(&at, end);
		if (at < end && *at == '.') {
			at++;
			s.precision = digits(&at, end);
			s.precision = s.precision < 0 ? 0 : s.precision;
		}
		if (at >= end || !strchr("srdifFeEgGxXo", *at)) {
			yk_render_fail(r, YOKE_EFORMAT, "%%: unknown format");
			break;
		}
		s.type = *at == 'i' ? 'd' : *at;
		at++;
		if (!key)
			x = next_value(r, v, &next);
		if (!r->failed)
			conversion(r, &s, x, &to);
	}
	if (!r->failed && !named && next < (v.kind == YK_V_TUPLE ? v.list->n : 1))
		yk_render_fail(r, YOKE_EFORMAT, "%%: there are more values than the format uses");
	yk_text_derive(&to, 0, c, NULL); // a format that a message supplies
	return yk_v_built(r, &to);
}
