// SPDX-License-Identifier: Apache-2.0
// Slices and updates whose starts are values: what shapes they take and their gradients.
// Sizes are static, so a window that moves or a cache that fills needs no new plan.

#include "config.h"

#include <string.h>

#include "graph/shape.h"

// Operands 1 .. rank of x are i64 numbers, or absent for 0.
static int want_starts(struct yk_graph *g, const struct yk_call *c)
{
	char text[160];
	for (uint32_t i = 0; i < IN(0)->rank; i++) {
		const struct yk_value *s = has(c, 1 + i) ? IN(1 + i) : NULL;
		if (s && (s->dtype != yoke_i64 || s->rank))
			return yk_op_fail(g, c->op, YOKE_EDTYPE,
					  "the start of axis %u is one i64, got %s", i,
					  yk_describe(s, text));
	}
	return 0;
}

static int want_room(struct yk_graph *g, const struct yk_call *c, int axis, int64_t size)
{
	int64_t n = IN(0)->dims[axis];
	if (size < 0 || size > n)
		return yk_op_fail(g, c->op, YOKE_ERANGE,
				  "%lld elements along axis %d, which has %lld",
				  (long long)size, axis, (long long)n);
	return 0;
}

// x, starts; attr: sizes
int yk_shape_slice_at(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	int err = want_starts(g, c);
	*out = *IN(0);
	for (int i = 0; i < out->rank && !err; i++) {
		err = want_room(g, c, i, c->attr[i].i);
		out->dims[i] = c->attr[i].i;
	}
	return err;
}

// x, starts, v
int yk_shape_slice_update_at(struct yk_graph *g, const struct yk_call *c,
			     struct yk_value *out)
{
	const struct yk_value *x = IN(0), *v = IN(c->nin - 1);
	if (x->dtype != v->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, v);
	if (x->rank != v->rank)
		return fail_two(g, c, YOKE_ESHAPE, "ranks differ:", x, v);
	int err = want_starts(g, c);
	for (int i = 0; i < x->rank && !err; i++)
		err = want_room(g, c, i, v->dims[i]);
	*out = *x;
	return err;
}

// A node's operands, copied, since appending moves the arrays; returns their number.
static uint32_t operands(const struct yk_graph *g, uint32_t node, yk_id *in)
{
	const struct yk_node *n = &g->node[node];
	memcpy(in, yk_ins(g, n), n->nin * sizeof *in);
	return n->nin;
}

void yk_grad_slice_at(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	yk_id in[YOKE_MAX_RANK + 2];
	uint32_t n = operands(g, node, in);
	in[0] = yk_full_like(g, in[0], 0);
	in[n] = gout[0];
	gin[0] = yk_record(g, YK_SLICE_UPDATE_AT, n + 1, in, 0, NULL);
}

void yk_grad_slice_update_at(struct yk_graph *g, uint32_t node, const yk_id *gout,
			     yk_id *gin)
{
	yk_id in[YOKE_MAX_RANK + 2];
	uint32_t n = operands(g, node, in);
	struct yk_value v = g->value[in[n - 1]];
	union yoke_attr size[YOKE_MAX_RANK];
	for (int i = 0; i < v.rank; i++)
		size[i].i = v.dims[i];
	in[0] = gout[0];
	gin[n - 1] = yk_record(g, YK_SLICE_AT, n - 1, in, v.rank, size);
	in[n - 1] = yk_full_like(g, in[n - 1], 0);
	gin[0] = yk_record(g, YK_SLICE_UPDATE_AT, n, in, 0, NULL);
}
