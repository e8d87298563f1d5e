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

// Is given the next token of text `text`: 0 goes on, more than 0 ends that text, less ends all
// with that error.
typedef int yk_emit_fn(void *arg, int text, int32_t id);
// Goes on from each of n prompts, 1 .. YK_SEQUENCES (at least one token each), by `tokens`
// tokens, each given to `emit` as soon as it is drawn.  A prompt (its last `context` tokens) is
// computed alone and once, then a token a step of all texts that are not over, together, from
// caches: by one plan for each number of texts.  The model sees all of a text until the window is
// full, which then goes on with its last half.  A text's tokens are those that it would have
// alone: bit for bit if the network goes by row, else but for the rounding of its logits.
int yk_generate(const struct yk_network *, const struct yk_sampling *, int n, const struct yk_tokens *prompt,
		int64_t tokens, yk_emit_fn *emit, void *arg);

#endif
