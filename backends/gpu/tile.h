// SPDX-License-Identifier: Apache-2.0
// How cl/tile.cl, products by tiles, is cut for a device.
#ifndef YK_GPU_TILE_H
#define YK_GPU_TILE_H

#include "gpu.h"

// A group's items along rows and columns, the elements of the result of each, and the steps along the axis summed that
// are in local memory at a time.
struct yk_gpu_tiling {
	int items_m, items_n, m, n, k;
};

// preset: 0, or another way that tuning may choose.  NULL: none fits the device.
const struct yk_gpu_tiling *yk_gpu_tiling_of(const struct yk_gpu_device *, int dtype, int preset);
void yk_gpu_tiling_define(struct yk_gpu_build *, const struct yk_gpu_tiling *);

#endif
