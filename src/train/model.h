// SPDX-License-Identifier: Apache-2.0
// Models in checkpoints: the object that rebuilds a model, and its arrays to the host
// and back.
#ifndef YK_MODEL_H
#define YK_MODEL_H

#include "formats/checkpoint.h"
#include "nn/gpt.h"

// { "kind": "gpt", "vocab": .., "context": .., "layers": .., "heads": .., "embed": .. }
json_t *yk_model_describe(const struct yk_gpt_shape *);
// And back, with the bytes of its parameters; `what` is for messages.  EFORMAT.
int yk_model_shape(const json_t *, const char *what, struct yk_gpt_shape *,
		   uint64_t *bytes);
// The model of a checkpoint with its weights.
int yk_model_load(const char *folder, const struct yk_checkpoint *, struct yk_gpt **);

// Parameters in host memory, as checkpoints take them.
struct yk_host_list {
	int count;
	struct yk_host_tensor *tensor;
};

// With room for the elements, not read yet.
int yk_host_list_new(const struct yk_parameters *, struct yk_host_list *);
void yk_host_list_free(struct yk_host_list *);
int yk_host_list_read(struct yk_host_list *, const struct yk_parameters *);
int yk_host_list_put(const struct yk_host_list *, const struct yk_parameters *);

#endif
