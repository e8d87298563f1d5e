// SPDX-License-Identifier: Apache-2.0
// The blocks of the decoder of the llama family and its relatives (decoder_config.h).
#ifndef YK_DECODER_H
#define YK_DECODER_H

#include <jansson.h>

#include "nn/decoder_config.h"
#include "yoke-nn.h"

// Does layer i see only the last `window` tokens?
bool yk_decoder_is_local(const struct yk_decoder *, int64_t i);
// Sets which of the layers do; there is no window if none does.
void yk_decoder_set_local(struct yk_decoder *, int64_t layers, const bool *local);

// Adds the switches to a manifest's description of the model as "decoder": {..}; parse reads them
// back; `what` is for messages. ENOMEM; EFORMAT.
int yk_decoder_describe(const struct yk_decoder *, json_t *to);
int yk_decoder_parse(const json_t *model, const char *what, struct yk_decoder *to);

// The frequencies [D/2] in radians per token.
void yk_rope_frequencies(const struct yk_rope *, int64_t head_dim, float *to);

// Tensors that all layers of one forward pass use, for one sequence or, without a cache, for all.
struct yk_decoder_positions {
	struct yk_decoder_view {
		yoke_tensor *cosine, *sine; // [T,D/2], or [B T,D/2] if rows differ; NULL: no RoPE
		yoke_tensor *mask;          // bool [1|B,1,T,S], NULL: causal mask
	} all, local;                       // for layers without and with the window
	yoke_tensor *at, *seen;             // of the cache, see struct yk_network_cache; NULL: none
	const struct yk_network_step *step; // of a paged cache; NULL: none
};
// Keys and values of one layer: for one sequence [1,S,G,D], or of a paged cache [pages 16,G,D].
struct yk_decoder_kv {
	yoke_tensor *keys, *values;
};

// A block's layers, with declared parameters.
yoke_module *yk_decoder_block(const struct yk_decoder *, int64_t width, int64_t heads);
// Records block i: x [B,T,width] -> [B,T,width]. Without a cache, p and kv describe all rows; with
// one, they have an element for each row. dropout applies to the output of both halves.
yoke_tensor *yk_decoder_block_forward(yoke_module *, const struct yk_decoder *, int64_t i,
				      const struct yk_decoder_positions *p,
				      const struct yk_decoder_kv *kv, yoke_tensor *x,
				      double dropout);
// A norm of this decoder over the last axis, with declared parameters.
yoke_module *yk_decoder_norm(const struct yk_decoder *, int64_t width);

#endif
