// SPDX-License-Identifier: Apache-2.0
// Finds the tokens of intervals of a text.  Added tokens divide a text into segments whose bytes
// and ids are known.  Within a segment, the decoded tokens are compared with the text; where a
// tokenizer changes the text, the beginning of the segment is tokenized once more.
#include "config.h"

#include "data/chat_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "template/template.h"

struct alignment {
	struct yk_tokenizer *t;
	const struct yk_chat_text *all;
	const struct yk_chat_tokens *x;
	struct yk_segments segments;
	// [x->n + 1]: the byte at which each token begins; for segments that are aligned
	size_t *at;
	bool *aligned; // [segments.n]
};

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "no memory for a conversation");
}

static bool begins(const char *text, size_t bytes, const char *with, size_t n)
{
	return n <= bytes && !memcmp(text, with, n);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t ids_end(const struct alignment *a, size_t segment)
{
	return segment + 1 < a->segments.n ? a->segments.at[segment + 1].first : a->x->n;
}

// Sets at[] of a segment by comparing its text with the decoded tokens.  A decoded blank may be
// missing in the text, where the tokenizer added it, and white space of the text among the tokens.
// false: they differ otherwise.
static bool align(struct alignment *a, size_t segment)
{
	const struct yk_text_segment *s = &a->segments.at[segment];
	const char *text = a->all->text;
	size_t pos = s->from;
	a->at[s->first] = s->from;
	if (s->token)
		return true;
	for (size_t k = s->first; k < ids_end(a, segment); k++) {
		size_t n, next = pos;
		const char *piece = yk_tokenizer_decode(a->t, a->x->id[k], &n);
		if (!piece || !n)
			return false;
		const size_t added = *piece == ' ';
		while (!begins(text + next, s->to - next, piece, n) &&
		       !(added && begins(text + next, s->to - next, piece + 1, n - 1))) {
			if (next == s->to || !is_space(text[next]))
				return false;
			next++;
		}
		a->at[k] = next;
		pos = next + (begins(text + next, s->to - next, piece, n) ? n : n - 1);
	}
	while (pos < s->to && is_space(text[pos]))
		pos++;
	return pos == s->to;
}

// The intervals of `all` that come from messages within bytes from .. to, relative to `from`.
static struct yoke_text_span *plain_within(const struct yk_spans *all, size_t from, size_t to,
					   size_t *count)
{
	struct yoke_text_span *plain = malloc((all->n + 1) * sizeof *plain);
	*count = 0;
	for (size_t k = 0; plain && k < all->n && all->at[k].from < to; k++) {
		const size_t a = all->at[k].from > from ? all->at[k].from : from,
			     b = all->at[k].to < to ? all->at[k].to : to;
		if (a < b)
			plain[(*count)++] =
				(struct yoke_text_span){ a - from, b - from, all->at[k].message };
	}
	return plain;
}

// The number of tokens, counted from the beginning of the text, that the text up to byte `end` of a
// segment has in common with the whole text.
static int common(const struct alignment *a, size_t segment, size_t end, size_t *to)
{
	const struct yk_text_segment *s = &a->segments.at[segment];
	// with the token before, since a tokenizer may treat the beginning of a text differently
	const struct yk_text_segment *begin = segment > 0 && s[-1].token ? s - 1 : s;
	size_t spans, n, k = 0;
	int32_t *id;
	struct yoke_text_span *plain = plain_within(&a->all->written, begin->from, end, &spans);
	if (!plain)
		return no_memory();
	const int e = yk_tokenizer_ids_of(a->t, a->all->text + begin->from, end - begin->from,
					  YOKE_TOKENIZER_PARSE, plain, spans, &id, &n);
	free(plain);
	if (e < 0)
		return e;
	while (k < n && begin->first + k < ids_end(a, segment) &&
	       id[k] == a->x->id[begin->first + k])
		k++;
	free(id);
	*to = begin->first + k > s->first ? begin->first + k : s->first;
	return 0;
}

// The first token of an interval that begins at byte `b`, or, if `end`, the one after an interval
// that ends there.  A token belongs to an interval if any of its bytes does; in a segment that is
// not aligned, the token across the end of an interval does not.
static int token_at(const struct alignment *a, size_t b, bool end, size_t *to)
{
	size_t lo = 0, hi = a->segments.n;
	while (lo < hi) { // the segment that has byte b
		const size_t middle = lo + (hi - lo) / 2;
		if (a->segments.at[middle].to > b)
			hi = middle;
		else
			lo = middle + 1;
	}
	const struct yk_text_segment *s = &a->segments.at[lo];
	*to = lo < a->segments.n ? s->first : a->x->n;
	if (lo == a->segments.n || b <= s->from)
		return 0;
	if (!a->aligned[lo])
		return common(a, lo, b, to);
	const size_t ids = ids_end(a, lo);
	for (hi = ids, lo = s->first; lo < hi;) {
		const size_t middle = lo + (hi - lo) / 2,
			     next = middle + 1 < ids ? a->at[middle + 1] : s->to;
		if (end ? a->at[middle] >= b : next > b)
			hi = middle;
		else
			lo = middle + 1;
	}
	*to = lo;
	return 0;
}

// Removes the white space after the token that ends the turn, which the model need not write.
static size_t without_rest(struct yk_tokenizer *t, const struct yk_chat_tokens *x, size_t first,
			   size_t end)
{
	for (size_t k = end; k > first; k--) {
		size_t n;
		const char *s = yk_tokenizer_decode(t, x->id[k - 1], &n);
		if (yoke_tokenizer_is_special(yk_tokenizer_pretrained(t), x->id[k - 1]))
			return k;
		for (size_t i = 0; i < n; i++)
			if (!is_space(s[i]))
				return end;
	}
	return end;
}

static int mark(const struct alignment *a, const struct yk_answers *answers, size_t limit,
		struct yk_chat_tokens *x)
{
	size_t first = 0, end = 0;
	for (size_t i = 0; i < answers->n && first < limit; i++) {
		const struct yk_answer_span *s = &answers->at[i];
		const size_t before = end;
		int e = s->from < s->to ? token_at(a, s->from, false, &first) : 0;
		if (e == 0 && s->from < s->to)
			e = token_at(a, s->to, true, &end);
		if (e < 0)
			return e;
		if (s->from == s->to)
			continue;
		first = first < before ? before : first;
		const size_t stop = s->turn ? without_rest(a->t, x, first, end) : end;
		for (size_t k = first; k < stop; k++)
			x->target[k] = 1;
	}
	return 0;
}

int yk_chat_tokens_make(struct yk_tokenizer *t, const struct yk_chat_text *all,
			const struct yk_answers *answers, size_t limit, struct yk_chat_tokens *to)
{
	struct yk_chat_tokens x = { 0 };
	struct alignment a = { .t = t, .all = all, .x = &x };
	int e = yk_tokenizer_segments_of(t, all->text, all->bytes, YOKE_TOKENIZER_PARSE,
					 all->written.at, all->written.n, &a.segments, &x.id, &x.n);
	if (e == 0) {
		x.target = calloc(x.n + 1, 1);
		a.at = malloc((x.n + 1) * sizeof *a.at);
		a.aligned = malloc((a.segments.n + 1) * sizeof *a.aligned);
		e = x.target && a.at && a.aligned ? 0 : no_memory();
	}
	for (size_t i = 0; i < a.segments.n && e == 0; i++)
		a.aligned[i] = align(&a, i);
	if (e == 0)
		e = mark(&a, answers, limit, &x);
	free(a.at);
	free(a.aligned);
	free(a.segments.at);
	if (e < 0)
		yk_chat_tokens_fini(&x);
	else
		*to = x;
	return e;
}

void yk_chat_tokens_fini(struct yk_chat_tokens *x)
{
	free(x->id);
	free(x->target);
	*x = (struct yk_chat_tokens){ 0 };
}
