// SPDX-License-Identifier: Apache-2.0
// Softmax, log softmax and logsumexp along an axis.
#include "config.h"

#include <math.h>

#include "graph/record.h"
#include "ops/rules.h"

// attr: logarithm
static int shape_softmax(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (want_float(g, c, IN(0)) < 0)
		return YOKE_EDTYPE;
	if (!IN(0)->rank)
		return fail_one(g, c, YOKE_ESHAPE, "takes at least one axis, got", IN(0));
	*out = *IN(0);
	return 0;
}

static int shape_softmax_backward(struct yk_graph *g, const struct yk_call *c,
			  struct yk_value *out)
{
	*out = *IN(0);
	return want_like(g, c, 1, out);
}

static void decompose_softmax(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]);
	yk_id d = yk_bin(g, YK_SUB, x, yk_row_max(g, x, g->value[c->in[0]].rank - 1));
	yk_id e = yk_un(g, YK_EXP, d), s = yk_sum_last(g, e);
	if (c->attr[0].i)
		d = yk_bin(g, YK_SUB, d, yk_un(g, YK_LOG, s));
	else
		d = yk_bin(g, YK_DIV, e, s);
	out[0] = yk_cast_like(g, d, c->in[0]);
}

static void decompose_softmax_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id y = yk_cast_acc(g, c->in[0]), cot = yk_cast_acc(g, c->in[1]), dx;
	if (c->attr[0].i) // g - exp(y) sum g
		dx = yk_bin(g, YK_SUB, cot,
			    yk_bin(g, YK_MUL, yk_un(g, YK_EXP, y), yk_sum_last(g, cot)));
	else // y (g - sum g y)
		dx = yk_bin(
			g, YK_MUL, y,
			yk_bin(g, YK_SUB, cot, yk_sum_last(g, yk_bin(g, YK_MUL, cot, y))));
	out[0] = yk_cast_like(g, dx, c->in[0]);
}

static void grad_softmax(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	gin[0] = yk_record(g, YK_SOFTMAX_BACKWARD, 2, (yk_id[]){ n.y, gout[0] }, 1, n.attr);
}

YK_OP(SOFTMAX) = { .name = "softmax", .code = YOKE_OP_SOFTMAX, .flags = YK_F_FLOAT,
	.cast = YK_CAST_INSIDE, .min_in = 1, .max_in = 1, .nout = 1, .shape = shape_softmax,
	.grad = grad_softmax,
	.decompose = decompose_softmax, .inplace = { { 0, 0 } }, .ninplace = 1 };
YK_OP(SOFTMAX_BACKWARD) = { .name = "softmax_backward", .code = YOKE_OP_SOFTMAX_BACKWARD,
	.flags = YK_F_FLOAT, .min_in = 2, .max_in = 2, .nout = 1, .shape = shape_softmax_backward,
	.decompose = decompose_softmax_backward, .inplace = { { 1, 0 } }, .ninplace = 1 };

// The op works on the last axis; others are exchanged with it.
static yoke_tensor *softmax(const char *call, yoke_tensor *x, int axis, int logarithm)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_SOFTMAX, 0, 1, &x);
	int at;
	if (r.in[0] == YK_BAD || !yk_rec_check_axis(&r) ||
	    (at = yk_rec_axis(&r, r.in[0], axis)) < 0)
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_rec_last(&r, r.in[0], at);
	v = yk_record(r.g, YK_SOFTMAX, 1, &v, 1, &(union yoke_attr){ .i = logarithm });
	return yk_rec_end(&r, yk_rec_last(&r, v, at));
}

yoke_tensor *yoke_softmax(yoke_tensor *x, int axis)
{
	return softmax("softmax", x, axis, 0);
}

yoke_tensor *yoke_log_softmax(yoke_tensor *x, int axis)
{
	return softmax("log_softmax", x, axis, 1);
}

yoke_tensor *yoke_logsumexp(yoke_tensor *x, int axis)
{
	// max + log sum exp(x - max), where the maximum is held constant: its gradients cancel
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	int at;
	if (r.in[0] == YK_BAD || !yk_rec_check_axis(&r) ||
	    (at = yk_rec_axis(&r, r.in[0], axis)) < 0)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value shape = r.g->value[r.in[0]];
	unsigned along = 1u << at;
	yk_id v = yk_cast_acc(r.g, r.in[0]), y;
	if (shape.dims[at]) {
	// an infinite maximum is the result, and the elements equal to it share the gradient
	yk_id max = yk_reduce(r.g, YK_REDUCE_MAX, v, along, true),
	      zero = yk_lit(r.g, yk_acc(shape.dtype), 0);
	yk_id infinite = yk_bin_lit(r.g, YK_EQ, yk_un(r.g, YK_ABS, max), INFINITY);
	yk_id base = yk_tri(r.g, YK_SELECT, infinite, zero, yk_un(r.g, YK_STOP_GRAD, max));
	yk_id e = yk_un(r.g, YK_EXP,
			yk_bin(r.g, YK_SUB, yk_tri(r.g, YK_SELECT, infinite, zero, v), base));
	yk_id sum = yk_reduce(r.g, YK_SUM, e, along, true);
	y = yk_bin(r.g, YK_ADD, yk_un(r.g, YK_LOG, sum), base);
	y = yk_tri(r.g, YK_SELECT, infinite, max, y);
	} else { // the logarithm of an empty sum
		y = yk_un(r.g, YK_LOG, yk_reduce(r.g, YK_SUM, v, along, true));
	}
	for (int i = at; i < shape.rank - 1; i++)
		shape.dims[i] = shape.dims[i + 1];
	y = yk_reshape(r.g, y, shape.rank - 1, shape.dims);
	return yk_rec_end(&r, yk_cast_like(r.g, y, r.in[0]));
}
