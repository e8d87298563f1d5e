// SPDX-License-Identifier: Apache-2.0
// Samples text from a model, one token at a time.
#include "config.h"

#include "models/generate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { CACHE_STEP = 256 };

// The last tokens of a text, of which the first ones are in the cache.
struct text {
	struct yk_network_cache *cache;
	int32_t *ids; // has space for context + 1
	int64_t n;
	int64_t drawn;
	bool over;
};

struct yk_generation {
	const struct yk_network *net;
	struct yk_sampling sampling;
	int n;
	struct text text[YK_SEQUENCES];
	float *logits; // [n,V]
	int64_t tokens;
	int64_t computed; // tokens, by the network
};

// The space that a cache needs for n tokens and `tokens` more: a multiple of CACHE_STEP, so that
// prompts of similar lengths share a plan.
static int64_t capacity_of(int64_t n, int64_t tokens, int64_t context)
{
	if (tokens >= context - n)
		return context;
	const int64_t capacity = (n + tokens + CACHE_STEP - 1) / CACHE_STEP * CACHE_STEP;
	return capacity < context ? capacity : context;
}

// At least twice as much, so that the time for copying stays small.
static int grow_cache(struct text *t, const struct yk_network *net, int64_t capacity)
{
	const int64_t context = net->shape.context, had = t->cache->capacity,
		      twice = had < context / 2 ? 2 * had : context;
	return capacity <= had ?
		       0 :
		       yk_network_cache_grow(net, &t->cache, capacity > twice ? capacity : twice);
}

// Gives a text its prompt.  Of a text that had one, the cache keeps the tokens that both begin
// with.
static int text_begin(struct text *t, const struct yk_network *net, const struct yk_tokens *prompt,
		      int64_t reserve)
{
	const int64_t context = net->shape.context;
	if (prompt->count == 0)
		return yk_fail(YOKE_EINVAL, "prompt: is empty; give at least one character");
	const int64_t n = prompt->count < (size_t)context ? (int64_t)prompt->count : context;
	const int64_t capacity = capacity_of(n, reserve, context);
	int32_t *ids = malloc(((size_t)context + 1) * sizeof *ids);
	if (!ids)
		return yk_fail(YOKE_ENOMEM, "generate: no memory");
	yk_tokens_copy(prompt, prompt->count - (size_t)n, (size_t)n, ids);
	if (t->cache) {
		int64_t same = 0; // the last token is always computed, for its logits
		while (same < t->cache->length && same < n - 1 && ids[same] == t->ids[same])
			same++;
		t->cache->length = same < t->cache->length && net->model->recurrent ? 0 : same;
	}
	free(t->ids);
	*t = (struct text){ .cache = t->cache, .ids = ids, .n = n };
	return t->cache ? grow_cache(t, net, capacity) :
			  yk_network_cache_new(net, capacity, &t->cache);
}

// Shifts a full window.
static void make_room(struct text *t, int64_t context)
{
	if (t->n <= context)
		return;
	// positions are learned and count from the start of the window, so all keys change when it
	// moves
	const int64_t keep = context > 1 ? context / 2 : 1;
	memmove(t->ids, t->ids + t->n - keep, (size_t)keep * sizeof *t->ids);
	t->n = keep;
	t->cache->length = 0;
}

// Number of tokens that are not in the cache yet.
static int64_t new_of(const struct text *t)
{
	return t->n - t->cache->length;
}

// Computes the next-token logits of m texts with equally many new tokens, which are added to their
// caches.
static int predict(struct yk_generation *g, int m, struct text *const *t)
{
	struct yk_network_cache *cache[YK_SEQUENCES];
	int32_t last[YK_SEQUENCES];
	const int64_t news = new_of(t[0]), dims[] = { m, news };
	for (int i = 0; i < m; i++) {
		const int e = grow_cache(t[i], g->net, t[i]->cache->length + news);
		if (e < 0)
			return e;
		cache[i] = t[i]->cache;
		last[i] = t[i]->ids[t[i]->n - 1];
	}
	yoke_scope *s = yoke_scope_begin("generate");
	// several new tokens occur for a single text only
	yoke_tensor *ids =
		yoke_from(yoke_i32, 2, dims, news == 1 ? last : t[0]->ids + cache[0]->length);
	yoke_tensor *h = yk_network_extend(g->net, cache, ids);
	h = yoke_slice(h, 1, news - 1, news, 1);
	yoke_read(g->net->model->logits(g->net, h), g->logits,
		  (size_t)m * (size_t)g->net->shape.vocab * sizeof *g->logits);
	g->computed += m * news;
	const int e = yoke_scope_end(s);
	for (int i = 0; i < m && e < 0; i++)
		cache[i]->length = 0; // extended while recording, but perhaps never computed
	return e;
}

// Samples the next token of each of m texts into ids[], by index of the text.
static int draw(struct yk_generation *g, int m, struct text *const *t, int32_t *ids)
{
	int e = predict(g, m, t);
	for (int i = 0; i < m && e == 0; i++) {
		const int64_t vocab = g->net->shape.vocab;
		struct yk_sampling s = g->sampling;
		int32_t id;
		if (s.seeds)
			s.seed = s.seeds[t[i] - g->text];
		e = yk_sample(g->logits + i * vocab, (int32_t)vocab, &s, t[i]->ids, t[i]->n,
			      (uint64_t)t[i]->drawn, &id);
		if (e < 0)
			break;
		t[i]->ids[t[i]->n++] = ids[t[i] - g->text] = id;
		t[i]->over = ++t[i]->drawn == g->tokens;
	}
	return e;
}

int yk_generation_next(struct yk_generation *g, int32_t *ids)
{
	struct text *together[YK_SEQUENCES];
	int m = 0, left = 0, e = 0;
	for (int i = 0; i < g->n; i++)
		ids[i] = -1;
	// texts that have just begun are computed separately, the others together
	for (int i = 0; i < g->n && e == 0; i++) {
		struct text *t = &g->text[i];
		if (t->over)
			continue;
		left++;
		make_room(t, g->net->shape.context);
		if (t->cache->length > 0 && new_of(t) == 1)
			together[m++] = t;
		else
			e = draw(g, 1, &t, ids);
	}
	if (m > 0 && e == 0)
		e = draw(g, m, together, ids);
	return e < 0 ? e : left;
}

void yk_generation_end(struct yk_generation *g, int text)
{
	g->text[text].over = true;
}

int yk_generation_new(const struct yk_network *net, const struct yk_sampling *s, int n,
		      const struct yk_tokens *prompt, int64_t tokens, struct yk_generation **to)
{
	int e = 0;
	if (n < 1 || n > YK_SEQUENCES)
		return yk_fail(YOKE_EINVAL, "generate: %d prompts; 1 .. %d go at once", n,
			       YK_SEQUENCES);
	struct yk_generation *g = calloc(1, sizeof *g);
	if (!g)
		return yk_fail(YOKE_ENOMEM, "generate: no memory");
	*g = (struct yk_generation){ .net = net, .sampling = *s, .n = n, .tokens = tokens };
	g->logits = malloc((size_t)n * (size_t)net->shape.vocab * sizeof *g->logits);
	if (!g->logits)
		e = yk_fail(YOKE_ENOMEM, "generate: no memory");
	for (int i = 0; i < n && e == 0; i++)
		e = text_begin(&g->text[i], net, &prompt[i], tokens);
	for (int i = 0; i < n; i++)
		g->text[i].over = tokens <= 0;
	if (e < 0)
		yk_generation_free(g);
	else
		*to = g;
	return e;
}

int yk_generation_again(struct yk_generation *g, const struct yk_sampling *s,
			const struct yk_tokens *prompt, int64_t tokens, int64_t reserve)
{
	int e = 0;
	g->sampling = *s;
	g->tokens = tokens;
	for (int i = 0; i < g->n && e == 0; i++)
		e = text_begin(&g->text[i], g->net, &prompt[i],
			       reserve < tokens ? reserve : tokens);
	for (int i = 0; i < g->n; i++)
		g->text[i].over = e < 0 || tokens <= 0;
	return e;
}

int64_t yk_generation_computed(const struct yk_generation *g)
{
	return g->computed;
}

void yk_generation_free(struct yk_generation *g)
{
	for (int i = 0; g && i < g->n; i++) {
		yk_network_cache_free(g->text[i].cache);
		free(g->text[i].ids);
	}
	if (g)
		free(g->logits);
	free(g);
}

int yk_generate(const struct yk_network *net, const struct yk_sampling *s, int n,
		const struct yk_tokens *prompt, int64_t tokens, yk_emit_fn *emit, void *arg)
{
	struct yk_generation *g = NULL;
	int32_t ids[YK_SEQUENCES];
	int e = yk_generation_new(net, s, n, prompt, tokens, &g);
	while (e >= 0 && (e = yk_generation_next(g, ids)) > 0) {
		for (int i = 0; i < n && e >= 0; i++) {
			e = ids[i] < 0 ? 0 : emit(arg, i, ids[i]);
			if (e > 0)
				yk_generation_end(g, i);
		}
	}
	yk_generation_free(g);
	return e;
}
