// SPDX-License-Identifier: Apache-2.0
// Cross entropy of logits and class indices, with ignored rows and label smoothing: one op, with
// kernels.  ops/loss.c has the composed losses.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// logits [N,V], ids [N] -> loss [], lse [N]
static int shape_cross_entropy(struct yk_graph *g, const struct yk_call *c,
			   struct yk_value *out)
{
	const struct yk_value *x = IN(0), *ids = IN(1);
	if (want_float(g, c, x) < 0 || want_index(g, c, ids) < 0)
		return YOKE_EDTYPE;
	if (x->rank != 2 || ids->rank != 1 || ids->dims[0] != x->dims[0] || !x->dims[1])
		return fail_two(g, c, YOKE_ESHAPE, "expects [N,V] and [N], got", x, ids);
	out[0] = (struct yk_value){ .dtype = (uint8_t)yk_acc(x->dtype) };
	out[1] = out[0];
	out[1].rank = 1;
	out[1].dims[0] = x->dims[0];
	return 0;
}

static int shape_cross_entropy_backward(struct yk_graph *g, const struct yk_call *c,
				struct yk_value *out)
{
	*out = *IN(0);
	return 0;
}

// [N,V] bool: is this column the row's id?
static yk_id one_hot(struct yk_graph *g, yk_id ids, int64_t columns)
{
	yk_id column = yk_counting(g, columns);
	return yk_bin(g, YK_EQ, yk_add_last(g, yk_cast(g, ids, yoke_i64)), column);
}

// The number of ids that are not ignored, in x's dtype; *valid [N] marks them.
static yk_id counted(struct yk_graph *g, yk_id ids, int64_t ignore, int dtype,
		     yk_id *valid)
{
	yk_id skip = yk_record(g, YK_CONST, 0, NULL, 2,
			       (union yoke_attr[]){ { .i = yoke_i64 }, { .i = ignore } });
	*valid = yk_bin(g, YK_NE, yk_cast(g, ids, yoke_i64), skip);
	return yk_reduce(g, YK_SUM, yk_cast(g, *valid, dtype), 1, false);
}

static void decompose_cross_entropy(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]), ids = c->in[1], valid;
	int dtype = g->value[x].dtype;
	int64_t columns = g->value[x].dims[1];
	double smooth = c->attr[1].f;
	yk_id max = yk_reduce(g, YK_REDUCE_MAX, x, 2, true);
	yk_id sum = yk_sum_last(g, yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, max)));
	yk_id lse = yk_drop_last(g, yk_bin(g, YK_ADD, max, yk_un(g, YK_LOG, sum)));
	yk_id zero = yk_lit(g, dtype, 0);
	yk_id count = counted(g, ids, c->attr[0].i, dtype, &valid);
	// a gather, not a comparison with all columns, so that an id out of range is an error
	yk_id at = yk_tri(g, YK_SELECT, valid, ids, yk_lit(g, g->value[ids].dtype, 0));
	yk_id picked = yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ x, yk_add_last(g, at) }, 1,
				 &(union yoke_attr){ .i = 1 });
	yk_id loss = yk_bin_lit(g, YK_MUL, yk_drop_last(g, picked), 1 - smooth);
	if (smooth > 0)
		loss = yk_bin(g, YK_ADD, loss,
			      yk_bin_lit(g, YK_MUL, yk_reduce(g, YK_SUM, x, 2, false),
					 smooth / (double)columns));
	loss = yk_bin(g, YK_SUB, lse, loss);
	loss = yk_reduce(g, YK_SUM, yk_tri(g, YK_SELECT, valid, loss, zero), 1, false);
	out[0] = yk_bin(g, YK_DIV, loss, count);
	out[1] = lse;
}

static void decompose_cross_entropy_backward(struct yk_graph *g, const struct yk_call *c,
				     yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]), ids = c->in[1], valid;
	int dtype = g->value[x].dtype;
	int64_t columns = g->value[x].dims[1];
	double smooth = c->attr[1].f;
	yk_id p = yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, yk_add_last(g, c->in[2])));
	yk_id hit = yk_lit(g, dtype, 1 - smooth + smooth / (double)columns);
	yk_id miss = yk_lit(g, dtype, smooth / (double)columns);
	yk_id target = yk_tri(g, YK_SELECT, one_hot(g, ids, columns), hit, miss);
	yk_id each =
		yk_bin(g, YK_DIV, c->in[3], counted(g, ids, c->attr[0].i, dtype, &valid));
	yk_id d = yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, p, target), each);
	out[0] = yk_cast_like(
		g, yk_tri(g, YK_SELECT, yk_add_last(g, valid), d, yk_lit(g, dtype, 0)), c->in[0]);
}

static void grad_cross_entropy(struct yk_graph *g, uint32_t node, const yk_id *gout,
			   yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	if (gout[0] != YK_NIL)
		gin[0] = yk_record(g, YK_CROSS_ENTROPY_BACKWARD, 4,
				   (yk_id[]){ n.in[0], n.in[1], n.y + 1, gout[0] }, 2,
				   n.attr);
}

YK_OP(CROSS_ENTROPY) = { .name = "cross_entropy", .code = YOKE_OP_CROSS_ENTROPY,
	.cast = YK_CAST_INSIDE, .flags = YK_F_FLOAT, .min_in = 2, .max_in = 2, .nout = 2,
	.shape = shape_cross_entropy, .grad = grad_cross_entropy,
	.decompose = decompose_cross_entropy };
YK_OP(CROSS_ENTROPY_BACKWARD) = { .name = "cross_entropy_backward",
				  .code = YOKE_OP_CROSS_ENTROPY_BACKWARD,
				  .flags = YK_F_FLOAT,
				  .min_in = 4,
				  .max_in = 4,
				  .nout = 1,
				  .shape = shape_cross_entropy_backward,
				  .decompose = decompose_cross_entropy_backward,
				  .inplace = { { 0, 0 } },
				  .ninplace = 1 };

yoke_tensor *yoke_cross_entropy(yoke_tensor *logits, yoke_tensor *ids, int64_t ignore,
				double smooth)
{
	struct yk_rec r = yk_rec_begin_op(YK_CROSS_ENTROPY, 2, (yoke_tensor *[]){ logits, ids });
	yk_id x = r.in[0], t = r.in[1];
	if (x == YK_BAD || t == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value v = r.g->value[x], vt = r.g->value[t];
	struct yk_value lead = v;
	lead.rank = v.rank ? v.rank - 1 : 0;
	char a[160], b[160];
	if (!v.rank || !yk_same_shape(&lead, &vt)) {
		yk_rec_fail(&r, YOKE_ESHAPE,
			   "expects [..,V] and [..], got %s and %s", yk_describe(&v, a),
			   yk_describe(&vt, b));
		return yk_rec_end(&r, YK_BAD);
	}
	if (!(smooth >= 0 && smooth < 1)) {
		yk_rec_fail(&r, YOKE_ERANGE,
			   "smoothing %g is not in [0, 1)", smooth);
		return yk_rec_end(&r, YK_BAD);
	}
	if (v.rank != 2) {
		int64_t rows = yk_count(&vt);
		x = yk_reshape(r.g, x, 2, (int64_t[]){ rows, v.dims[v.rank - 1] });
		t = yk_reshape(r.g, t, 1, &rows);
	}
	return yk_rec_end(
		&r, yk_record(r.g, YK_CROSS_ENTROPY, 2, (yk_id[]){ x, t }, 2,
			      (union yoke_attr[]){ { .i = ignore }, { .f = smooth } }));
}
