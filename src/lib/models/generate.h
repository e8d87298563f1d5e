// SPDX-License-Identifier: Apache-2.0
// Text generation: samples one token after another from a model's predictions.
#ifndef YK_GENERATE_H
#define YK_GENERATE_H

#include "models/sampling.h"
#include "nn/model.h"
#include "text/tokens.h"

// Receives the next token of text `text`. Returns 0 to continue, > 0 to end that text, < 0 to end
// all texts with that error.
typedef int yk_emit_fn(void *arg, int text, int32_t id);
// Continues each of n prompts, 1 .. YK_SEQUENCES (at least one token each), by `tokens` tokens;
// each token is passed to `emit` as soon as it is sampled. Each prompt (its last `context` tokens)
// is computed once by itself. Then all unfinished texts advance together, one token per step, using
// caches; there is one plan per number of texts. The model sees the complete text until its window
// is full; then the window restarts with its last half. A text's tokens are those it would have by
// itself: bit for bit if the network computes by row, otherwise up to rounding of the logits.
int yk_generate(const struct yk_network *, const struct yk_sampling *, int n, const struct yk_tokens *prompt,
		int64_t tokens, yk_emit_fn *emit, void *arg);

#endif
