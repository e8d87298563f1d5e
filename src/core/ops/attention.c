// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention and its gradients (Vaswani et al. 2017; kernels after Dao et al.
// 2022). The decomposition materializes the T x S weights; it defines the op, and runs where a
// backend has no kernel.
// Shapes: q [B,T,H,D], k and v [B,S,G,D], R = H / G query heads share a key head.
#include "config.h"

#include <math.h>

#include "base/error.h"
#include "graph/record.h"
#include "ops/rules.h"

// q [B,T,H,D], k v [B,S,G,D], mask, key, step, n -> o, lse [B,H,T]
static int shape_attention(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *q = IN(0), *k = IN(1);
	if (want_float(g, c, q) < 0)
		return YOKE_EDTYPE;
	if (k->dtype != q->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", q, k);
	if (q->rank != 4 || k->rank != 4 || q->dims[0] != k->dims[0] ||
	    q->dims[3] != k->dims[3] || !k->dims[2] || q->dims[2] % k->dims[2] ||
	    !q->dims[3])
		return fail_two(g, c, YOKE_ESHAPE,
				"expects [B,T,H,D] and [B,S,G,D] with G dividing H, got", q,
				k);
	if (want_like(g, c, 2, k) < 0)
		return YOKE_ESHAPE;
	int64_t full[4] = { q->dims[0], q->dims[2], q->dims[1], k->dims[1] };
	if (has(c, 3)) {
		const struct yk_value *m = IN(3);
		bool good = m->rank == 4;
		if (m->dtype != q->dtype && m->dtype != yk_acc(q->dtype))
			return fail_two(g, c, YOKE_EDTYPE,
					"the mask is added, and of the dtype of q or f32 "
					"beside halves: got", q, m);
		for (int i = 0; good && i < 4; i++)
			good = m->dims[i] == full[i] || (i < 2 && m->dims[i] == 1);
		if (!good)
			return fail_two(g, c, YOKE_ESHAPE,
					"the mask is [B|1,H|1,T,S], got", q, m);
	}
	if (has(c, 6) && IN(6)->dtype != yoke_i64)
		return fail_one(g, c, YOKE_EDTYPE, "the number of keys is i64, got", IN(6));
	if (has(c, 6) && IN(6)->rank && (IN(6)->rank > 1 || IN(6)->dims[0] != full[0]))
		return fail_two(g, c, YOKE_ESHAPE,
				"there is one number of keys, or one for each of the batch: got",
				q, IN(6));
	out[0] = *q;
	out[1] = (struct yk_value){ .dtype = (uint8_t)yk_acc(q->dtype),
				    .rank = 3,
				    .dims = { full[0], full[1], full[2] } };
	return 0;
}

// q k v mask key step o lse g n -> dq dk dv
static int shape_attention_backward(struct yk_graph *g, const struct yk_call *c,
			    struct yk_value *out)
{
	for (int i = 0; i < 3; i++)
		out[i] = *IN(i);
	return want_like(g, c, 8, IN(0));
}

// The same operands as attention_backward -> dmask
static int shape_attention_mask_backward(struct yk_graph *g, const struct yk_call *c,
				 struct yk_value *out)
{
	*out = *IN(3);
	return want_like(g, c, 8, IN(0));
}

struct parts {
	struct yk_graph *g;
	int64_t b, t, h, d, s, groups, r;
	int dtype; // in which it computes
	bool causal;
	double scale, dropout;
	yk_id mask, key, step; // as operands
	yk_id seen;            // number of visible keys, i64 [] or [B,1,1,1], or none
};

// seen itself ([B] as [B,1,1,1]), through a gather that fails with ERANGE unless it is in 0 .. s
static yk_id within(struct yk_graph *g, yk_id seen, int64_t s)
{
	if (seen == YK_NIL)
		return seen;
	if (g->value[seen].rank) {
		const int64_t batch = g->value[seen].dims[0];
		return yk_reshape(g, yk_within(g, seen, s), 4, (int64_t[]){ batch, 1, 1, 1 });
	}
	yk_id x = yk_record(g, YK_SLICE_AT, 2, (yk_id[]){ yk_counting(g, s + 1), seen }, 1,
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

// [B,S,G,D] -> [B,G,1,S,D]; hidden keys become 0, since 0 times their content may be NaN
static yk_id shared(struct parts *p, yk_id x)
{
	if (p->seen != YK_NIL) {
		yk_id there = yk_bin(p->g, YK_LT, yk_counting(p->g, p->s), p->seen);
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

// [B,G,R,S,D], summed over the R heads of a group -> [B,S,G,D]
static yk_id unshared(struct parts *p, yk_id x, yk_id like)
{
	x = yk_reduce(p->g, YK_SUM, x, 1u << 2, false);
	x = yk_permute(p->g, x, (int[]){ 0, 2, 1, 3 });
	return x == YK_BAD ? x : yk_cast(p->g, x, p->g->value[like].dtype);
}

// w v [B,G,R,T,D] for weights w [B,H,T,S] and v [B,G,1,S,D]; terms with weight 0 are left out,
// since 0 times NaN is NaN.
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

// x for visible keys, else 0
static yk_id where_seen(struct parts *p, yk_id scores, yk_id x)
{
	yk_id hidden = yk_bin(p->g, YK_EQ, scores, yk_lit(p->g, p->dtype, -INFINITY));
	return yk_tri(p->g, YK_SELECT, hidden, yk_lit(p->g, p->dtype, 0), x);
}

// scale q k' + mask, -inf for hidden keys: [B,H,T,S]
static yk_id scores(struct parts *p, yk_id q, yk_id k)
{
	struct yk_graph *g = p->g;
	yk_id x = yk_bin_lit(g, YK_MUL, yk_matmul(g, q, k, YOKE_TB), p->scale);
	x = reshape4(p, x, p->t, p->s);
	if (p->mask != YK_NIL) { // where it is -inf, x may be NaN
		yk_id mask = yk_cast(g, p->mask, p->dtype), none = yk_lit(g, p->dtype, -INFINITY);
		x = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, mask, none), none,
			   yk_bin(g, YK_ADD, x, mask));
	}
	if (!p->causal && p->seen == YK_NIL)
		return x;
	// key s is visible if s < end; end is n, or for causal queries t + 1 + n - T
	yk_id end = p->seen;
	if (p->causal) {
		yk_id row = yk_reshape(g, yk_counting(g, p->t), 2, (int64_t[]){ p->t, 1 });
		double more = 1 - (double)p->t;
		end = p->seen != YK_NIL ?
			      yk_bin(g, YK_ADD, yk_bin_lit(g, YK_ADD, row, more), end) :
			      yk_bin_lit(g, YK_ADD, row, more + (double)p->s);
	}
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_LT, yk_counting(g, p->s), end), x,
		      yk_lit(g, p->dtype, -INFINITY));
}

// Dropout: x where it is kept, divided by 1 - dropout: [B,H,T,S]
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

static void decompose_attention(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct parts p = parts_of(g, c);
	yk_id x = scores(&p, heads(&p, c->in[0]), shared(&p, c->in[1]));
	yk_id zero = yk_lit(g, p.dtype, 0), none = yk_lit(g, p.dtype, -INFINITY);
	yk_id max = yk_row_max(g, x, 3);
	// rows without a visible key: weights 0, lse -inf
	max = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, max, none), zero, max);
	yk_id e = yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, max));
	yk_id sum = yk_reduce(g, YK_SUM, e, 8, true);
	yk_id w = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, sum, zero), zero,
			 yk_bin(g, YK_DIV, e, sum));
	yk_id o = weighted(&p, drop(&p, w), shared(&p, c->in[2]));
	out[0] = unheads(&p, o, c->in[0]);
	out[1] = yk_reshape(g, yk_bin(g, YK_ADD, max, yk_un(g, YK_LOG, sum)), 3,
			    (int64_t[]){ p.b, p.h, p.t });
}

// Values that all gradients share.
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
	// lse is rounded, and may be of scores that were summed in another order: at large scores
	// the weights of a row would all be off by the same factor
	const yk_id total = yk_reduce(g, YK_SUM, b.w, 8, true);
	const yk_id none = yk_bin(g, YK_EQ, total, lit_like(g, total, 0));
	b.w = yk_bin(g, YK_DIV, b.w, yk_tri(g, YK_SELECT, none, lit_like(g, total, 1), total));
	// g v' of a hidden value may be NaN
	yk_id dw =
		where_seen(p, x, drop(p, reshape4(p, yk_matmul(g, b.cot, v, YOKE_TB), p->t, p->s)));
	yk_id along = yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, dw, b.w), 8, true);
	b.dx = yk_bin(g, YK_MUL, b.w, yk_bin(g, YK_SUB, dw, along));
	return b;
}

static void decompose_attention_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct back b = back_of(g, c);
	struct parts *p = &b.p;
	yk_id scaled = yk_bin_lit(g, YK_MUL, b.dx, p->scale), dx = reshape5(p, scaled, p->t, p->s);
	yk_id dv = yk_matmul(g, reshape5(p, drop(p, b.w), p->t, p->s), b.cot, YOKE_TA);
	out[0] = unheads(p, weighted(p, scaled, b.k), c->in[0]);
	out[1] = unshared(p, yk_matmul(g, dx, b.q, YOKE_TA), c->in[1]);
	out[2] = unshared(p, dv, c->in[2]);
}

static void decompose_attention_mask_backward(struct yk_graph *g, const struct yk_call *c,
				      yk_id *out)
{
	yk_id dx = yk_sum_to(g, back_of(g, c).dx, c->in[3]);
	out[0] = yk_cast_like(g, dx, c->in[3]);
}

static void grad_attention(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	yk_id in[10] = { n.in[0], n.in[1], n.in[2], n.in[3], n.in[4],
			 n.in[5], n.y,     n.y + 1, gout[0], n.in[6] };
	struct yk_call c = {
		.op = YK_ATTENTION_BACKWARD, .nin = 10, .in = in, .nattr = 3, .attr = n.attr
	};
	if (gout[0] == YK_NIL)
		return;
	yk_append_backward(g, &c, 3, n.in, (uint32_t[]){ 0, 1, 2 }, gin);
	if (n.in[3] != YK_NIL) // pruned unless something needs it
		gin[3] = yk_record(g, YK_ATTENTION_MASK_BACKWARD, 10, in, 3, n.attr);
}

YK_OP(ATTENTION) = { .name = "attention", .code = YOKE_OP_ATTENTION, .flags = YK_F_FLOAT,
	.cast = YK_CAST_HALF, .min_in = 7, .max_in = 7, .nout = 2, .shape = shape_attention,
	.grad = grad_attention, .decompose = decompose_attention };
YK_OP(ATTENTION_BACKWARD) = { .name = "attention_backward", .code = YOKE_OP_ATTENTION_BACKWARD,
	.flags = YK_F_FLOAT | YK_F_STRIDED, .min_in = 10, .max_in = 10, .nout = 3,
	.shape = shape_attention_backward, .decompose = decompose_attention_backward };
// no kernel: always decomposed
YK_OP(ATTENTION_MASK_BACKWARD) = { .name = "attention_mask_backward", .flags = YK_F_FLOAT,
	.min_in = 10, .max_in = 10, .nout = 1, .shape = shape_attention_mask_backward,
	.decompose = decompose_attention_mask_backward };

// A bool mask as numbers, broadcast over the queries and keys.
static yk_id attention_mask(struct yk_rec *r, yk_id mask)
{
	struct yk_graph *g = r->g;
	const struct yk_value q = g->value[r->in[0]], k = g->value[r->in[1]];
	if (mask == YK_NIL || q.rank != 4 || k.rank != 4)
		return mask;
	if (g->value[mask].dtype == yoke_bool)
		mask = yk_tri(g, YK_SELECT, mask, yk_lit(g, q.dtype, 0),
			      yk_lit(g, q.dtype, -INFINITY));
	if (mask == YK_BAD || g->value[mask].rank != 4)
		return mask;
	struct yk_value m = g->value[mask];
	const bool spread =
		(m.dims[2] == 1 && q.dims[1] != 1) || (m.dims[3] == 1 && k.dims[1] != 1);
	m.dims[2] = m.dims[2] == 1 ? q.dims[1] : m.dims[2];
	m.dims[3] = m.dims[3] == 1 ? k.dims[1] : m.dims[3];
	return spread ? yk_broadcast(g, mask, m.rank, m.dims) : mask;
}

// x padded with zeros at the end of its last axis, to size `to`.
static yk_id widened(struct yk_graph *g, yk_id x, int64_t to)
{
	const int64_t lo[YOKE_MAX_RANK] = { 0 };
	int64_t hi[YOKE_MAX_RANK] = { 0 };
	hi[3] = to - g->value[x].dims[3];
	return hi[3] > 0 ? yk_pad(g, x, lo, hi, 0) : x;
}

static yoke_tensor *attention(const char *call, yoke_tensor *const *qkv_mask, yoke_tensor *keys,
			      int causal, double scale, double dropout)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_ATTENTION, 8, 4, qkv_mask);
	r.in[4] = r.in[5] = YK_NIL;
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[6] = yk_operand(r.ctx, keys, yoke_i64);
	if (!(dropout >= 0 && dropout < 1)) {
		yk_rec_fail(&r, YOKE_ERANGE, "dropout %g is not in [0, 1)", dropout);
		return yk_rec_end(&r, YK_BAD);
	}
	if (dropout > 0 && yk_random_key(r.ctx, &r.in[4], &r.in[5]) < 0)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *x = &r.g->value[r.in[0]];
	if (scale == 0 && x->rank)
		scale = 1 / sqrt((double)x->dims[x->rank - 1]);
	union yoke_attr a[3] = { { .i = causal != 0 }, { .f = scale }, { .f = dropout } };
	if (r.in[1] == YK_BAD || r.in[2] == YK_BAD || r.in[3] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[3] = attention_mask(&r, r.in[3]);
	// kernels take one head width: padding zeros do not change the scores, and add zero columns
	const struct yk_value q = r.g->value[r.in[0]], v = r.g->value[r.in[2]];
	const bool wide = q.rank == 4 && v.rank == 4 && r.g->value[r.in[1]].rank == 4 &&
			  q.dims[3] != v.dims[3] && q.dims[3] && v.dims[3];
	for (int i = 0; i < 3 && wide; i++)
		r.in[i] = widened(r.g, r.in[i], i < 2 ? v.dims[3] : q.dims[3]);
	yk_id y = yk_record(r.g, YK_ATTENTION, 7, r.in, 3, a);
	if (wide && y != YK_BAD && v.dims[3] < q.dims[3]) {
		const int64_t start[4] = { 0 }, step[4] = { 1, 1, 1, 1 };
		y = yk_slice(r.g, y, start, step,
			     (int64_t[]){ q.dims[0], q.dims[1], q.dims[2], v.dims[3] });
	}
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
			    yoke_tensor *mask, int causal, double scale, double dropout)
{
	return attention("attention", (yoke_tensor *[]){ q, k, v, mask }, YOKE_NONE, causal, scale,
			 dropout);
}

yoke_tensor *yoke_attention_keys(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
				 yoke_tensor *keys, yoke_tensor *mask, int causal,
				 double scale, double dropout)
{
	if (keys == YOKE_NONE) {
		yk_fail(YOKE_EINVAL, "attention_keys: keys is YOKE_NONE and not optional");
		return NULL;
	}
	return attention("attention_keys", (yoke_tensor *[]){ q, k, v, mask }, keys, causal, scale,
			 dropout);
}
