// SPDX-License-Identifier: Apache-2.0
// CONTRACT: which variants take a problem, and what their kernels have in common.
#include "config.h"

#include "contract.h"

// Best first where several take a problem; each refuses what it is not meant for.  So CLBlast
// stands behind what is written for drivers of CPUs, where its tiles are slow, and before
// what GPUs run.  Presets that are no rule's choice come last, for `yoke tune` to find.
enum { CLBLAST = 3 };
static const struct {
	const struct yk_cl_variant *variant;
	int preset;
} impls[] = {
	{ &yk_cl_contract_rows, 0 },   { &yk_cl_contract_direct, 0 },
	{ &yk_cl_contract_packed, 0 }, [CLBLAST] = { &yk_cl_contract_clblast, 0 },
	{ &yk_cl_contract_tiled, 0 },  { &yk_cl_contract_packed, 1 },
	{ &yk_cl_contract_tiled, 1 },  { &yk_cl_contract_tiled, 2 },
};
static const char *const names[] = { "rows",  "direct",   "packed",   "clblast",
				     "tiled", "packed-wide", "tiled-32", "tiled-128" };
enum { IMPLS = sizeof impls / sizeof *impls };

// ---- kernels ----

int yk_cl_contract_kernel(struct yk_cl_device *d, const struct yk_cl_contract *c,
			  const struct yk_cl_build *build, bool result, struct yk_cl_entry **to)
{
	struct yk_cl_build b = *build;
	const bool mapped = c->map && result;

	yk_cl_define(&b, "DTYPE", c->dtype);
	if (c->to != c->dtype)
		yk_cl_define(&b, "RESULT", c->to);
	yk_cl_flag(&b, "USE_F64", c->dtype == yoke_f64);
	if (!mapped)
		return yk_cl_kernel_file(d, &b, to);
	yk_cl_flag(&b, "OWN_MATH", d->loops);
	return yk_cl_kernel_map(d, c->op, c->map, &b, to);
}

int yk_cl_contract_enqueue(struct yk_cl_record *r, const int64_t groups[3], const size_t items[2],
			   const char *name)
{
	size_t global[3], local[3] = { items[0], items[1], 1 };

	for (int i = 0; i < 3; i++)
		global[i] = (size_t)groups[i] * local[i];
	return yk_cl_launch(r, 3, global, local, name);
}

int yk_cl_contract_launch(struct yk_cl_record *r, const struct yk_cl_contract *c,
			  const int64_t groups[3], const size_t items[2], const char *name)
{
	yk_cl_arg_struct(r, &c->s, sizeof c->s);
	if (!c->map)
		yk_cl_arg_view(r, &c->op->out[0]);
	else
		yk_cl_arg_map(r, c->map);
	return yk_cl_contract_enqueue(r, groups, items, name);
}

// ---- the op ----

static uint64_t can(struct yk_cl_device *d, const struct yoke_op *op)
{
	struct yoke_map_call map;
	struct yk_cl_contract c, form;
	uint64_t mask = 0;

	if (!yk_cl_contract_of(op, &c, &map))
		return 0;
	uint64_t args = sizeof c.s + 8 * 4 + 8 * (c.map ? map.narg : 2);
	uint64_t dtypes = 1u << c.dtype | (c.map ? map.dtypes : 0);
	if (args > d->info.max_args ||
	    (dtypes & 1u << yoke_f64 && !yk_cl_f64(d)))
		return 0;
	for (int i = 0; i < IMPLS; i++) {
		form = c;
		form.preset = impls[i].preset;
		if (impls[i].variant->takes(d, &form))
			mask |= (uint64_t)1 << i;
	}
	if (mask >> CLBLAST & 1 && yk_cl_clblast_wish() == YK_CL_ALWAYS)
		return 1 << CLBLAST;
	return mask;
}

static int record(struct yk_cl_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yk_cl_variant *v = impls[impl].variant;
	struct yoke_map_call map;
	struct yk_cl_contract c;
	const bool fits = yk_cl_contract_of(op, &c, &map);

	c.preset = impls[impl].preset;
	if (!fits || !v->takes(r->device, &c))
		return yk_cl_error(YOKE_EUNSUPPORTED,
				   "a contraction that this backend does not take");
	return c.s.m && c.s.n && c.batch ? v->record(r, &c) : 0;
}

const struct yk_cl_op yk_cl_contract = { names, IMPLS, can, record };
