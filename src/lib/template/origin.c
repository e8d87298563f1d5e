// SPDX-License-Identifier: Apache-2.0
// Origin of the bytes of a text: which of them come from messages.  Every function that copies or
// transforms strings keeps it, so that special tokens in a message can be distinguished from the
// template's.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "template/value.h"

// The first interval that ends after byte i; n if there is none.
static size_t interval_after(const struct yk_spans *s, size_t i)
{
	size_t lo = 0, hi = s->n;
	while (lo < hi) {
		const size_t middle = lo + (hi - lo) / 2;
		if (s->at[middle].to > i)
			hi = middle;
		else
			lo = middle + 1;
	}
	return lo;
}

// Marks those bytes that come after all marked ones.
static void mark(struct yk_v_buffer *t, size_t from, size_t to, int64_t message)
{
	struct yk_spans *s = &t->spans;
	struct yoke_text_span *last = s->n ? &s->at[s->n - 1] : NULL;
	if (last && from < last->to)
		from = last->to;
	if (from >= to || t->s.failed)
		return;
	if (last && last->to == from && last->message == message)
		last->to = to;
	else if (yk_grow(&s->at, &s->cap, s->n + 1, sizeof *s->at) < 0)
		t->s.failed = true;
	else
		s->at[s->n++] = (struct yoke_text_span){ from, to, message };
}

void yk_text_add(struct yk_v_buffer *t, const struct yk_chars *of, const char *s, size_t n)
{
	const size_t begin = t->s.n;
	yk_string_add(&t->s, s, n);
	if (!of || !of->spans || !n || t->s.failed)
		return;
	const size_t a = (size_t)(s - of->s), b = a + n;
	const struct yk_spans *x = of->spans;
	for (size_t i = interval_after(x, a); i < x->n && x->at[i].from < b; i++) {
		const size_t from = x->at[i].from > a ? x->at[i].from : a,
			     to = x->at[i].to < b ? x->at[i].to : b;
		mark(t, begin + from - a, begin + to - a, x->at[i].message);
	}
}

void yk_text_derive(struct yk_v_buffer *t, size_t begin, const struct yk_chars *of, const char *at)
{
	const struct yk_spans *x = of->spans;
	if (!x)
		return;
	const size_t k = at ? (size_t)(at - of->s) : 0, i = at ? interval_after(x, k) : 0;
	if (!at)
		t->spans.n = 0;
	if (i < x->n && (!at || x->at[i].from <= k))
		mark(t, begin, t->s.n, x->at[i].message);
}

void yk_text_fini(struct yk_v_buffer *t)
{
	yk_string_fini(&t->s);
	free(t->spans.at);
	t->spans = (struct yk_spans){ 0 };
}

void yk_chars_mark(struct yk_render *r, struct yk_v_value v, const struct yoke_text_span *at,
		   size_t n)
{
	struct yk_spans *s =
		r->failed || !n ? NULL : yk_render_alloc(r, sizeof *s + n * sizeof *at);
	if (!s)
		return;
	*s = (struct yk_spans){ (struct yoke_text_span *)(s + 1), n, n };
	memcpy(s->at, at, n * sizeof *at);
	((struct yk_chars *)(uintptr_t)v.s)->spans =
		s; // new, so that nothing else refers to it yet
}

struct yk_v_value yk_v_built(struct yk_render *r, struct yk_v_buffer *t)
{
	const struct yk_v_value v = yk_v_taken(r, &t->s);
	yk_chars_mark(r, v, t->spans.at, t->spans.n);
	yk_text_fini(t);
	return v;
}

struct yk_v_value yk_v_substring(struct yk_render *r, const struct yk_chars *of, const char *s,
				 size_t n)
{
	struct yk_v_buffer t = { 0 };
	if (!of->spans)
		return yk_v_string(r, s, n);
	yk_text_add(&t, of, s, n);
	return yk_v_built(r, &t);
}
