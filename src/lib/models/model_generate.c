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
	yoke_model *model;
	int n;
	const int32_t *end; // ids that end a text; the tokenizer owns them
	int ends;
};

static int check_options(const char *call, const struct yoke_generation_options *o)
{
	const double real[] = { o->temperature, o->top_p, o->min_p, o->repetition };
	bool good =
		o->tokens >= 0 && o->top_k >= 0 && isfinite(o->frequency) && isfinite(o->presence);
	for (int i = 0; i < 4; i++)
		good = good && isfinite(real[i]) && real[i] >= 0;
	return good ? 0 :
		      yk_fail(YOKE_EINVAL,
			      "%s: tokens %" PRId64 ", temperature %g, top_k %" PRId64
			      ", top_p %g, min_p %g, "
			      "repetition %g: must be finite and not negative",
			      call, o->tokens, o->temperature, o->top_k, o->top_p, o->min_p,
			      o->repetition);
}

static int copy_prompt(const char *call, int32_t vocab, int i, const int32_t *ids, int64_t count,
		       struct yk_tokens *to)
{
	const int e = count < 1 || !ids ? yk_fail(YOKE_EINVAL, "%s: prompt %d is empty", call, i) :
					  yk_tokens_reserve(to, vocab, (size_t)count);
	for (int64_t k = 0; k < count && e == 0; k++) {
		if (ids[k] < 0 || ids[k] >= vocab)
			return yk_fail(YOKE_ERANGE,
				       "%s: prompt %d: id %d at %" PRId64 " is not in 0 .. %d",
				       call, i, (int)ids[k], k, (int)vocab - 1);
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

// Begins, for the first time or again.
static int begin(const char *call, struct yoke_generation *g, const int32_t *const *prompt,
		 const int64_t *count, const struct yoke_generation_options *o)
{
	yoke_model *m = g->model;
	const struct yk_network *net = m->is.net;
	const int n = g->n;
	const struct yk_sampling s = {
		.temperature = o->temperature,
		.top_p = o->top_p == 0 ? 1 : o->top_p,
		.seed = o->seed,
		.top_k = o->top_k,
		.min_p = o->min_p,
		.repetition = o->repetition,
		.frequency = o->frequency,
		.presence = o->presence,
	};
	struct yk_tokens tokens[YK_SEQUENCES] = { 0 };
	if (n < 1 || n > YK_SEQUENCES)
		return yk_fail(YOKE_EINVAL, "%s: %d prompts; must be 1 .. %d", call, n,
			       YK_SEQUENCES);
	int e = m->is.family->encoder ?
			yk_fail(YOKE_EUNSUPPORTED, "%s: %s is an encoder, which predicts no tokens",
				call, m->path) :
			check_options(call, o);
	for (int i = 0; i < n && e == 0; i++)
		e = copy_prompt(call, (int32_t)net->shape.vocab, i, prompt[i], count[i],
				&tokens[i]);
	if (e == 0) {
		g->ends = 0;
		e = o->past_end ? 0 : find_ends(m, g);
	}
	if (e == 0)
		e = g->is ? yk_generation_again(g->is, &s, tokens, o->tokens, o->tokens) :
			    yk_generation_new(net, &s, n, tokens, o->tokens, &g->is);
	for (int i = 0; i < n; i++)
		yk_tokens_fini(&tokens[i]);
	return e;
}

yoke_generation *yoke_generation_new(yoke_model *m, int n, const int32_t *const *prompt,
				     const int64_t *count,
				     const struct yoke_generation_options *options)
{
	struct yoke_generation_options o = { 0 };
	struct yoke_generation *g = NULL;
	if (!m || !prompt || !count || !options) {
		yk_fail(YOKE_EINVAL, "generation_new: an argument is NULL");
		return NULL;
	}
	if (yk_sized_read(&o, sizeof o, options, "generation_new", "yoke_generation_options") < 0)
		return NULL;
	g = calloc(1, sizeof *g);
	if (!g)
		yk_fail(YOKE_ENOMEM, "generation_new: no memory");
	else {
		g->model = m;
		g->n = n;
		if (begin("generation_new", g, prompt, count, &o) == 0)
			return g;
	}
	free(g);
	return NULL;
}

int yoke_generation_again(yoke_generation *g, const int32_t *const *prompt, const int64_t *count,
			  const struct yoke_generation_options *options)
{
	struct yoke_generation_options o = { 0 };
	if (!g || !prompt || !count || !options)
		return yk_fail(YOKE_EINVAL, "generation_again: an argument is NULL");
	const int e =
		yk_sized_read(&o, sizeof o, options, "generation_again", "yoke_generation_options");
	return e < 0 ? e : begin("generation_again", g, prompt, count, &o);
}

int64_t yoke_generation_computed(const yoke_generation *g)
{
	return g ? yk_generation_computed(g->is) :
		   yk_fail(YOKE_EINVAL, "generation_computed: the generation is NULL");
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
