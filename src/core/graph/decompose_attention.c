// SPDX-License-Identifier: Apache-2.0
// Attention and its gradients in parts, with the T x S matrix kept: what runs where a backend lacks the
// named kernels, and their definition.  Shapes: q [B,T,H,D], k and v [B,S,G,D], R = H / G.

#include "config.h"

#include <math.h>

#include "graph/op.h"

struct parts {
	struct yk_graph *g;
	int64_t b, t, h, d, s, groups, r;
	int dtype; // of the computation
	bool causal;
	double scale, dropout;
	yk_id mask, key, step; // as operands
	yk_id seen;            // how many keys are seen, i64 [] or [B,1,1,1], or none
};

// 0 .. n - 1 as i64 [n]
static yk_id counting(struct yk_graph *g, int64_t n)
{
	return yk_record(g, YK_IOTA, 0, NULL, 1, &(union yoke_attr){ .i = n });
}

// seen itself, [] or [B] as [B,1,1,1], by way of picking that fails with ERANGE unless it is in 0 .. s
static yk_id within(struct yk_graph *g, yk_id seen, int64_t s)
{
	if (seen == YK_NIL)
		return seen;
	if (g->value[seen].rank) {
		const int64_t batch = g->value[seen].dims[0];
		yk_id all = yk_record(g, YK_GATHER, 2, (yk_id[]){ counting(g, s + 1), seen }, 1,
				      &(union yoke_attr){ .i = 0 });
		return yk_reshape(g, all, 4, (int64_t[]){ batch, 1, 1, 1 });
	}
	yk_id x = yk_record(g, YK_SLICE_AT, 2, (yk_id[]){ counting(g, s + 1), seen }, 1,
			    &(union yoke_attr){ .i = 1 });
	return yk_reshape(g, x, 0, NULL);
}

static struct parts parts_of(struct yk_graph *g, const struct yk_call *c)
{
	yk_id seen = c->in[c->op == YK_ATTENTION ? 6 : 9];
	seen = within(g, seen, g->value[c->in[1]].dims[1]);
	const struct yk_value *q = &g->value[c->in[0]], *k = &g->value[c->in[1]];
	return (struct parts){
		.g = g,
		.b = q->dims[0],
		.t = q->dims[1],
		.h = q->dims[2],
		.d = q->dims[3],
		.s = k->dims[1],
		.groups = k->dims[2],
		.r = q->dims[2] / k->dims[2],
		.dtype = yk_acc(q->dtype),
		.causal = c->attr[0].i != 0,
		.scale = c->attr[1].f,
		.dropout = c->attr[2].f,
		.mask = c->in[3],
		.key = c->in[4],
		.step = c->in[5],
		.seen = seen,
	};
}

static yk_id reshape5(struct parts *p, yk_id x, int64_t rows, int64_t columns)
{
	return yk_reshape(p->g, x, 5,
			  (int64_t[]){ p->b, p->groups, p->r, rows, columns });
}

static yk_id reshape4(struct parts *p, yk_id x, int64_t rows, int64_t columns)
{
	return yk_reshape(p->g, x, 4, (int64_t[]){ p->b, p->h, rows, columns });
}

// [B,T,H,D] -> [B,G,R,T,D]
static yk_id heads(struct parts *p, yk_id x)
{
	x = yk_cast(p->g, x, p->dtype);
	return reshape5(p, yk_permute(p->g, x, (int[]){ 0, 2, 1, 3 }), p->t, p->d);
}

// [B,S,G,D] -> [B,G,1,S,D]; 0 where not seen: 0 times what is there may be NaN
static yk_id shared(struct parts *p, yk_id x)
{
	if (p->seen != YK_NIL) {
		yk_id there = yk_bin(p->g, YK_LT, counting(p->g, p->s), p->seen);
		if (there == YK_BAD)
			return there;
		const int64_t batch = p->g->value[there].rank > 1 ? p->b : 1;
		there = yk_reshape(p->g, there, 4, (int64_t[]){ batch, p->s, 1, 1 });
		x = yk_tri(p->g, YK_SELECT, there, x,
			   yk_lit(p->g, p->g->value[x].dtype, 0));
	}
	x = yk_permute(p->g, yk_cast(p->g, x, p->dtype), (int[]){ 0, 2, 1, 3 });
	return yk_reshape(p->g, x, 5, (int64_t[]){ p->b, p->groups, 1, p->s, p->d });
}

// [B,G,R,T,D] -> [B,T,H,D] in the dtype of `like`
static yk_id unheads(struct parts *p, yk_id x, yk_id like)
{
	x = yk_permute(p->g, reshape4(p, x, p->t, p->d), (int[]){ 0, 2, 1, 3 });
	return x == YK_BAD ? x : yk_cast(p->g, x, p->g->value[like].dtype);
}

// [B,G,R,S,D], summed over the R heads that share it -> [B,S,G,D]
static yk_id unshared(struct parts *p, yk_id x, yk_id like)
{
	x = yk_reduce(p->g, YK_SUM, x, 1u << 2, false);
	x = yk_permute(p->g, x, (int[]){ 0, 2, 1, 3 });
	return x == YK_BAD ? x : yk_cast(p->g, x, p->g->value[like].dtype);
}

// w v [B,G,R,T,D] of weights w [B,H,T,S] and v [B,G,1,S,D], without what a weight of 0 belongs to: 0 times NaN is NaN.
static yk_id weighted(struct parts *p, yk_id w, yk_id v)
{
	struct yk_graph *g = p->g;
	w = reshape5(p, w, p->t, p->s);
	yk_id y = yk_matmul(g, w, v, 0);
	if (p->mask == YK_NIL && !p->causal)
		return y;
	yk_id zero = yk_lit(g, p->dtype, 0), finite = yk_un(g, YK_ISFINITE, v);
	yk_id clean = yk_matmul(g, w, yk_tri(g, YK_SELECT, finite, v, zero), 0);
	// number of summands that are not finite
	yk_id met = yk_matmul(g, yk_cast(g, yk_bin(g, YK_NE, w, zero), p->dtype),
			      yk_cast(g, yk_un(g, YK_NOT, finite), p->dtype), 0);
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, met, zero), clean, yk_un(g, YK_STOP_GRAD, y));
}

// 0 where a key is not seen, else x
static yk_id where_seen(struct parts *p, yk_id scores, yk_id x)
{
	yk_id hidden = yk_bin(p->g, YK_EQ, scores, yk_lit(p->g, p->dtype, -INFINITY));
	return yk_tri(p->g, YK_SELECT, hidden, yk_lit(p->g, p->dtype, 0), x);
}

// scale q k' + mask, -inf where a key is not seen: [B,H,T,S]
static yk_id scores(struct parts *p, yk_id q, yk_id k)
{
	struct yk_graph *g = p->g;
	yk_id x = yk_bin_lit(g, YK_MUL, yk_matmul(g, q, k, YOKE_TB), p->scale);
	x = reshape4(p, x, p->t, p->s);
	if (p->mask != YK_NIL) { // where it is -inf, x may be NaN
		yk_id mask = yk_cast(g, p->mask, p->dtype), none = yk_lit(g, p->dtype, -INFINITY);
		x = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, mask, none), none, yk_bin(g, YK_ADD, x, mask));
	}
	if (!p->causal && p->seen == YK_NIL)
		return x;
	// key s is seen when s < end; end is n, or for causal queries t + 1 + n - T
	yk_id end = p->seen;
	if (p->causal) {
		yk_id row = yk_reshape(g, counting(g, p->t), 2, (int64_t[]){ p->t, 1 });
		double more = 1 - (double)p->t;
		end = p->seen != YK_NIL ?
			      yk_bin(g, YK_ADD, yk_bin_lit(g, YK_ADD, row, more), end) :
			      yk_bin_lit(g, YK_ADD, row, more + (double)p->s);
	}
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_LT, counting(g, p->s), end), x,
		      yk_lit(g, p->dtype, -INFINITY));
}

// x where it is kept, divided by 1 - dropout: [B,H,T,S]
static yk_id drop(struct parts *p, yk_id x)
{
	struct yk_graph *g = p->g;
	if (p->dropout <= 0)
		return x;
	union yoke_attr dims[4] = {
		{ .i = p->b }, { .i = p->h }, { .i = p->t }, { .i = p->s }
	};
	yk_id u = yk_un(
		g, YK_UNIFORM,
		yk_record(g, YK_RAND_BITS, 2, (yk_id[]){ p->key, p->step }, 4, dims));
	yk_id keep = yk_bin(g, YK_GE, u, yk_lit(g, yoke_f32, p->dropout));
	return yk_tri(g, YK_SELECT, keep, yk_bin_lit(g, YK_MUL, x, 1 / (1 - p->dropout)),
		      yk_lit(g, p->dtype, 0));
}

void yk_decompose_attention(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct parts p = parts_of(g, c);
	yk_id x = scores(&p, heads(&p, c->in[0]), shared(&p, c->in[1]));
	yk_id zero = yk_lit(g, p.dtype, 0), none = yk_lit(g, p.dtype, -INFINITY);
	yk_id most = yk_row_max(g, x, 3);
	// rows that see nothing: weights 0, lse -inf
	most = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, most, none), zero, most);
	yk_id e = yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, most));
	yk_id sum = yk_reduce(g, YK_SUM, e, 8, true);
	yk_id w = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, sum, zero), zero,
			 yk_bin(g, YK_DIV, e, sum));
	yk_id o = weighted(&p, drop(&p, w), shared(&p, c->in[2]));
	out[0] = unheads(&p, o, c->in[0]);
	out[1] = yk_reshape(g, yk_bin(g, YK_ADD, most, yk_un(g, YK_LOG, sum)), 3,
			    (int64_t[]){ p.b, p.h, p.t });
}

// What the gradients have in common.
struct back {
	struct parts p;
	yk_id q, k, cot;
	yk_id w;  // the weights, before dropout: [B,H,T,S]
	yk_id dx; // the cotangent of the scores, mask included: [B,H,T,S]
};

static struct back back_of(struct yk_graph *g, const struct yk_call *c)
{
	struct back b = { .p = parts_of(g, c) };
	struct parts *p = &b.p;
	b.q = heads(p, c->in[0]);
	b.k = shared(p, c->in[1]);
	b.cot = heads(p, c->in[8]);
	yk_id v = shared(p, c->in[2]);
	yk_id lse = yk_reshape(g, c->in[7], 4, (int64_t[]){ p->b, p->h, p->t, 1 });
	yk_id x = scores(p, b.q, b.k);
	b.w = where_seen(p, x, yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, lse)));
	// g v' of a value that is not seen may be NaN
	yk_id dw = where_seen(p, x, drop(p, reshape4(p, yk_matmul(g, b.cot, v, YOKE_TB), p->t, p->s)));
	yk_id along = yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, dw, b.w), 8, true);
	b.dx = yk_bin(g, YK_MUL, b.w, yk_bin(g, YK_SUB, dw, along));
	return b;
}

void yk_decompose_attention_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct back b = back_of(g, c);
	struct parts *p = &b.p;
	yk_id scaled = yk_bin_lit(g, YK_MUL, b.dx, p->scale), dx = reshape5(p, scaled, p->t, p->s);
	yk_id dv = yk_matmul(g, reshape5(p, drop(p, b.w), p->t, p->s), b.cot, YOKE_TA);
	out[0] = unheads(p, weighted(p, scaled, b.k), c->in[0]);
	out[1] = unshared(p, yk_matmul(g, dx, b.q, YOKE_TA), c->in[1]);
	out[2] = unshared(p, dv, c->in[2]);
}

void yk_decompose_attention_mask_backward(struct yk_graph *g, const struct yk_call *c,
				      yk_id *out)
{
	yk_id dx = yk_sum_to(g, back_of(g, c).dx, c->in[3]);
	out[0] = yk_down(g, dx, c->in[3]);
}
