// SPDX-License-Identifier: Apache-2.0
// Losses composed of elementwise operations and sums: squared error, binary cross entropy,
// Kullback-Leibler divergence; also with weights and a choice of reduction.
#include "config.h"

#include "base/sized.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

yoke_tensor *yoke_mse(yoke_tensor *x, yoke_tensor *y)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ x, y });
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	// the mean of squares may fit half precision where one square does not
	yk_id d = yk_bin(r.g, YK_SUB, yk_cast_acc(r.g, r.in[0]), yk_cast_acc(r.g, r.in[1]));
	yk_id m = yk_mean(r.g, yk_un(r.g, YK_SQUARE, d), YOKE_ALL, false);
	return yk_rec_end(&r, yk_cast_like(r.g, m, r.in[0]));
}

// The sum of x over its elements divided by n, in the dtype of `like`.
static yk_id average(struct yk_graph *g, yk_id x, double n, yk_id like)
{
	return yk_cast_like(
		g, yk_bin_lit(g, YK_MUL, yk_reduce(g, YK_SUM, x, YOKE_ALL, false), 1 / n), like);
}

// Are both operands floating point, of one dtype and shape?
static bool want_pair(struct yk_rec *r)
{
	char a[160], b[160];
	if (r->in[0] == YK_BAD || r->in[1] == YK_BAD)
		return false;
	const struct yk_value *x = &r->g->value[r->in[0]], *y = &r->g->value[r->in[1]];
	bool good = yk_is_float(x->dtype) && x->dtype == y->dtype;
	if (good && yk_same_shape(x, y))
		return true;
	yk_rec_fail(r, good ? YOKE_ESHAPE : YOKE_EDTYPE,
		    "takes floating point of one dtype and shape, got %s and %s",
		    yk_describe(x, a), yk_describe(y, b));
	return false;
}

yoke_tensor *yoke_bce_logits(yoke_tensor *x, yoke_tensor *y)
{
	// -y log s(x) - (1 - y) log(1 - s(x)) = max(x, 0) - x y + log(1 + exp(-|x|))
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ x, y });
	if (!want_pair(&r))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_cast_acc(r.g, r.in[0]), t = yk_cast_acc(r.g, r.in[1]);
	yk_id tail = yk_un(r.g, YK_LOG1P,
			   yk_un(r.g, YK_EXP, yk_un(r.g, YK_NEG, yk_un(r.g, YK_ABS, v))));
	yk_id loss = yk_bin(r.g, YK_SUB, yk_bin_lit(r.g, YK_MAX, v, 0),
			    yk_bin(r.g, YK_MUL, v, t));
	loss = yk_bin(r.g, YK_ADD, loss, tail);
	double n = (double)yk_count(&r.g->value[v]);
	return yk_rec_end(&r, average(r.g, loss, n, r.in[0]));
}

yoke_tensor *yoke_kl(yoke_tensor *p, yoke_tensor *q)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ p, q });
	if (!want_pair(&r) || !yk_rec_check_axis(&r))
		return yk_rec_end(&r, YK_BAD);
	yk_id lp = yk_cast_acc(r.g, r.in[0]), lq = yk_cast_acc(r.g, r.in[1]);
	struct yk_value v = r.g->value[lp];
	yk_id e = yk_un(r.g, YK_EXP, lp), zero = yk_lit(r.g, v.dtype, 0);
	// 0 log 0 and its gradient are 0: the difference is never infinite there
	yk_id d = yk_tri(r.g, YK_SELECT, yk_bin(r.g, YK_GT, e, zero),
			 yk_bin(r.g, YK_SUB, lp, lq), zero);
	double rows = (double)yk_count(&v) / (double)v.dims[v.rank - 1];
	return yk_rec_end(&r, average(r.g, yk_bin(r.g, YK_MUL, e, d), rows, r.in[0]));
}

// ---- with weights and a choice of reduction ----

// Copies and checks the options; false with an error.
static bool options(struct yk_rec *r, const char *call, const struct yoke_loss *given,
		    struct yoke_loss *to)
{
	*to = (struct yoke_loss){ .size = sizeof *to };
	if (given && yk_sized_read(to, sizeof *to, given, call, "yoke_loss") < 0)
		return false;
	if (to->reduction < YOKE_LOSS_MEAN || to->reduction > YOKE_LOSS_NONE)
		yk_rec_fail(r, YOKE_EINVAL, "reduction %d is none of mean, sum and none",
			    to->reduction);
	else if (!(to->smooth >= 0 && to->smooth < 1))
		yk_rec_fail(r, YOKE_ERANGE, "smoothing %g is not in [0, 1)", to->smooth);
	else
		return true;
	return false;
}

// An optional weight in the accumulator's dtype; YK_NIL: none.
static yk_id weight_of(struct yk_rec *r, yoke_tensor *w, yk_id like)
{
	yk_id v = !w || w == YOKE_NONE ? YK_NIL : yk_operand(r->ctx, w, r->g->value[like].dtype);
	char text[160];
	if (v == YK_NIL || v == YK_BAD || yk_is_float(r->g->value[v].dtype))
		return v == YK_NIL || v == YK_BAD ? v : yk_cast(r->g, v, r->g->value[like].dtype);
	yk_rec_fail(r, YOKE_EDTYPE, "a weight is %s; it must be a floating-point number",
		    yk_describe(&r->g->value[v], text));
	return YK_BAD;
}

// parts: loss of each element or row; total: the mean's divisor, YK_NIL: their number.
static yk_id reduce(struct yk_graph *g, const struct yoke_loss *o, yk_id parts, yk_id total,
		    yk_id like)
{
	if (parts == YK_BAD || o->reduction == YOKE_LOSS_NONE)
		return yk_cast_like(g, parts, like);
	const double n = (double)yk_count(&g->value[parts]);
	yk_id sum = yk_reduce(g, YK_SUM, parts, YOKE_ALL, false);
	if (o->reduction == YOKE_LOSS_MEAN)
		sum = total == YK_NIL ?
			      yk_bin_lit(g, YK_MUL, sum, 1 / n) :
			      yk_bin(g, YK_DIV, sum, yk_reduce(g, YK_SUM, total, YOKE_ALL, false));
	return yk_cast_like(g, sum, like);
}

// ---- cross entropy ----

// Sums over the last axis and removes it.
static yk_id over_classes(struct yk_graph *g, yk_id x)
{
	return x == YK_BAD ? x : yk_reduce(g, YK_SUM, x, 1u << (g->value[x].rank - 1), false);
}

static yk_id times(struct yk_graph *g, yk_id x, yk_id w)
{
	return w == YK_NIL ? x : yk_bin(g, YK_MUL, x, w);
}

// Loss by class index: (1 - s) w_id (-log p_id) + s/V sum of w (-log p); *total is w_id, 0 for
// ignored rows.
static yk_id of_ids(struct yk_graph *g, const struct yoke_loss *o, yk_id lost, yk_id ids, yk_id w,
		    yk_id *total)
{
	const struct yk_value v = g->value[lost];
	const struct yk_value row = g->value[ids];
	yk_id zero = yk_lit(g, v.dtype, 0), counts = YK_NIL;
	if (o->ignores) {
		counts = yk_bin(g, YK_NE, ids, yk_lit(g, row.dtype, (double)o->ignore));
		ids = yk_tri(g, YK_SELECT, counts, ids, yk_lit(g, row.dtype, 0));
	}
	yk_id one = yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ lost, yk_add_last(g, ids) }, 1,
			      &(union yoke_attr){ .i = row.rank });
	one = yk_drop_last(g, one);
	yk_id own = YK_NIL;
	if (w != YK_NIL)
		own = yk_record(g, YK_GATHER, 2, (yk_id[]){ w, ids }, 1,
				&(union yoke_attr){ .i = 0 });
	yk_id parts = times(g, one, own);
	if (o->smooth > 0)
		parts = yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, parts, 1 - o->smooth),
			       yk_bin_lit(g, YK_MUL, over_classes(g, times(g, lost, w)),
					  o->smooth / (double)v.dims[v.rank - 1]));
	*total = own != YK_NIL || counts == YK_NIL ? own : yk_full_like(g, one, 1);
	if (counts == YK_NIL)
		return parts;
	*total = yk_tri(g, YK_SELECT, counts, *total, zero);
	return yk_tri(g, YK_SELECT, counts, parts, zero);
}

static yk_id of_probabilities(struct yk_graph *g, const struct yoke_loss *o, yk_id lost, yk_id p,
			      yk_id w)
{
	const struct yk_value v = g->value[lost];
	p = yk_cast_acc(g, p);
	if (o->smooth > 0)
		p = yk_bin_lit(g, YK_ADD, yk_bin_lit(g, YK_MUL, p, 1 - o->smooth),
			       o->smooth / (double)v.dims[v.rank - 1]);
	return over_classes(g, yk_bin(g, YK_MUL, times(g, lost, w), p));
}

yoke_tensor *yoke_loss_cross_entropy(yoke_tensor *logits, yoke_tensor *target,
				     const struct yoke_loss *how)
{
	struct yk_rec r = yk_rec_begin_op(YK_CROSS_ENTROPY, 2, (yoke_tensor *[]){ logits, target });
	struct yk_graph *g = r.g;
	struct yoke_loss o;
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD || !options(&r, "loss_cross_entropy", how, &o))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = g->value[r.in[0]], t = g->value[r.in[1]];
	const bool soft = yk_is_float(t.dtype);
	struct yk_value lead = v;
	lead.rank = v.rank ? (uint8_t)(v.rank - 1) : 0;
	if (!v.rank || !yk_is_float(v.dtype) || !yk_same_shape(soft ? &v : &lead, &t) ||
	    (soft && t.dtype != v.dtype) || (!soft && t.dtype != yoke_i32 && t.dtype != yoke_i64)) {
		yk_rec_fail(
			&r, YOKE_ESHAPE,
			"expects logits [..,V] and ids [..], or probabilities [..,V] of their dtype, got %s and %s",
			yk_describe(&v, a), yk_describe(&t, b));
		return yk_rec_end(&r, YK_BAD);
	}
	yk_id x = yk_cast_acc(g, r.in[0]), w = weight_of(&r, o.weight, x), total = YK_NIL, parts;
	if (w == YK_BAD)
		return yk_rec_end(&r, w);
	if (w != YK_NIL && (g->value[w].rank != 1 || g->value[w].dims[0] != v.dims[v.rank - 1])) {
		yk_rec_fail(&r, YOKE_ESHAPE, "weights of %lld classes are %s",
			    (long long)v.dims[v.rank - 1], yk_describe(&g->value[w], a));
		return yk_rec_end(&r, YK_BAD);
	}
	yk_id lost =
		yk_un(g, YK_NEG, yk_record(g, YK_SOFTMAX, 1, &x, 1, &(union yoke_attr){ .i = 1 }));
	if (lost == YK_BAD)
		return yk_rec_end(&r, lost);
	parts = soft ? of_probabilities(g, &o, lost, r.in[1], w) :
		       of_ids(g, &o, lost, r.in[1], w, &total);
	return yk_rec_end(&r, reduce(g, &o, parts, total, r.in[0]));
}

// ---- of elements ----

yoke_tensor *yoke_loss_bce_logits(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how)
{
	// with q the weight of targets of 1: (1 - y) x + (1 + (q - 1) y) log(1 + exp(-x))
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ x, y });
	struct yk_graph *g = r.g;
	struct yoke_loss o;
	if (!yk_rec_reals(&r, 2) || !options(&r, "loss_bce_logits", how, &o))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_cast_acc(g, r.in[0]), t = yk_cast_acc(g, r.in[1]),
	      w = weight_of(&r, o.weight, v), q = weight_of(&r, o.pos_weight, v);
	if (w == YK_BAD || q == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	yk_id zero = yk_lit(g, g->value[v].dtype, 0), one = yk_lit(g, g->value[v].dtype, 1);
	yk_id soft = yk_un(g, YK_LOG1P, yk_un(g, YK_EXP, yk_un(g, YK_NEG, yk_un(g, YK_ABS, v))));
	// log(1 + exp(-x))
	soft = yk_bin(g, YK_ADD, soft, yk_bin(g, YK_MAX, yk_un(g, YK_NEG, v), zero));
	if (q != YK_NIL)
		soft = yk_bin(
			g, YK_MUL, soft,
			yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, q, one), t), one));
	yk_id parts = yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, one, t), v), soft);
	return yk_rec_end(&r, reduce(g, &o, times(g, parts, w), YK_NIL, r.in[0]));
}

yoke_tensor *yoke_loss_mse(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ x, y });
	struct yk_graph *g = r.g;
	struct yoke_loss o;
	if (!yk_rec_reals(&r, 2) || !options(&r, "loss_mse", how, &o))
		return yk_rec_end(&r, YK_BAD);
	yk_id d = yk_un(g, YK_SQUARE,
			yk_bin(g, YK_SUB, yk_cast_acc(g, r.in[0]), yk_cast_acc(g, r.in[1])));
	yk_id w = d == YK_BAD ? d : weight_of(&r, o.weight, d);
	return yk_rec_end(&r, w == YK_BAD ? w : reduce(g, &o, times(g, d, w), YK_NIL, r.in[0]));
}
