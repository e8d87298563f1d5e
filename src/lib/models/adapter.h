// SPDX-License-Identifier: Apache-2.0
// Files of low-rank adapters (nn/lora.h): folders of PEFT, and runs of `yoke train lora=`, whose
// manifests refer to the frozen model.
#ifndef YK_ADAPTER_H
#define YK_ADAPTER_H

#include <jansson.h>

#include "models/family.h"
#include "nn/lora.h"

struct yk_checkpoint;

// ---- adapters with their values ----

struct yk_adapter {
	struct yk_adapter_layer {
		struct yk_lora_layer is;
		int64_t in, out;
		float *a, *b; // [rank,in], [out,rank], as the decoder's weight
	} * layer;
	size_t n, cap;
	double dropout; // of the inputs of A in training
};
// Reads a folder of PEFT (adapter_config.json and adapter_model.safetensors), or the last
// checkpoint of a run, for a model.  `model`: its path; it must have the weights of the run's
// frozen model. ENOENT; EFORMAT: damaged; EINVAL, EUNSUPPORTED: for another model, or of a kind
// that yoke does not compute, which is named.
int yk_adapter_open(const char *path, const char *model, const struct yk_family *,
		    const struct yk_model_shape *, struct yk_adapter *);
void yk_adapter_close(struct yk_adapter *);
// Adapts a network and sets the values.  In a dry context there are none.
int yk_adapter_apply(const struct yk_adapter *, struct yk_network *);
// The layer "layer3.attn.q", or NULL.
const struct yk_adapter_layer *yk_adapter_find(const struct yk_adapter *, const char *name);
// Adds a layer, with room for its values; NULL: ENOMEM.
struct yk_adapter_layer *yk_adapter_add(struct yk_adapter *, const struct yk_lora_layer *,
					int64_t in, int64_t out);
// Opens an adapter and applies it to the network of a model with that path.  EINVAL: the network
// has adapters, or is no decoder; otherwise as yk_adapter_open.
int yk_adapter_attach(const char *adapter, const char *model, struct yk_network *);
// Adds alpha/rank B A to rows from .. from + rows - 1 of a weight [out,in].
void yk_adapter_add_rows(const struct yk_adapter_layer *, int64_t from, int64_t rows, float *to);
// Copies the adapters of a network.
int yk_adapter_copy(const struct yk_network *, struct yk_adapter *);
// Writes a folder of PEFT, or into an existing one.  base: path of the frozen model.
int yk_adapter_write(const struct yk_adapter *, const struct yk_family *,
		     const struct yk_model_shape *, const char *base, const char *folder);

// ---- shared by its files ----

// The module of PEFT that adapts a weight of the decoder, "model.layers.3.self_attn.q_proj", and
// where the weight is in it.  A weight that the model's files store with others, as rows of one
// matrix, shares their module.
void yk_adapter_locate(const struct yk_family *, const char *weight, struct yk_weight_location *);
// adapter_config.json.
struct yk_peft_config {
	json_t *root;
	const char *path;
	int64_t rank;
	double alpha, dropout;
	bool rank_stabilized; // products are scaled by alpha / sqrt(rank)
};
// EUNSUPPORTED names a setting that is not computed.  transposed: the model's files store [in,out].
int yk_peft_config_open(const char *path, bool transposed, struct yk_peft_config *);
void yk_peft_config_close(struct yk_peft_config *);
// Rank and alpha of a module; alpha / rank is its scale, also for rank-stabilized adapters.
void yk_peft_config_of(const struct yk_peft_config *, const char *module, int64_t *rank,
		       double *alpha);
// May the module have an adapter, by target_modules?
bool yk_peft_config_targets(const struct yk_peft_config *, const char *module);

// ---- manifests of runs ----

// The manifest's member "adapter" of a network with adapters:
//     { "base": path, "xxh64": of its weights, "state": of its files, "dtype": "file" or a dtype,
//       "quant": "none" or a format, "dropout": 0.1,
//       "layers": [ { "name": "layer0.attn.q", "rank": 8, "alpha": 16.0 }, .. ] }
// dropout only if there is one.  state: yk_weights_state, 0 for a base that yoke trained; older
// manifests have none.  NULL: an error.
json_t *yk_adapter_describe(const char *base, const char *dtype, const char *quant,
			    const struct yk_network *);

struct yk_adapter_manifest {
	const char *base, *dtype, *quant; // of the frozen model, dtype and quant as in struct
					  // yoke_model_options; the manifest owns them
	struct yk_lora_layer *layer;      // the caller frees them
	size_t n;
	double dropout;
};
// Reads it back; `folder` is for messages.  EFORMAT.
int yk_adapter_parse(const char *folder, const json_t *adapter, struct yk_adapter_manifest *);
// EINVAL: the model does not have the weights of the frozen one, or its configuration describes
// another network; ENOENT.  Weights are hashed only if their files changed since the manifest was
// written; the checkpoint's description then gets the new state.
int yk_adapter_same_base(const char *folder, const struct yk_checkpoint *, const char *model);
// Reads the values in a run's checkpoint.
int yk_adapter_of_run(const char *folder, const struct yk_checkpoint *,
		      const struct yk_model_shape *, struct yk_adapter *);

#endif
