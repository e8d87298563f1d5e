// SPDX-License-Identifier: Apache-2.0
// CONTRACT: selects the kernel variants that can compute a contraction, and sets up what all their
// kernels need.
#include "config.h"

#include "contract.h"

// Ordered by preference; each variant refuses problems it is not meant for. Libraries come after
// the variants for CPU drivers, where their tiles are slow, and before the variants for GPUs.
// Presets not chosen by any rule come last, for `yoke tune`.
enum { LIBRARY = 3 };
static const struct {
	const struct yk_gpu_variant *variant;
	int preset;
	const char *name;
} impls[] = {
	{ &yk_gpu_contract_rows, 0, "rows" },
	{ &yk_gpu_contract_direct, 0, "direct" },
	{ &yk_gpu_contract_packed, 0, "packed" },
	[LIBRARY + YK_GPU_LIBRARIES] = { &yk_gpu_contract_stages, 0, "stages" },
	{ &yk_gpu_contract_matrix, 0, "matrix" },
	{ &yk_gpu_contract_blocks, 0, "blocks" },
	{ &yk_gpu_contract_tiled, 0, "tiled" },
	{ &yk_gpu_contract_packed, 1, "packed-wide" },
	{ &yk_gpu_contract_stages, 1, "stages-64" },
	{ &yk_gpu_contract_stages, 2, "stages-128" },
	{ &yk_gpu_contract_stages, 3, "stages-256" },
	{ &yk_gpu_contract_matrix, 1, "matrix-64" },
	{ &yk_gpu_contract_matrix, 2, "matrix-128" },
	{ &yk_gpu_contract_blocks, 1, "blocks-64" },
	{ &yk_gpu_contract_blocks, 2, "blocks-128" },
	{ &yk_gpu_contract_tiled, 1, "tiled-32" },
	// Preset 0, "wgmma", before "stages" would be the default on sm_90, which no GPU has
	// confirmed yet.
	{ &yk_gpu_contract_wgmma, 1, "wgmma-128" },
	{ &yk_gpu_contract_wgmma, 2, "wgmma-256" },
};
enum { IMPLS = sizeof impls / sizeof *impls };

// The vendor library with that implementation number, or NULL.
static const struct yk_gpu_library *library_of(uint32_t impl)
{
	const uint32_t k = impl - LIBRARY;

	return impl >= LIBRARY && k < YK_GPU_LIBRARIES ? yk_gpu_driver.library[k] : NULL;
}

static const struct yk_gpu_variant *variant_of(uint32_t impl)
{
	const struct yk_gpu_library *l = library_of(impl);

	return l ? &l->variant : impls[impl].variant;
}

static const char *name_of(uint32_t impl)
{
	const struct yk_gpu_library *l = library_of(impl);

	return l ? l->name : impls[impl].name;
}

// ---- kernels ----

int yk_gpu_contract_kernel(struct yk_gpu_device *d, const struct yk_gpu_contract *c,
			   const struct yk_gpu_build *build, bool result, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = *build;
	const bool mapped = c->map && result;

	yk_gpu_define(&b, "DTYPE", c->dtype);
	if (c->to != c->dtype)
		yk_gpu_define(&b, "RESULT", c->to);
	yk_gpu_flag(&b, "USE_F64", c->dtype == yoke_f64);
	if (!mapped)
		return yk_gpu_kernel_file(d, &b, to);
	yk_gpu_flag(&b, "OWN_MATH", d->cpu_like);
	return yk_gpu_kernel_map(d, c->op, c->map, &b, to);
}

void yk_gpu_contract_arg(struct yk_gpu_record *r, const struct yk_gpu_contraction *s,
			 const int64_t groups[3])
{
	struct yk_gpu_contraction cut = *s;

	cut.lines = groups[1];
	cut.all = groups[2];
	yk_gpu_arg_struct(r, &cut, sizeof cut);
}

int yk_gpu_contract_enqueue(struct yk_gpu_record *r, const int64_t groups[3], const size_t items[2],
			    const char *name)
{
	const size_t global[2] = { (size_t)groups[0] * items[0],
				   (size_t)(groups[1] * groups[2]) * items[1] };

	return yk_gpu_launch(r, 2, global, items, name);
}

int yk_gpu_contract_launch(struct yk_gpu_record *r, const struct yk_gpu_contract *c,
			   const int64_t groups[3], const size_t items[2], const char *name)
{
	yk_gpu_contract_arg(r, &c->s, groups);
	if (!c->map)
		yk_gpu_arg_view(r, &c->op->out[0]);
	else
		yk_gpu_arg_map(r, c->op, c->map);
	return yk_gpu_contract_enqueue(r, groups, items, name);
}

int yk_gpu_contract_map(struct yk_gpu_record *r, const struct yk_gpu_contract *c)
{
	const struct yoke_op *op = c->op;
	const struct yoke_view *y = &op->out[0];
	struct yoke_view in[YOKE_MAP_MAX_INPUTS];
	struct yoke_op map = *op;

	in[0] = op->workspace;
	in[0].dtype = (uint8_t)c->to;
	in[0].rank = y->rank;
	in[0].align = 256;
	int64_t stride = 1;
	for (int i = y->rank - 1; i >= 0; i--) {
		in[0].dims[i] = map.dims[i] = y->dims[i];
		in[0].strides[i] = stride;
		stride *= y->dims[i];
	}
	for (uint32_t i = 2; i < op->nin; i++)
		in[i - 1] = op->in[i];
	map.code = YOKE_OP_MAP;
	map.rank = y->rank;
	map.nattr = 0;
	map.nin = op->nin - 1;
	map.in = in;
	map.alias_mask = op->alias_mask >> 2 << 1; // a product's factors are never overwritten
	return yk_gpu_map_record(r, &map);
}

// ---- the op ----

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	struct yoke_map_call map;
	struct yk_gpu_contract c, form;
	uint64_t mask = 0;

	if (!yk_gpu_contract_of(op, &c, &map))
		return 0;
	uint64_t args = sizeof c.s + 8 * 4 + 8 * (c.map ? map.narg : 2);
	uint64_t dtypes = 1u << c.dtype | (c.map ? map.dtypes : 0);
	if (args > d->info.max_args || (dtypes & 1u << yoke_f64 && !yk_gpu_f64(d)))
		return 0;
	for (uint32_t i = 0; i < IMPLS; i++) {
		const struct yk_gpu_variant *v = variant_of(i);
		form = c;
		form.preset = impls[i].preset;
		if (!v || !v->takes(d, &form))
			continue;
		if (library_of(i) && library_of(i)->always())
			return (uint64_t)1 << i;
		mask |= (uint64_t)1 << i;
	}
	return mask;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_gpu_variant *v = variant_of(impl);
	struct yoke_map_call map;
	struct yk_gpu_contract c;
	const bool fits = yk_gpu_contract_of(op, &c, &map);

	c.preset = impls[impl].preset;
	if (!fits || !v->takes(r->device, &c))
		return yk_gpu_error(YOKE_EUNSUPPORTED, "unsupported contraction");
	return c.s.m && c.s.n && c.batch ? v->record(r, &c) : 0;
}

YK_GPU_OP(contract, CONTRACT) = {
	.nimpl = IMPLS,
	.can = can,
	.record = record,
	.name_of = name_of,
};
