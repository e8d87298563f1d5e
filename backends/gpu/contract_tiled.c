// SPDX-License-Identifier: Apache-2.0
// Contractions of any dtype and strides: cl/contract_tiled.cl with tile sizes for the device.
#include "config.h"

#include "contract.h"
#include "tile.h"

static bool takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	return c->dtype >= yoke_f32 && c->dtype <= yoke_i64 &&
	       yk_gpu_tiling_of(d, c->dtype, c->preset);
}

static int kernel_of(struct yk_gpu_device *d, const struct yk_gpu_contract *c,
		     struct yk_gpu_entry **to)
{
	const struct yk_gpu_tiling *t = yk_gpu_tiling_of(d, c->dtype, c->preset);
	struct yk_gpu_build b = { .file = "contract_tiled.cl", .name = "contract_tiled" };

	yk_gpu_tiling_define(&b, t);
	return yk_gpu_contract_kernel(d, c, &b, true, to);
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	const struct yk_gpu_tiling *t = yk_gpu_tiling_of(r->device, c->dtype, c->preset);
	const size_t items[2] = { (size_t)t->items_n, (size_t)t->items_m };
	const int64_t groups[3] = { yk_gpu_ceil_div(c->s.n, t->items_n * t->n),
				    yk_gpu_ceil_div(c->s.m, t->items_m * t->m), c->batch };
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, c, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, c->a);
	yk_gpu_arg_view(r, c->b);
	return yk_gpu_contract_launch(r, c, groups, items, "contract_tiled");
}

const struct yk_gpu_variant yk_gpu_contract_tiled = { takes, record };
