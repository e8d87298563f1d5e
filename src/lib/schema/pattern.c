// SPDX-License-Identifier: Apache-2.0
// A pattern is parsed to a tree, the tree becomes a nondeterministic automaton over bytes, and that
// a deterministic one.  A character is a list of intervals of bytes, its UTF-8 or its escape in
// JSON.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "schema/pattern.h"
#include "tokenizer/pieces.h"
#include "yoke.h"

enum {
	MAX_GROUPS = 64,    // nested
	MAX_REPEAT = 10000, // times
	UNBOUNDED = -1,
	LAST_CHAR = 0x10ffff,
};

enum kind { EMPTY, CLASS, SEQUENCE, CHOICE, REPEAT };

struct node {
	enum kind kind;
	uint32_t child, next; // node + 1, 0: none
	int min, max;         // of REPEAT
	size_t from, to;      // of CLASS: intervals of characters
	bool begins, ends;    // a branch of the pattern with ^ or $
};

struct interval {
	uint32_t lo, hi;
};

struct pattern {
	const char *at, *end;
	struct node *node;
	size_t nodes, node_cap;
	struct interval *interval;
	size_t intervals, interval_cap;
	int depth;
	const char *why;
	struct yk_nfa nfa;
	uint32_t escape; // the state after \\u00 of the class that is emitted, 0: none yet
	enum yk_pattern_mode mode;
};

static int refuse(struct pattern *p, const char *why)
{
	p->why = why;
	return YOKE_EFORMAT;
}

static int new_node(struct pattern *p, struct node x, uint32_t *to)
{
	const int e = yk_grow(&p->node, &p->node_cap, p->nodes + 1, sizeof *p->node);
	if (e < 0)
		return e;
	p->node[p->nodes] = x;
	*to = (uint32_t)p->nodes++;
	return 0;
}

static int add_interval(struct pattern *p, uint32_t lo, uint32_t hi)
{
	const int e =
		yk_grow(&p->interval, &p->interval_cap, p->intervals + 1, sizeof *p->interval);
	if (e == 0)
		p->interval[p->intervals++] = (struct interval){ lo, hi };
	return e;
}

// ---- classes of characters ----

static const struct interval digits[] = { { '0', '9' } },
			     words[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } },
			     spaces[] = { { 9, 13 },          { 32, 32 },
					  { 0xa0, 0xa0 },     { 0x1680, 0x1680 },
					  { 0x2000, 0x200a }, { 0x2028, 0x2029 },
					  { 0x202f, 0x202f }, { 0x205f, 0x205f },
					  { 0x3000, 0x3000 }, { 0xfeff, 0xfeff } },
			     breaks[] = { { 10, 10 }, { 13, 13 }, { 0x2028, 0x2029 } };

// Adds n intervals, which are in order and apart, or all between them.
static int add_set(struct pattern *p, const struct interval *x, size_t n, bool outside)
{
	uint32_t next = 0;
	int e = 0;

	for (size_t i = 0; i < n && e == 0; i++) {
		if (!outside)
			e = add_interval(p, x[i].lo, x[i].hi);
		else if (x[i].lo > next)
			e = add_interval(p, next, x[i].lo - 1);
		next = x[i].hi + 1;
	}
	return e == 0 && outside && next <= LAST_CHAR ? add_interval(p, next, LAST_CHAR) : e;
}

// The set that \d, \s, \w and their opposites stand for.
static const struct interval *named_set(char c, size_t *n)
{
	switch (c | 32) {
	case 'd': *n = sizeof digits / sizeof *digits; return digits;
	case 'w': *n = sizeof words / sizeof *words; return words;
	case 's': *n = sizeof spaces / sizeof *spaces; return spaces;
	default: return NULL;
	}
}

static int by_lowest(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return (x->lo > y->lo) - (x->lo < y->lo);
}

// Makes the intervals from `from` on a class: in order, apart, or all others with `outside`.
static int new_class(struct pattern *p, size_t from, bool outside, uint32_t *to)
{
	size_t n = p->intervals - from, kept = 0;
	struct interval *x = p->interval + from;
	int e = 0;

	if (n)
		qsort(x, n, sizeof *x, by_lowest);
	for (size_t i = 0; i < n; i++)
		if (kept && x[i].lo <= x[kept - 1].hi + 1)
			x[kept - 1].hi = x[i].hi > x[kept - 1].hi ? x[i].hi : x[kept - 1].hi;
		else
			x[kept++] = x[i];
	p->intervals = from + kept;
	if (outside) { // x moves when the array grows
		struct interval *copy = malloc((kept + 1) * sizeof *copy);
		if (!copy)
			return YOKE_ENOMEM;
		if (kept)
			memcpy(copy, x, kept * sizeof *x);
		p->intervals = from;
		e = add_set(p, copy, kept, true);
		free(copy);
	}
	return e < 0 ? e :
		       new_node(p, (struct node){ .kind = CLASS, .from = from, .to = p->intervals },
				to);
}

static int hex_digits(struct pattern *p, int n, uint32_t *to)
{
	*to = 0;
	for (int i = 0; i < n; i++, p->at++) {
		const char c = p->at < p->end ? *p->at : 0;
		const int v = c >= '0' && c <= '9'               ? c - '0' :
			      (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 :
								   -1;
		if (v < 0)
			return refuse(p, "an escape lacks hexadecimal digits");
		*to = *to << 4 | (uint32_t)v;
	}
	return 0;
}

// The character of an escape after its backslash.
static int escaped_char(struct pattern *p, uint32_t *to)
{
	static const char from[] = "tnrfv0", chars[] = "\t\n\r\f\v";
	const char c = *p->at, *known = strchr(from, c);

	if (c && known) {
		p->at++;
		*to = (uint32_t)(unsigned char)chars[known - from];
		return !*to && p->at < p->end && *p->at >= '0' && *p->at <= '9' ?
			       refuse(p, "octal escapes are not supported") :
			       0;
	}
	if (c == 'x' || c == 'u') {
		p->at++;
		const int e = hex_digits(p, c == 'x' ? 2 : 4, to);
		return e == 0 && *to >= 0xd800 && *to < 0xe000 ?
			       refuse(p,
				      "surrogates are not supported; write the character itself") :
			       e;
	}
	if (c >= '1' && c <= '9')
		return refuse(p, "backreferences are not supported");
	if ((c | 32) == 'b')
		return refuse(p, "word boundaries are not supported");
	if ((c | 32) >= 'a' && (c | 32) <= 'z')
		return refuse(p, "an escape is not supported");
	*to = yk_char_next(&p->at);
	return 0;
}

// One character of a class, or a set as \d, whose intervals are added: *to is UINT32_MAX then.
static int class_item(struct pattern *p, uint32_t *to)
{
	size_t n;

	if (*p->at != '\\') {
		*to = yk_char_next(&p->at);
		return 0;
	}
	if (++p->at == p->end)
		return refuse(p, "it ends with a backslash");
	const struct interval *set = named_set(*p->at, &n);
	if (set) {
		*to = UINT32_MAX;
		return add_set(p, set, n, *p->at++ < 'a');
	}
	if (*p->at == 'b') {
		p->at++;
		*to = '\b';
		return 0;
	}
	return escaped_char(p, to);
}

// After '['.
static int parse_class(struct pattern *p, uint32_t *to)
{
	const size_t from = p->intervals;
	const bool outside = p->at < p->end && *p->at == '^';
	int e = 0;

	p->at += outside;
	while (e == 0 && p->at < p->end && *p->at != ']') {
		uint32_t lo, hi;
		if ((e = class_item(p, &lo)) < 0 || lo == UINT32_MAX)
			continue;
		hi = lo;
		if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
			p->at++;
			if ((e = class_item(p, &hi)) < 0)
				continue;
			if (hi == UINT32_MAX || hi < lo)
				return refuse(p, "an interval of characters is out of order");
		}
		e = add_interval(p, lo, hi);
	}
	if (e < 0)
		return e;
	if (p->at == p->end)
		return refuse(p, "a '[' lacks its ']'");
	p->at++;
	return new_class(p, from, outside, to);
}

// ---- the tree ----

static int parse_choice(struct pattern *, uint32_t *to);

// After '('.
static int parse_group(struct pattern *p, uint32_t *to)
{
	if (p->at < p->end && *p->at == '?') {
		const size_t left = (size_t)(p->end - p->at);
		if (left >= 2 && p->at[1] == ':') {
			p->at += 2;
		} else if (left >= 3 && p->at[1] == '<' && p->at[2] != '=' && p->at[2] != '!') {
			const char *name = memchr(p->at, '>', left);
			if (!name)
				return refuse(p, "a group's name lacks its '>'");
			p->at = name + 1;
		} else {
			return refuse(p, "lookahead and lookbehind are not supported");
		}
	}
	if (++p->depth > MAX_GROUPS)
		return refuse(p, "its groups nest too deeply");
	const int e = parse_choice(p, to);
	p->depth--;
	if (e < 0)
		return e;
	if (p->at == p->end)
		return refuse(p, "a '(' lacks its ')'");
	p->at++;
	return 0;
}

static int parse_atom(struct pattern *p, uint32_t *to)
{
	const size_t from = p->intervals;
	const char c = *p->at;
	uint32_t x;
	size_t n;
	int e;

	switch (c) {
	case '(': p->at++; return parse_group(p, to);
	case '[': p->at++; return parse_class(p, to);
	case '.':
		p->at++;
		e = add_set(p, breaks, sizeof breaks / sizeof *breaks, true);
		return e < 0 ? e : new_class(p, from, false, to);
	case '^':
	case '$': return refuse(p, "'^' and '$' are supported at the ends of a pattern only");
	case '*':
	case '+':
	case '?': return refuse(p, "a quantifier has nothing to repeat");
	case '\\':
		if (++p->at == p->end)
			return refuse(p, "it ends with a backslash");
		const struct interval *set = named_set(*p->at, &n);
		if (set)
			e = add_set(p, set, n, *p->at++ < 'a');
		else if ((e = escaped_char(p, &x)) == 0)
			e = add_interval(p, x, x);
		break;
	default: x = yk_char_next(&p->at); e = add_interval(p, x, x);
	}
	return e < 0 ? e : new_class(p, from, false, to);
}

static bool number(const char **at, const char *end, int *to)
{
	const char *s = *at;

	for (*to = 0; s < end && *s >= '0' && *s <= '9'; s++)
		*to = *to > MAX_REPEAT ? *to : 10 * *to + *s - '0';
	const bool found = s > *at;
	*at = s;
	return found;
}

// Reads {n}, {n,} or {n,m}; false: it is text.
static bool parse_counts(struct pattern *p, int *min, int *max)
{
	const char *at = p->at + 1;

	if (!number(&at, p->end, min))
		return false;
	*max = *min;
	if (at < p->end && *at == ',') {
		at++;
		if (!number(&at, p->end, max))
			*max = UNBOUNDED;
	}
	if (at == p->end || *at != '}')
		return false;
	p->at = at + 1;
	return true;
}

static int parse_repeated(struct pattern *p, uint32_t *to)
{
	uint32_t child;
	int min, max, e = parse_atom(p, &child);

	if (e < 0)
		return e;
	*to = child;
	if (p->at == p->end)
		return 0;
	switch (*p->at) {
	case '*': min = 0, max = UNBOUNDED, p->at++; break;
	case '+': min = 1, max = UNBOUNDED, p->at++; break;
	case '?': min = 0, max = 1, p->at++; break;
	case '{':
		if (parse_counts(p, &min, &max))
			break;
		return 0;
	default: return 0;
	}
	if (max != UNBOUNDED && max < min)
		return refuse(p, "the counts of a quantifier are out of order");
	if (min > MAX_REPEAT || max > MAX_REPEAT)
		return refuse(p, "a quantifier exceeds 10000");
	if (p->at < p->end && *p->at == '?') // which match is found first does not matter
		p->at++;
	if (p->at < p->end && (*p->at == '*' || *p->at == '+' || *p->at == '?'))
		return refuse(p, "a quantifier has nothing to repeat");
	return new_node(
		p, (struct node){ .kind = REPEAT, .child = child + 1, .min = min, .max = max }, to);
}

static int parse_sequence(struct pattern *p, uint32_t *to)
{
	struct node x = { .kind = SEQUENCE };
	uint32_t last = 0, item;
	int e;

	if (!p->depth && p->at < p->end && *p->at == '^') {
		x.begins = true;
		p->at++;
	}
	while (p->at < p->end && *p->at != '|' && *p->at != ')') {
		if (!p->depth && *p->at == '$' && (p->at + 1 == p->end || p->at[1] == '|')) {
			x.ends = true;
			p->at++;
			break;
		}
		if ((e = parse_repeated(p, &item)) < 0)
			return e;
		if (last)
			p->node[last - 1].next = item + 1;
		else
			x.child = item + 1;
		last = item + 1;
	}
	return new_node(p, x, to);
}

static int parse_choice(struct pattern *p, uint32_t *to)
{
	struct node x = { .kind = CHOICE };
	uint32_t last = 0, item;
	int e;

	for (;;) {
		if ((e = parse_sequence(p, &item)) < 0)
			return e;
		if (last)
			p->node[last - 1].next = item + 1;
		else
			x.child = item + 1;
		last = item + 1;
		if (p->at == p->end || *p->at != '|')
			return new_node(p, x, to);
		p->at++;
	}
}

// ---- the automaton ----

// The intervals of bytes one after another, from state to state.
static int emit_bytes(struct pattern *p, const uint8_t (*x)[2], size_t n, uint32_t from,
		      uint32_t to)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t next = to;
		int e = i + 1 < n ? yk_nfa_state(&p->nfa, &next) : 0;
		if (e == 0)
			e = yk_nfa_edge(&p->nfa, from, x[i][0], x[i][1], next);
		if (e < 0)
			return e;
		from = next;
	}
	return 0;
}

static size_t encode(uint32_t c, uint8_t *to)
{
	if (c < 0x80) {
		to[0] = (uint8_t)c;
		return 1;
	}
	const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; --i; c >>= 6)
		to[i] = (uint8_t)(0x80 | (c & 0x3f));
	to[0] = (uint8_t)((0xf00 >> n & 0xff) | c);
	return n;
}

// The UTF-8 of an interval of characters without surrogates.  It is divided until first and last
// character have equally many bytes, and all after the first byte in which they differ take all
// values (R. Cox, RE2).
static int emit_utf8(struct pattern *p, uint32_t lo, uint32_t hi, uint32_t from, uint32_t to)
{
	static const uint32_t last[] = { 0x7f, 0x7ff, 0xffff };
	uint8_t first[4], end[4], x[4][2];

	while (lo <= hi) {
		uint32_t stop = hi;
		for (size_t i = 0; i < 3; i++)
			if (lo <= last[i] && stop > last[i])
				stop = last[i];
		for (int i = 1; i < 4 && stop >= 0x80; i++) {
			const uint32_t mask = ((uint32_t)1 << 6 * i) - 1;
			if ((lo & ~mask) == (stop & ~mask))
				break;
			if (lo & mask)
				stop = lo | mask;
			else if ((stop & mask) != mask)
				stop = (stop & ~mask) - 1;
		}
		const size_t n = encode(lo, first);
		encode(stop, end);
		for (size_t i = 0; i < n; i++)
			x[i][0] = first[i], x[i][1] = end[i];
		const int e = emit_bytes(p, x, n, from, to);
		if (e < 0)
			return e;
		lo = stop + 1;
	}
	return 0;
}

// A character that JSON demands to escape, by its short escape if it has one.  The others of a
// class share the beginning of their escapes.
static int emit_escape(struct pattern *p, uint32_t c, uint32_t from, uint32_t to)
{
	static const char with[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\",
			  hex[] = "0123456789abcdef";
	static const uint8_t begin[][2] = {
		{ '\\', '\\' }, { 'u', 'u' }, { '0', '0' }, { '0', '0' }
	};
	const char *known = strchr(with, (int)c);
	int e = 0;

	if (!c) // no string of ours has NULs
		return 0;
	if (known) {
		const uint8_t name = (uint8_t)names[known - with];
		return emit_bytes(p, (const uint8_t[][2]){ { '\\', '\\' }, { name, name } }, 2,
				  from, to);
	}
	if (!p->escape && (e = yk_nfa_state(&p->nfa, &p->escape)) == 0)
		e = emit_bytes(p, begin, 4, from, p->escape);
	for (int upper = 0; upper < 2 && e == 0; upper++) {
		const uint8_t a = (uint8_t)hex[c >> 4],
			      b = (uint8_t)(hex[c & 15] - (upper && (c & 15) > 9 ? 32 : 0));
		if (!upper || (c & 15) > 9)
			e = emit_bytes(p, (const uint8_t[][2]){ { a, a }, { b, b } }, 2, p->escape,
				       to);
	}
	return e;
}

// An interval of characters without surrogates.
static int emit_interval(struct pattern *p, uint32_t lo, uint32_t hi, uint32_t from, uint32_t to)
{
	int e = 0;

	if (p->mode == YK_PATTERN_TEXT)
		return emit_utf8(p, lo, hi, from, to);
	for (; lo < 32 && lo <= hi && e == 0; lo++)
		e = emit_escape(p, lo, from, to);
	for (size_t i = 0; i < 2 && e == 0; i++) {
		const uint32_t c = i ? '\\' : '"';
		if (lo > c || hi < c)
			continue;
		if (lo < c)
			e = emit_utf8(p, lo, c - 1, from, to);
		if (e == 0)
			e = emit_escape(p, c, from, to);
		lo = c + 1;
	}
	return e < 0 || lo > hi ? e : emit_utf8(p, lo, hi, from, to);
}

static int emit_chars(struct pattern *p, const struct interval *x, size_t n, uint32_t from,
		      uint32_t to)
{
	int e = 0;

	p->escape = 0;
	for (size_t i = 0; i < n && e == 0; i++) {
		const uint32_t lo = x[i].lo, hi = x[i].hi;
		if (lo < 0xd800)
			e = emit_interval(p, lo, hi < 0xd800 ? hi : 0xd7ff, from, to);
		if (e == 0 && hi > 0xdfff)
			e = emit_interval(p, lo > 0xdfff ? lo : 0xe000, hi, from, to);
	}
	return e;
}

static int emit(struct pattern *, uint32_t node, uint32_t from, uint32_t to);

static int emit_repeat(struct pattern *p, uint32_t node, uint32_t from, uint32_t to)
{
	const struct node x = p->node[node];
	uint32_t next;
	int e = 0;

	for (int i = 0; i < x.min && e == 0; i++, from = next)
		if ((e = yk_nfa_state(&p->nfa, &next)) == 0)
			e = emit(p, x.child - 1, from, next);
	if (e == 0 && x.max == UNBOUNDED) {
		if ((e = yk_nfa_state(&p->nfa, &next)) == 0 &&
		    (e = yk_nfa_empty(&p->nfa, from, next)) == 0)
			e = emit(p, x.child - 1, next, next);
		from = next;
	}
	for (int i = x.min; i < x.max && e == 0; i++, from = next)
		if ((e = yk_nfa_empty(&p->nfa, from, to)) == 0 &&
		    (e = yk_nfa_state(&p->nfa, &next)) == 0)
			e = emit(p, x.child - 1, from, next);
	return e < 0 ? e : yk_nfa_empty(&p->nfa, from, to);
}

// Adds the texts of a node between two states.  It recurses as deeply as groups nest.
static int emit(struct pattern *p, uint32_t node, uint32_t from, uint32_t to)
{
	const struct node x = p->node[node];
	uint32_t next;
	int e = 0;

	switch (x.kind) {
	case CLASS: return emit_chars(p, p->interval + x.from, x.to - x.from, from, to);
	case REPEAT: return emit_repeat(p, node, from, to);
	case CHOICE:
		for (uint32_t i = x.child; i && e == 0; i = p->node[i - 1].next)
			e = emit(p, i - 1, from, to);
		return e;
	default:
		for (uint32_t i = x.child; i && e == 0; i = p->node[i - 1].next, from = next)
			if ((e = yk_nfa_state(&p->nfa, &next)) == 0)
				e = emit(p, i - 1, from, next);
		return e < 0 ? e : yk_nfa_empty(&p->nfa, from, to);
	}
}

// The branches of the pattern in a string, with any characters where they lack ^ and $.
static int emit_string(struct pattern *p, uint32_t root, uint32_t from, uint32_t to)
{
	static const struct interval any = { 1, LAST_CHAR };
	uint32_t begin, first, last, end;
	int e;

	if ((e = yk_nfa_state(&p->nfa, &begin)) < 0 || (e = yk_nfa_state(&p->nfa, &first)) < 0 ||
	    (e = yk_nfa_state(&p->nfa, &last)) < 0 || (e = yk_nfa_state(&p->nfa, &end)) < 0 ||
	    (e = yk_nfa_edge(&p->nfa, from, '"', '"', begin)) < 0 ||
	    (e = yk_nfa_edge(&p->nfa, end, '"', '"', to)) < 0 ||
	    (e = yk_nfa_empty(&p->nfa, begin, first)) < 0 ||
	    (e = emit_chars(p, &any, 1, first, first)) < 0 ||
	    (e = yk_nfa_empty(&p->nfa, last, end)) < 0 ||
	    (e = emit_chars(p, &any, 1, last, last)) < 0)
		return e;
	for (uint32_t i = p->node[root].child; i && e == 0; i = p->node[i - 1].next) {
		const struct node *x = &p->node[i - 1];
		e = emit(p, i - 1, x->begins ? begin : first, x->ends ? end : last);
	}
	return e;
}

int yk_pattern_compile(struct yk_dfa *d, const char *s, size_t n, enum yk_pattern_mode mode,
		       uint32_t *start, const char **why)
{
	struct pattern p = { .at = s, .end = s + n, .mode = mode };
	uint32_t root, from, to;
	int e = n > YK_PATTERN_BYTES ? refuse(&p, "it has more than 4096 bytes") :
				       parse_choice(&p, &root);

	if (e == 0 && p.at < p.end)
		e = refuse(&p, "a ')' lacks its '('");
	if (e == 0 && (e = yk_nfa_state(&p.nfa, &from)) == 0 &&
	    (e = yk_nfa_state(&p.nfa, &to)) == 0)
		e = mode == YK_PATTERN_STRING ? emit_string(&p, root, from, to) :
						emit(&p, root, from, to);
	if (e == 0)
		e = yk_dfa_of(d, &p.nfa, from, to, start);
	if (e == YOKE_EFORMAT)
		*why = p.why;
	free(p.node);
	free(p.interval);
	yk_nfa_fini(&p.nfa);
	return e;
}
