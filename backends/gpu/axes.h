// SPDX-License-Identifier: Apache-2.0
// Iteration over several tensors with common axes: the host side of cl/axes.cl.
#ifndef YK_GPU_AXES_H
#define YK_GPU_AXES_H

#include "rows.h"

#define YK_GPU_TENSORS 4

// Matches struct axes of cl/axes.cl.
struct yk_gpu_axes {
	// rank >= 1; cols: size of the last axis; rows: product of the others
	int64_t rank, rows, cols;
	int64_t dims[YOKE_MAX_RANK], strides[YK_GPU_TENSORS][YOKE_MAX_RANK];
};

// Builds the iteration space from dims and the strides of n tensors (NULL: all 0). Axes of size 1
// are dropped and neighbouring axes merged if all tensors allow it; the order of axes stays.
void yk_gpu_axes_of(struct yk_gpu_axes *, int rank, const int64_t *dims, int n,
		    const int64_t *const *strides);

// Strides of a row-major tensor.
void yk_gpu_positions(int64_t *to, int rank, const int64_t *dims);

// Work division along columns and rows: elements per item, items per group, items in all.
struct yk_gpu_division {
	size_t block[2], group[2], items[2];
};
// Chooses one element per item; several along columns if a launch cannot have that many items;
// large blocks on CPU-like devices. cost: work per element, relative to a copy.
struct yk_gpu_division yk_gpu_division_of(const struct yk_gpu_device *, const struct yk_gpu_entry *,
					  uint64_t cols, uint64_t rows, uint64_t cost);
void yk_gpu_arg_division(struct yk_gpu_record *, const struct yk_gpu_division *);

#endif
