// SPDX-License-Identifier: Apache-2.0
// The public functions of generation: checks prompts and options, and ends texts at the tokens that
// the model's tokenizer names.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sized.h"
#include "models/generate.h"
#include "models/pretrained.h"

struct yoke_generation {
	struct yk_generation *is;
	int n;
	const int32_t *end; // ids that end a text; the tokenizer owns them
	int ends;
};

static int check_options(const struct yoke_generation_options *o)
{
	const double real[] = { o->temperature, o->top_p, o->min_p, o->repetition };
	bool good = o->tokens >= 0 && o->top_k >= 0 && isfinite(o->frequency) && isfinite(o->presence);
	for (int i = 0; i < 4; i++)
		good = good && isfinite(real[i]) && real[i] >= 0;
	return good ? 0 : yk_fail(YOKE_EINVAL, "generation_new: tokens %" PRId64 ", temperature %g, top_k %" PRId64 ", top_p %g, min_p %g, "
				  "repetition %g: must be finite and not negative", o->tokens, o->temperature, o->top_k, o->top_p,
				  o->min_p, o->repetition);
}

static int copy_prompt(int32_t vocab, int i, const int32_t *ids, int64_t count, struct yk_tokens *to)
{
	const int e = count < 1 || !ids ? yk_fail(YOKE_EINVAL, "generation_new: prompt %d is empty", i) :
					  yk_tokens_reserve(to, vocab, (size_t)count);
	for (int64_t k = 0; k < count && e == 0; k++) {
		if (ids[k] < 0 || ids[k] >= vocab)
			return yk_fail(YOKE_ERANGE, "generation_new: prompt %d: id %d at %" PRId64 " is not in 0 .. %d", i, (int)ids[k], k,
				       (int)vocab - 1);
		yk_tokens_add(to, ids[k]);
	}
	return e;
}

// A model without a tokenizer has no tokens that end a text.
static int find_ends(yoke_model *m, struct yoke_generation *g)
{
	const yoke_tokenizer *t = yoke_model_tokenizer(m);
	if (!t && yoke_error_code() != YOKE_ENOENT)
		return yoke_error_code();
	if (!t)
		yoke_error_clear();
	g->ends = t ? yoke_tokenizer_eos(t, &g->end) : 0;
	return 0;
}

static int begin(yoke_model *m, int n, const int32_t *const *prompt, const int64_t *count, const struct yoke_generation_options *o,
		 struct yoke_generation *g)
{
	const struct yk_network *net = m->is.net;
	const struct yk_sampling s = {
		.temperature = o->temperature, .top_p = o->top_p == 0 ? 1 : o->top_p, .seed = o->seed, .top_k = o->top_k,
		.min_p = o->min_p, .repetition = o->repetition, .frequency = o->frequency, .presence = o->presence,
	};
	struct yk_tokens tokens[YK_SEQUENCES] = { 0 };
	if (n < 1 || n > YK_SEQUENCES)
		return yk_fail(YOKE_EINVAL, "generation_new: %d prompts; must be 1 .. %d", n, YK_SEQUENCES);
	int e = m->is.family->encoder ? yk_fail(YOKE_EUNSUPPORTED, "generation_new: %s is an encoder, which predicts no tokens", m->path) :
					check_options(o);
	for (int i = 0; i < n && e == 0; i++)
		e = copy_prompt((int32_t)net->shape.vocab, i, prompt[i], count[i], &tokens[i]);
	if (e == 0 && !o->past_end)
		e = find_ends(m, g);
	if (e == 0)
		e = yk_generation_new(net, &s, n, tokens, o->tokens, &g->is);
	for (int i = 0; i < n; i++)
		yk_tokens_fini(&tokens[i]);
	return e;
}

yoke_generation *yoke_generation_new(yoke_model *m, int n, const int32_t *const *prompt, const int64_t *count,
				     const struct yoke_generation_options *options)
{
	struct yoke_generation_options o = { 0 };
	struct yoke_generation *g = NULL;
	if (!m || !prompt || !count || !options) {
		yk_fail(YOKE_EINVAL, "generation_new: an argument is NULL");
		return NULL;
	}
	if (yk_sized_take(&o, sizeof o, options, "generation_new", "yoke_generation_options") < 0)
		return NULL;
	g = calloc(1, sizeof *g);
	if (!g)
		yk_fail(YOKE_ENOMEM, "generation_new: no memory");
	else if (begin(m, n, prompt, count, &o, g) == 0) {
		g->n = n;
		return g;
	}
	free(g);
	return NULL;
}

int yoke_generation_next(yoke_generation *g, int32_t *ids)
{
	if (!g || !ids)
		return yk_fail(YOKE_EINVAL, "generation_next: an argument is NULL");
	int tokens = yk_generation_next(g->is, ids);
	for (int i = 0; i < g->n && tokens > 0; i++) {
		bool ends = false;
		for (int k = 0; k < g->ends; k++)
			ends = ends || ids[i] == g->end[k];
		if (!ends)
			continue;
		yk_generation_end(g->is, i);
		ids[i] = -1;
		tokens--;
	}
	return tokens;
}

int yoke_generation_end(yoke_generation *g, int text)
{
	if (!g || text < 0 || text >= g->n)
		return yk_fail(YOKE_EINVAL, "generation_end: there is no text %d", text);
	yk_generation_end(g->is, text);
	return 0;
}

void yoke_generation_free(yoke_generation *g)
{
	if (g)
		yk_generation_free(g->is);
	free(g);
}
