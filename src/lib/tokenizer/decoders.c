// SPDX-License-Identifier: Apache-2.0
// Decoders: each converts the list of tokens; their concatenation is the text.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "tokenizer/steps.h"

static void replace_all(struct yk_string *t, size_t from, const char *a, const char *b)
{
	const size_t na = strlen(a), nb = strlen(b); // nb <= na: the text shrinks in place
	size_t to = from;

	if (t->failed)
		return;
	for (size_t i = from; i < t->n;) {
		if (t->n - i >= na && !memcmp(t->s + i, a, na)) {
			memcpy(t->s + to, b, nb);
			to += nb;
			i += na;
		} else {
			t->s[to++] = t->s[i++];
		}
	}
	t->n = to;
}

// Removes blanks that WordPiece puts before punctuation and contractions, from position `from` on.
static void cleanup(struct yk_string *t, size_t from)
{
	static const char *const pairs[][2] = {
		{ " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
		{ " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
		{ " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		replace_all(t, from, pairs[i][0], pairs[i][1]);
}

struct replace {
	const struct yk_token_step *step;
	struct yk_string *to;
};

static void replace(void *arg, const char *s, size_t n, bool match)
{
	struct replace *r = arg;

	yk_string_add(r->to, match ? r->step->b : s, match ? r->step->nb : n);
}

// Characters of byte-level tokens are bytes; a token with any other character is text as it stands.
static void bytes_of(struct yk_string *to, const char *s, size_t n)
{
	const size_t before = to->n;

	for (const char *at = s; at < s + n;) {
		const int b = yk_char_byte(yk_char_next(&at));
		if (b < 0) {
			to->n = before;
			yk_string_add(to, s, n);
			return;
		}
		yk_string_add(to, &(char){ (char)b }, 1);
	}
}

static void byte_level(const struct yk_pieces *p, struct yk_pieces *to, bool raw)
{
	struct yk_string bytes = { 0 };

	for (size_t i = 0; i < p->count; i++)
		bytes_of(&bytes, p->text.s + p->piece[i].at, p->piece[i].n);
	yk_pieces_begin(to, true);
	if (raw)
		yk_string_add(&to->text, bytes.s, bytes.n);
	else
		yk_utf8_lossy(&to->text, bytes.s, bytes.n);
	yk_pieces_end(to);
	to->text.failed |= bytes.failed;
	yk_string_fini(&bytes);
}

// The byte of a token "<0x0A>", -1: another token.
static int fallback_byte(const char *s, size_t n)
{
	int v = 0;

	if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>')
		return -1;
	for (int i = 3; i < 5; i++) {
		const char *digits = "0123456789abcdef";
		const char *d =
			s[i] ? strchr(digits, s[i] >= 'A' && s[i] <= 'F' ? s[i] + 32 : s[i]) : NULL;
		if (!d)
			return -1;
		v = 16 * v + (int)(d - digits);
	}
	return v;
}

// A run of byte tokens is a text if all of it is UTF-8, else one U+FFFD for each byte.
static void fallback(const struct yk_pieces *p, struct yk_pieces *to, bool raw)
{
	struct yk_string run = { 0 };

	for (size_t i = 0; i <= p->count; i++) {
		const char *s = i < p->count ? p->text.s + p->piece[i].at : NULL;
		const int b = s ? fallback_byte(s, p->piece[i].n) : -1;
		if (b >= 0) {
			yk_string_add(&run, &(char){ (char)b }, 1);
			continue;
		}
		if (run.n && (raw || yk_utf8_check(run.s, run.n) == run.n))
			yk_pieces_add(to, run.s, run.n, false);
		else
			for (size_t j = 0; j < run.n; j++)
				yk_pieces_add(to, "\xef\xbf\xbd", 3, false);
		run.n = 0;
		if (s)
			yk_pieces_add(to, s, p->piece[i].n, false);
	}
	to->text.failed |= run.failed;
	yk_string_fini(&run);
}

static void wordpiece(const struct yk_token_step *p, const char *s, size_t n, size_t i,
		      struct yk_pieces *to)
{
	yk_pieces_begin(to, false);
	const size_t from = to->text.n;
	if (i && n >= p->na && !memcmp(s, p->a, p->na)) {
		yk_string_add(&to->text, s + p->na, n - p->na);
	} else {
		if (i)
			yk_string_add(&to->text, " ", 1);
		yk_string_add(&to->text, s, n);
	}
	if (p->clean)
		cleanup(&to->text, from);
	yk_pieces_end(to);
}

static void metaspace(const struct yk_token_step *p, const char *s, size_t n, size_t i,
		      struct yk_pieces *to)
{
	const char *end = s + n;

	yk_pieces_begin(to, false);
	while (s < end) {
		const size_t size = yk_char_size(*s);
		if (size == p->na && !memcmp(s, p->a, size)) {
			if (i || p->prepend == YK_NEVER)
				yk_string_add(&to->text, " ", 1);
		} else {
			yk_string_add(&to->text, s, size);
		}
		s += size;
	}
	yk_pieces_end(to);
}

static void ctc(const struct yk_token_step *p, const char *s, size_t n, struct yk_pieces *to)
{
	struct yk_token_step pad = { .a = p->a, .na = p->na, .b = "" };

	yk_pieces_begin(to, false);
	const size_t from = to->text.n;
	yk_matches(&pad, s, n, replace, &(struct replace){ &pad, &to->text });
	if (p->clean) {
		cleanup(&to->text, from);
		struct yk_string t = { 0 };
		struct yk_token_step word = { .a = p->b, .na = p->nb, .b = " ", .nb = 1 };
		yk_matches(&word, to->text.s + from, to->text.n - from, replace,
			   &(struct replace){ &word, &t });
		to->text.n = from;
		yk_string_add(&to->text, t.s, t.n);
		to->text.failed |= t.failed;
		yk_string_fini(&t);
	}
	yk_pieces_end(to);
	if (!to->text.failed && to->text.n == from) // an empty one is left out
		to->count--;
}

static void strip(const struct yk_token_step *p, const char *s, size_t n, struct yk_pieces *to)
{
	for (size_t i = 0; i < p->start && n >= p->na && !memcmp(s, p->a, p->na); i++) {
		s += p->na;
		n -= p->na;
	}
	for (size_t i = 0; i < p->stop && n >= p->na && !memcmp(s + n - p->na, p->a, p->na); i++)
		n -= p->na;
	yk_pieces_add(to, s, n, false);
}

static int token(const struct yk_token_step *p, const struct yk_pieces *from, size_t i,
		 struct yk_pieces *to)
{
	const char *s = from->text.s + from->piece[i].at;
	const size_t n = from->piece[i].n;
	int e = 0;

	switch (p->kind) {
	case YK_DECODE_WORDPIECE: wordpiece(p, s, n, i, to); break;
	case YK_DECODE_METASPACE: metaspace(p, s, n, i, to); break;
	case YK_DECODE_STRIP: strip(p, s, n, to); break;
	case YK_DECODE_CTC:
		if (!i || n != from->piece[i - 1].n ||
		    memcmp(s, from->text.s + from->piece[i - 1].at, n))
			ctc(p, s, n, to);
		break;
	case YK_DECODE_BPE: { // the suffix ends a word, which a blank follows
		const struct yk_token_step r = {
			.a = p->a, .na = p->na, .b = " ", .nb = i + 1 < from->count
		};
		yk_pieces_begin(to, false);
		yk_matches(&r, s, n, replace, &(struct replace){ &r, &to->text });
		yk_pieces_end(to);
		break;
	}
	default:
		yk_pieces_begin(to, false);
		e = yk_matches(p, s, n, replace, &(struct replace){ p, &to->text });
		yk_pieces_end(to);
		break;
	}
	return e;
}

int yk_decode(const struct yk_steps *steps, struct yk_pieces *p, struct yk_pieces *swap, bool raw)
{
	for (size_t i = 0; i < steps->count; i++) {
		const struct yk_token_step *x = &steps->step[i];
		int e = 0;
		yk_pieces_clear(swap);
		if (x->kind == YK_DECODE_BYTES) {
			byte_level(p, swap, raw);
		} else if (x->kind == YK_DECODE_FALLBACK) {
			fallback(p, swap, raw);
		} else if (x->kind == YK_DECODE_FUSE) {
			yk_pieces_add(swap, p->text.s, p->text.n, true);
		} else {
			for (size_t j = 0; e == 0 && j < p->count; j++)
				e = token(x, p, j, swap);
		}
		if (e < 0)
			return e;
		const struct yk_pieces t = *p;
		*p = *swap;
		*swap = t;
	}
	return p->text.failed || swap->text.failed ? yk_fail(YOKE_ENOMEM, "no memory to decode") :
						     0;
}
