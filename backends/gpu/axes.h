// SPDX-License-Identifier: Apache-2.0
// Elements of several tensors found by one walk over common axes: the host half of cl/axes.cl.
#ifndef YK_GPU_AXES_H
#define YK_GPU_AXES_H

#include "rows.h"

#define YK_GPU_TENSORS 4

// struct axes of cl/axes.cl.
struct yk_gpu_axes {
	int64_t rank, rows, cols; // rank >= 1; cols: of the last axis; rows: of those before it
	int64_t dims[YOKE_MAX_RANK], strides[YK_GPU_TENSORS][YOKE_MAX_RANK];
};

// The axes of dims with the strides of n tensors (NULL: 0 all over): those of one element left out,
// neighbours merged where all tensors allow it; their order stays.
void yk_gpu_axes_of(struct yk_gpu_axes *, int rank, const int64_t *dims, int n,
		    const int64_t *const *strides);

// Strides of a row-major tensor.
void yk_gpu_positions(int64_t *to, int rank, const int64_t *dims);

// How many elements an item takes along columns and rows, how many items a group.
struct yk_gpu_cut {
	size_t block[2], group[2], items[2];
};
// One element an item, or some along columns where a launch has no room for as many; where a group runs as a loop,
// blocks of many.  cost: how much work an
// element is, of which a copy is 1.
struct yk_gpu_cut yk_gpu_cut_of(const struct yk_gpu_device *, const struct yk_gpu_entry *,
				uint64_t cols, uint64_t rows, uint64_t cost);
void yk_gpu_arg_cut(struct yk_gpu_record *, const struct yk_gpu_cut *);

#endif
