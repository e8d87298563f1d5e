// SPDX-License-Identifier: Apache-2.0
// Generation.
#include "config.h"

#include "train/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

struct choice {
	double p;
	int32_t id;
};

static int by_probability(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	if (x->p != y->p)
		return x->p < y->p ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

int yk_sample(const float *logits, int32_t n, const struct yk_sampling *s, uint64_t k,
	      int32_t *to)
{
	int32_t best = -1;
	for (int32_t i = 0; i < n; i++)
		if (isfinite(logits[i]) && (best < 0 || logits[i] > logits[best]))
			best = i;
	if (best < 0)
		return yk_fail(YOKE_EFORMAT, "model: none of its %d logits is finite; it was "
			       "damaged in training", (int)n);
	if (s->temperature <= 0 || s->top_p <= 0) {
		*to = best;
		return 0;
	}
	struct choice *c = malloc((size_t)n * sizeof *c);
	if (!c)
		return yk_fail(YOKE_ENOMEM, "sampling: no memory for %d tokens", (int)n);
	double total = 0;
	for (int32_t i = 0; i < n; i++) {
		double x = isfinite(logits[i]) ? (double)logits[i] - logits[best] : -INFINITY;
		c[i] = (struct choice){ .p = exp(x / s->temperature), .id = i };
		total += c[i].p;
	}
	qsort(c, (size_t)n, sizeof *c, by_probability);
	// Holtzman et al. 2020: the nucleus, renormalised
	double kept = 0;
	int32_t m = 0;
	while (m < n && (m == 0 || kept < s->top_p * total))
		kept += c[m++].p;
	double u = (double)(yk_hash(&k, sizeof k, s->seed) >> 11) * 0x1p-53 * kept;
	int32_t pick = 0;
	while (pick < m - 1 && u >= c[pick].p)
		u -= c[pick++].p;
	*to = c[pick].id;
	free(c);
	return 0;
}

// The last tokens of the text, of which the first ones are in the cache.
struct window {
	const struct yk_network *net;
	struct yk_network_cache *cache;
	int32_t *ids; // room for one more than the context
	int64_t n;
};

static int window_init(struct window *w, const struct yk_network *net,
		       const struct yk_tokens *prompt)
{
	const int64_t context = net->shape.context;
	*w = (struct window){ .net = net, .n = context };
	if (prompt->count < (size_t)context)
		w->n = (int64_t)prompt->count;
	w->ids = malloc(((size_t)context + 1) * sizeof *w->ids);
	if (!w->ids)
		return yk_fail(YOKE_ENOMEM, "generate: no memory");
	yk_tokens_copy(prompt, prompt->count - (size_t)w->n, (size_t)w->n, w->ids);
	return yk_network_cache_new(net, 1, &w->cache);
}

static void window_fini(struct window *w)
{
	yk_network_cache_free(w->cache);
	free(w->ids);
}

// Logits [V] of the token behind the window; what is not in the cache yet joins it.
static int predict(struct window *w, float *logits)
{
	const int64_t context = w->net->shape.context;
	if (w->n > context) {
		// positions are learned and begin with the window: all keys change when it moves
		const int64_t keep = context > 1 ? context / 2 : 1;
		memmove(w->ids, w->ids + w->n - keep, (size_t)keep * sizeof *w->ids);
		w->n = keep;
		w->cache->length = 0;
	}
	const int64_t done = w->cache->length, dims[] = { 1, w->n - done };
	yoke_scope *s = yoke_scope_begin("generate");
	yoke_tensor *ids = yoke_from(yoke_i32, 2, dims, w->ids + done);
	yoke_tensor *h = yk_network_extend(w->net, w->cache, ids);
	h = yoke_slice(h, 1, dims[1] - 1, dims[1], 1);
	yoke_read(w->net->model->logits(w->net, h), logits,
		  (size_t)w->net->shape.vocab * sizeof *logits);
	return yoke_scope_end(s);
}

int yk_generate(const struct yk_network *net, const struct yk_sampling *s,
		const struct yk_tokens *prompt, int64_t tokens,
		int (*emit)(void *arg, int32_t id), void *arg)
{
	if (prompt->count == 0)
		return yk_fail(YOKE_EINVAL, "prompt: is empty; give at least one character");
	struct window w;
	int e = window_init(&w, net, prompt);
	float *logits = malloc((size_t)net->shape.vocab * sizeof *logits);
	if (!logits)
		e = yk_fail(YOKE_ENOMEM, "generate: no memory");
	for (int64_t k = 0; k < tokens && e == 0; k++) {
		int32_t id;
		e = predict(&w, logits);
		if (e == 0)
			e = yk_sample(logits, (int32_t)net->shape.vocab, s, (uint64_t)k, &id);
		if (e < 0)
			break;
		w.ids[w.n++] = id;
		e = emit(arg, id);
	}
	free(logits);
	window_fini(&w);
	return e;
}
