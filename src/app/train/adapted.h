// SPDX-License-Identifier: Apache-2.0
// The keys of `yoke train` that ask for low-rank adapters (nn/lora.h).
#ifndef YK_ADAPTED_H
#define YK_ADAPTED_H

#include "config/conf.h"
#include "nn/lora.h"
#include "yoke-model.h"

// Does the run train adapters?
bool yk_trains_adapters(const struct yk_config *);
// EINVAL: keys that need lora= or init= are given without it, or lora_targets is malformed.
int yk_adapted_check(const struct yk_config *);
// Lists the layers that lora_targets names, which the caller frees.  EINVAL: the model lacks one.
int yk_adapted_layers(const struct yk_config *, const struct yk_model_shape *,
		      struct yk_lora_layer **to, size_t *n);
// Sets dtype and quant of the frozen model.
void yk_adapted_base(const struct yk_config *, struct yoke_model_options *);

#endif
