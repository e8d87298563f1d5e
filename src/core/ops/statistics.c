// SPDX-License-Identifier: Apache-2.0
// Statistics composed of reductions, sorts and products: variance, covariance, norms, quantiles,
// histograms. Each is computed in the accumulator's dtype and rounded once.
#include "config.h"

#include <math.h>

#include "base/error.h"
#include "graph/handle.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

// The operand, if it is floating point with at least `rank` axes; else YK_BAD with an error.
static yk_id real(struct yk_rec *r, yk_id x, int rank)
{
	if (x == YK_BAD)
		return YK_BAD;
	const struct yk_value *v = &r->g->value[x];
	if (yk_is_float(v->dtype) && v->rank >= rank)
		return x;
	char text[160];
	if (yk_is_float(v->dtype))
		yk_rec_fail(r, YOKE_ESHAPE, "takes at least %d %s, got %s", rank,
			    rank > 1 ? "axes" : "axis", yk_describe(v, text));
	else
		yk_rec_fail(r, YOKE_EDTYPE, "takes floating point, got %s; cast it",
			    yk_describe(v, text));
	return YK_BAD;
}

// 1 / (n - correction); inf if n is too small, so that an empty sum gives NaN
static double one_over(double n, double correction)
{
	return 1 / fmax(n - correction, 0);
}

// ---- spread ----

// Two passes: first the mean, then the mean square of the differences.
static yk_id var(struct yk_graph *g, yk_id x, unsigned axes, double correction)
{
	if (x == YK_BAD)
		return x;
	double n = yk_reduced(&g->value[x], axes);
	x = yk_cast_acc(g, x);
	yk_id d = yk_bin(g, YK_SUB, x, yk_mean(g, x, axes & YOKE_ALL, true));
	yk_id sum = yk_reduce(g, YK_SUM, yk_un(g, YK_SQUARE, d), axes & YOKE_ALL,
			      axes & YOKE_KEEP);
	return yk_bin_lit(g, YK_MUL, sum, one_over(n, correction));
}

yoke_tensor *yoke_var(yoke_tensor *x, unsigned axes, double correction)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	yk_id v = real(&r, r.in[0], 0);
	if (!yk_rec_axes(&r, v, axes))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_cast_like(r.g, var(r.g, v, axes, correction), v));
}

// x [..,V,N] minus its mean over N
static yk_id centred(struct yk_graph *g, yk_id x)
{
	if (x == YK_BAD)
		return x;
	x = yk_cast_acc(g, x);
	unsigned last = 1u << (g->value[x].rank - 1);
	return yk_bin(g, YK_SUB, x, yk_mean(g, x, last, true));
}

yoke_tensor *yoke_cov(yoke_tensor *x, double correction)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	yk_id v = real(&r, r.in[0], 2), d = centred(r.g, v);
	if (d == YK_BAD)
		return yk_rec_end(&r, d);
	double n = (double)r.g->value[d].dims[r.g->value[d].rank - 1];
	d = yk_matmul(r.g, d, d, YOKE_TB);
	d = yk_bin_lit(r.g, YK_MUL, d, one_over(n, correction));
	return yk_rec_end(&r, yk_cast_like(r.g, d, v));
}

yoke_tensor *yoke_corr(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	yk_id v = real(&r, r.in[0], 2), d = centred(r.g, v);
	if (d == YK_BAD)
		return yk_rec_end(&r, d);
	unsigned last = 1u << (r.g->value[d].rank - 1);
	yk_id s = yk_reduce(r.g, YK_SUM, yk_un(r.g, YK_SQUARE, d), last, true);
	d = yk_bin(r.g, YK_MUL, d, yk_un(r.g, YK_RSQRT, s));
	yk_id c = yk_matmul(r.g, d, d, YOKE_TB);
	// clamps values that rounding moved outside -1 .. 1, without affecting the gradient
	yk_id in = yk_bin_lit(r.g, YK_MIN, yk_bin_lit(r.g, YK_MAX, c, -1), 1);
	in = yk_un(r.g, YK_STOP_GRAD, yk_bin(r.g, YK_SUB, in, c));
	return yk_rec_end(&r, yk_cast_like(r.g, yk_bin(r.g, YK_ADD, c, in), v));
}

// ---- norm ----

yk_id yk_unless_zero(struct yk_graph *g, int op, yk_id s, double power)
{
	if (s == YK_BAD)
		return s;
	yk_id zero = yk_lit(g, g->value[s].dtype, 0),
	      one = yk_lit(g, g->value[s].dtype, 1);
	yk_id is0 = yk_bin(g, YK_EQ, s, zero), safe = yk_tri(g, YK_SELECT, is0, one, s);
	yk_id y = op == YK_SQRT ? yk_un(g, op, safe) : yk_bin_lit(g, op, safe, power);
	return yk_tri(g, YK_SELECT, is0, zero, y);
}

// The norm of order p < 0 of a >= 0: min (sum (a / min)^p)^(1/p), in which no power overflows.
// If an element is 0 the norm is 0, since 0^p is infinite, and its gradient is 0.  The gradient by
// `min` cancels.
static yk_id min_norm(struct yk_graph *g, yk_id a, double p, unsigned over, bool keep)
{
	yk_id min = yk_un(g, YK_STOP_GRAD, yk_reduce(g, YK_REDUCE_MIN, a, over, true));
	if (min == YK_BAD)
		return YK_BAD;
	yk_id zero = yk_lit(g, g->value[a].dtype, 0), one = yk_lit(g, g->value[a].dtype, 1);
	yk_id is0 = yk_bin(g, YK_EQ, min, zero);
	yk_id unit = yk_tri(g, YK_SELECT,
			    yk_bin(g, YK_OR, is0, yk_bin_lit(g, YK_EQ, min, INFINITY)), one, min);
	yk_id each = yk_bin_lit(g, YK_POW,
				yk_tri(g, YK_SELECT, is0, one, yk_bin(g, YK_DIV, a, unit)), p);
	yk_id y = yk_bin_lit(g, YK_POW, yk_reduce(g, YK_SUM, each, over, true), 1 / p);
	y = yk_tri(g, YK_SELECT, is0, zero, yk_bin(g, YK_MUL, unit, y));
	if (keep || y == YK_BAD)
		return y;
	const struct yk_value v = g->value[y];
	int64_t dims[YOKE_MAX_RANK];
	int rank = 0;
	for (int i = 0; i < v.rank; i++)
		if (!(over >> i & 1))
			dims[rank++] = v.dims[i];
	return yk_reshape(g, y, rank, dims);
}

static yk_id norm(struct yk_graph *g, yk_id x, double p, unsigned axes)
{
	unsigned over = axes & YOKE_ALL, keep = axes & YOKE_KEEP;
	if (x == YK_BAD)
		return x;
	x = yk_cast_acc(g, x);
	yk_id a = yk_un(g, YK_ABS, x), s;
	if (isinf(p))
		return yk_reduce(g, p > 0 ? YK_REDUCE_MAX : YK_REDUCE_MIN, a, over, keep);
	if (p == 0)
		return yk_reduce(
			g, YK_SUM,
			yk_cast(g, yk_bin_lit(g, YK_NE, x, 0), g->value[x].dtype), over,
			keep);
	if (p == 1)
		return yk_reduce(g, YK_SUM, a, over, keep);
	if (p == 2) {
		s = yk_reduce(g, YK_SUM, yk_un(g, YK_SQUARE, x), over, keep);
		return yk_unless_zero(g, YK_SQRT, s, 0);
	}
	if (p > 0 || !(yk_reduced(&g->value[x], over) > 0)) {
		s = yk_reduce(g, YK_SUM, yk_unless_zero(g, YK_POW, a, p), over, keep);
		return yk_unless_zero(g, YK_POW, s, 1 / p);
	}
	return min_norm(g, a, p, over, keep);
}

yoke_tensor *yoke_std(yoke_tensor *x, unsigned axes, double correction)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	yk_id v = real(&r, r.in[0], 0);
	if (!yk_rec_axes(&r, v, axes))
		return yk_rec_end(&r, YK_BAD);
	yk_id s = yk_unless_zero(r.g, YK_SQRT, var(r.g, v, axes, correction), 0);
	return yk_rec_end(&r, yk_cast_like(r.g, s, v));
}

yoke_tensor *yoke_norm(yoke_tensor *x, double p, unsigned axes)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	yk_id v = real(&r, r.in[0], 0);
	if (!yk_rec_axes(&r, v, axes))
		return yk_rec_end(&r, YK_BAD);
	if (isnan(p)) {
		yk_rec_fail(&r, YOKE_EINVAL, "the order p is NaN");
		v = YK_BAD;
	}
	return yk_rec_end(&r, yk_cast_like(r.g, norm(r.g, v, p, axes), v));
}

// ---- order statistics, counting ----

// Quantiles: x [..,N] sorted, q [] or [Q] -> [..] or [..,Q].
static yk_id between(struct yk_graph *g, yk_id x, yk_id q, int mode)
{
	if (x == YK_BAD || q == YK_BAD)
		return YK_BAD;
	int last = g->value[x].rank - 1;
	int64_t n = g->value[x].dims[last];
	union yoke_attr axis = { .i = last };
	q = yk_cast(g, q, yoke_f64);
	static const int rounding[] = { [YOKE_QUANTILE_LOWER] = YK_FLOOR,
					[YOKE_QUANTILE_HIGHER] = YK_CEIL,
					[YOKE_QUANTILE_NEAREST] = YK_ROUND };
	// an element itself
	const bool one = mode != YOKE_QUANTILE_LINEAR && mode != YOKE_QUANTILE_MIDPOINT;
	yk_id pos = yk_bin_lit(g, YK_MUL, q, (double)(n - 1)),
	      low = yk_un(g, one ? rounding[mode] : YK_FLOOR, pos);
	// outside 0 .. 1: an index that the gather rejects
	yk_id good = yk_bin(g, YK_AND, yk_bin_lit(g, YK_GE, q, 0), yk_bin_lit(g, YK_LE, q, 1));
	yk_id lo = yk_tri(g, YK_SELECT, good, yk_cast(g, low, yoke_i64), yk_lit(g, yoke_i64, -1));
	yk_id hi = yk_bin_lit(g, YK_MIN, yk_bin_lit(g, YK_ADD, lo, 1), (double)(n - 1));
	yk_id a = yk_cast_acc(g, yk_record(g, YK_GATHER, 2, (yk_id[]){ x, lo }, 1, &axis));
	if (one)
		return a;
	yk_id b = yk_cast_acc(g, yk_record(g, YK_GATHER, 2, (yk_id[]){ x, hi }, 1, &axis));
	if (a == YK_BAD || b == YK_BAD)
		return YK_BAD;
	yk_id f = yk_cast(g, yk_bin(g, YK_SUB, pos, low), g->value[a].dtype);
	if (mode == YOKE_QUANTILE_MIDPOINT)
		f = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, f, 0), f, lit_like(g, f, 0.5));
	yk_id rest = yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, f), 1);
	yk_id y = yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, a, rest), yk_bin(g, YK_MUL, b, f));
	// an exact hit returns the element itself, even next to an infinite one
	yk_id met = yk_bin_lit(g, YK_EQ, f, 0);
	yk_id flat = yk_bin(g, YK_AND, yk_bin(g, YK_EQ, a, b),
			    yk_un(g, YK_NOT, yk_un(g, YK_ISFINITE, a)));
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_OR, met, flat), a, y);
}

// The last element of sorted x [..,N], which is NaN if any element is; keep: the axis stays with
// size 1.
static yk_id largest(struct yk_graph *g, yk_id x, bool keep)
{
	if (x == YK_BAD)
		return x;
	const int last = g->value[x].rank - 1;
	yk_id y = yk_slice_axis(g, x, last, g->value[x].dims[last] - 1, 1);
	return yk_cast_acc(g, keep ? y : yk_drop_last(g, y));
}

static yk_id quantile(struct yk_graph *g, yk_id x, yk_id q, int axis, int mode)
{
	int order[YOKE_MAX_RANK], rank = g->value[x].rank, n = 0, out;
	bool many = g->value[q].rank == 1;
	int64_t size = g->value[x].dims[axis];
	for (int i = 0; i < rank; i++)
		if (i != axis)
			order[n++] = i;
	order[n] = axis;
	yk_id sorted = yk_record(g, YK_SORT, 1, (yk_id[]){ yk_permute(g, x, order) }, 2,
				 (union yoke_attr[]){ { .i = size }, { .i = 0 } });
	yk_id y = between(g, sorted, q, mode), top = largest(g, sorted, many);
	y = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, top, top), y, top);
	if (!many || y == YK_BAD)
		return y;
	out = g->value[y].rank; // the quantile axis comes first
	for (int i = 0; i < out; i++)
		order[i] = i ? i - 1 : out - 1;
	return yk_permute(g, y, order);
}

static yoke_tensor *quantile_of(const char *call, yoke_tensor *x, yoke_tensor *q, int axis,
				int mode)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_SUM, 0, 1, &x);
	yk_id v = real(&r, r.in[0], 1), y = YK_BAD, at;
	int k = yk_rec_axis(&r, v, axis);
	const struct yk_tensor *number;
	char text[160];
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	if (!r.g->value[v].dims[k])
		yk_rec_fail(&r, YOKE_ESHAPE, "axis %d of %s is empty", axis,
			    yk_describe(&r.g->value[v], text));
	else if ((at = yk_operand(r.ctx, q, yoke_f64)) == YK_NIL)
		yk_rec_fail(&r, YOKE_EINVAL, "q is YOKE_NONE");
	else if (at != YK_BAD &&
		 (r.g->value[at].rank > 1 || !yk_is_float(r.g->value[at].dtype)))
		yk_rec_fail(&r, YOKE_ESHAPE, "q is a floating-point number or [Q], got %s",
			    yk_describe(&r.g->value[at], text));
	else if (at != YK_BAD && (number = yk_tensor(q, "quantile"))->kind == YK_LITERAL &&
		 !(number->scalar >= 0 && number->scalar <= 1))
		yk_rec_fail(&r, YOKE_ERANGE, "q = %g is not in 0..1", number->scalar);
	else if (at != YK_BAD)
		y = quantile(r.g, v, at, k, mode);
	return yk_rec_end(&r, yk_cast_like(r.g, y, v));
}

yoke_tensor *yoke_quantile(yoke_tensor *x, yoke_tensor *q, int axis)
{
	return quantile_of("quantile", x, q, axis, YOKE_QUANTILE_LINEAR);
}

yoke_tensor *yoke_quantile_by(yoke_tensor *x, yoke_tensor *q, int axis, int mode)
{
	if (mode < YOKE_QUANTILE_LINEAR || mode > YOKE_QUANTILE_NEAREST) {
		yk_fail(YOKE_EINVAL, "quantile_by: mode %d is none", mode);
		return NULL;
	}
	return quantile_of("quantile_by", x, q, axis, mode);
}

// Bins of equal width; elements outside go into an extra bin, which is dropped.  weight: YK_NIL
// counts.
static yk_id histogram(struct yk_graph *g, yk_id x, yk_id weight, int64_t bins, double lo,
		       double hi)
{
	int64_t n = yk_count(&g->value[x]);
	x = yk_reshape(g,
		       yk_cast(g, x,
			       yk_is_float(g->value[x].dtype) ?
				       yk_acc(g->value[x].dtype) :
				       yoke_f64),
		       1, &n);
	yk_id inside = yk_bin(g, YK_AND, yk_bin_lit(g, YK_GE, x, lo),
			      yk_bin_lit(g, YK_LE, x, hi));
	yk_id at = yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_SUB, x, lo),
			      (double)bins / (hi - lo));
	at = yk_bin_lit(g, YK_MIN, yk_cast(g, at, yoke_i64), (double)(bins - 1));
	at = yk_tri(g, YK_SELECT, inside, at, yk_lit(g, yoke_i64, (double)bins));
	yk_id one = weight == YK_NIL ? yk_broadcast(g, yk_lit(g, yoke_i64, 1), 1, &n) :
				       yk_reshape(g, weight, 1, &n);
	yk_id y = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, at, one }, 1,
			    &(union yoke_attr){ .i = bins + 1 });
	return yk_slice(g, y, (int64_t[]){ 0 }, (int64_t[]){ 1 }, &bins);
}

static bool good_bins(struct yk_rec *r, int64_t bins, double lo, double hi)
{
	// positions are exact while an f64 represents them
	if (bins >= 1 && bins <= (int64_t)1 << 52 && lo < hi && isfinite(hi - lo))
		return true;
	yk_rec_fail(r, YOKE_ERANGE, "%lld bins from %g to %g", (long long)bins, lo, hi);
	return false;
}

yoke_tensor *yoke_histogram(yoke_tensor *x, int64_t bins, double lo, double hi)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	if (r.in[0] == YK_BAD || !good_bins(&r, bins, lo, hi))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, histogram(r.g, r.in[0], YK_NIL, bins, lo, hi));
}

yoke_tensor *yoke_histogram_weighted(yoke_tensor *x, yoke_tensor *weight, int64_t bins, double lo,
				     double hi)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, weight });
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD || !good_bins(&r, bins, lo, hi))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[r.in[0]], w = r.g->value[r.in[1]];
	if (!yk_same_shape(&v, &w) || w.dtype == yoke_bool) {
		yk_rec_fail(&r, w.dtype == yoke_bool ? YOKE_EDTYPE : YOKE_ESHAPE,
			    "takes weights, numbers of x's shape, got %s and %s",
			    yk_describe(&v, a), yk_describe(&w, b));
		return yk_rec_end(&r, YK_BAD);
	}
	yk_id y = histogram(r.g, r.in[0], yk_cast_acc(r.g, r.in[1]), bins, lo, hi);
	return yk_rec_end(&r, yk_cast_like(r.g, y, r.in[1]));
}
