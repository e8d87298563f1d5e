// SPDX-License-Identifier: Apache-2.0
// Pre-tokenizers: each divides every piece of a text further.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "tokenizer/steps.h"
#include "tokenizer/unicode.h"

// Where the parts of a piece go.  Matches and the text between them arrive in order; `behavior`
// decides which neighbours are joined.
struct sink {
	struct yk_pieces *to;
	const struct yk_token_step *step;
	enum yk_behavior behavior;
	const char *base; // start of the piece
	bool first;       // of the piece
	const char *open; // a part that may still grow; NULL: none
	size_t bytes;
	bool match; // of the part before
};

static void flush(struct sink *k)
{
	if (!k->open)
		return;
	const bool first = k->first && k->open == k->base;
	if (k->step->kind == YK_SPLIT_BYTES && k->bytes) {
		yk_pieces_begin(k->to, first);
		yk_bytes_add(&k->to->text, k->open, k->bytes);
		yk_pieces_end(k->to);
	} else {
		yk_pieces_split(k->to, k->open, k->bytes, first);
	}
	k->open = NULL;
}

static void take(void *arg, const char *s, size_t n, bool match)
{
	struct sink *k = arg;
	bool join = false;

	match ^= k->step->invert;
	switch (k->behavior) {
	case YK_REMOVED:
	case YK_ISOLATED: break;
	case YK_WITH_PREVIOUS: join = match && !k->match; break;
	case YK_WITH_NEXT: join = !match && k->match; break;
	case YK_CONTIGUOUS: join = match == k->match; break;
	}
	k->match = match;
	if (join && k->open) {
		k->bytes += n;
		return;
	}
	flush(k);
	if (k->behavior == YK_REMOVED && match)
		return;
	k->open = s;
	k->bytes = n;
}

static bool is_bert_punctuation(uint32_t c)
{
	return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
	       (c >= '{' && c <= '~') || yk_is_punctuation(c);
}

static bool matches(const struct yk_token_step *p, uint32_t c)
{
	switch (p->kind) {
	case YK_SPLIT_SPACE: return yk_is_space(c);
	case YK_SPLIT_DIGITS: return yk_is_numeric(c);
	case YK_SPLIT_BERT:
	case YK_SPLIT_PUNCTUATION: return is_bert_punctuation(c);
	default: return c == p->c;
	}
}

// Each character that matches is a match of its own; a run of others is one interval.
static void chars(struct sink *k, const char *s, size_t n)
{
	const char *from = s, *end = s + n;

	for (const char *at = s; at < end;) {
		const char *here = at;
		const uint32_t c = yk_char_next(&at);
		if (k->step->kind == YK_SPLIT_BERT &&
		    yk_is_space(c)) { // dropped, while punctuation is kept
			if (here > from)
				take(k, from, (size_t)(here - from), false);
			from = at;
		} else if (matches(k->step, c)) {
			if (here > from)
				take(k, from, (size_t)(here - from), false);
			take(k, here, (size_t)(at - here), true);
			from = at;
		}
	}
	if (end > from)
		take(k, from, (size_t)(end - from), false);
}

static void lengths(struct sink *k, const char *s, size_t n)
{
	const char *end = s + n;

	while (s < end) {
		const char *at = s;
		for (size_t i = 0; at < end && i < k->step->length; i++)
			at += yk_char_size(*at);
		take(k, s, (size_t)(at - s), false);
		s = at;
	}
}

// Spaces become the replacement, which begins each part.
static void metaspace(const struct yk_token_step *p, const char *s, size_t n, bool first,
		      struct yk_pieces *to)
{
	const char *end = s + n;
	bool begun = false, initial = true;

	if (n >= p->na && !memcmp(s, p->a, p->na))
		initial = false;
	if (n && *s == ' ')
		initial = false;
	if (initial && (p->prepend == YK_ALWAYS || (p->prepend == YK_FIRST && first))) {
		yk_pieces_begin(to, first);
		begun = true;
		yk_string_add(&to->text, p->a, p->na);
	}
	while (s < end) {
		const bool space = *s == ' ';
		const bool is = space || ((size_t)(end - s) >= p->na && !memcmp(s, p->a, p->na));
		if (!begun || (is && p->cut)) {
			if (begun)
				yk_pieces_end(to);
			yk_pieces_begin(to, first && !begun);
			begun = true;
		}
		const size_t bytes = is && !space ? p->na : yk_char_size(*s);
		yk_string_add(&to->text, is ? p->a : s, is ? p->na : bytes);
		s += bytes;
	}
	if (begun)
		yk_pieces_end(to);
}

static int byte_level(struct sink *k, const char *s, size_t n)
{
	struct yk_string spaced = { 0 };
	int e = 0;

	if (k->step->space && n && *s != ' ') {
		yk_string_add(&spaced, " ", 1);
		yk_string_add(&spaced, s, n);
		s = spaced.s;
		n = spaced.n;
		k->base = s;
	}
	if (spaced.failed)
		e = yk_fail(YOKE_ENOMEM, "no memory to split %zu bytes", n);
	else if (k->step->regexed)
		e = yk_matches(k->step, s, n, take, k);
	else
		take(k, s, n, false);
	flush(k);
	yk_string_fini(&spaced);
	return e;
}

static int step_run(const struct yk_token_step *p, const char *s, size_t n, bool first,
		    struct yk_pieces *to)
{
	struct sink k = { .to = to, .step = p, .behavior = p->behavior, .base = s, .first = first };
	int e = 0;

	switch (p->kind) {
	case YK_SPLIT: e = yk_matches(p, s, n, take, &k); break;
	case YK_SPLIT_BYTES: return byte_level(&k, s, n);
	case YK_SPLIT_METASPACE: metaspace(p, s, n, first, to); return 0;
	case YK_SPLIT_LENGTH: lengths(&k, s, n); break;
	default: chars(&k, s, n); break;
	}
	flush(&k);
	return e;
}

int yk_split(const struct yk_steps *steps, struct yk_pieces *p, struct yk_pieces *swap)
{
	for (size_t i = 0; i < steps->count; i++) {
		yk_pieces_clear(swap);
		for (size_t j = 0; j < p->count; j++) {
			const struct yk_piece *x = &p->piece[j];
			const int e =
				step_run(&steps->step[i], p->text.s + x->at, x->n, x->first, swap);
			if (e < 0)
				return e;
		}
		const struct yk_pieces t = *p;
		*p = *swap;
		*swap = t;
	}
	return p->text.failed || swap->text.failed ?
		       yk_fail(YOKE_ENOMEM, "no memory to split a text") :
		       0;
}
