// SPDX-License-Identifier: Apache-2.0
// Grouped matrix products: each group of rows has its own matrix (mixtures of experts).
// The decomposition multiplies all rows by all matrices and keeps each group's own product.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// x [T,K], w [E,K,N] or, for attribute 1, [E,N,K], first [E+1] -> [T,N]
static int shape_grouped(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *w = IN(1), *first = IN(2);
	const int turned = c->attr[0].i != 0;
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (w->dtype != x->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, w);
	if (x->rank != 2 || w->rank != 3 || w->dims[1 + turned] != x->dims[1])
		return fail_two(g, c, YOKE_ESHAPE, "expects [T,K] and [E,K,N], got", x, w);
	if (first->dtype != yoke_i64 || first->rank != 1 || first->dims[0] != w->dims[0] + 1)
		return fail_two(g, c, YOKE_ESHAPE,
				"expects [E,K,N] and offsets of the groups, i64 [E+1], got", w,
				first);
	*out = *x;
	out->dims[1] = w->dims[2 - turned];
	return want_size(g, c, out);
}

// x [T,K], g [T,N], first [E+1] -> [E,K,N]
static int shape_grouped_backward(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *cot = IN(1), *first = IN(2);
	if (cot->dtype != x->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, cot);
	if (x->rank != 2 || cot->rank != 2 || cot->dims[0] != x->dims[0] || first->rank != 1 ||
	    !first->dims[0])
		return fail_two(g, c, YOKE_ESHAPE, "expects [T,K] and [T,N], got", x, cot);
	*out = (struct yk_value){ .dtype = x->dtype, .rank = 3,
				  .dims = { first->dims[0] - 1, x->dims[1], cot->dims[1] } };
	return want_size(g, c, out);
}

// ---- decompositions ----

// bool [E,T,1]: is row t in group e?
static yk_id members(struct yk_graph *g, yk_id first, int64_t rows)
{
	const int64_t groups = g->value[first].dims[0] - 1, step = 1;
	yk_id start = yk_slice(g, first, &(int64_t){ 0 }, &step, &groups);
	yk_id size = yk_bin(g, YK_SUB, yk_slice(g, first, &(int64_t){ 1 }, &step, &groups), start);
	start = yk_within(g, start, rows);
	yk_id end = yk_within(g, yk_bin(g, YK_ADD, start, yk_within(g, size, rows)), rows);
	start = yk_reshape(g, start, 2, (int64_t[]){ groups, 1 });
	end = yk_reshape(g, end, 2, (int64_t[]){ groups, 1 });
	yk_id t = yk_counting(g, rows);
	yk_id in = yk_bin(g, YK_AND, yk_bin(g, YK_GE, t, start), yk_bin(g, YK_LT, t, end));
	return yk_reshape(g, in, 3, (int64_t[]){ groups, rows, 1 });
}

// x [T,C] as [E,T,C], 0 for rows of other groups
static yk_id spread(struct yk_graph *g, yk_id x, yk_id in)
{
	if (x == YK_BAD)
		return x;
	const struct yk_value v = g->value[x];
	x = yk_reshape(g, x, 3, (int64_t[]){ 1, v.dims[0], v.dims[1] });
	return yk_tri(g, YK_SELECT, in, x, yk_lit(g, v.dtype, 0));
}

static void decompose_grouped(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id in = members(g, c->in[2], g->value[c->in[0]].dims[0]);
	yk_id y = yk_matmul(g, spread(g, yk_cast_acc(g, c->in[0]), in), yk_cast_acc(g, c->in[1]),
			    c->attr[0].i ? YOKE_TB : 0);
	// select, not multiply: 0 times another group's matrix could be NaN
	if (y != YK_BAD)
		y = yk_tri(g, YK_SELECT, in, y, yk_lit(g, g->value[y].dtype, 0));
	out[0] = yk_cast_like(g, yk_reduce(g, YK_SUM, y, 1u << 0, false), c->in[0]);
}

static void decompose_grouped_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id in = members(g, c->in[2], g->value[c->in[0]].dims[0]);
	yk_id x = spread(g, yk_cast_acc(g, c->in[0]), in),
	      cot = spread(g, yk_cast_acc(g, c->in[1]), in);
	out[0] = yk_cast_like(g, yk_matmul(g, x, cot, YOKE_TA), c->in[0]);
}

// ---- gradients ----

static void grad_grouped(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	const yk_id x = in[0], w = in[1], first = in[2];
	const bool turned = yk_attrs(g, &g->node[node])[0].i != 0;
	gin[0] = yk_record(g, YK_GROUPED, 3, (yk_id[]){ gout[0], w, first }, 1,
			   &(union yoke_attr){ .i = !turned });
	gin[1] = yk_record(g, YK_GROUPED_BACKWARD, 3,
			   turned ? (yk_id[]){ gout[0], x, first } : (yk_id[]){ x, gout[0], first },
			   0, NULL);
}

static void grad_grouped_backward(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	const yk_id x = in[0], cot = in[1], first = in[2];
	gin[0] = yk_record(g, YK_GROUPED, 3, (yk_id[]){ cot, gout[0], first }, 1,
			   &(union yoke_attr){ .i = 1 });
	gin[1] = yk_record(g, YK_GROUPED, 3, (yk_id[]){ x, gout[0], first }, 1,
			   &(union yoke_attr){ .i = 0 });
}

YK_OP(GROUPED) = { .name = "grouped_matmul",
		   .code = YOKE_OP_GROUPED,
		   .flags = YK_F_FLOAT,
		   .min_in = 3,
		   .max_in = 3,
		   .nout = 1,
		   .cast = YK_CAST_HALF,
		   .shape = shape_grouped,
		   .grad = grad_grouped,
		   .decompose = decompose_grouped };
YK_OP(GROUPED_BACKWARD) = { .name = "grouped_matmul_backward",
			    .code = YOKE_OP_GROUPED_BACKWARD,
			    .flags = YK_F_FLOAT,
			    .min_in = 3,
			    .max_in = 3,
			    .nout = 1,
			    .shape = shape_grouped_backward,
			    .grad = grad_grouped_backward,
			    .decompose = decompose_grouped_backward };

yoke_tensor *yoke_grouped_matmul(yoke_tensor *x, yoke_tensor *w, yoke_tensor *first)
{
	struct yk_rec r = yk_rec_begin_op(YK_GROUPED, 3, (yoke_tensor *[]){ x, w, first });
	return yk_rec_end(&r, yk_record(r.g, YK_GROUPED, 3, r.in, 1, &(union yoke_attr){ .i = 0 }));
}
