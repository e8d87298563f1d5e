// SPDX-License-Identifier: Apache-2.0
// Filters of numbers and strings.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "template/functions.h"
#include "tokenizer/unicode.h"

// ---- numbers ----

static struct yk_v_value absolute(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	if (!yk_v_number(v))
		return yk_render_fail(r, YOKE_EFORMAT, "abs needs a number, not '%s'",
				      yk_v_type(v));
	if (v.kind == YK_V_FLOAT)
		return yk_v_float(fabs(v.d));
	return yk_v_int_of(v) < 0 ? yk_v_binary(r, YK_SUB, yk_v_int(0), v) :
				    yk_v_int(yk_v_int_of(v));
}

static struct yk_v_value round_to(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const int64_t precision = yk_arg_int(r, a, 0, 0);
	const struct yk_v_value how = yk_arg(a, 1, yk_v_none());
	char text[400];
	if (!yk_v_number(v))
		return yk_render_fail(r, YOKE_EFORMAT, "round needs a number, not '%s'",
				      yk_v_type(v));
	const double d = yk_v_float_of(v), power = pow(10, (double)precision);
	if (yk_v_is_string(how, "ceil"))
		return yk_v_float(ceil(d * power) / power);
	if (yk_v_is_string(how, "floor"))
		return yk_v_float(floor(d * power) / power);
	if (how.kind != YK_V_NONE && !yk_v_is_string(how, "common"))
		return yk_render_fail(r, YOKE_EFORMAT,
				      "round: the method is common, ceil or floor");
	if (v.kind != YK_V_FLOAT && precision >= 0)
		return yk_v_int(yk_v_int_of(v));
	if (precision < 0 || precision > 60 || !isfinite(d)) {
		const double rounded = precision < 0 ? rint(d * power) / power : d;
		return v.kind == YK_V_FLOAT ? yk_v_float(rounded) : yk_v_int((int64_t)rounded);
	}
	yk_snprintf(text, sizeof text, "%.*f", (int)precision,
		    d); // rounds the exact value, half to even
	return yk_v_float(yk_strtod(text, NULL));
}

// A number in the text, as Python's int() and float() read it.
static bool text_number(struct yk_render *r, struct yk_v_value v, int64_t base, bool real,
			struct yk_v_value *to)
{
	size_t from, end;
	char text[400], *stop;
	size_t n = 0;
	yk_chars_strip(v.s, NULL, true, true, &from, &end);
	for (size_t i = from; i < end && n + 1 < sizeof text; i++)
		if (v.s->s[i] != '_' || i == from || i + 1 == end)
			text[n++] = v.s->s[i];
	text[n] = 0;
	double d;
	if (real) {
		if (!yk_number_or_nan(text, &d))
			return false;
		*to = yk_v_float(d);
		return true;
	}
	const size_t sign = text[0] == '-' || text[0] == '+';
	if (!n || n - sign > 18 || strspn(text + sign, "0123456789abcdefABCDEFxXoO") != n - sign)
		return false;
	const char prefix = text[sign] == '0' ? text[sign + 1] | 32 : 0;
	const size_t skip = (base == 16 && prefix == 'x') || (base == 8 && prefix == 'o') ||
					    (base == 2 && prefix == 'b') ?
				    sign + 2 :
				    sign;
	if (base < 2 || base > 36 || !text[skip])
		return false;
	const int64_t i = strtoll(text + skip, &stop, (int)base);
	*to = yk_v_int(text[0] == '-' ? -i : i);
	(void)r;
	return !*stop && stop > text + skip;
}

static struct yk_v_value int_of(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value otherwise = yk_arg(a, 0, yk_v_int(0));
	const int64_t base = yk_arg_int(r, a, 1, 10);
	struct yk_v_value to;
	if (yk_v_integral(v))
		return yk_v_int(yk_v_int_of(v));
	if (v.kind == YK_V_STRING && text_number(r, v, base, false, &to))
		return to;
	if (v.kind == YK_V_STRING && text_number(r, v, 10, true, &to))
		v = to;
	return v.kind == YK_V_FLOAT && fabs(v.d) < 9e18 ? yk_v_int((int64_t)v.d) : otherwise;
}

static struct yk_v_value float_of(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	struct yk_v_value to;
	if (yk_v_number(v))
		return yk_v_float(yk_v_float_of(v));
	return v.kind == YK_V_STRING && text_number(r, v, 10, true, &to) ?
		       to :
		       yk_arg(a, 0, yk_v_float(0));
}

// ---- strings ----

static struct yk_v_value string(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_to_string(r, v);
}

// Filters that are methods of strings, for which other values become strings.
static struct yk_v_value by_method(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a, const char *name)
{
	struct yk_v_value s = yk_v_to_string(r, v);
	if (r->failed)
		return s;
	const bool markup = s.markup;
	s = yk_method_find(YK_V_STRING, name, strlen(name))->call(r, s, a);
	s.markup = markup && s.kind == YK_V_STRING;
	return s;
}

static struct yk_v_value upper(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return by_method(r, v, a, "upper");
}

static struct yk_v_value lower(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return by_method(r, v, a, "lower");
}

static struct yk_v_value capitalize(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	return by_method(r, v, a, "capitalize");
}

static struct yk_v_value trim(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return by_method(r, v, a, "strip");
}

static struct yk_v_value center(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	struct yk_v_value args[2] = { yk_arg(a, 0, yk_v_int(80)), yk_v_absent() };
	const struct yk_args with_fill = { .v = args, .n = 2 };
	return by_method(r, v, &with_fill, "center");
}

static struct yk_v_value title(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value s = yk_v_to_string(r, v);
	struct yk_v_buffer to = { 0 };
	bool inside = false;
	(void)a;
	if (r->failed || !yk_render_charge(r, s.s->n / 64))
		return s;
	for (const char *at = s.s->s; at < s.s->s + s.s->n;) {
		const char *from = at;
		const size_t begin = to.s.n;
		const uint32_t c = yk_char_next(&at);
		const bool between = yk_py_space(c) || (c < 0x80 && strchr("-({[<", (int)c));
		(inside || between ? yk_char_lower : yk_char_upper)(&to.s, c);
		yk_text_derive(&to, begin, s.s, from);
		inside = !between;
	}
	return yk_v_built(r, &to);
}

static struct yk_v_value replace(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value s = yk_v_to_string(r, v), old = yk_v_to_string(r, a->v[0]),
				by = yk_v_to_string(r, a->v[1]);
	const struct yk_v_value count = yk_arg(a, 2, yk_v_none());
	return r->failed ? s :
			   yk_v_replace(r, s.s, old.s, by.s,
					count.kind == YK_V_NONE ? -1 : yk_arg_int(r, a, 2, -1));
}

static struct yk_v_value indent(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value width = yk_arg(a, 0, yk_v_int(4));
	const bool first_too = yk_arg_truth(a, 1, false), blank = yk_arg_truth(a, 2, false);
	struct yk_v_buffer by = { 0 }, to = { 0 };
	if (v.kind != YK_V_STRING)
		return yk_render_fail(r, YOKE_EFORMAT, "indent needs a string, not '%s'",
				      yk_v_type(v));
	if (width.kind == YK_V_STRING)
		yk_text_add(&by, width.s, width.s->s, width.s->n);
	for (int64_t i = 0;
	     width.kind != YK_V_STRING && i < yk_arg_int(r, a, 0, 4) && yk_render_charge(r, 1); i++)
		yk_text_add(&by, NULL, " ", 1);
	const struct yk_v_value indentation = yk_v_built(r, &by);
	// a final newline makes an empty last line count
	const struct yk_v_value text =
		yk_v_binary(r, YK_ADD, yk_v_substring(r, v.s, v.s->s, v.s->n), yk_v_text(r, "\n"));
	struct yk_v_value keep = yk_v_absent();
	const struct yk_args none = { .v = &keep, .n = 1 };
	const struct yk_v_value lines =
		r->failed ? text :
			    yk_method_find(YK_V_STRING, "splitlines", 10)->call(r, text, &none);
	for (size_t i = 0; !r->failed && i < lines.list->n; i++) {
		const struct yk_chars *line = lines.list->v[i].s;
		if (i)
			yk_text_add(&to, NULL, "\n", 1);
		if (i == 0 ? first_too : blank || line->n)
			yk_text_add(&to, indentation.s, indentation.s->s, indentation.s->n);
		yk_text_add(&to, line, line->s, line->n);
		yk_render_charge(r, indentation.s->n / 64);
		if ((int64_t)to.s.n > YK_RENDER_MEMORY)
			yk_render_fail(r, YOKE_ERANGE, "indent makes more than %lld MiB",
				       (long long)(YK_RENDER_MEMORY >> 20));
	}
	return yk_v_built(r, &to);
}

static struct yk_v_value truncate(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const int64_t length_max = yk_arg_int(r, a, 0, 255), leeway = yk_arg_int(r, a, 3, 5);
	const bool cut = yk_arg_truth(a, 1, false);
	const struct yk_v_value end = yk_arg(a, 2, yk_v_text(r, "..."));
	if (v.kind != YK_V_STRING || end.kind != YK_V_STRING ||
	    length_max < (int64_t)end.s->chars || leeway < 0)
		return yk_render_fail(r, YOKE_EFORMAT, "truncate: the arguments do not fit");
	if ((int64_t)v.s->chars <= length_max + leeway)
		return v;
	const struct yk_v_value kept = yk_v_substring(
		r, v.s, v.s->s, yk_chars_offset(v.s, length_max - (int64_t)end.s->chars));
	const char *blank = cut || r->failed ? NULL : memrchr(kept.s->s, ' ', kept.s->n);
	return r->failed ? kept :
			   yk_v_binary(r, YK_ADD,
				       blank ? yk_v_substring(r, kept.s, kept.s->s,
							      (size_t)(blank - kept.s->s)) :
					       kept,
				       end);
}

static struct yk_v_value wordcount(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a)
{
	const struct yk_v_value s = yk_v_to_string(r, v);
	int64_t n = 0;
	bool inside = false;
	(void)a;
	for (const char *at = r->failed ? "" : s.s->s; *at;) {
		const uint32_t c = yk_char_next(&at);
		const bool word = yk_is_letter(c) || yk_is_numeric(c);
		n += word && !inside;
		inside = word;
	}
	return yk_v_int(n);
}

static struct yk_v_value urlencode(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a)
{
	static const char hex[] = "0123456789ABCDEF";
	const struct yk_v_value s = yk_v_to_string(r, v);
	struct yk_v_buffer to = { 0 };
	(void)a;
	if (v.kind == YK_V_DICT || yk_v_listed(v))
		return yk_render_fail(r, YOKE_EFORMAT, "urlencode takes a string here, not '%s'",
				      yk_v_type(v));
	for (size_t i = 0; !r->failed && i < s.s->n; i++) {
		const unsigned char c = (unsigned char)s.s->s[i];
		const char code[] = { '%', hex[c >> 4], hex[c & 15] };
		const bool plain = c < 0x80 && c &&
				   (((c | 32) >= 'a' && (c | 32) <= 'z') ||
				    (c >= '0' && c <= '9') || strchr("_.-~/", c));
		const size_t begin = to.s.n;
		yk_text_add(&to, NULL, plain ? (const char *)&c : code, plain ? 1 : 3);
		yk_text_derive(&to, begin, s.s, s.s->s + i);
	}
	return yk_v_built(r, &to);
}

static struct yk_v_value safe(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	struct yk_v_value s = yk_v_to_string(r, v);
	(void)a;
	s.markup = s.kind == YK_V_STRING;
	return s;
}

static struct yk_v_value escape(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_escape(r, v);
}

static struct yk_v_value forceescape(struct yk_render *r, struct yk_v_value v,
				     const struct yk_args *a)
{
	(void)a;
	v.markup = false;
	return yk_v_escape(r, v);
}

static struct yk_v_value format(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value s = yk_v_to_string(r, v);
	struct yk_v_value values = yk_v_list(r, YK_V_TUPLE, 0);
	if (a->n && a->named)
		return yk_render_fail(r, YOKE_EFORMAT,
				      "format takes values with names or without, not both");
	for (size_t i = 0; i < a->n && !r->failed; i++)
		yk_v_append(r, values, a->v[i]);
	if (a->named)
		values = (struct yk_v_value){ .kind = YK_V_DICT, .dict = a->named };
	return r->failed ? s : yk_format_percent(r, s.s, values);
}

static struct yk_v_value default_value(struct yk_render *r, struct yk_v_value v,
				       const struct yk_args *a)
{
	const bool replaced =
		v.kind == YK_V_UNDEFINED || (yk_arg_truth(a, 1, false) && !yk_v_truth(v));
	return replaced ? yk_v_is_present(a->v[0]) ? a->v[0] : yk_v_text(r, "") : v;
}

static struct yk_v_value tojson(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_v_value indent_by = yk_arg(a, 1, yk_v_none()),
				separators = yk_arg(a, 2, yk_v_none());
	struct yk_json_style style = { .ascii = yk_arg_truth(a, 0, false),
				       .sorted = yk_arg_truth(a, 3, false),
				       .colon = ": " };
	struct yk_v_buffer to = { 0 };
	char blanks[65] = "";
	if (indent_by.kind == YK_V_STRING) {
		style.indent = indent_by.s->s;
	} else if (indent_by.kind != YK_V_NONE) {
		const int64_t n = yk_arg_int(r, a, 1, 0);
		if (n > 64)
			return yk_render_fail(r, YOKE_ERANGE, "tojson: indent=%lld is above 64",
					      (long long)n);
		memset(blanks, ' ', n > 0 ? (size_t)n : 0);
		style.indent = blanks;
	}
	style.comma = style.indent ? "," : ", ";
	if (separators.kind != YK_V_NONE) {
		const struct yk_items *l = yk_v_iterate(r, separators);
		if (!l || l->n != 2 || l->v[0].kind != YK_V_STRING || l->v[1].kind != YK_V_STRING)
			return yk_render_fail(r, YOKE_EFORMAT,
					      "tojson: separators must be two strings");
		style.comma = l->v[0].s->s;
		style.colon = l->v[1].s->s;
	}
	yk_v_dump(r, v, &style, 0, &to);
	return yk_v_built(r, &to);
}

const struct yk_function *yk_filter_find(const struct yk_chars *name)
{
	static const struct yk_function filters[] = {
		{ "abs", "", absolute },
		{ "capitalize", "", capitalize },
		{ "center", "width", center },
		{ "d", "default_value boolean", default_value },
		{ "default", "default_value boolean", default_value },
		{ "e", "", escape },
		{ "escape", "", escape },
		{ "float", "default", float_of },
		{ "forceescape", "", forceescape },
		{ "format", NULL, format },
		{ "indent", "width first blank", indent },
		{ "int", "default base", int_of },
		{ "lower", "", lower },
		{ "replace", "old! new! count", replace },
		{ "round", "precision method", round_to },
		{ "safe", "", safe },
		{ "string", "", string },
		{ "title", "", title },
		{ "tojson", "ensure_ascii indent separators sort_keys", tojson },
		{ "trim", "chars", trim },
		{ "truncate", "length killwords end leeway", truncate },
		{ "upper", "", upper },
		{ "urlencode", "", urlencode },
		{ "wordcount", "", wordcount },
	};
	const struct yk_function *f = YK_FUNCTION_IN(filters, name->s, name->n);
	return f ? f : yk_sequence_filter_find(name);
}
