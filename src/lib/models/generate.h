// SPDX-License-Identifier: Apache-2.0
// Text generation: samples one token after another from a model's predictions.
#ifndef YK_GENERATE_H
#define YK_GENERATE_H

#include "models/sampling.h"
#include "nn/model.h"
#include "text/tokens.h"

// Texts that are being continued. Each prompt (its last `context` tokens) is computed once by
// itself. Then all unfinished texts advance together, one token per step, using caches; there is
// one plan per number of texts. The model sees the complete text until its window is full; then the
// window restarts with its last half. A text's tokens are those it would have by itself: bit for
// bit if the network computes by row, otherwise up to rounding of the logits.
struct yk_generation;
// Begins with n prompts, 1 .. YK_SEQUENCES (at least one token each), each to be continued by
// `tokens` tokens. The network and the sampling's seeds must remain until yk_generation_free.
int yk_generation_new(const struct yk_network *, const struct yk_sampling *, int n,
		      const struct yk_tokens *prompt, int64_t tokens, struct yk_generation **to);
// Begins again with other prompts for the same texts, to be continued by `tokens` tokens.  Tokens
// at the start of a prompt that are those of the text so far, prompt and continuation, are not
// computed again.  Caches have space for `reserve` tokens of the continuation at first and grow
// when needed. After an error the texts are finished.
int yk_generation_again(struct yk_generation *, const struct yk_sampling *,
			const struct yk_tokens *prompt, int64_t tokens, int64_t reserve);
// Number of tokens that the network has computed for all texts.
int64_t yk_generation_computed(const struct yk_generation *);
// Samples the next token of each unfinished text into ids[n], -1 for finished ones. Returns the
// number of texts that had been unfinished; 0: none, so that generation is over.
int yk_generation_next(struct yk_generation *, int32_t *ids);
// Finishes a text.
void yk_generation_end(struct yk_generation *, int text);
void yk_generation_free(struct yk_generation *); // NULL is allowed

// Receives the next token of text `text`. Returns 0 to continue, > 0 to end that text, < 0 to end
// all texts with that error.
typedef int yk_emit_fn(void *arg, int text, int32_t id);
// Generates all tokens of n texts; each token is passed to `emit` as soon as its step is computed.
int yk_generate(const struct yk_network *, const struct yk_sampling *, int n,
		const struct yk_tokens *prompt, int64_t tokens, yk_emit_fn *emit, void *arg);

#endif
