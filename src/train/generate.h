// SPDX-License-Identifier: Apache-2.0
// Generation: draws one token after another from what a model predicts.
#ifndef YK_GENERATE_H
#define YK_GENERATE_H

#include "nn/model.h"
#include "text/tokenizer.h"

struct yk_sampling {
	double temperature; // 0: always the likeliest, the first of equals
	double top_p;       // draw from the fewest tokens of this probability together
	uint64_t seed;
};

// Token k of a text, from the logits of its place: a function of its arguments alone.
// EFORMAT when no logit is finite, ENOMEM.
int yk_sample(const float *logits, int32_t n, const struct yk_sampling *, uint64_t k,
	      int32_t *to);

// Goes on from the prompt (at least one token) by `tokens` tokens, each given to `emit`
// as soon as it is drawn; emit ends the text by returning other than 0, which is then
// returned.  The prompt (its last `context` tokens) is computed once, then one token a step
// from a cache, by one plan.  The model sees all of the text until the window is full, which then
// goes on with its last half.
int yk_generate(const struct yk_network *, const struct yk_sampling *, const struct yk_tokens *prompt,
		int64_t tokens, int (*emit)(void *arg, int32_t id), void *arg);

#endif
