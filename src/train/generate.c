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

// Logits [V] of the token behind the first n of the window [1, context]; what lies
// behind them does not matter to a causal model.
static int predict(const struct yk_gpt *gpt, yoke_tensor *ids, yoke_tensor *last,
		   const int32_t *window, int64_t n, float *logits)
{
	int32_t at = (int32_t)n - 1;
	yoke_scope *s = yoke_scope_begin("generate");
	yoke_put(ids, window, yoke_bytes(ids));
	yoke_put(last, &at, sizeof at);
	yoke_tensor *row = yoke_gather(yk_gpt_hidden(gpt, ids, 0), last, 1);
	yoke_read(yk_gpt_logits(gpt, row), logits, (size_t)gpt->shape.vocab * sizeof *logits);
	return yoke_scope_end(s);
}

int yk_generate(const struct yk_gpt *gpt, const struct yk_sampling *s,
		const struct yk_tokens *prompt, int64_t tokens,
		int (*emit)(void *arg, int32_t id), void *arg)
{
	const int64_t context = gpt->shape.context, dims[] = { 1, context }, one = 1;
	if (prompt->count == 0)
		return yk_fail(YOKE_EINVAL, "prompt: is empty; give at least one character");
	int64_t n = prompt->count < (size_t)context ? (int64_t)prompt->count : context;
	int e = 0;
	int32_t *window = calloc((size_t)context, sizeof *window);
	float *logits = malloc((size_t)gpt->shape.vocab * sizeof *logits);
	yoke_tensor *ids = yoke_keep(yoke_variable("ids", yoke_i32, 2, dims));
	yoke_tensor *last = yoke_keep(yoke_variable("last", yoke_i32, 1, &one));
	if (!window || !logits)
		e = yk_fail(YOKE_ENOMEM, "generate: no memory");
	else if (!ids || !last)
		e = yoke_error_code();
	else
		yk_tokens_copy(prompt, prompt->count - (size_t)n, (size_t)n, window);
	for (int64_t k = 0; k < tokens && e == 0; k++) {
		int32_t id;
		e = predict(gpt, ids, last, window, n, logits);
		if (e == 0)
			e = yk_sample(logits, (int32_t)gpt->shape.vocab, s, (uint64_t)k, &id);
		if (e < 0)
			break;
		if (n == context)
			memmove(window, window + 1, (size_t)(--n) * sizeof *window);
		window[n++] = id;
		e = emit(arg, id);
	}
	yoke_free(last);
	yoke_free(ids);
	free(logits);
	free(window);
	return e;
}
