// SPDX-License-Identifier: Apache-2.0
// Slices, updates and assignments that start at positions computed by the graph.
// Sizes are static, so a moving window or a growing cache needs no new plan.
#include "config.h"

#include <string.h>

#include "graph/record.h"
#include "ops/rules.h"

// Operands 1 .. rank of x are i64 scalars; absent means 0.
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
static int shape_slice_at(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
static int shape_slice_update_at(struct yk_graph *g, const struct yk_call *c,
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

// Copies a node's operands, since appending moves the arrays; returns their number.
static uint32_t operands(const struct yk_graph *g, uint32_t node, yk_id *in)
{
	const struct yk_node *n = &g->node[node];
	memcpy(in, yk_ins(g, n), n->nin * sizeof *in);
	return n->nin;
}

static void grad_slice_at(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	yk_id in[YOKE_MAX_RANK + 2];
	uint32_t n = operands(g, node, in);
	in[0] = yk_full_like(g, in[0], 0);
	in[n] = gout[0];
	gin[0] = yk_record(g, YK_SLICE_UPDATE_AT, n + 1, in, 0, NULL);
}

static void grad_slice_update_at(struct yk_graph *g, uint32_t node, const yk_id *gout,
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

YK_OP(SLICE_AT) = { .name = "slice_at", .code = YOKE_OP_SLICE_AT, .min_in = 1, .max_in = 9,
	.nout = 1, .shape = shape_slice_at, .grad = grad_slice_at };
YK_OP(SLICE_UPDATE_AT) = { .name = "slice_update_at",
			   .code = YOKE_OP_SLICE_UPDATE_AT,
			   .cast = YK_CAST_WIDEST,
			   .min_in = 2,
			   .max_in = 10,
			   .nout = 1,
			   .shape = shape_slice_update_at,
			   .grad = grad_slice_update_at,
			   .inplace = { { 0, 0 } },
			   .ninplace = 1 };

// Collects the operands: x, then a start for each of its axes.  Returns their number, 0 after an
// error.
static uint32_t with_starts(struct yk_rec *r, yoke_tensor *const *starts, yk_id *in)
{
	if (r->in[0] == YK_BAD)
		return 0;
	uint32_t rank = r->g->value[r->in[0]].rank;
	if (!yk_rec_array(r, (int)rank, starts, "starts"))
		return 0;
	in[0] = r->in[0];
	for (uint32_t i = 0; i < rank; i++)
		if ((in[1 + i] = yk_operand(r->ctx, starts[i], yoke_i64)) == YK_BAD)
			return 0;
	return 1 + rank;
}

yoke_tensor *yoke_slice_at(yoke_tensor *x, yoke_tensor *const *starts,
			   const int64_t *sizes)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	yk_id in[YOKE_MAX_RANK + 1];
	union yoke_attr size[YOKE_MAX_RANK];
	uint32_t n = with_starts(&r, starts, in);
	if (n && !yk_rec_array(&r, (int)n - 1, sizes, "sizes"))
		n = 0;
	for (uint32_t i = 0; i + 1 < n; i++)
		size[i].i = sizes[i];
	return yk_rec_end(&r, n ? yk_record(r.g, YK_SLICE_AT, n, in, n - 1, size) : YK_BAD);
}

static yoke_tensor *update(const char *call, yoke_tensor *x, yoke_tensor *const *starts,
			   yoke_tensor *v)
{
	struct yk_rec r =
		yk_rec_begin_as(call, YK_SLICE_UPDATE_AT, 0, 2, (yoke_tensor *[]){ x, v });
	yk_id in[YOKE_MAX_RANK + 2];
	uint32_t n = with_starts(&r, starts, in);
	if (!n)
		return yk_rec_end(&r, YK_BAD);
	in[n] = r.in[1];
	return yk_rec_end(&r, yk_record(r.g, YK_SLICE_UPDATE_AT, n + 1, in, 0, NULL));
}

yoke_tensor *yoke_slice_update_at(yoke_tensor *x, yoke_tensor *const *starts,
				  yoke_tensor *v)
{
	return update("slice_update_at", x, starts, v);
}

int yoke_assign_at(yoke_tensor *variable, yoke_tensor *const *starts, yoke_tensor *v)
{
	yoke_tensor *next = update("assign_at", variable, starts, v);
	int err = yoke_assign(variable, next);
	yoke_free(next);
	return err;
}
