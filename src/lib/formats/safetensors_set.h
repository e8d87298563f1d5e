// SPDX-License-Identifier: Apache-2.0
// Sets of safetensors files under an index, as Hugging Face's libraries write large models; a file alone is a set of one.
//
//     NAME.safetensors.index.json: { "metadata": { "total_size": bytes of all tensors },
//                                    "weight_map": { "tensor": "NAME-00001-of-00002.safetensors", .. } }
//
// An index is not trusted either: its files must be in its directory and have exactly the tensors that it lists, each in one file.
// A wrong total_size is only a warning.
#ifndef YK_SAFETENSORS_SET_H
#define YK_SAFETENSORS_SET_H

#include "formats/safetensors.h"

struct yk_safetensors_set {
	char *path; // that was opened
	struct yk_safetensors *file;
	int files;
	struct yk_safetensors_part {
		struct yk_safetensors *file;
		const struct yk_safetensors_entry *entry;
	} *part; // all tensors
	int count;
};

// Is it the name of an index, or, where it is not, of a file?
bool yk_safetensors_is_index(const char *path);
// Opens an index with its files, or a file.  EFORMAT names what an index says that is not so; the rest as
// yk_safetensors_open.
int yk_safetensors_set_open(struct yk_safetensors_set *, const char *path);
void yk_safetensors_set_close(struct yk_safetensors_set *);

// Writes a set part by part: which tensors are in part k, of parts in all, says `from`, parts + 1 places in the order of
// the names; `fill` gives part k's tensors, which are read until the next call.  The index is written last, under which the
// files before it, if there was one, go: who is killed has the old set or the new one.
int yk_safetensors_set_write(const char *path, int parts, const int *from,
			     int (*fill)(void *arg, int from, int n, struct yk_host_tensor **), void *arg);

#endif
