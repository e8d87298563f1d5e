// SPDX-License-Identifier: Apache-2.0
// What layers share.
#ifndef YK_LAYER_H
#define YK_LAYER_H

#include "nn/module.h"

extern const struct yoke_module_class yk_linear_class, yk_conv_class, yk_conv_transposed_class, yk_layer_norm_class,
	yk_rms_norm_class, yk_batch_norm_class, yk_sequential_class, yk_block_class, yk_lora_class;

// The layers of yoke-nn.h, whose parameters are declared where asked (yk_module_parameter).
yoke_module *yk_nn_linear(bool declared, int64_t in, int64_t out, bool bias);
yoke_module *yk_nn_embedding(bool declared, int64_t count, int64_t width);
yoke_module *yk_nn_layer_norm(bool declared, int64_t width, double eps);
yoke_module *yk_nn_mlp(bool declared, int64_t in, int64_t hidden, int64_t out, const char *activation, double dropout);
yoke_module *yk_nn_block(bool declared, const struct yoke_nn_attention_options *);
// A linear layer without bias whose weight is declared to be the first parameter of another module.
yoke_module *yk_nn_linear_tied(const yoke_module *);
// The share that a block drops from now on.
void yk_block_dropout(yoke_module *block, double share);

// A module with a copy of that state, which its class frees.
yoke_module *yk_layer_new(const struct yoke_module_class *, const void *state, size_t bytes);
// The module; or NULL, and it is freed.
yoke_module *yk_layer_done(yoke_module *, bool good);
// Is a size of a layer 1 at least?  Else EINVAL.
bool yk_layer_size(const char *layer, const char *what, int64_t n);
// EINVAL unless one value is computed of one.
int yk_layer_one(const yoke_module *, int n, int k);

enum { YK_CACHES = 64 }; // that an attention takes at most

// A value for each channel, where x [B,C,..] has its channels.
yoke_tensor *yk_by_channel(yoke_tensor *x, yoke_tensor *v);
// Of a norm; of a convolution.
double yk_norm_eps(const yoke_module *);
int64_t yk_conv_groups(const yoke_module *);
// What a LoRA adds is assigned to its matrix.
int yk_lora_join(yoke_module *);

#endif
