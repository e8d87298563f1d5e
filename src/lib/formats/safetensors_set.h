// SPDX-License-Identifier: Apache-2.0
// Sharded safetensors files with an index, as Hugging Face's libraries write large models; a single
// file is a set of one.
//
//     NAME.safetensors.index.json: { "metadata": { "total_size": bytes of all tensors },
//                                    "weight_map": {
//                                       "tensor": "NAME-00001-of-00002.safetensors", .. } }
//
// The index is untrusted: its files must be in its directory and contain exactly the tensors that
// it lists, each in one file.
// A wrong total_size is only a warning.
#ifndef YK_SAFETENSORS_SET_H
#define YK_SAFETENSORS_SET_H

#include "formats/safetensors.h"

struct yk_safetensors_set {
	char *path; // as passed to open
	struct yk_safetensors *file;
	int files;
	struct yk_safetensors_part {
		struct yk_safetensors *file;
		const struct yk_safetensors_entry *entry;
	} *part; // all tensors
	int count;
};

// Does the name end as that of an index?  Otherwise the path is a single file.
bool yk_safetensors_is_index(const char *path);
// Opens an index with its files, or a single file.  EFORMAT names the entry of the index that is
// wrong; otherwise as yk_safetensors_open.
int yk_safetensors_set_open(struct yk_safetensors_set *, const char *path);
void yk_safetensors_set_close(struct yk_safetensors_set *);

// Writes a set of `parts` files; file k holds tensors from[k] .. from[k + 1] - 1 in name order, and
// `from` has parts + 1 entries.  `fill` provides the tensors of a file, which must stay valid until
// its next call.  The index is written last, and then the old set's files are removed: after a
// crash either the old or the new set is complete.
int yk_safetensors_set_write(const char *path, int parts, const int *from,
			     int (*fill)(void *arg, int from, int n, struct yk_host_tensor **),
			     void *arg);

#endif
