// SPDX-License-Identifier: Apache-2.0
// Divides a template into text and the lexemes of its tags.  White space around tags follows jinja2
// with trim_blocks and lstrip_blocks: the end of line after a block or comment and the blanks
// before it on its line are removed; `-` removes all white space on its side, `+` none.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "template/syntax.h"

struct lexer {
	struct yk_render *r;
	char *s; // with line ends LF
	size_t n, at;
	struct yk_lexemes *to;
	char open[200]; // brackets that are open
	size_t depth;
};

static const struct {
	char text[3];
	enum yk_sign sign;
} signs[] = {
	{ "//", YK_FLOORDIV }, { "**", YK_POW },       { "==", YK_EQ },   { "!=", YK_NE },
	{ ">=", YK_GE },       { "<=", YK_LE },        { "+", YK_ADD },   { "-", YK_SUB },
	{ "/", YK_DIV },       { "*", YK_MUL },        { "%", YK_MOD },   { "~", YK_CONCAT },
	{ "[", YK_OPEN_LIST }, { "]", YK_CLOSE_LIST }, { "(", YK_OPEN },  { ")", YK_CLOSE },
	{ "{", YK_OPEN_DICT }, { "}", YK_CLOSE_DICT }, { ">", YK_GT },    { "<", YK_LT },
	{ "=", YK_ASSIGN },    { ".", YK_DOT },        { ":", YK_COLON }, { "|", YK_PIPE },
	{ ",", YK_COMMA },     { ";", YK_SEMICOLON },
};

static void lexeme(struct lexer *x, enum yk_lexeme_kind kind, enum yk_sign sign,
		   struct yk_v_value v)
{
	if (x->r->failed)
		return;
	if (yk_grow(&x->to->at, &x->to->cap, x->to->n + 1, sizeof *x->to->at) < 0) {
		x->r->failed = true;
		return;
	}
	x->to->at[x->to->n++] = (struct yk_lexeme){ kind, x->r->line, sign, v };
}

// Moves to `at`, counting lines.
static void move(struct lexer *x, size_t at)
{
	for (; x->at < at; x->at++)
		x->r->line += x->s[x->at] == '\n';
}

static bool looking(const struct lexer *x, size_t at, const char *s)
{
	const size_t n = strlen(s);
	return x->n - at >= n && !memcmp(x->s + at, s, n);
}

static size_t after_space(const struct lexer *x, size_t at)
{
	while (at < x->n) {
		const char *s = x->s + at;
		if (!yk_py_space(yk_char_next(&s)))
			break;
		at = (size_t)(s - x->s);
	}
	return at;
}

// Position after the end `end` of a tag, with its sign and the white space that it removes; 0: no
// end here.
static size_t after_end(const struct lexer *x, size_t at, const char *end, bool trim)
{
	if (looking(x, at, "-") && looking(x, at + 1, end))
		return after_space(x, at + 1 + strlen(end));
	if (trim && looking(x, at, "+") && looking(x, at + 1, end))
		return at + 1 + strlen(end);
	if (!looking(x, at, end))
		return 0;
	at += strlen(end);
	return at + (trim && looking(x, at, "\n"));
}

// Adds the text from x->at to `end`, where a tag with that sign begins.
static void data(struct lexer *x, size_t end, char sign, bool block)
{
	struct yk_chars text = { x->s + x->at, end - x->at, 0, NULL };
	size_t from, to = text.n;
	if (sign == '-') {
		yk_chars_strip(&text, NULL, false, true, &from, &to);
	} else if (sign != '+' && block) {
		const char *line = memrchr(text.s, '\n', text.n);
		const size_t start = line ? (size_t)(line + 1 - text.s) : 0;
		const struct yk_chars rest = { text.s + start, text.n - start, 0, NULL };
		size_t a, b;
		yk_chars_strip(&rest, NULL, true, false, &a, &b);
		if (a == b && (line || x->at == 0 || x->s[x->at - 1] == '\n'))
			to = start;
	}
	if (to)
		lexeme(x, YK_L_DATA, 0, yk_v_string(x->r, text.s, to));
	move(x, end);
}

static char sign_at(const struct lexer *x, size_t at)
{
	return at < x->n && (x->s[at] == '-' || x->s[at] == '+') ? x->s[at] : 0;
}

// {% NAME %} at `at`: the position after it; 0: something else.
static size_t after_named(const struct lexer *x, size_t at, const char *name, bool trim)
{
	at = after_space(x, at + 2 + (sign_at(x, at + 2) != 0));
	if (!looking(x, at, name))
		return 0;
	at = after_space(x, at + strlen(name));
	if (!trim && looking(x, at, "%}"))
		return at + 2;
	return !trim && looking(x, at, "+") ? 0 : after_end(x, at, "%}", trim);
}

static void raw(struct lexer *x, size_t after)
{
	move(x, after);
	for (size_t at = x->at; at + 1 < x->n; at++) {
		const size_t end = looking(x, at, "{%") ? after_named(x, at, "endraw", true) : 0;
		if (end) {
			data(x, at, sign_at(x, at + 2), true);
			return move(x, end);
		}
	}
	yk_render_fail(x->r, YOKE_EFORMAT, "a raw block has no end");
}

static void comment(struct lexer *x, size_t from)
{
	for (size_t at = from; at < x->n; at++) {
		const size_t end = x->s[at] == '#' || ((x->s[at] == '-' || x->s[at] == '+') &&
						       looking(x, at + 1, "#}")) ?
					   after_end(x, at, "#}", true) :
					   0;
		if (end)
			return move(x, end);
	}
	yk_render_fail(x->r, YOKE_EFORMAT, "a comment has no end");
}

// ---- constants ----

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

// Appends a run of digits with single underscores between them; returns the position after it.
static size_t digits(const struct lexer *x, size_t at, char *to, size_t room)
{
	size_t n = strlen(to);
	while (at < x->n &&
	       (digit(x->s[at]) || (x->s[at] == '_' && at + 1 < x->n && digit(x->s[at + 1])))) {
		if (x->s[at] != '_' && n + 1 < room)
			to[n++] = x->s[at];
		at++;
	}
	to[n] = 0;
	return at;
}

static void number(struct lexer *x)
{
	char text[400] = "";
	static const struct {
		char prefix;
		int base;
	} bases[] = { { 'x', 16 }, { 'o', 8 }, { 'b', 2 } };
	for (size_t i = 0; x->s[x->at] == '0' && i < 3 && x->at + 2 < x->n; i++) {
		char *end;
		if ((x->s[x->at + 1] | 32) != bases[i].prefix)
			continue;
		const long long v = strtoll(x->s + x->at + 2, &end, bases[i].base);
		if (end > x->s + x->at + 2) {
			lexeme(x, YK_L_CONST, 0, yk_v_int(v));
			return move(x, (size_t)(end - x->s));
		}
	}
	const bool member = x->at > 0 && x->s[x->at - 1] == '.'; // as in a.0.1
	size_t end = digits(x, x->at, text, sizeof text), next = end;
	bool real = false;
	if (!member && next + 1 < x->n && x->s[next] == '.' && digit(x->s[next + 1])) {
		strcat(text, ".");
		next = end = digits(x, next + 1, text, sizeof text - 8);
		real = true;
	}
	if (!member && next + 1 < x->n && (x->s[next] | 32) == 'e') {
		const bool sign = x->s[next + 1] == '-' || x->s[next + 1] == '+';
		if (next + 1 + sign < x->n && digit(x->s[next + 1 + sign])) {
			strcat(text, sign && x->s[next + 1] == '-' ? "e-" : "e");
			end = digits(x, next + 1 + sign, text, sizeof text);
			real = true;
		}
	}
	if (real)
		lexeme(x, YK_L_CONST, 0, yk_v_float(yk_strtod(text, NULL)));
	else if (strlen(text) > 18)
		yk_render_fail(x->r, YOKE_EFORMAT, "the integer %.40s is too large", text);
	else
		lexeme(x, YK_L_CONST, 0, yk_v_int(strtoll(text, NULL, 10)));
	move(x, end);
}

// Appends the character of an escape at s[i] after its backslash; returns the bytes read.
static size_t escape(struct lexer *x, const char *s, size_t n, struct yk_string *to)
{
	static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
	const char *name = strchr(names, s[0]);
	const size_t width = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
	char hex[9] = "", *end;
	if (s[0] == '\n')
		return 1;
	if (name && s[0]) {
		yk_string_add(to, &values[name - names], 1);
		return 1;
	}
	if (s[0] >= '0' && s[0] <= '7') {
		uint32_t c = 0;
		size_t i = 0;
		for (; i < 3 && i < n && s[i] >= '0' && s[i] <= '7'; i++)
			c = 8 * c + (uint32_t)(s[i] - '0');
		yk_string_char(to, c);
		return i;
	}
	if (!width) { // no escape: the backslash stays
		yk_string_add(to, "\\", 1);
		return 0;
	}
	memcpy(hex, s + 1, n - 1 < width ? n - 1 : width);
	const unsigned long c = strtoul(hex, &end, 16);
	if (end != hex + width || strpbrk(hex, "+-") || c > 0x10ffff ||
	    (c >= 0xd800 && c <= 0xdfff))
		yk_render_fail(x->r, YOKE_EFORMAT, "\\%c%.8s in a string is no character", s[0],
			       hex);
	else
		yk_string_char(to, (uint32_t)c);
	return 1 + width;
}

static void string(struct lexer *x)
{
	const char mark = x->s[x->at];
	struct yk_string to = { 0 };
	size_t at = x->at + 1;
	while (at < x->n && x->s[at] != mark && !x->r->failed) {
		if (x->s[at] == '\\' && at + 1 < x->n)
			at += 1 + escape(x, x->s + at + 1, x->n - at - 1, &to);
		else
			yk_string_add(&to, x->s + at++, 1);
	}
	if (at >= x->n)
		yk_render_fail(x->r, YOKE_EFORMAT, "a string has no end");
	lexeme(x, YK_L_CONST, 0, yk_v_taken(x->r, &to));
	move(x, at < x->n ? at + 1 : x->n);
}

// ---- tags ----

static bool letter(char c)
{
	return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z') || (unsigned char)c >= 0x80;
}

// Brackets must match.
static void bracket(struct lexer *x, char c)
{
	static const char opening[] = "([{", closing[] = ")]}";
	const char *o = strchr(opening, c), *e = strchr(closing, c);
	if (o && x->depth == sizeof x->open)
		yk_render_fail(x->r, YOKE_ERANGE, "more than %zu brackets are nested",
			       sizeof x->open);
	else if (o)
		x->open[x->depth++] = closing[o - opening];
	else if (e && (x->depth == 0 || x->open[--x->depth] != c))
		yk_render_fail(x->r, YOKE_EFORMAT, "'%c' closes no bracket", c);
}

// Reads the lexemes of a tag up to its end.
static void tag(struct lexer *x, const char *end, bool block)
{
	x->depth = 0;
	while (!x->r->failed) {
		move(x, after_space(x, x->at));
		const size_t after = x->depth ? 0 : after_end(x, x->at, end, block);
		if (after) {
			lexeme(x, block ? YK_L_BLOCK_END : YK_L_OUTPUT_END, 0, yk_v_none());
			return move(x, after);
		}
		if (x->at >= x->n)
			break;
		const char c = x->s[x->at];
		if (digit(c)) {
			number(x);
		} else if (c == '\'' || c == '"') {
			string(x);
		} else if (letter(c)) {
			size_t to = x->at;
			while (to < x->n && (letter(x->s[to]) || digit(x->s[to])))
				to++;
			lexeme(x, YK_L_NAME, 0, yk_v_string(x->r, x->s + x->at, to - x->at));
			move(x, to);
		} else {
			size_t i = 0;
			while (i < sizeof signs / sizeof *signs &&
			       !looking(x, x->at, signs[i].text))
				i++;
			if (i == sizeof signs / sizeof *signs) {
				yk_render_fail(x->r, YOKE_EFORMAT,
					       "unexpected character 0x%02x in a tag",
					       (unsigned char)c);
				return;
			}
			bracket(x, c);
			lexeme(x, YK_L_SIGN, signs[i].sign, yk_v_none());
			move(x, x->at + strlen(signs[i].text));
		}
	}
	yk_render_fail(x->r, YOKE_EFORMAT, "a tag has no end");
}

// Position of the next tag.
static size_t next_tag(const struct lexer *x)
{
	size_t at = x->at;
	while (at + 1 < x->n && !(x->s[at] == '{' && (x->s[at + 1] == '{' || x->s[at + 1] == '%' ||
						      x->s[at + 1] == '#')))
		at++;
	return at + 1 < x->n ? at : x->n;
}

static char *unix_lines(struct yk_render *r, const char *source, size_t *bytes)
{
	char *s = yk_render_alloc(r, *bytes + 1);
	size_t n = 0;
	for (size_t i = 0; s && i < *bytes; i++)
		if (source[i] != '\r' || i + 1 == *bytes || source[i + 1] != '\n')
			s[n++] = source[i] == '\r' ? '\n' : source[i];
	n -= n && s[n - 1] == '\n'; // jinja2 drops one at the end
	*bytes = n;
	return s;
}

void yk_template_lex(struct yk_render *r, const char *source, size_t bytes, struct yk_lexemes *to)
{
	struct lexer x = { .r = r, .to = to };
	r->line = 1;
	if (yk_utf8_check(source, bytes) < bytes)
		yk_render_fail(r, YOKE_EFORMAT, "byte %zu is not UTF-8",
			       yk_utf8_check(source, bytes));
	x.n = bytes;
	x.s = r->failed ? NULL : unix_lines(r, source, &x.n);
	while (!r->failed && x.at < x.n) {
		const size_t at = next_tag(&x), start = at + 2 < x.n ? at + 2 : x.n;
		const char kind = at < x.n ? x.s[at + 1] : 0;
		const char sign = at < x.n ? sign_at(&x, at + 2) : 0;
		data(&x, at, kind ? sign : '+', kind != '{');
		if (kind == '#') {
			comment(&x, start + (sign != 0));
		} else if (kind) {
			const size_t after = kind == '%' ? after_named(&x, at, "raw", false) : 0;
			if (after) {
				raw(&x, after);
				continue;
			}
			lexeme(&x, kind == '%' ? YK_L_BLOCK : YK_L_OUTPUT, 0, yk_v_none());
			move(&x, start + (sign != 0));
			tag(&x, kind == '%' ? "%}" : "}}", kind == '%');
		}
	}
	lexeme(&x, YK_L_END, 0, yk_v_none());
}
