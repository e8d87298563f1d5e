// SPDX-License-Identifier: Apache-2.0
// Chooses the tile sizes of cl/tile.cl for a device.
#include "config.h"

#include "contract.h"
#include "tile.h"

// Preset 0, best first.
static const struct yk_gpu_tiling gpu[] = { { 16, 16, 4, 4, 16 },
					    { 8, 8, 4, 4, 16 },
					    { 1, 1, 4, 4, 16 } };
// Preset 1.
static const struct yk_gpu_tiling other[] = { { 8, 8, 4, 4, 16 } };
// CPU-like devices: one item per group.
static const struct yk_gpu_tiling cpu[] = { { 1, 1, 4, 32, 64 }, { 1, 1, 4, 4, 16 } };

static bool fits(const struct yk_gpu_device *d, const struct yk_gpu_tiling *t, int dtype)
{
	const size_t m = (size_t)t->items_m, n = (size_t)t->items_n;
	const int local = t->k * (t->items_m * t->m + t->items_n * t->n);

	return m * n <= d->max_group && n <= d->max_items[0] && m <= d->max_items[1] &&
	       (size_t)local * (yk_gpu_float(dtype) ? 4 : 8) <= d->local_bytes;
}

const struct yk_gpu_tiling *yk_gpu_tiling_of(const struct yk_gpu_device *d, int dtype, int preset)
{
	const struct yk_gpu_tiling *t = d->cpu_like ? cpu : gpu;
	int n = d->cpu_like ? sizeof cpu / sizeof *cpu : sizeof gpu / sizeof *gpu;

	if (preset) {
		t = &other[preset - 1];
		n = d->cpu_like ? 0 : 1;
	}
	for (int i = 0; i < n; i++, t++)
		if (fits(d, t, dtype))
			return t;
	return NULL;
}

void yk_gpu_tiling_define(struct yk_gpu_build *b, const struct yk_gpu_tiling *t)
{
	yk_gpu_define(b, "WG_M", t->items_m);
	yk_gpu_define(b, "WG_N", t->items_n);
	yk_gpu_define(b, "TM", t->m);
	yk_gpu_define(b, "TN", t->n);
	yk_gpu_define(b, "BK", t->k);
}
