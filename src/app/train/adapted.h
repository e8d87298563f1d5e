// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (nn/lora.h) of runs: the keys that ask for them, and the member "adapter" of a
// checkpoint's manifest, which refers to the frozen model.
#ifndef YK_ADAPTED_H
#define YK_ADAPTED_H

#include <jansson.h>

#include "config/conf.h"
#include "nn/lora.h"
#include "yoke-model.h"

// Does the run train adapters?
bool yk_adapted_given(const struct yk_config *);
// EINVAL: keys that need lora= or init= are given without it, or lora_targets is malformed.
int yk_adapted_check(const struct yk_config *);
// Lists the layers that lora_targets names, which the caller frees.  EINVAL: the model lacks one.
int yk_adapted_layers(const struct yk_config *, const struct yk_model_shape *,
		      struct yk_lora_layer **to, size_t *n);
// Sets dtype and quant of the frozen model.
void yk_adapted_base(const struct yk_config *, struct yoke_model_options *);

// The manifest's member of a network of init= with adapters:
//     { "base": path, "xxh64": of its weights, "dtype", "quant": as the keys,
//       "layers": [ { "name": "layer0.attn.q", "rank": 8, "alpha": 16.0 }, .. ] }
// NULL: an error.
json_t *yk_adapted_describe(const struct yk_config *, const struct yk_network *);

struct yk_adapted {
	const char *base, *dtype, *quant; // of the frozen model; the manifest owns them
	struct yk_lora_layer *layer;      // the caller frees them
	size_t n;
};
// Reads it back; `folder` is for messages.  EINVAL: the frozen model has other weights now; ENOENT,
// EFORMAT.
int yk_adapted_parse(const char *folder, const json_t *adapter, struct yk_adapted *);

#endif
