// SPDX-License-Identifier: Apache-2.0
// Parameters: the named variables of a model, in the order of its layers.  The list owns the
// variables; checkpoints and optimizers rely on their order and names.  They are f32, except that
// the frozen matrices of an opened file may stay in its format (yk_parameters_set).
#ifndef YK_PARAMETERS_H
#define YK_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "nn/shard.h"
#include "yoke.h"

struct yk_parameters {
	int count;
	yoke_tensor **var; // in the form that yoke_grad and optimizer steps take
	struct yk_parameter {
		char *name;   // "layer0.attn.qkv.weight"
		bool decay;   // does weight decay apply?
		// Initial values: normal around 0 with this deviation; if it is 0, all are `value`.
		double deviation, value;
		double bound;         // nonzero: uniform in -bound .. bound instead
		struct yk_shard_range shard; // this rank's shard
		// YOKE_QUANT_F32, or the format of yoke-quant.h of a matrix whose rows are stored
		// in var.
		int format;
		int rank; // of a deferred parameter, as dims
		int64_t dims[4];
	} *row;               // by variable
	size_t var_cap, row_cap;
	bool counts;      // only count elements: no variables are created
	bool deferred;    // var[i] is NULL until yk_parameters_set
	int dtype;        // of new variables; YOKE_DTYPE_NONE: f32
	int64_t elements; // of all parameters added, sharded ones in full
	const struct yk_shard *shard; // the rules for shards; NULL: parameters are whole
	int error;        // of the first that failed; later additions are ignored
};

// Appends a new variable of zeros; its name is formatted.  dims are those of the whole parameter.
void yk_parameters_add(struct yk_parameters *, int rank, const int64_t *dims, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
// A matrix [out,in] with weight decay and normal initial values; a vector of equal initial values.
void yk_parameters_matrix(struct yk_parameters *, int64_t out, int64_t in, double deviation,
			  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void yk_parameters_vector(struct yk_parameters *, int64_t n, double value, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
// Sets deferred parameter i to a tensor, which the list frees; format: of its row. t NULL: returns
// the pending error.
int yk_parameters_set(struct yk_parameters *, int i, yoke_tensor *t, int format);
// A variable "kind.name" with the shape of parameter i of another list; NULL: see yoke_error.
yoke_tensor *yk_parameters_like(struct yk_parameters *, const struct yk_parameters *of, int i,
				const char *kind);
// The dims of the whole parameter i; returns their number.
int yk_parameters_dims(const struct yk_parameters *, int i, int64_t *dims);
// Initializes all parameters; random values depend on the seed and the name only, not on sharding.
int yk_parameters_draw(struct yk_parameters *, uint64_t seed);
// parameters first .. end - 1
int yk_parameters_draw_some(struct yk_parameters *, int first, int end, uint64_t seed);
void yk_parameters_fini(struct yk_parameters *); // a zeroed list is empty

#endif
