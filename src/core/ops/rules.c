// SPDX-License-Identifier: Apache-2.0
// Helpers shared by op families; rules.h documents them.
#include "config.h"

#include <math.h>
#include <string.h>

#include "ops/rules.h"

bool yk_dims_broadcast(struct yk_value *to, const struct yk_value *b)
{
	int rank = to->rank > b->rank ? to->rank : b->rank;
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++) {
		int ia = i - (rank - to->rank), ib = i - (rank - b->rank);
		int64_t da = ia < 0 ? 1 : to->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
		if (da != db && da != 1 && db != 1)
			return false;
		dims[i] = da == 1 ? db : da;
	}
	memcpy(to->dims, dims, sizeof *dims * (size_t)rank);
	to->rank = (uint8_t)rank;
	return true;
}

struct yk_node_copy yk_node_copy(const struct yk_graph *g, uint32_t node)
{
	struct yk_node_copy a = { .op = g->node[node].op, .y = g->node[node].out };
	const struct yk_node *n = &g->node[node];
	a.nin = n->nin < 12 ? n->nin : 12;
	memcpy(a.in, yk_ins(g, n), a.nin * sizeof *a.in);
	memcpy(a.attr, yk_attrs(g, n),
	       (n->nattr < 24u ? n->nattr : 24u) * sizeof *a.attr);
	return a;
}

void yk_append_backward(struct yk_graph *g, struct yk_call *c, uint32_t n, const yk_id *operand,
		 const uint32_t *which, yk_id *gin)
{
	yk_id out = YK_BAD;
	for (uint32_t i = 0; i < c->nin; i++)
		if (c->in[i] == YK_BAD)
			goto bad;
	if (!yk_append(g, c, &out)) {
		for (uint32_t i = 0; i < n; i++)
			if (operand[which[i]] != YK_NIL)
				gin[which[i]] = out + i;
		return;
	}
bad:
	for (uint32_t i = 0; i < n; i++)
		gin[which[i]] = YK_BAD;
}

yk_id yk_counting(struct yk_graph *g, int64_t n)
{
	return yk_record(g, YK_IOTA, 0, NULL, 1, &(union yoke_attr){ .i = n });
}

yk_id yk_within(struct yk_graph *g, yk_id x, int64_t max)
{
	return yk_record(g, YK_GATHER, 2, (yk_id[]){ yk_counting(g, max + 1), x }, 1,
			 &(union yoke_attr){ .i = 0 });
}

yk_id yk_add_along(struct yk_graph *g, yk_id x, yk_id idx, yk_id v, int axis)
{
	return yk_record(
		g, YK_SCATTER_ADD_ALONG, 3, (yk_id[]){ YK_NIL, idx, v }, 2,
		(union yoke_attr[]){ { .i = axis }, { .i = g->value[x].dims[axis] } });
}

yk_id yk_broadcast_like(struct yk_graph *g, yk_id x, const struct yk_value *like)
{
	return x == YK_BAD || yk_same_shape(&g->value[x], like) ?
		       x :
		       yk_broadcast(g, x, like->rank, like->dims);
}

yk_id yk_slice_axis(struct yk_graph *g, yk_id x, int axis, int64_t start, int64_t size)
{
	if (x == YK_BAD)
		return x;
	int64_t from[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	struct yk_value v = g->value[x];
	for (int i = 0; i < v.rank; i++)
		step[i] = 1;
	from[axis] = start;
	v.dims[axis] = size;
	return yk_slice(g, x, from, step, v.dims);
}

unsigned yk_last_axis(const struct yk_graph *g, yk_id x)
{
	return 1u << (g->value[x].rank - 1);
}

yk_id yk_sum_last(struct yk_graph *g, yk_id x)
{
	return x == YK_BAD ? x : yk_reduce(g, YK_SUM, x, yk_last_axis(g, x), true);
}

yk_id yk_mean_last(struct yk_graph *g, yk_id x)
{
	if (x == YK_BAD)
		return x;
	double n = (double)g->value[x].dims[g->value[x].rank - 1];
	return yk_bin_lit(g, YK_MUL, yk_sum_last(g, x), 1 / n);
}

yk_id yk_drop_last(struct yk_graph *g, yk_id x) // [.., 1] -> [..]
{
	return x == YK_BAD ? x : yk_reshape(g, x, g->value[x].rank - 1, g->value[x].dims);
}

yk_id yk_add_last(struct yk_graph *g, yk_id x) // [..] -> [.., 1]
{
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	v.dims[v.rank] = 1;
	return yk_reshape(g, x, v.rank + 1, v.dims);
}

double yk_dtype_min(int dtype)
{
	switch (dtype) {
	case yoke_i8: return INT8_MIN;
	case yoke_u8: return 0;
	case yoke_i32: return INT32_MIN;
	case yoke_i64: return -0x1p63;
	}
	return -INFINITY;
}

double yk_dtype_max(int dtype)
{
	switch (dtype) {
	case yoke_i8: return INT8_MAX;
	case yoke_u8: return UINT8_MAX;
	case yoke_i32: return INT32_MAX;
	case yoke_i64: return 0x1p63; // casts saturate
	}
	return INFINITY;
}
