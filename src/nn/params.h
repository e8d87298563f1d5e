// SPDX-License-Identifier: Apache-2.0
// Parameters: the named f32 variables of a model, in the order of its layers.  The list
// owns the variables; order and names are what checkpoints and optimizers rely on.
#ifndef YK_PARAMETERS_H
#define YK_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "yoke.h"

struct yk_parameters {
	int count;
	yoke_tensor **var; // as yoke_grad and the optimizer steps take them
	struct yk_parameter {
		char *name;   // "layer0.attn.qkv.weight"
		bool decay;   // does weight decay apply?
	} *row;               // of each variable
	size_t var_cap, row_cap;
};

// A new variable of zeros at the end of the list; its name is formatted.  NULL:
// yoke_error says why.
yoke_tensor *yk_parameters_add(struct yk_parameters *, bool decay, int rank, const int64_t *dims,
			       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
int64_t yk_parameters_elements(const struct yk_parameters *);
void yk_parameters_fini(struct yk_parameters *); // a list of all zeros is empty

#endif
