// SPDX-License-Identifier: Apache-2.0
// Parameters: the named f32 variables of a model, in the order of its layers.  The list
// owns the variables; order and names are what checkpoints and optimizers rely on.
#ifndef YK_PARAMETERS_H
#define YK_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "nn/shard.h"
#include "yoke.h"

struct yk_parameters {
	int count;
	yoke_tensor **var; // as yoke_grad and the optimizer steps take them
	struct yk_parameter {
		char *name;   // "layer0.attn.qkv.weight"
		bool decay;   // does weight decay apply?
		// First values: normal of that deviation around 0; where it is 0, all are `value`.
		double deviation, value;
		struct yk_cut cut; // what of it is here
	} *row;               // of each variable
	size_t var_cap, row_cap;
	bool counts;      // elements only: no variable is made
	int64_t elements; // of all that were added, of cuts those of the whole
	const struct yk_shard *shard; // whose cuts they are; NULL: they are whole
	int error;        // of the first that could not be; those behind it are passed over
};

// A new variable of zeros at the end of the list; its name is formatted.  Its dims are those of the whole.
void yk_parameters_add(struct yk_parameters *, int rank, const int64_t *dims, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
// A matrix [out,in], to which weight decay applies, of normal first values; a vector of equal ones.
void yk_parameters_matrix(struct yk_parameters *, int64_t out, int64_t in, double deviation,
			  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void yk_parameters_vector(struct yk_parameters *, int64_t n, double value, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
// A variable "kind.name" for parameter i of another list, of its shape; NULL: yoke_error says why.
yoke_tensor *yk_parameters_like(struct yk_parameters *, const struct yk_parameters *of, int i,
				const char *kind);
// The dims of parameter i as a whole; returns how many.
int yk_parameters_whole(const struct yk_parameters *, int i, int64_t *dims);
// Gives all their first values; the random ones depend on the seed and on the name alone, however they are cut.
int yk_parameters_draw(struct yk_parameters *, uint64_t seed);
int yk_parameters_draw_some(struct yk_parameters *, int first, int end, uint64_t seed); // first .. end - 1 of them
void yk_parameters_fini(struct yk_parameters *); // a list of all zeros is empty

#endif
