// SPDX-License-Identifier: Apache-2.0
// Strides of tensors and of views of them, in elements.
#ifndef YK_STRIDES_H
#define YK_STRIDES_H

#include "graph/graph.h"

// Strides of a contiguous row-major tensor.
void yk_strides(int rank, const int64_t *dims, int64_t *stride);
// Strides of the same elements under other dims with the same count; false if no strides express
// them.
bool yk_restride(int rank, const int64_t *dims, const int64_t *stride, int to_rank,
		 const int64_t *to_dims, int64_t *to_stride);
// Strides of x over a space it broadcasts to: 0 on new and stretched axes.
void yk_broadcast_strides(const struct yk_value *x, const int64_t *stride, int rank,
			  const int64_t *dims, int64_t *to);
// Are they row-major and contiguous, ignoring axes of 1 element?
bool yk_is_dense(int rank, const int64_t *dims, const int64_t *stride);

#endif
