// SPDX-License-Identifier: Apache-2.0
// Quantized weights as operands of kernels: the host side of cl/quant.cl.
#ifndef YK_GPU_QUANT_H
#define YK_GPU_QUANT_H

#include "rows.h"

enum { YK_GPU_QUANT_GROUP = 32 }; // elements

// True if w is u8 [N,bytes] with rows of op->attr[1] elements in the format op->attr[0].
bool yk_gpu_is_quantized(const struct yoke_op *, const struct yoke_view *w);
// Number of groups in a row; the last may be partial.
int64_t yk_gpu_quant_groups(const struct yoke_op *);
// Vector width of the rows next to w: see cl/quant.cl. The list ends with NULL.
int yk_gpu_quant_width(const struct yk_gpu_device *, const struct yoke_view *const *rows,
		       int64_t k);
// Defines the macros of cl/quant.cl for groups of `items`.
void yk_gpu_quant_defines(struct yk_gpu_build *, const struct yk_gpu_device *,
			  const struct yoke_op *, size_t items, int width);

#endif
