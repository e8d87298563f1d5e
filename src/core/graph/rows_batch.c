// SPDX-License-Identifier: Apache-2.0
// Batch norm: no kernel has it, it is always in parts.  It is an op for its gradient, which takes few passes over x and keeps
// nothing of its size; parts read x each in a form of their own, since what two of them share would be written once and
// read twice.  Ioffe and Szegedy 2015.
#include "config.h"

#include "base/error.h"
#include "graph/shape.h"

// x [B,C,..], w, b -> y, mean [C], var [C] (biased); w and b [C] or none, of x's dtype or its accumulator's; attr: eps
int yk_shape_batch_norm(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (x->rank < 2)
		return fail_one(g, c, YOKE_ESHAPE, "takes [B,C,..], got", x);
	if (yk_want_norm_weights(g, c, x->dims[1]) < 0)
		return YOKE_ESHAPE;
	out[0] = *x;
	out[1] = out[2] = (struct yk_value){ .rank = 1, .dims = { x->dims[1] }, .dtype = (uint8_t)yk_acc(x->dtype) };
	return 0;
}

// All axes but that of the channels.
static unsigned others(const struct yk_value *x)
{
	return ((1u << x->rank) - 1) & ~2u;
}

// [C] beside x; none stays none.
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

void yk_decompose_batch_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value v = g->value[c->in[0]];
	const yk_id x = yk_up(g, c->in[0]), w = by_channel(g, yk_up(g, c->in[1]), &v), b = by_channel(g, yk_up(g, c->in[2]), &v);
	const yk_id mean = yk_mean(g, x, others(&v), true);
	const yk_id square = yk_un(g, YK_SQUARE, yk_bin(g, YK_SUB, mean, x)); // not what is scaled below
	const yk_id var = yk_mean(g, square, others(&v), true);
	yk_id scale = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, var, c->attr[0].f));
	if (w != YK_NIL)
		scale = yk_bin(g, YK_MUL, scale, w);
	yk_id y = yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, x, mean), scale);
	if (b != YK_NIL)
		y = yk_bin(g, YK_ADD, y, b);
	out[0] = yk_down(g, y, c->in[0]);
	out[1] = flat(g, mean, &v);
	out[2] = flat(g, var, &v);
}

// db = sum g, dw = sum g (x r - mean r), dx = s g - (x p + q), where r = 1 / sqrt(var + eps), s = w r, p = s r dw / n and
// q = s db / n - mean p.
void yk_grad_batch_norm(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node *n = &g->node[node];
	const yk_id in[3] = { yk_ins(g, n)[0], yk_ins(g, n)[1], yk_ins(g, n)[2] }, y = n->out;
	const double eps = yk_attrs(g, n)[0].f;
	if (gout[0] == YK_NIL)
		return;
	const struct yk_value v = g->value[in[0]];
	const yk_id x = yk_up(g, in[0]), w = by_channel(g, yk_up(g, in[1]), &v), cot = yk_up(g, gout[0]);
	const yk_id mean = by_channel(g, y + 1, &v), var = by_channel(g, y + 2, &v);
	const double share = 1 / yk_reduced(&v, others(&v));
	const yk_id r = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, var, eps)), s = w == YK_NIL ? r : yk_bin(g, YK_MUL, w, r);
	const yk_id hat = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, x, r), yk_bin(g, YK_MUL, mean, r));
	const yk_id db = yk_reduce(g, YK_SUM, cot, others(&v), true);
	const yk_id dw = yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, cot, hat), others(&v), true);
	const yk_id p = yk_bin(g, YK_MUL, yk_bin(g, YK_MUL, s, r), yk_bin_lit(g, YK_MUL, dw, share));
	const yk_id q = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, s, yk_bin_lit(g, YK_MUL, db, share)), yk_bin(g, YK_MUL, mean, p));
	const yk_id dx = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, cot, s), yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, x, p), q));
	gin[0] = yk_down(g, dx, in[0]);
	if (in[1] != YK_NIL)
		gin[1] = yk_cast(g, flat(g, dw, &v), g->value[in[1]].dtype);
	if (in[2] != YK_NIL)
		gin[2] = yk_cast(g, flat(g, db, &v), g->value[in[2]].dtype);
}
