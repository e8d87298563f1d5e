// SPDX-License-Identifier: Apache-2.0
// Contractions of any strides and dtype: cl/contract_tiled.cl with a tiling for the device.
#include "config.h"

#include "contract.h"

// A group's items along M and N, the elements of y of each, and the steps of K in local memory at a
// time.
struct tiling {
	int items_m, items_n, m, n, k;
};

// Best first, for preset 0.
static const struct tiling gpu[] = { { 16, 16, 4, 4, 16 }, { 8, 8, 4, 4, 16 }, { 1, 1, 4, 4, 16 } };
// Preset 1.
static const struct tiling other[] = { { 8, 8, 4, 4, 16 } };
// One item a group: drivers for CPUs run a group as a loop over its items.
static const struct tiling cpu[] = { { 1, 1, 4, 32, 64 }, { 1, 1, 4, 4, 16 } };

static bool fits(const struct yk_gpu_device *d, const struct tiling *t, int dtype)
{
	const size_t m = (size_t)t->items_m, n = (size_t)t->items_n;
	const int local = t->k * (t->items_m * t->m + t->items_n * t->n);

	return m * n <= d->max_group && n <= d->max_items[0] && m <= d->max_items[1] &&
	       (size_t)local * (yk_gpu_float(dtype) ? 4 : 8) <= d->local_bytes;
}

// NULL: none.
static const struct tiling *tiling_of(const struct yk_gpu_device *d,
				      const struct yk_gpu_contract *c)
{
	const struct tiling *t = d->loops ? cpu : gpu;
	int n = d->loops ? sizeof cpu / sizeof *cpu : sizeof gpu / sizeof *gpu;

	if (c->preset) {
		t = &other[c->preset - 1];
		n = d->loops ? 0 : 1;
	}
	for (int i = 0; i < n; i++, t++)
		if (fits(d, t, c->dtype))
			return t;
	return NULL;
}

static bool takes(const struct yk_gpu_device *d, struct yk_gpu_contract *c)
{
	return c->dtype >= yoke_f32 && c->dtype <= yoke_i64 && tiling_of(d, c);
}

static int kernel_of(struct yk_gpu_device *d, const struct yk_gpu_contract *c,
		     struct yk_gpu_entry **to)
{
	const struct tiling *t = tiling_of(d, c);
	struct yk_gpu_build b = { .file = "contract_tiled.cl", .name = "contract_tiled" };

	yk_gpu_define(&b, "WG_M", t->items_m);
	yk_gpu_define(&b, "WG_N", t->items_n);
	yk_gpu_define(&b, "TM", t->m);
	yk_gpu_define(&b, "TN", t->n);
	yk_gpu_define(&b, "BK", t->k);
	return yk_gpu_contract_kernel(d, c, &b, true, to);
}

static int record(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	const struct tiling *t = tiling_of(r->device, c);
	const size_t items[2] = { (size_t)t->items_n, (size_t)t->items_m };
	const int64_t groups[3] = { yk_gpu_pieces(c->s.n, t->items_n * t->n),
				    yk_gpu_pieces(c->s.m, t->items_m * t->m), c->batch };
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
