// SPDX-License-Identifier: Apache-2.0
// Tile sizes of the tiled products in cl/tile.cl, chosen per device.
#ifndef YK_GPU_TILE_H
#define YK_GPU_TILE_H

#include "gpu.h"

// Items of a group along rows and columns; elements of the result per item (m, n); steps of the
// summed axis that are in local memory at a time (k).
struct yk_gpu_tiling {
	int items_m, items_n, m, n, k;
};

// preset: 0, or an alternative chosen by tuning. NULL: none fits the device.
const struct yk_gpu_tiling *yk_gpu_tiling_of(const struct yk_gpu_device *, int dtype, int preset);
void yk_gpu_tiling_define(struct yk_gpu_build *, const struct yk_gpu_tiling *);

#endif
