// SPDX-License-Identifier: Apache-2.0
// What every recording function begins and ends with.

#include "config.h"

#include "base/error.h"
#include "graph/record.h"

struct yk_rec yk_rec_begin_with(int n, yoke_tensor *const *t, unsigned optional)
{
	static struct yk_graph
		nowhere; // never written: operands that are YK_BAD append nothing
	struct yk_rec r = { .g = &nowhere };
	for (int i = 0; i < n; i++)
		r.in[i] = YK_BAD;
	struct yoke_context *ctx = NULL;
	int dtype = 0;
	for (int i = 0; i < n; i++) {
		if (!t[i] || t[i] == YOKE_NONE)
			continue;
		if (!ctx)
			ctx = t[i]->ctx;
		if (!dtype)
			dtype = t[i]->dtype;
	}
	if (!ctx) {
		if (n && !yoke_error_code())
			yk_fail(YOKE_EINVAL,
				"an operand is NULL; optional ones are YOKE_NONE");
		if (n || !(ctx = yk_current()))
			return r;
	}
	if (yk_enter(ctx) < 0)
		return r;
	r.ctx = ctx;
	r.g = &ctx->graph;
	for (int i = 0; i < n; i++) {
		r.in[i] = yk_operand(ctx, t[i], dtype ? dtype : yoke_f32);
		if (r.in[i] != YK_NIL || optional >> i & 1)
			continue;
		yk_fail(YOKE_EINVAL, "operand %d is YOKE_NONE and not optional", i);
		r.in[i] = YK_BAD;
	}
	return r;
}

struct yk_rec yk_rec_begin(int n, yoke_tensor *const *t)
{
	return yk_rec_begin_with(n, t, 0);
}

yoke_tensor *yk_rec_end(struct yk_rec *r, yk_id result)
{
	if (!r->ctx)
		return NULL;
	yoke_tensor *t = NULL;
	if (result != YK_BAD && !yk_recorded(r->ctx))
		t = yk_handle_of(r->ctx, result);
	yk_leave(r->ctx);
	return t;
}

bool yk_rec_fit(struct yk_rec *r, int map)
{
	struct yk_call c = { .op = (uint16_t)map, .nin = 2, .in = r->in };
	struct yk_value out;
	return r->in[0] != YK_BAD && r->in[1] != YK_BAD && !yk_ops[map].shape(r->g, &c, &out);
}

int yk_rec_axis(struct yk_rec *r, int op, yk_id x, int axis)
{
	if (x == YK_BAD)
		return YOKE_EINVAL;
	int rank = r->g->value[x].rank, k = axis < 0 ? axis + rank : axis;
	if (k < 0 || k >= rank)
		return yk_op_fail(r->g, op, YOKE_ERANGE, "axis %d of a tensor of rank %d",
				  axis, rank);
	return k;
}

yk_id yk_rec_last(struct yk_rec *r, yk_id x, int axis)
{
	int last = x == YK_BAD ? axis : r->g->value[x].rank - 1, order[YOKE_MAX_RANK];

	for (int i = 0; i <= last; i++)
		order[i] = i == axis ? last : i == last ? axis : i;
	return axis == last ? x : yk_permute(r->g, x, order);
}
