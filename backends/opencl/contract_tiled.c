// SPDX-License-Identifier: Apache-2.0
// Contractions of any strides and dtype: cl/contract_tiled.cl with a tiling for the device.
#include "config.h"

#include "contract.h"

// Items along N and M, elements of y of a group along N and M, elements of local memory.
struct tiling {
	size_t items[2];
	int64_t block[2];
	size_t local;
	const char *defines;
};

// Best first, for preset 0.
static const struct tiling gpu[] = {
	{ { 16, 16 },
	  { 64, 64 },
	  16 * (64 + 64),
	  "-DWG_M=16 -DWG_N=16 -DTM=4 -DTN=4 -DBK=16" },
	{ { 8, 8 },
	  { 32, 32 },
	  16 * (32 + 32),
	  "-DWG_M=8 -DWG_N=8 -DTM=4 -DTN=4 -DBK=16" },
	{ { 1, 1 }, { 4, 4 }, 16 * (4 + 4), "-DWG_M=1 -DWG_N=1 -DTM=4 -DTN=4 -DBK=16" },
};
// Presets 1, 2.
static const struct tiling other[] = {
	{ { 8, 8 },
	  { 32, 32 },
	  16 * (32 + 32),
	  "-DWG_M=8 -DWG_N=8 -DTM=4 -DTN=4 -DBK=16" },
	{ { 16, 16 },
	  { 128, 128 },
	  16 * (128 + 128),
	  "-DWG_M=16 -DWG_N=16 -DTM=8 -DTN=8 -DBK=16" },
};
// One item a group: drivers for CPUs run a group as a loop over its items.
static const struct tiling cpu[] = {
	{ { 1, 1 },
	  { 32, 4 },
	  64 * (32 + 4),
	  "-DWG_M=1 -DWG_N=1 -DTM=4 -DTN=32 -DBK=64" },
	{ { 1, 1 }, { 4, 4 }, 16 * (4 + 4), "-DWG_M=1 -DWG_N=1 -DTM=4 -DTN=4 -DBK=16" },
};

static bool wide_sums(int dtype)
{
	return dtype != yoke_f32 && dtype != yoke_f16 && dtype != yoke_bf16;
}

static bool fits(const struct yk_cl_device *d, const struct tiling *t, int dtype)
{
	return t->items[0] * t->items[1] <= d->max_group &&
	       t->items[0] <= d->max_items[0] && t->items[1] <= d->max_items[1] &&
	       t->local * (wide_sums(dtype) ? 8 : 4) <= d->local_bytes;
}

// NULL: none.
static const struct tiling *tiling_of(const struct yk_cl_device *d,
				      const struct yk_cl_contract *c)
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

static bool takes(const struct yk_cl_device *d, struct yk_cl_contract *c)
{
	return c->dtype >= yoke_f32 && c->dtype <= yoke_i64 && tiling_of(d, c);
}

static int kernel_of(struct yk_cl_device *d, const struct yk_cl_contract *c,
		     struct yk_cl_entry **to)
{
	return yk_cl_contract_kernel(d, c, "contract_op.cl contract_tiled.cl",
				     tiling_of(d, c)->defines, "contract_tiled", to);
}

static int prepare(struct yk_cl_device *d, const struct yk_cl_contract *c,
		   uint64_t *bytes)
{
	struct yk_cl_entry *kernel;

	*bytes = 0;
	return kernel_of(d, c, &kernel);
}

static int run(struct yk_cl_queue *q, const struct yk_cl_contract *c)
{
	const struct tiling *t = tiling_of(q->device, c);
	const int64_t groups[3] = { yk_cl_parts(c->s.n, t->block[0]),
				    yk_cl_parts(c->s.m, t->block[1]), c->batch };
	struct yk_cl_entry *kernel;
	int err = kernel_of(q->device, c, &kernel);

	if (err)
		return err;
	struct yk_cl_args args = { kernel->kernel, 0, CL_SUCCESS };
	yk_cl_arg_view(&args, c->a);
	yk_cl_arg_view(&args, c->b);
	return yk_cl_contract_launch(q, c, &args, groups, t->items, "contract_tiled");
}

const struct yk_cl_variant yk_cl_contract_tiled = { takes, prepare, run };
