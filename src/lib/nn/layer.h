// SPDX-License-Identifier: Apache-2.0
// Shared by the layers: their classes, constructors and small helpers.
#ifndef YK_LAYER_H
#define YK_LAYER_H

#include "nn/module.h"

extern const struct yoke_module_class yk_linear_class, yk_conv_class, yk_conv_transposed_class,
	yk_layer_norm_class, yk_rms_norm_class, yk_batch_norm_class, yk_sequential_class,
	yk_block_class, yk_lora_class;

// The layers of yoke-nn.h; declared: the network, not the layer, creates the parameters
// (yk_module_parameter).
yoke_module *yk_nn_linear(bool declared, int64_t in, int64_t out, bool bias);
yoke_module *yk_nn_embedding(bool declared, int64_t count, int64_t width);
yoke_module *yk_nn_layer_norm(bool declared, int64_t width, double eps);
yoke_module *yk_nn_rms_norm(bool declared, int64_t width, double eps);
yoke_module *yk_nn_mlp(bool declared, int64_t in, int64_t hidden, int64_t out,
		       const char *activation, double dropout);
yoke_module *yk_nn_block(bool declared, const struct yoke_nn_attention_options *);
// A linear layer without bias whose weight is declared as tied to the first parameter of another
// module.
yoke_module *yk_nn_linear_tied(const yoke_module *);
// Sets a block's dropout rate.
void yk_block_dropout(yoke_module *block, double share);

// A module with a copy of that state; its class frees the copy.
yoke_module *yk_layer_new(const struct yoke_module_class *, const void *state, size_t bytes);
// Returns the module; if not good, frees it and returns NULL.
yoke_module *yk_layer_done(yoke_module *, bool good);
// EINVAL, and false, if a layer's size is less than 1.
bool yk_layer_size(const char *layer, const char *what, int64_t n);
// EINVAL unless the call has one input and one output.
int yk_layer_one(const yoke_module *, int n, int k);

enum { YK_CACHES = 64 }; // maximum number of caches of an attention call
// Writes k and v [1,T,G,D], converted to the cache's dtype, to its keys and values [1,S,G,D] from
// position `at` on.
void yk_attention_store(yoke_tensor *keys, yoke_tensor *values, yoke_tensor *at, yoke_tensor *k,
			yoke_tensor *v);
// yoke_attention_keys on a cache, in its dtype; the result has q's.
yoke_tensor *yk_attention_cached(yoke_tensor *q, yoke_tensor *keys, yoke_tensor *values,
				 yoke_tensor *seen, yoke_tensor *mask, int causal, double scale);

// Reshapes a vector of one value per channel to broadcast over x [B,C,..].
yoke_tensor *yk_by_channel(yoke_tensor *x, yoke_tensor *v);
// Options of a norm; of a convolution.
double yk_norm_eps(const yoke_module *);
int64_t yk_conv_groups(const yoke_module *);
// scale (x a') b'; by_row: as YOKE_BY_ROW.
yoke_tensor *yk_low_rank_product(const struct yk_low_rank *, yoke_tensor *x, bool by_row);
// Merges a LoRA's update into the weight of its layer.
int yk_lora_join(yoke_module *);

#endif
