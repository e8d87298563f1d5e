// SPDX-License-Identifier: Apache-2.0
// Reductions along axes: sums, products, extremes and their positions, means.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// attr: mask of axes, keep
static int shape_reduce(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	unsigned axes = (unsigned)c->attr[0].i;
	bool arg = c->op == YK_ARGMAX || c->op == YK_ARGMIN;
	if (x->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", x);
	if (axes != YOKE_ALL && axes >> x->rank)
		return fail_one(g, c, YOKE_ERANGE, "no such axis in", x);
	*out = (struct yk_value){ .dtype = arg ? yoke_i64 : x->dtype };
	for (int i = 0; i < x->rank; i++) {
		if (!(axes >> i & 1)) {
			out->dims[out->rank++] = x->dims[i];
			continue;
		}
		if (!x->dims[i] && c->op != YK_SUM && c->op != YK_PROD)
			return fail_one(g, c, YOKE_ESHAPE,
					"nothing to choose from along an empty axis of",
					x);
		if (c->attr[1].i)
			out->dims[out->rank++] = 1;
	}
	return 0;
}

// y, the result of reducing x over `axes` or its cotangent, broadcast back to the shape of x
static yk_id unreduce(struct yk_graph *g, yk_id y, yk_id x, unsigned axes)
{
	if (y == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x], kept = v;
	for (int i = 0; i < v.rank; i++)
		if (axes >> i & 1)
			kept.dims[i] = 1;
	if (!yk_same_shape(&g->value[y], &kept))
		y = yk_reshape(g, y, kept.rank, kept.dims);
	return yk_broadcast(g, y, v.rank, v.dims);
}

static void grad_sum(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	gin[0] = unreduce(g, gout[0], n.in[0], (unsigned)n.attr[0].i);
}

static void grad_extreme(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	// cot [x = y] / (number of equal elements), counted and divided in the accumulator's dtype;
	// the comparison is made twice, once inside the sum, so that it is not stored for all of x
	struct yk_node_copy n = yk_node_copy(g, node);
	unsigned axes = (unsigned)n.attr[0].i;
	yk_id x = n.in[0], y = unreduce(g, n.y, x, axes);
	yk_id one = yk_cast(g, yk_bin(g, YK_EQ, x, y), yk_acc(g->value[x].dtype));
	yk_id ties = yk_reduce(g, YK_SUM, one, axes, n.attr[1].i != 0);
	yk_id each = yk_cast_like(g, yk_bin(g, YK_DIV, yk_cast_acc(g, gout[0]), ties), x);
	each = unreduce(g, each, x, axes);
	yk_id zero = yk_lit(g, g->value[x].dtype, 0);
	gin[0] = yk_tri(g, YK_SELECT, yk_bin(g, YK_NE, x, y), zero, each);
}

// The product of the elements before each element along the last axis of x [..,N]; after: of those
// after it.
static yk_id others(struct yk_graph *g, yk_id x, bool after)
{
	if (x == YK_BAD)
		return YK_BAD;
	const int last = g->value[x].rank - 1;
	yk_id t = yk_record(g, YK_CUMPROD, 1, &x, 3,
			    (union yoke_attr[]){ { .i = last },
						 { .i = YOKE_REDUCE_PROD },
						 { .i = after } });
	return yk_moved(g, t, last, 1, after, 1);
}

static void grad_prod(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	// cot times the product of the other elements: those before times those after, without
	// division
	struct yk_node_copy n = yk_node_copy(g, node);
	unsigned axes = (unsigned)n.attr[0].i;
	yk_id x = n.in[0];
	struct yk_value v = g->value[x];
	int order[YOKE_MAX_RANK], back[YOKE_MAX_RANK], rank = 0, kept = 0;
	int64_t dims[YOKE_MAX_RANK], all[YOKE_MAX_RANK], count = 1;
	if (!(axes & ((1u << v.rank) - 1)) || !yk_count(&v)) { // there are no other elements
		gin[0] = yk_count(&v) ? gout[0] : yk_full_like(g, x, 0);
		return;
	}
	for (int last = 0; last < 2; last++) // reduced axes last, merged into one
		for (int i = 0; i < v.rank; i++)
			if ((axes >> i & 1) == (unsigned)last) {
				all[rank] = v.dims[i];
				back[i] = rank;
				order[rank++] = i;
				if (last)
					count *= v.dims[i];
				else
					dims[kept++] = v.dims[i];
			}
	dims[kept] = count;
	x = yk_reshape(g, yk_permute(g, x, order), kept + 1, dims);
	x = yk_bin(g, YK_MUL, others(g, x, false), others(g, x, true));
	x = yk_permute(g, yk_reshape(g, x, v.rank, all), back);
	gin[0] = yk_bin(g, YK_MUL, unreduce(g, gout[0], n.in[0], axes), x);
}

#define REDUCE(N, NAME, KIND, policy, rule) YK_OP(N) = { \
	.name = NAME, .code = YOKE_OP_REDUCE, .map = YOKE_REDUCE_##KIND, .flags = YK_F_REDUCE, \
	.min_in = 1, .max_in = 1, .nout = 1, .cast = policy, .shape = shape_reduce, .grad = rule };

REDUCE(SUM, "sum", SUM, YK_CAST_F32, grad_sum)
REDUCE(PROD, "prod", PROD, YK_CAST_F32, grad_prod)
REDUCE(REDUCE_MAX, "reduce_max", MAX, YK_CAST_F32, grad_extreme)
REDUCE(REDUCE_MIN, "reduce_min", MIN, YK_CAST_F32, grad_extreme)
REDUCE(ARGMAX, "argmax", ARGMAX, YK_CAST_NONE, NULL)
REDUCE(ARGMIN, "argmin", ARGMIN, YK_CAST_NONE, NULL)

static yoke_tensor *reduce(int op, yoke_tensor *x, unsigned axes)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_def(op)->name, op, 0, 1, &x);
	if (!yk_rec_axes(&r, r.in[0], axes))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_reduce(r.g, op, r.in[0], axes & YOKE_ALL, axes & YOKE_KEEP));
}

yoke_tensor *yoke_sum(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_SUM, x, axes);
}

yoke_tensor *yoke_prod(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_PROD, x, axes);
}

yoke_tensor *yoke_reduce_max(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_REDUCE_MAX, x, axes);
}

yoke_tensor *yoke_reduce_min(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_REDUCE_MIN, x, axes);
}

yoke_tensor *yoke_mean(yoke_tensor *x, unsigned axes)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	char text[160];
	if (!yk_rec_axes(&r, r.in[0], axes))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *v = &r.g->value[r.in[0]];
	if (!yk_is_float(v->dtype)) {
		yk_rec_fail(&r, YOKE_EDTYPE, "takes floating point, got %s; cast it",
			    yk_describe(v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, yk_mean(r.g, r.in[0], axes & YOKE_ALL, axes & YOKE_KEEP));
}

static yoke_tensor *arg(int op, yoke_tensor *x, int axis)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_def(op)->name, op, 0, 1, &x);
	int k = yk_rec_axis(&r, r.in[0], axis);
	return yk_rec_end(&r, k < 0 ? YK_BAD : yk_reduce(r.g, op, r.in[0], 1u << k, false));
}

yoke_tensor *yoke_argmax(yoke_tensor *x, int axis)
{
	return arg(YK_ARGMAX, x, axis);
}

yoke_tensor *yoke_argmin(yoke_tensor *x, int axis)
{
	return arg(YK_ARGMIN, x, axis);
}

static yoke_tensor *count_true(const char *call, yoke_tensor *x, unsigned axes, bool all)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_LEAF, 0, 1, &x);
	yk_id v = r.in[0];
	if (!yk_rec_axes(&r, v, axes))
		return yk_rec_end(&r, YK_BAD);
	if (r.g->value[v].dtype != yoke_bool) {
		char text[160];
		yk_rec_fail(&r, YOKE_EDTYPE, "takes bool, got %s",
			    yk_describe(&r.g->value[v], text));
		v = YK_BAD;
	}
	if (all) // all: none is false
		v = yk_un(r.g, YK_NOT, v);
	v = yk_reduce(r.g, YK_SUM, yk_cast(r.g, v, yoke_i64), axes & YOKE_ALL,
		      axes & YOKE_KEEP);
	return yk_rec_end(&r, yk_bin_lit(r.g, all ? YK_EQ : YK_NE, v, 0));
}

yoke_tensor *yoke_any(yoke_tensor *x, unsigned axes)
{
	return count_true("any", x, axes, false);
}

yoke_tensor *yoke_all(yoke_tensor *x, unsigned axes)
{
	return count_true("all", x, axes, true);
}
