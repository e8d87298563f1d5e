// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters of a network (LoRA, Hu et al. 2021): for some of its linear layers
//
//     y = W x + alpha/rank B (A x)        A [rank,in], B [out,rank]
//
// In training, with dropout, A multiplies x with some elements zeroed and the others divided by 1 -
// p. A and B are the parameters of an adapted network; its weights are frozen, and may be
// quantized.
#ifndef YK_LORA_H
#define YK_LORA_H

#include "nn/model.h"

enum { YK_LORA_MAX_RANK = 65536 };

// Adapts layers of a network: moves its parameters to `frozen` and adds A and B of each layer,
// "layer3.attn.q.lora_A.weight" and lora_B, to `params`.  yk_parameters_draw sets A to
// U(-1/sqrt(in), 1/sqrt(in)) and B to 0, so that an adapted network starts with the values of the
// original one. EINVAL: there is no linear layer of that name, it is listed twice, or its rank or
// alpha is out of bounds; the network can then only be freed.
int yk_network_adapt(struct yk_network *, size_t n, const struct yk_lora_layer *);
// The linear layer "layer3.attn.q", or NULL: there is none with a matrix of its own.
yoke_module *yk_network_linear_at(const struct yk_network *, const char *path);
// Removes the adapters: the weights are the network's parameters again.
void yk_network_unadapt(struct yk_network *);
// Lists the layers of all blocks that `targets` names, of one rank and alpha; the caller frees
// them. targets: a comma-separated list of q, k, v, o, gate, up, down, all.  EINVAL: another word,
// or a layer that the model lacks.
int yk_lora_layers(const struct yk_model_shape *, const char *targets, int64_t rank, double alpha,
		   struct yk_lora_layer **to, size_t *n);
// EINVAL: not such a list.
int yk_lora_targets_check(const char *targets);
// The number of elements of the adapters' matrices in a network of that shape.
int64_t yk_lora_elements(const struct yk_model *, const struct yk_model_shape *, size_t n,
			 const struct yk_lora_layer *);

#endif
