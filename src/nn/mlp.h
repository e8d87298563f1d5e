// SPDX-License-Identifier: Apache-2.0
// MLP: linear layers with an activation between them, none behind the last.
#ifndef YK_MLP_H
#define YK_MLP_H

#include "nn/params.h"

struct yk_mlp {
	struct yk_parameters params; // weight [out,in] and bias [out] of each layer in turn
	int layers;
	yoke_tensor *(*activation)(yoke_tensor *);
};

// sizes[0] inputs, .., sizes[layers] outputs.  Parameters are zero.
int yk_mlp_new(int layers, const int64_t *sizes, yoke_tensor *(*activation)(yoke_tensor *),
	       struct yk_mlp **);
void yk_mlp_free(struct yk_mlp *); // NULL is fine
// Weights normal of deviation sqrt(2 / inputs) (He et al. 2015), biases 0.
int yk_mlp_init(struct yk_mlp *, uint64_t seed);
// x [..,sizes[0]] -> [..,sizes[layers]]
yoke_tensor *yk_mlp_forward(const struct yk_mlp *, yoke_tensor *x);

#endif
