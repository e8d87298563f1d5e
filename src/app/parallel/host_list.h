// SPDX-License-Identifier: Apache-2.0
// Parameters in host memory, in the form that checkpoints use. Files hold complete tensors even
// where a rank has only a shard.
#ifndef YK_HOST_LIST_H
#define YK_HOST_LIST_H

#include "formats/checkpoint.h"
#include "nn/params.h"

struct yk_host_list {
	int count;
	struct yk_host_tensor *tensor;
};
size_t yk_host_bytes(const struct yk_host_tensor *); // of its elements

// Fills in names and shapes only; for sharded parameters the shard's shape or, if `whole`, the
// complete one. take: the callback that stores a list's arrays in the parameters `ps`.
int yk_host_list_describe(const struct yk_parameters *ps, bool whole, struct yk_host_list *);
int yk_host_list_take(void *ps, int i, const void *data, uint64_t bytes);
// Copies the current values of the parameters.
int yk_host_list_read(const struct yk_parameters *, struct yk_host_list *);
void yk_host_list_free(struct yk_host_list *);
int yk_host_list_put(const struct yk_host_list *, const struct yk_parameters *);
// Loads variables from the part's arrays; sharded ones get their shard.
int yk_host_list_load(const char *folder, const struct yk_checkpoint *, int part,
		    const struct yk_parameters *);

#endif
