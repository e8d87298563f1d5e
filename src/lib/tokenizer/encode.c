// SPDX-License-Identifier: Apache-2.0
// Encoding: cuts out added tokens, normalizes what is between them, splits it and applies the
// model.  Words are cached, since most text consists of few of them.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizer/encode_cache.h"
#include "tokenizer/segments.h"
#include "tokenizer/tokenizer.h"

static int word(const yoke_tokenizer *t, struct yk_encode_cache *w, const char *s, size_t n,
		struct yk_ids *to)
{
	if (n > YK_CACHED_BYTES || !n)
		return yk_model_encode(&t->model, &t->vocab, s, n, &w->scratch, to);
	const uint64_t hash = yk_hash(s, n, 0);
	struct yk_encode_entry *x = &w->entry[hash & (YK_ENCODE_ENTRIES - 1)];
	if (x->hash == hash && x->bytes == n && !memcmp(w->bytes + x->at, s, n)) {
		if (yk_grow(&to->id, &to->cap, to->n + x->ids, sizeof *to->id) < 0)
			return yk_fail(YOKE_ENOMEM, "no memory to tokenize %zu bytes", n);
		memcpy(to->id + to->n, w->ids + x->first, x->ids * sizeof *to->id);
		to->n += x->ids;
		return 0;
	}
	const size_t before = to->n;
	const int e = yk_model_encode(&t->model, &t->vocab, s, n, &w->scratch, to);
	if (e < 0 || to->failed)
		return e;
	const size_t ids = to->n - before; // at most 4 a character
	if (w->used + n > YK_ENCODE_POOL_BYTES || w->used_ids + ids > YK_ENCODE_POOL_IDS) {
		memset(w->entry, 0, YK_ENCODE_ENTRIES * sizeof *w->entry);
		w->used = w->used_ids = 0;
	}
	*x = (struct yk_encode_entry){ hash, w->used, w->used_ids, (uint16_t)n, (uint16_t)ids };
	memcpy(w->bytes + w->used, s, n);
	if (ids)
		memcpy(w->ids + w->used_ids, to->id + before, ids * sizeof *w->ids);
	w->used += (uint32_t)n;
	w->used_ids += (uint32_t)ids;
	return 0;
}

// ---- a text ----

struct encoding {
	const yoke_tokenizer *t;
	struct yk_encode_cache *w;
	struct yk_ids *to;
	const char *text;
	struct yk_special_rule rule;
	struct yk_segments *segments; // NULL: not wanted
	bool first; // the segment begins the text
};

static int add_segment(struct encoding *x, const char *s, size_t n, bool token)
{
	struct yk_segments *to = x->segments;
	const size_t from = (size_t)(s - x->text);
	if (!to)
		return 0;
	if (yk_grow(&to->at, &to->cap, to->n + 1, sizeof *to->at) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory for the segments of a text");
	to->at[to->n++] = (struct yk_text_segment){ from, from + n, x->to->n, token };
	return 0;
}

// The intervals of the rule within n bytes at `at` of the text, as intervals of their normal form:
// the length of the normal form of what is before a boundary is taken for its position.  *to is
// freed with free().
static int rule_of(const struct encoding *x, size_t at, size_t n, struct yk_special_rule *rule,
		   struct yoke_text_span **to)
{
	const struct yk_special_rule *all = &x->rule;
	struct yk_string part = { 0 }, swap = { 0 };
	size_t first = 0, last = all->n, before = 0;
	int e = 0;

	while (first < last) { // the first interval that ends after `at`
		const size_t middle = first + (last - first) / 2;
		if (all->plain[middle].to > at)
			last = middle;
		else
			first = middle + 1;
	}
	for (last = first; last < all->n && all->plain[last].from < at + n; last++)
		;
	*to = NULL;
	*rule = (struct yk_special_rule){ .parse = all->parse };
	if (first == last || !yk_added_special(&x->t->added, &x->t->added.normalized,
					       x->w->normal.s, x->w->normal.n))
		return 0;
	struct yoke_text_span *s = calloc(last - first, sizeof *s);
	if (!s)
		return yk_fail(YOKE_ENOMEM, "no memory for %zu intervals", last - first);
	for (size_t i = 0; e == 0 && i < 2 * (last - first); i++) {
		const struct yoke_text_span *p = &all->plain[first + i / 2];
		const size_t raw = i % 2 ? p->to : p->from, bytes = raw < at ? 0 : raw - at;
		e = yk_normalize(&x->t->normalizer, x->text + at, bytes < n ? bytes : n, &part,
				 &swap);
		before = part.n > before ? part.n : before;
		*(i % 2 ? &s[i / 2].to : &s[i / 2].from) = before;
	}
	yk_string_fini(&part);
	yk_string_fini(&swap);
	*to = s;
	rule->plain = s;
	rule->n = last - first;
	return e;
}

static int words(void *arg, const char *s, size_t n, int32_t id)
{
	struct encoding *x = arg;
	struct yk_pieces *p = &x->w->pieces;

	if (id >= 0) {
		yk_ids_add(x->to, id);
		return 0;
	}
	yk_pieces_clear(p);
	yk_pieces_add(p, s, n, x->first && s == x->w->normal.s);
	int e = yk_split(&x->t->splitter, p, &x->w->pieces_swap);
	for (size_t i = 0; e == 0 && i < p->count; i++)
		e = word(x->t, x->w, p->text.s + p->piece[i].at, p->piece[i].n, x->to);
	return e;
}

static int segment(void *arg, const char *s, size_t n, int32_t id)
{
	struct encoding *x = arg;
	struct yk_string *normal = &x->w->normal;
	const int added = add_segment(x, s, n, id >= 0);

	if (added < 0)
		return added;
	if (id >= 0) {
		yk_ids_add(x->to, id);
		return 0;
	}
	x->first = s == x->text;
	if (x->t->spm.on) {
		normal->n = 0;
		yk_spm_normalize(x->t, s, n, normal);
		if (normal->failed)
			return yk_fail(YOKE_ENOMEM, "no memory to normalize %zu bytes", n);
	} else {
		const int wrong = yk_normalize(&x->t->normalizer, s, n, normal, &x->w->swap);
		if (wrong < 0)
			return wrong;
	}
	struct yk_special_rule rule;
	struct yoke_text_span *plain;
	int e = rule_of(x, (size_t)(s - x->text), n, &rule, &plain);
	if (e == 0)
		e = yk_added_split(&x->t->added, &x->t->added.normalized, normal->s, normal->n,
				   &rule, words, x);
	free(plain);
	return e;
}

static int encode(const yoke_tokenizer *t, const char *text, size_t bytes, unsigned flags,
		  const struct yoke_text_span *plain, size_t n, struct yk_segments *segments,
		  struct yk_ids *ids)
{
	const bool add = flags & YOKE_TOKENIZER_ADD;
	yoke_tokenizer *shared = (yoke_tokenizer *)t; // only its lock and scratch memory change
	const bool locked = pthread_mutex_trylock(&shared->lock) == 0;
	struct yk_encode_cache *w = locked ? shared->work : NULL;
	int e = 0;

	if (!w)
		w = yk_encode_cache_new();
	if (!w)
		e = yk_fail(YOKE_ENOMEM, "no memory to tokenize %zu bytes", bytes);
	for (size_t i = 0; e == 0 && add && i < t->before.n; i++)
		yk_ids_add(ids, t->before.id[i]);
	if (e == 0) {
		struct encoding x = { .t = t,
				      .w = w,
				      .to = ids,
				      .text = text,
				      .segments = segments,
				      .rule = { flags & YOKE_TOKENIZER_PARSE, plain, n } };
		e = yk_added_split(&t->added, &t->added.raw, text, bytes, &x.rule, segment, &x);
	}
	for (size_t i = 0; e == 0 && add && i < t->after.n; i++)
		yk_ids_add(ids, t->after.id[i]);
	if (e == 0 && !yk_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id) && !ids->failed) {
		if (locked)
			shared->work = w;
	} else {
		if (locked)
			shared->work = NULL; // its buffers may be marked as failed
		if (e == 0)
			e = yk_fail(YOKE_ENOMEM, "no memory for the ids of %zu bytes", bytes);
		yk_encode_cache_free(w);
		w = NULL;
	}
	if (locked)
		pthread_mutex_unlock(&shared->lock);
	else
		yk_encode_cache_free(w);
	return e;
}

int yoke_tokenizer_encode(const yoke_tokenizer *t, const char *text, size_t bytes, unsigned flags,
			  int32_t **to, size_t *count)
{
	return yoke_tokenizer_encode_spans(t, text, bytes, flags, NULL, 0, to, count);
}

int yoke_tokenizer_encode_spans(const yoke_tokenizer *t, const char *text, size_t bytes,
				unsigned flags, const struct yoke_text_span *plain, size_t n,
				int32_t **to, size_t *count)
{
	return yk_tokenizer_encode_segments(t, text, bytes, flags, plain, n, NULL, to, count);
}

int yk_tokenizer_encode_segments(const yoke_tokenizer *t, const char *text, size_t bytes,
				 unsigned flags, const struct yoke_text_span *plain, size_t n,
				 struct yk_segments *segments, int32_t **to, size_t *count)
{
	struct yk_ids ids = { 0 };
	int e;

	if ((e = yk_require(t, "tokenizer")) || (e = yk_require(to, "pointer to the ids")) ||
	    (e = yk_require(count, "pointer to the count")) ||
	    (bytes && (e = yk_require(text, "text"))) ||
	    (n && (e = yk_require(plain, "intervals"))))
		return e;
	for (size_t i = 0; i < n; i++)
		if (plain[i].from > plain[i].to || plain[i].to > bytes ||
		    (i && plain[i].from < plain[i - 1].to))
			return yk_fail(
				YOKE_EINVAL,
				"tokenizer_encode: interval %zu, bytes %zu .. %zu, is out of order or "
				"beyond the %zu bytes of the text",
				i, plain[i].from, plain[i].to, bytes);
	if (flags & ~(unsigned)(YOKE_TOKENIZER_ADD | YOKE_TOKENIZER_PARSE))
		return yk_fail(YOKE_EINVAL, "tokenizer_encode: unknown flags %#x", flags);
	const size_t good = yk_utf8_check(text ? text : "", bytes);
	if (good < bytes)
		return yk_fail(YOKE_EFORMAT, "tokenizer_encode: the text is not UTF-8 at byte %zu",
			       good);
	e = encode(t, text ? text : "", bytes, flags, plain, n, segments, &ids);
	if (e < 0) {
		free(ids.id);
		return e;
	}
	*to = ids.id;
	*count = ids.n;
	return 0;
}

// ---- decoding ----

static int decode(const yoke_tokenizer *t, const int32_t *ids, size_t count, unsigned flags,
		  struct yk_string *to)
{
	struct yk_pieces p = { 0 }, swap = { 0 };
	const bool skip = flags & YOKE_TOKENIZER_SKIP;

	for (size_t i = 0; i < count; i++) {
		size_t n;
		const char *s = yoke_tokenizer_piece(t, ids[i], &n);
		if (!s || (skip && t->vocab.token[ids[i]].special))
			continue;
		if (t->joined && p.count)
			yk_string_add(&p.text, " ", 1);
		yk_pieces_add(&p, s, n, false);
	}
	int e = p.text.failed ? yk_fail(YOKE_ENOMEM, "no memory to decode %zu ids", count) :
				yk_decode(&t->decoder, &p, &swap, flags & YOKE_TOKENIZER_BYTES);
	if (e == 0)
		yk_string_add(to, p.text.s, p.text.n);
	yk_pieces_fini(&p);
	yk_pieces_fini(&swap);
	return e;
}

int yoke_tokenizer_decode(const yoke_tokenizer *t, const int32_t *ids, size_t count, unsigned flags,
			  char **text, size_t *bytes)
{
	struct yk_string s = { 0 };
	int e;

	if ((e = yk_require(t, "tokenizer")) || (e = yk_require(text, "pointer to the text")) ||
	    (e = yk_require(bytes, "pointer to the length")) ||
	    (count && (e = yk_require(ids, "ids"))))
		return e;
	if (flags & ~(unsigned)(YOKE_TOKENIZER_SKIP | YOKE_TOKENIZER_BYTES))
		return yk_fail(YOKE_EINVAL, "tokenizer_decode: unknown flags %#x", flags);
	if (t->spm.on) {
		yk_spm_decode(t, ids, count, flags & YOKE_TOKENIZER_SKIP,
			      flags & YOKE_TOKENIZER_BYTES, &s);
	} else {
		e = decode(t, ids, count, flags, &s);
	}
	yk_string_add(&s, "", 1);
	if (e == 0 && s.failed)
		e = yk_fail(YOKE_ENOMEM, "no memory to decode %zu ids", count);
	if (e < 0) {
		yk_string_fini(&s);
		return e;
	}
	*text = s.s;
	*bytes = s.n - 1;
	return 0;
}
