// SPDX-License-Identifier: Apache-2.0
// Layer norm, RMS norm and batch norm.
// Ba et al. 2016; Zhang and Sennrich 2019; Ioffe and Szegedy 2015.  Batch norm has no kernel: it is
// an op for its gradient, which takes few passes over x and stores nothing of x's size.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

static int norm_dtype(const struct yk_graph *g, const struct yk_call *c)
{
	yk_id like = c->in[0];
	for (uint32_t k = c->nin - 1; k; k--)
		if (has(c, k))
			like = c->in[k];
	return g->value[like].dtype;
}

static int want_norm_weights(struct yk_graph *g, const struct yk_call *c, int64_t n)
{
	const struct yk_value *x = IN(0);
	struct yk_value row = { .rank = 1, .dims = { n }, .dtype = (uint8_t)norm_dtype(g, c) };
	if (row.dtype != x->dtype && row.dtype != yk_acc(x->dtype))
		row.dtype = x->dtype;
	for (uint32_t k = 1; k < c->nin; k++)
		if (want_like(g, c, k, &row) < 0)
			return YOKE_ESHAPE;
	return 0;
}

// x, w [, b] -> y [, mean], rstd; w and b in x's dtype or in its accumulator's
static int shape_norm(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (!x->rank || !x->dims[x->rank - 1])
		return fail_one(g, c, YOKE_ESHAPE, "takes a last axis with elements, got",
				x);
	if (want_norm_weights(g, c, x->dims[x->rank - 1]) < 0)
		return YOKE_ESHAPE;
	struct yk_value stat = *x;
	stat.rank--;
	stat.dtype = (uint8_t)yk_acc(x->dtype);
	out[0] = *x;
	out[1] = stat;
	if (c->op == YK_LAYER_NORM)
		out[2] = stat;
	return 0;
}

// x, w, [mean,] rstd, g -> dx, dw [, db]; attr: dtype of dw and db
static int shape_norm_backward(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	struct yk_value row = { .dtype = (uint8_t)c->attr[0].i,
				.rank = 1,
				.dims = { x->dims[x->rank - 1] } };
	out[0] = *x;
	out[1] = row;
	if (c->op == YK_LAYER_NORM_BACKWARD)
		out[2] = row;
	return want_like(g, c, c->nin - 1, x);
}

static void decompose_layer_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	// two passes: first the mean, then the mean square of the differences
	yk_id x = yk_cast_acc(g, c->in[0]), w = yk_cast_acc(g, c->in[1]),
	      b = yk_cast_acc(g, c->in[2]);
	yk_id mean = yk_mean_last(g, x), d = yk_bin(g, YK_SUB, x, mean);
	yk_id var = yk_mean_last(g, yk_un(g, YK_SQUARE, d));
	yk_id rstd = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, var, c->attr[0].f));
	yk_id y = yk_bin(g, YK_MUL, d, rstd);
	if (w != YK_NIL)
		y = yk_bin(g, YK_MUL, y, w);
	if (b != YK_NIL)
		y = yk_bin(g, YK_ADD, y, b);
	out[0] = yk_cast_like(g, y, c->in[0]);
	out[1] = yk_drop_last(g, mean);
	out[2] = yk_drop_last(g, rstd);
}

static void decompose_rms_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]), w = yk_cast_acc(g, c->in[1]);
	yk_id ms = yk_mean_last(g, yk_un(g, YK_SQUARE, x));
	yk_id rstd = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, ms, c->attr[0].f));
	yk_id y = yk_bin(g, YK_MUL, x, rstd);
	if (w != YK_NIL)
		y = yk_bin(g, YK_MUL, y, w);
	out[0] = yk_cast_like(g, y, c->in[0]);
	out[1] = yk_drop_last(g, rstd);
}

// xhat: the normalised x; subtract: whether the gradient's mean is subtracted too (layer norm)
static void norm_backward(struct yk_graph *g, yk_id xhat, yk_id w, yk_id rstd, yk_id cot,
		      bool subtract, const struct yk_call *c, yk_id *out)
{
	yk_id gw = w == YK_NIL ? cot : yk_bin(g, YK_MUL, cot, w);
	yk_id along = yk_mean_last(g, yk_bin(g, YK_MUL, gw, xhat));
	yk_id dx = yk_bin(g, YK_SUB, gw, yk_bin(g, YK_MUL, xhat, along));
	if (subtract)
		dx = yk_bin(g, YK_SUB, dx, yk_mean_last(g, gw));
	out[0] = yk_cast_like(g, yk_bin(g, YK_MUL, dx, rstd), c->in[0]);
	unsigned rows = yk_last_axis(g, c->in[0]) - 1;
	const int dtype = (int)c->attr[0].i;
	out[1] = yk_cast(g, yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, cot, xhat), rows, false),
			 dtype);
	if (subtract)
		out[2] = yk_cast(g, yk_reduce(g, YK_SUM, cot, rows, false), dtype);
}

static void decompose_layer_norm_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]), rstd = yk_add_last(g, c->in[3]);
	yk_id xhat = yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, x, yk_add_last(g, c->in[2])), rstd);
	norm_backward(g, xhat, yk_cast_acc(g, c->in[1]), rstd, yk_cast_acc(g, c->in[4]), true, c,
		      out);
}

static void decompose_rms_norm_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id rstd = yk_add_last(g, c->in[2]);
	yk_id xhat = yk_bin(g, YK_MUL, yk_cast_acc(g, c->in[0]), rstd);
	norm_backward(g, xhat, yk_cast_acc(g, c->in[1]), rstd, yk_cast_acc(g, c->in[3]), false, c,
		      out);
}

static void grad_norm(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	// mean and rstd are by-products: their cotangents are ignored
	struct yk_node_copy n = yk_node_copy(g, node);
	bool layer = n.op == YK_LAYER_NORM;
	yk_id in[5] = { n.in[0], n.in[1], n.y + 1, n.y + 2, gout[0] };
	if (!layer)
		in[3] = gout[0];
	const struct yk_call forward = { .nin = n.nin, .in = n.in };
	union yoke_attr dtype = { .i = norm_dtype(g, &forward) };
	struct yk_call c = { .op = layer ? YK_LAYER_NORM_BACKWARD : YK_RMS_NORM_BACKWARD,
			     .nin = layer ? 5 : 4,
			     .in = in,
			     .nattr = 1,
			     .attr = &dtype };
	if (gout[0] != YK_NIL)
		yk_append_backward(g, &c, layer ? 3 : 2, n.in, (uint32_t[]){ 0, 1, 2 }, gin);
}

// ---- batch norm ----

// x [B,C,..], w, b -> y, mean [C], var [C] (biased); w and b [C] or none, in x's dtype or its
// accumulator's; attr: eps
static int shape_batch_norm(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (x->rank < 2)
		return fail_one(g, c, YOKE_ESHAPE, "takes [B,C,..], got", x);
	if (want_norm_weights(g, c, x->dims[1]) < 0)
		return YOKE_ESHAPE;
	out[0] = *x;
	out[1] = out[2] = (struct yk_value){ .rank = 1,
					     .dims = { x->dims[1] },
					     .dtype = (uint8_t)yk_acc(x->dtype) };
	return 0;
}

// The mask of all axes except the channel axis.
static unsigned others(const struct yk_value *x)
{
	return ((1u << x->rank) - 1) & ~2u;
}

// [C] reshaped to broadcast with x; none stays none.
static yk_id by_channel(struct yk_graph *g, yk_id t, const struct yk_value *x)
{
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < x->rank; i++)
		dims[i] = i == 1 ? x->dims[1] : 1;
	return t == YK_NIL || t == YK_BAD ? t : yk_reshape(g, t, x->rank, dims);
}

static yk_id flat(struct yk_graph *g, yk_id t, const struct yk_value *x)
{
	return yk_reshape(g, t, 1, &x->dims[1]);
}

static void decompose_batch_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value v = g->value[c->in[0]];
	const yk_id x = yk_cast_acc(g, c->in[0]), w = by_channel(g, yk_cast_acc(g, c->in[1]), &v),
		    b = by_channel(g, yk_cast_acc(g, c->in[2]), &v);
	const yk_id mean = yk_mean(g, x, others(&v), true);
	// separate from the difference that is scaled below
	const yk_id square = yk_un(g, YK_SQUARE, yk_bin(g, YK_SUB, mean, x));
	const yk_id var = yk_mean(g, square, others(&v), true);
	yk_id scale = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, var, c->attr[0].f));
	if (w != YK_NIL)
		scale = yk_bin(g, YK_MUL, scale, w);
	yk_id y = yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, x, mean), scale);
	if (b != YK_NIL)
		y = yk_bin(g, YK_ADD, y, b);
	out[0] = yk_cast_like(g, y, c->in[0]);
	out[1] = flat(g, mean, &v);
	out[2] = flat(g, var, &v);
}

// db = sum g, dw = sum g (x r - mean r), dx = s g - (x p + q), where r = 1 / sqrt(var + eps), s = w
// r, p = s r dw / n and q = s db / n - mean p.
static void grad_batch_norm(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node *n = &g->node[node];
	const yk_id in[3] = { yk_ins(g, n)[0], yk_ins(g, n)[1], yk_ins(g, n)[2] }, y = n->out;
	const double eps = yk_attrs(g, n)[0].f;
	if (gout[0] == YK_NIL)
		return;
	const struct yk_value v = g->value[in[0]];
	const yk_id x = yk_cast_acc(g, in[0]), w = by_channel(g, yk_cast_acc(g, in[1]), &v),
		    cot = yk_cast_acc(g, gout[0]);
	const yk_id mean = by_channel(g, y + 1, &v), var = by_channel(g, y + 2, &v);
	const double share = 1 / yk_reduced(&v, others(&v));
	const yk_id r = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, var, eps)),
		    s = w == YK_NIL ? r : yk_bin(g, YK_MUL, w, r);
	const yk_id hat = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, x, r), yk_bin(g, YK_MUL, mean, r));
	const yk_id db = yk_reduce(g, YK_SUM, cot, others(&v), true);
	const yk_id dw = yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, cot, hat), others(&v), true);
	const yk_id p =
		yk_bin(g, YK_MUL, yk_bin(g, YK_MUL, s, r), yk_bin_lit(g, YK_MUL, dw, share));
	const yk_id q = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, s, yk_bin_lit(g, YK_MUL, db, share)),
			       yk_bin(g, YK_MUL, mean, p));
	const yk_id dx = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, cot, s),
				yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, x, p), q));
	gin[0] = yk_cast_like(g, dx, in[0]);
	if (in[1] != YK_NIL)
		gin[1] = yk_cast(g, flat(g, dw, &v), g->value[in[1]].dtype);
	if (in[2] != YK_NIL)
		gin[2] = yk_cast(g, flat(g, db, &v), g->value[in[2]].dtype);
}

YK_OP(BATCH_NORM) = { .name = "batch_norm",
		      .flags = YK_F_FLOAT,
		      .cast = YK_CAST_INSIDE,
		      .min_in = 3,
		      .max_in = 3,
		      .nout = 3,
		      .shape = shape_batch_norm,
		      .grad = grad_batch_norm,
		      .decompose = decompose_batch_norm };
YK_OP(LAYER_NORM) = { .name = "layer_norm", .code = YOKE_OP_LAYER_NORM, .flags = YK_F_FLOAT,
	.cast = YK_CAST_INSIDE, .min_in = 3, .max_in = 3, .nout = 3, .shape = shape_norm,
	.grad = grad_norm,
	.decompose = decompose_layer_norm };
YK_OP(LAYER_NORM_BACKWARD) = { .name = "layer_norm_backward", .code = YOKE_OP_LAYER_NORM_BACKWARD,
	.flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 5, .max_in = 5, .nout = 3,
	.shape = shape_norm_backward, .decompose = decompose_layer_norm_backward,
	.inplace = { { 4, 0 } }, .ninplace = 1 };
YK_OP(RMS_NORM) = { .name = "rms_norm", .code = YOKE_OP_RMS_NORM, .flags = YK_F_FLOAT,
	.cast = YK_CAST_INSIDE, .min_in = 2, .max_in = 2, .nout = 2, .shape = shape_norm,
	.grad = grad_norm,
	.decompose = decompose_rms_norm };
YK_OP(RMS_NORM_BACKWARD) = { .name = "rms_norm_backward", .code = YOKE_OP_RMS_NORM_BACKWARD,
	.flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 4, .max_in = 4, .nout = 2,
	.shape = shape_norm_backward, .decompose = decompose_rms_norm_backward,
	.inplace = { { 3, 0 } }, .ninplace = 1 };

// ---- layers ----

yoke_tensor *yoke_layer_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps)
{
	struct yk_rec r = yk_rec_begin_with(YK_LAYER_NORM, 2 | 4, 3, (yoke_tensor *[]){ x, w, b });
	return yk_rec_end(&r, yk_record(r.g, YK_LAYER_NORM, 3, r.in, 1,
					&(union yoke_attr){ .f = eps }));
}

yoke_tensor *yoke_rms_norm(yoke_tensor *x, yoke_tensor *w, double eps)
{
	struct yk_rec r = yk_rec_begin_with(YK_RMS_NORM, 2, 2, (yoke_tensor *[]){ x, w });
	return yk_rec_end(&r, yk_record(r.g, YK_RMS_NORM, 2, r.in, 1,
					&(union yoke_attr){ .f = eps }));
}

yoke_tensor *yoke_batch_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps,
			     yoke_tensor **mean, yoke_tensor **var)
{
	struct yk_rec r = yk_rec_begin_with(YK_BATCH_NORM, 2 | 4, 3, (yoke_tensor *[]){ x, w, b });
	yoke_tensor **const more[] = { mean, var };
	for (int i = 0; i < 2; i++)
		if (more[i])
			*more[i] = NULL;
	const yk_id y = yk_record(r.g, YK_BATCH_NORM, 3, r.in, 1, &(union yoke_attr){ .f = eps });
	for (yk_id i = 0; i < 2 && y != YK_BAD; i++)
		if (more[i] && !(*more[i] = yk_handle_of(r.ctx, y + 1 + i)))
			return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, y);
}
