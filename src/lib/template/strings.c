// SPDX-License-Identifier: Apache-2.0
// Methods of strings.
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "template/functions.h"
#include "tokenizer/unicode.h"

// ---- letters ----

// The single character that a case mapping gives; several count as another one.
static bool maps_to_itself(uint32_t c, void (*map)(struct yk_string *, uint32_t))
{
	struct yk_string s = { 0 };
	map(&s, c);
	const char *at = s.s;
	const bool same = s.n && !s.failed && yk_char_next(&at) == c && at == s.s + s.n;
	yk_string_fini(&s);
	return same;
}

static bool is_small(uint32_t c)
{
	return c < 0x80 ? c >= 'a' && c <= 'z' : !maps_to_itself(c, yk_char_upper);
}

static bool is_large(uint32_t c)
{
	return c < 0x80 ? c >= 'A' && c <= 'Z' : !maps_to_itself(c, yk_char_lower);
}

struct yk_v_value yk_v_case(struct yk_render *r, const struct yk_chars *c, enum yk_letter_case how)
{
	struct yk_v_buffer to = { 0 };
	bool inside = false; // of a word
	if (!yk_render_charge(r, c->n / 64))
		return yk_v_undefined(NULL);
	for (const char *at = c->s; at < c->s + c->n;) {
		const char *from = at;
		const size_t begin = to.s.n;
		const uint32_t x = yk_char_next(&at);
		const bool large = how == YK_UPPER ||
				   ((how == YK_CAPITAL || how == YK_TITLE) && !inside) ||
				   (how == YK_SWAP && is_small(x));
		(large ? yk_char_upper : yk_char_lower)(&to.s, x);
		yk_text_derive(&to, begin, c, from);
		inside = how != YK_TITLE || is_small(x) || is_large(x);
	}
	return yk_v_built(r, &to);
}

bool yk_v_is_case(const struct yk_chars *c, bool upper)
{
	bool some = false;
	for (const char *at = c->s; at < c->s + c->n;) {
		const uint32_t x = yk_char_next(&at);
		if (upper ? is_small(x) : is_large(x))
			return false;
		some = some || is_small(x) || is_large(x);
	}
	return some;
}

static struct yk_v_value upper(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_case(r, v.s, YK_UPPER);
}

static struct yk_v_value lower(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_case(r, v.s, YK_LOWER);
}

static struct yk_v_value capitalize(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	(void)a;
	return yk_v_case(r, v.s, YK_CAPITAL);
}

static struct yk_v_value title(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_case(r, v.s, YK_TITLE);
}

static struct yk_v_value swapcase(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	(void)a;
	return yk_v_case(r, v.s, YK_SWAP);
}

static bool is_digit(uint32_t c)
{
	return yk_is_numeric(c);
}

static bool is_alphabetic(uint32_t c)
{
	return yk_is_letter(c) && c != '_' && !yk_is_numeric(c) && !yk_is_mark(c);
}

static bool is_alphanumeric(uint32_t c)
{
	return is_alphabetic(c) || yk_is_numeric(c);
}

static struct yk_v_value all(struct yk_v_value v, bool (*is)(uint32_t))
{
	for (const char *at = v.s->s; at < v.s->s + v.s->n;)
		if (!is(yk_char_next(&at)))
			return yk_v_bool(false);
	return yk_v_bool(v.s->n > 0);
}

#define ALL(name, is) \
	static struct yk_v_value name(struct yk_render *r, struct yk_v_value v, \
				    const struct yk_args *a) \
	{ \
		(void)a; \
		return yk_render_charge(r, v.s->n / 64) ? all(v, is) : v; \
	}
ALL(isdigit_all, is_digit)
ALL(isalpha_all, is_alphabetic)
ALL(isalnum_all, is_alphanumeric)
ALL(isspace_all, yk_py_space)

static struct yk_v_value isupper_all(struct yk_render *r, struct yk_v_value v,
				     const struct yk_args *a)
{
	(void)a;
	(void)r;
	return yk_v_bool(yk_v_is_case(v.s, true));
}

static struct yk_v_value islower_all(struct yk_render *r, struct yk_v_value v,
				     const struct yk_args *a)
{
	(void)a;
	(void)r;
	return yk_v_bool(yk_v_is_case(v.s, false));
}

// ---- ends ----

static struct yk_v_value strip_sides(struct yk_render *r, struct yk_v_value v,
				     const struct yk_args *a, bool left, bool right)
{
	const struct yk_chars *set = yk_arg_chars(r, a, 0);
	size_t from, to;
	if (!yk_render_charge(r, v.s->n / 256))
		return v;
	yk_chars_strip(v.s, set, left, right, &from, &to);
	return from == 0 && to == v.s->n ? v : yk_v_substring(r, v.s, v.s->s + from, to - from);
}

static struct yk_v_value strip(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return strip_sides(r, v, a, true, true);
}

static struct yk_v_value lstrip(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return strip_sides(r, v, a, true, false);
}

static struct yk_v_value rstrip(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return strip_sides(r, v, a, false, true);
}

static bool starts(const struct yk_chars *c, const struct yk_chars *with)
{
	return c->n >= with->n && !memcmp(c->s, with->s, with->n);
}

static bool ends(const struct yk_chars *c, const struct yk_chars *with)
{
	return c->n >= with->n && !memcmp(c->s + c->n - with->n, with->s, with->n);
}

// startswith and endswith take a string or a tuple of them, and an interval.
static struct yk_v_value with_end(struct yk_render *r, struct yk_v_value v, const struct yk_args *a,
				bool (*is)(const struct yk_chars *, const struct yk_chars *))
{
	const struct yk_v_value what = a->v[0];
	if (yk_v_is_present(a->v[1]) || yk_v_is_present(a->v[2])) {
		struct yk_v_value slice = yk_v_list(r, YK_V_SLICE, 3);
		yk_v_append(r, slice, yk_arg(a, 1, yk_v_none()));
		yk_v_append(r, slice, yk_arg(a, 2, yk_v_none()));
		yk_v_append(r, slice, yk_v_none());
		v = r->failed ? v : yk_v_slice(r, v, slice);
	}
	if (r->failed)
		return v;
	if (what.kind == YK_V_STRING)
		return yk_v_bool(is(v.s, what.s));
	for (size_t i = 0; what.kind == YK_V_TUPLE && i < what.list->n; i++)
		if (what.list->v[i].kind == YK_V_STRING && is(v.s, what.list->v[i].s))
			return yk_v_bool(true);
	if (what.kind == YK_V_TUPLE)
		return yk_v_bool(false);
	return yk_render_fail(
		r, YOKE_EFORMAT,
		"startswith and endswith need a string or a tuple of strings, not '%s'",
		yk_v_type(what));
}

static struct yk_v_value startswith(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	return with_end(r, v, a, starts);
}

static struct yk_v_value endswith(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return with_end(r, v, a, ends);
}

static struct yk_v_value removeprefix(struct yk_render *r, struct yk_v_value v,
				      const struct yk_args *a)
{
	const struct yk_chars *c = yk_arg_chars(r, a, 0);
	return c && starts(v.s, c) ? yk_v_substring(r, v.s, v.s->s + c->n, v.s->n - c->n) : v;
}

static struct yk_v_value removesuffix(struct yk_render *r, struct yk_v_value v,
				      const struct yk_args *a)
{
	const struct yk_chars *c = yk_arg_chars(r, a, 0);
	return c && ends(v.s, c) ? yk_v_substring(r, v.s, v.s->s, v.s->n - c->n) : v;
}

// ---- padding ----

// `left` and `right` copies of a character around a string.
static struct yk_v_value padded(struct yk_render *r, const struct yk_chars *c, int64_t left,
			      int64_t right, const struct yk_chars *fill)
{
	struct yk_v_buffer to = { 0 };
	if (left > (int64_t)YK_RENDER_OUTPUT || right > (int64_t)YK_RENDER_OUTPUT)
		return yk_render_fail(r, YOKE_ERANGE,
				      "a string is padded to more than %zu characters",
				      YK_RENDER_OUTPUT);
	for (int64_t i = 0; i < left; i++)
		yk_text_add(&to, fill, fill->s, fill->n);
	yk_text_add(&to, c, c->s, c->n);
	for (int64_t i = 0; i < right; i++)
		yk_text_add(&to, fill, fill->s, fill->n);
	return yk_v_built(r, &to);
}

// align: < > ^ as in formats, or c as str.center
static struct yk_v_value justified(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a, char align)
{
	const int64_t width = yk_arg_int(r, a, 0, 0), n = (int64_t)v.s->chars, more = width - n;
	static const struct yk_chars blank = { " ", 1, 1, NULL };
	const struct yk_chars *fill = yk_arg_chars(r, a, 1);
	if (r->failed || more <= 0)
		return v;
	if (fill && fill->chars != 1)
		return yk_render_fail(r, YOKE_EFORMAT,
				      "a string is padded with one character, not %zu",
				      fill->chars);
	const int64_t left = align == '<' ? 0 : align == '>' ? more : more / 2 + (more & width & 1);
	return padded(r, v.s, left, more - left, fill ? fill : &blank);
}

static struct yk_v_value ljust(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return justified(r, v, a, '<');
}

static struct yk_v_value rjust(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return justified(r, v, a, '>');
}

static struct yk_v_value center(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return justified(r, v, a, 'c');
}

static struct yk_v_value zfill(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	static const struct yk_chars zero = { "0", 1, 1, NULL };
	const int64_t more = yk_arg_int(r, a, 0, 0) - (int64_t)v.s->chars;
	if (r->failed || more <= 0)
		return v;
	const size_t sign = v.s->n && (v.s->s[0] == '-' || v.s->s[0] == '+');
	const struct yk_v_value rest = yk_v_substring(r, v.s, v.s->s + sign, v.s->n - sign);
	struct yk_v_value zeros = r->failed ? rest : padded(r, rest.s, more, 0, &zero);
	return sign && !r->failed ?
		       yk_v_binary(r, YK_ADD, yk_v_substring(r, v.s, v.s->s, 1), zeros) :
		       zeros;
}

// ---- search ----

struct yk_v_value yk_v_replace(struct yk_render *r, const struct yk_chars *c,
			     const struct yk_chars *old, const struct yk_chars *by, int64_t max)
{
	struct yk_v_buffer to = { 0 };
	const char *at = c->s, *end = c->s + c->n;
	while (max != 0 && yk_render_charge(r, 1)) {
		const char *hit = old->n ? memmem(at, (size_t)(end - at), old->s, old->n) : at;
		if (!hit)
			break;
		yk_text_add(&to, c, at, (size_t)(hit - at));
		yk_text_add(&to, by, by->s, by->n);
		at = hit + old->n;
		max--;
		if (to.s.n > (size_t)YK_RENDER_MEMORY)
			yk_render_fail(r, YOKE_ERANGE, "replace makes more than %lld MiB",
				       (long long)(YK_RENDER_MEMORY >> 20));
		if (old->n)
			continue;
		if (at == end)
			break;
		yk_text_add(&to, c, at,
			    yk_char_size(*at)); // an empty string occurs between all characters
		at += yk_char_size(*at);
	}
	yk_text_add(&to, c, at, (size_t)(end - at));
	return yk_v_built(r, &to);
}

static struct yk_v_value replace(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_chars *old = yk_arg_chars(r, a, 0), *by = yk_arg_chars(r, a, 1);
	const int64_t max = yk_arg_int(r, a, 2, -1);
	if (!r->failed && (!old || !by))
		return yk_render_fail(r, YOKE_EFORMAT, "replace needs two strings");
	return r->failed ? v : yk_v_replace(r, v.s, old, by, max);
}

static const char *last_hit(const char *from, const char *end, const struct yk_chars *what)
{
	const char *last = NULL;
	for (const char *at = from; (at = memmem(at, (size_t)(end - at), what->s, what->n)) != NULL;
	     at++) {
		last = at;
		if (at == end)
			break;
	}
	return last;
}

// Character index of an occurrence between characters a->v[1] and a->v[2]; -1: none.
static int64_t position(struct yk_render *r, struct yk_v_value v, const struct yk_args *a,
			bool last)
{
	const struct yk_chars *what = yk_arg_chars(r, a, 0);
	int64_t n = (int64_t)v.s->chars, from = yk_arg_int(r, a, 1, 0), to = yk_arg_int(r, a, 2, n),
		index = 0;
	from = from < 0 ? from + n : from;
	to = to < 0 ? to + n : to > n ? n : to;
	from = from < 0 ? 0 : from;
	if (!yk_render_charge(r, v.s->n / 64) || !what || from > to)
		return -1;
	const char *begin = v.s->s + yk_chars_offset(v.s, from),
		   *end = v.s->s + yk_chars_offset(v.s, to);
	const char *hit = last ? last_hit(begin, end, what) :
				 memmem(begin, (size_t)(end - begin), what->s, what->n);
	for (const char *at = v.s->s; hit && at < hit; at++)
		index += ((unsigned char)*at & 0xc0) != 0x80;
	return hit ? index : -1;
}

static struct yk_v_value find(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return yk_v_int(position(r, v, a, false));
}

static struct yk_v_value rfind(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return yk_v_int(position(r, v, a, true));
}

static struct yk_v_value found(struct yk_render *r, int64_t i)
{
	return i < 0 ? yk_render_fail(r, YOKE_EFORMAT, "index: the string does not occur") :
		       yk_v_int(i);
}

static struct yk_v_value index_in(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return found(r, position(r, v, a, false));
}

static struct yk_v_value rindex_in(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a)
{
	return found(r, position(r, v, a, true));
}

static struct yk_v_value count_in(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_chars *what = yk_arg_chars(r, a, 0);
	int64_t n = 0;
	if (!what || !what->n)
		return r->failed ? v : yk_v_int((int64_t)v.s->chars + 1);
	const char *at = v.s->s, *end = at + v.s->n;
	while (yk_render_charge(r, 1) &&
	       (at = memmem(at, (size_t)(end - at), what->s, what->n)) != NULL) {
		at += what->n;
		n++;
	}
	return yk_v_int(n);
}

// ---- division ----

static void add_interval(struct yk_render *r, struct yk_v_value list, const struct yk_chars *c,
			 const char *from, const char *to)
{
	yk_v_append(r, list, yk_v_substring(r, c, from, (size_t)(to - from)));
}

static void split_space(struct yk_render *r, const struct yk_chars *c, int64_t max,
			struct yk_v_value list)
{
	const char *at = c->s, *end = c->s + c->n;
	while (!r->failed) {
		const struct yk_chars rest = { at, (size_t)(end - at), 0, NULL };
		size_t from, to;
		yk_chars_strip(&rest, NULL, true, false, &from, &to);
		at += from;
		if (at == end)
			return;
		const char *word = at, *next = at;
		while (at < end && !yk_py_space(yk_char_next(&next)))
			at = next;
		if (max-- == 0) {
			const struct yk_chars tail = { word, (size_t)(end - word), 0, NULL };
			yk_chars_strip(&tail, NULL, false, true, &from, &to);
			return add_interval(r, list, c, word, word + to);
		}
		add_interval(r, list, c, word, at);
	}
}

static void reverse_list(struct yk_v_value list)
{
	struct yk_items *l = list.list;
	for (size_t i = 0; i < l->n / 2; i++) {
		const struct yk_v_value v = l->v[i];
		l->v[i] = l->v[l->n - 1 - i];
		l->v[l->n - 1 - i] = v;
	}
}

static void rsplit_space(struct yk_render *r, const struct yk_chars *c, int64_t max,
			 struct yk_v_value list)
{
	struct yk_chars rest = *c;
	while (!r->failed) {
		size_t from, to;
		yk_chars_strip(&rest, NULL, false, true, &from, &to);
		rest.n = to;
		if (!to)
			break;
		if (max-- == 0) {
			add_interval(r, list, c, rest.s, rest.s + rest.n);
			break;
		}
		size_t word = rest.n;
		while (word > 0) {
			size_t before = word - 1;
			while (((unsigned char)rest.s[before] & 0xc0) == 0x80)
				before--;
			const char *s = rest.s + before;
			if (yk_py_space(yk_char_next(&s)))
				break;
			word = before;
		}
		add_interval(r, list, c, rest.s + word, rest.s + rest.n);
		rest.n = word;
	}
	reverse_list(list);
}

static void split_by(struct yk_render *r, const struct yk_chars *c, const struct yk_chars *by,
		     int64_t max, bool last, struct yk_v_value list)
{
	const char *at = c->s, *end = c->s + c->n, *hit;
	if (!last) {
		while (max-- != 0 && !r->failed &&
		       (hit = memmem(at, (size_t)(end - at), by->s, by->n)) != NULL) {
			add_interval(r, list, c, at, hit);
			at = hit + by->n;
		}
		return add_interval(r, list, c, at, end);
	}
	while (max-- != 0 && !r->failed && (hit = last_hit(at, end, by)) != NULL &&
	       yk_render_charge(r, (size_t)(end - at) / 256)) {
		add_interval(r, list, c, hit + by->n, end);
		end = hit;
	}
	add_interval(r, list, c, at, end);
	reverse_list(list);
}

static struct yk_v_value divide(struct yk_render *r, struct yk_v_value v, const struct yk_args *a,
			      bool last)
{
	const struct yk_chars *by = yk_arg_chars(r, a, 0);
	const int64_t max = yk_arg_int(r, a, 1, -1);
	struct yk_v_value list = yk_v_list(r, YK_V_LIST, 0);
	if (!yk_render_charge(r, v.s->n / 64))
		return v;
	if (by && !by->n)
		return yk_render_fail(r, YOKE_EFORMAT, "split: the separator is empty");
	if (by)
		split_by(r, v.s, by, max, last, list);
	else if (last)
		rsplit_space(r, v.s, max, list);
	else
		split_space(r, v.s, max, list);
	return list;
}

static struct yk_v_value split(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return divide(r, v, a, false);
}

static struct yk_v_value rsplit(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return divide(r, v, a, true);
}

static bool ends_line(uint32_t c)
{
	return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
	       c == 0x2029;
}

static struct yk_v_value splitlines(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	struct yk_v_value list = yk_v_list(r, YK_V_LIST, 0);
	const bool keep = yk_arg_truth(a, 0, false);
	const char *end = v.s->s + v.s->n, *line = v.s->s;
	for (const char *at = line, *next = line; at < end && !r->failed; at = next) {
		if (!ends_line(yk_char_next(&next)))
			continue;
		next += *at == '\r' && next < end && *next == '\n';
		add_interval(r, list, v.s, line, keep ? next : at);
		line = next;
	}
	if (line < end)
		add_interval(r, list, v.s, line, end);
	return list;
}

static struct yk_v_value partition_at(struct yk_render *r, struct yk_v_value v,
				      const struct yk_args *a, bool last)
{
	const struct yk_chars *by = yk_arg_chars(r, a, 0);
	const char *s = v.s->s, *end = s + v.s->n;
	struct yk_v_value list = yk_v_list(r, YK_V_TUPLE, 3);
	if (r->failed || !by || !by->n)
		return yk_render_fail(r, YOKE_EFORMAT,
				      "partition needs a string that is not empty");
	const char *hit = last ? last_hit(s, end, by) : memmem(s, v.s->n, by->s, by->n);
	const char *after = hit ? hit + by->n : last ? s : end;
	if (!hit)
		hit = after;
	add_interval(r, list, v.s, s, hit);
	add_interval(r, list, v.s, hit, after);
	add_interval(r, list, v.s, after, end);
	return list;
}

static struct yk_v_value partition(struct yk_render *r, struct yk_v_value v,
				   const struct yk_args *a)
{
	return partition_at(r, v, a, false);
}

static struct yk_v_value rpartition(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	return partition_at(r, v, a, true);
}

static struct yk_v_value join(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	const struct yk_items *l = yk_v_iterate(r, a->v[0]);
	struct yk_v_buffer to = { 0 };
	for (size_t i = 0; l && i < l->n && !r->failed; i++) {
		if (l->v[i].kind != YK_V_STRING)
			yk_render_fail(r, YOKE_EFORMAT, "join needs strings, not '%s'",
				       yk_v_type(l->v[i]));
		if (i)
			yk_v_str(r, v, &to);
		yk_v_str(r, l->v[i], &to);
	}
	return yk_v_built(r, &to);
}

static struct yk_v_value format(struct yk_render *r, struct yk_v_value v, const struct yk_args *a)
{
	return yk_format_braces(r, v.s, a);
}

static struct yk_v_value format_map(struct yk_render *r, struct yk_v_value v,
				    const struct yk_args *a)
{
	if (a->v[0].kind != YK_V_DICT)
		return yk_render_fail(r, YOKE_EFORMAT, "format_map needs a dict, not '%s'",
				      yk_v_type(a->v[0]));
	const struct yk_args named = { .named = a->v[0].dict };
	return yk_format_braces(r, v.s, &named);
}

const struct yk_function *yk_method_find(enum yk_value_kind kind, const char *name, size_t n)
{
	static const struct yk_function of_strings[] = {
		{ "upper", "", upper },
		{ "lower", "", lower },
		{ "casefold", "", lower },
		{ "capitalize", "", capitalize },
		{ "title", "", title },
		{ "swapcase", "", swapcase },
		{ "strip", "chars", strip },
		{ "lstrip", "chars", lstrip },
		{ "rstrip", "chars", rstrip },
		{ "startswith", "prefix! start end", startswith },
		{ "endswith", "suffix! start end", endswith },
		{ "removeprefix", "prefix!", removeprefix },
		{ "removesuffix", "suffix!", removesuffix },
		{ "ljust", "width! fillchar", ljust },
		{ "rjust", "width! fillchar", rjust },
		{ "center", "width! fillchar", center },
		{ "zfill", "width!", zfill },
		{ "replace", "old! new! count", replace },
		{ "find", "sub! start end", find },
		{ "rfind", "sub! start end", rfind },
		{ "index", "sub! start end", index_in },
		{ "rindex", "sub! start end", rindex_in },
		{ "count", "sub!", count_in },
		{ "split", "sep maxsplit", split },
		{ "rsplit", "sep maxsplit", rsplit },
		{ "splitlines", "keepends", splitlines },
		{ "partition", "sep!", partition },
		{ "rpartition", "sep!", rpartition },
		{ "join", "iterable!", join },
		{ "format", NULL, format },
		{ "format_map", "mapping!", format_map },
		{ "isdigit", "", isdigit_all },
		{ "isnumeric", "", isdigit_all },
		{ "isdecimal", "", isdigit_all },
		{ "isalpha", "", isalpha_all },
		{ "isalnum", "", isalnum_all },
		{ "isspace", "", isspace_all },
		{ "isupper", "", isupper_all },
		{ "islower", "", islower_all },
	};
	return kind == YK_V_STRING ? YK_FUNCTION_IN(of_strings, name, n) :
				     yk_container_method_find(kind, name, n);
}
