// SPDX-License-Identifier: Apache-2.0
// GPT: a decoder of pre-norm blocks with learned positions and a tied head (Radford et
// al. 2019).
//
//     h = wte[ids] + wpe                                        [B,T,E]
//     h = h + proj(attention(qkv(norm(h))));  h = h + down(gelu(up(norm(h))))    `layers` times
//     logits = norm(h) wte'                                     [B,T,V]
//
// Linear weights are [out,in].  Weight decay applies to tensors of rank 2.
#ifndef YK_GPT_H
#define YK_GPT_H

#include "nn/params.h"

struct yk_gpt_shape {
	int64_t vocab, context, layers, heads, embed;
};

struct yk_gpt {
	struct yk_gpt_shape shape;
	struct yk_parameters params;
	yoke_tensor *wte, *wpe; // [V,E], [C,E]
	struct yk_gpt_layer {
		yoke_tensor *norm1_w, *norm1_b, *qkv_w, *qkv_b, *proj_w, *proj_b;
		yoke_tensor *norm2_w, *norm2_b, *up_w, *up_b, *down_w, *down_b;
	} *layer;
	yoke_tensor *norm_w, *norm_b;
};

// All parameters zero.  EINVAL when heads do not divide embed or a size is not positive.
int yk_gpt_new(const struct yk_gpt_shape *, struct yk_gpt **);
// Elements of all its parameters, without making them.  EINVAL as above, and when they
// are too many to count.
int yk_gpt_elements(const struct yk_gpt_shape *, int64_t *);
void yk_gpt_free(struct yk_gpt *); // NULL is fine
// First values: normal of deviation 0.02, projections back into the residual stream
// 0.02/sqrt(2L), biases 0, norms 1.
int yk_gpt_init(struct yk_gpt *, uint64_t seed);
// ids [B,T] i32, T at most the context -> [B,T,E] behind the last norm.  `dropout` is
// the share dropped of the embedding, of attention weights and of what each half of a
// block adds.
yoke_tensor *yk_gpt_hidden(const struct yk_gpt *, yoke_tensor *ids, double dropout);
// Keys and values of the tokens seen so far, so that each token is computed once.
struct yk_gpt_cache {
	int64_t length, batch;   // tokens in it; set length to 0 to begin anew
	yoke_tensor *at, *seen;  // scalars: place of the first new token; tokens with the new ones
	yoke_tensor **key, **value; // by layer: [B,C,H,D]
};
int yk_gpt_cache_new(const struct yk_gpt *, int64_t batch, struct yk_gpt_cache **);
void yk_gpt_cache_free(const struct yk_gpt *, struct yk_gpt_cache *); // NULL is fine
// ids [B,T] of the tokens that follow those in the cache, which they join -> [B,T,E] behind the
// last norm.  One plan for each T, wherever they stand.  To be evaluated before the next call.
// ESHAPE when they do not fit the window.
yoke_tensor *yk_gpt_extend(const struct yk_gpt *, struct yk_gpt_cache *, yoke_tensor *ids);
// [..,E] -> [..,V]
yoke_tensor *yk_gpt_logits(const struct yk_gpt *, yoke_tensor *hidden);
// ids and targets [B,T] -> []: mean of -log p(target)
yoke_tensor *yk_gpt_loss(const struct yk_gpt *, yoke_tensor *ids, yoke_tensor *targets,
			 double dropout);

#endif
