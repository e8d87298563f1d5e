// SPDX-License-Identifier: Apache-2.0
// The weights of a pretrained model, in mapped files of either kind.
#ifndef YK_WEIGHTS_H
#define YK_WEIGHTS_H

#include <stdio.h>

#include "formats/gguf.h"
#include "formats/safetensors_set.h"
#include "models/family.h"

// Either kind of files: a GGUF file, or a folder's safetensors.  The files stay mapped until the
// last user releases them: who opened them, and each tensor on their memory.
struct yk_weights {
	int users;
	bool is_gguf;
	struct yk_gguf gguf;
	struct yk_safetensors_set set;
};

// A tensor of a file.
struct yk_weight {
	const char *path; // of its file, for messages
	const char *name;
	int rank;
	int64_t dims[4];
	enum yk_gguf_format format;
	const void *data; // mapped, at any alignment
	size_t index;     // among all tensors, as for yk_weights_name
};

// ENOENT: no such tensor, without an error message.  EDTYPE: elements that no weight has.
int yk_weights_find(struct yk_weights *, const char *name, struct yk_weight *);
// Tensor i in any order; NULL after the last.
const char *yk_weights_name(const struct yk_weights *, size_t i);
// How tensor i is stored, in the same order; false after the last.
struct yk_weight_stored {
	const char *format; // "BF16", "Q4_K"
	uint64_t elements, bytes;
};
bool yk_weights_stored(const struct yk_weights *, size_t i, struct yk_weight_stored *);
// The number of elements of all tensors.
uint64_t yk_weights_elements(const struct yk_weights *);
// A checksum of all tensors, with names, formats and shapes.
int yk_weights_hash(const struct yk_weights *, uint64_t *to);
// A checksum that costs little whatever the size: the size and change time of each file, and of
// each tensor name, format, shape and a sample of its bytes.  If it is the same as before, no file
// was written in between; a copy of a file has another one.
int yk_weights_state(const struct yk_weights *, uint64_t *to);
// Gives the memory of mapped bytes back, which are read from the file again when they are used.
void yk_weights_forget(const void *at, uint64_t bytes);
// Without files, for one user; NULL: ENOMEM.
struct yk_weights *yk_weights_new(const char *path);
void yk_weights_release(void *weights); // NULL is fine

// Converts rows from .. from + rows - 1 of a matrix, or elements of a vector, to f32.  EDTYPE: the
// format cannot be read.
int yk_weight_rows(const struct yk_weight *, int64_t from, int64_t rows, float *to);

// A parameter of the decoder: name and whole shape.
struct yk_weight_spec {
	const char *name; // "layer3.attn.q.weight"
	int rank;
	int64_t dims[2];
};
// The rows of a file's tensor that are a parameter's values, and how the file differs from the
// decoder's layout.
struct yk_weight_source {
	struct yk_weight weight;
	int64_t dims[2], rows; // of the parameter; rows: of the whole tensor
	int rank;
	int64_t from, head_dim;
	bool transposed;       // the file has [in,out]
	bool swapped;          // and neighboring columns of a head as pairs
	bool offset;           // and the weight less 1
};
// Finds a parameter.  1: it is missing or has another shape, which is written to `problems`.
int yk_weight_source(struct yk_weights *, const struct yk_family *, const struct yk_model_shape *,
		     const struct yk_weight_spec *, struct yk_weight_source *to, FILE *problems);
// Reads rows from .. from + rows - 1 of a parameter, or elements of a vector, in the decoder's
// layout.
int yk_weight_source_rows(const struct yk_weight_source *, int64_t from, int64_t rows, float *to);
// The row of the file's tensor, or the element of its vector, that is row r of a parameter that is
// not transposed.
int64_t yk_weight_source_row(const struct yk_weight_source *, int64_t r);
// The rows of each layer in a tensor that several layers of a block may share.
struct yk_shared_rows {
	int layers;                // 1: it has only this parameter
	int64_t from[3], rows[3];  // by segment
	int64_t all;
};
// rows: of the parameter, which counts if the tensor has no other.
void yk_weight_shared_rows(const struct yk_model_shape *, const struct yk_weight_location *,
			   int64_t rows, struct yk_shared_rows *);

// Formats in which a model's matrices can be held: as in the file if an op computes with them
// (others become F16); F32, as variables that can be trained; or another format that yoke_quantize
// writes, and F16 where its blocks do not divide the rows.  Vectors and learned positions are
// always F32.
enum { YK_WEIGHTS_AS_PUBLISHED = -1 };
// Sets a deferred parameter of a list to a tensor with the values of a source.  ERANGE: values that
// the format does not have.
int yk_weight_hold(struct yk_weights *, const struct yk_weight_source *, int format,
		   struct yk_parameters *, int i);
// Sets a network's deferred parameters from the files.  Errors list all tensors that are missing,
// that have another shape than in the configuration, and those that are no parameter of the
// network.
int yk_weights_load(struct yk_weights *, const struct yk_family *, int format, struct yk_network *);

#endif
